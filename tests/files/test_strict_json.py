import pytest

from unspool.core.errors import FormatError, ModelError
from unspool.files.strict_json import LARGEST, parse_object, read_object


@pytest.mark.parametrize(("raw", "said"), [
    (b"", "not valid JSON"),
    (b"{", "not valid JSON"),
    (b'{"a": 1} x', "not valid JSON"),
    (b"[1]", "must be an object, not list"),
    (b"null", "must be an object, not NoneType"),
    (b'{"a": 1, "a": 1}', "name 'a' occurs twice"),
    (b'{"x": {"b": 1, "c": 2, "b": 3}}', "name 'b' occurs twice"),
    (b'{"a": NaN}', "NaN is not a JSON number"),
    (b'{"a": -Infinity}', "-Infinity is not a JSON number"),
    (b'{"a": 1e999}', "1e999 is too large"),
    (b'{"a": ' + b"9" * 5000 + b"}", "not valid JSON"),
    (b'{"a": "\xff"}', "not valid JSON"),
    (b'\xef\xbb\xbf{"a": 1}', "not valid JSON"),
    (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
    (b'{"a": ' * 50_000 + b"1" + b"}" * 50_000, "nested too deeply"),
    (b'{"a": [' + b"{}," * 2_000_000 + b"1]}", "MiB are allowed"),
    (b'{"a": "' + b"a" * LARGEST + b'"}', "MiB are allowed"),
])
def test_doubtful_text_is_refused(raw, said):
    with pytest.raises(FormatError, match=said) as caught:
        parse_object(raw, "config.json")
    assert str(caught.value).startswith("config.json: ") and len(str(caught.value)) < 400


def test_what_is_json_is_read():
    assert parse_object(b' {"a": [1, -2.5, true, null, "\\u00e9\xc3\xa9"], "b": {}} ', "x") == {
        "a": [1, -2.5, True, None, "éé"], "b": {},
    }


def test_the_index_of_a_very_large_model_is_within_the_budget():
    lines = ",".join(
        f'"model.layers.{i % 61}.mlp.experts.{i}.down_proj.weight_scale_inv":'
        f'"model-{i % 163:05}-of-000163.safetensors"' for i in range(92_000)
    )
    assert len(parse_object(f'{{"weight_map":{{{lines}}}}}'.encode(), "x")["weight_map"]) == 92_000


def test_files(tmp_path):
    (tmp_path / "a.json").write_text('{"a": 1}')
    assert read_object(tmp_path / "a.json") == {"a": 1}
    with pytest.raises(ModelError, match=r"b\.json: cannot be opened"):
        read_object(tmp_path / "b.json")
    with (tmp_path / "big.json").open("wb") as file:
        file.truncate(LARGEST + 1)
    with pytest.raises(FormatError, match="bytes of JSON, at most"):
        read_object(tmp_path / "big.json")
