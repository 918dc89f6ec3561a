"""From a name, folder, file or object to a loaded model; every refusal is one clear line."""

import json
import resource
import struct
from pathlib import Path

import models_zoo as zoo
import pytest
import torch
from safetensors.torch import save_file

import unspool
from unspool.core.errors import FormatError, ModelError, ParameterError, TemplateError, UnspoolError
from unspool.files import store
from unspool.memories import MEMORIES

ENDS = {"eos_token_id": [4, 5]}


def loaded(*args, **kwargs):
    """A loaded model that is closed at once: its facts are what is asked for."""
    with unspool.load(*args, **kwargs) as lm:
        return lm


# -------------------------------------------------------------------------------- what is loaded
@pytest.mark.parametrize("form", ["folder", "path", "file", "relative", "home", "trailing slash"])
def test_a_checkpoint_by_its_path(folder, monkeypatch, form):
    place = folder()
    monkeypatch.chdir(place.parent)
    monkeypatch.setenv("HOME", str(place.parent))
    given = {
        "folder": str(place), "path": place, "file": str(place / "model.safetensors"),
        "relative": "./letters", "home": "~/letters", "trailing slash": f"{place}/",
    }[form]  # fmt: skip
    with unspool.load(given) as lm:
        assert lm.generate("a", max_new_tokens=3).text == "bcd"
        assert lm.name == ("model.safetensors" if form == "file" else "letters")
        assert lm.numerics == ("default" if lm.device == "cpu" else "reference")
        assert (lm.context, lm.facts.vocab) == (512, 12)
        assert lm.device in ("cpu", "cuda", "mps")


def test_the_folder_one_stands_in(folder, monkeypatch):
    monkeypatch.chdir(folder())
    assert loaded(".").name == "letters"


def test_end_tokens_are_united(folder):
    """B24: the model's config, its generation config and its tokenizer each name some."""
    place = folder(
        config={"eos_token_id": 3}, generation_config=ENDS,
        tokenizer_config={"eos_token": "g"},
    )  # fmt: skip
    lm = loaded(place)
    assert lm.facts.ends == {3, 4, 5, 6} and lm.tokenizer.eos_ids <= lm.facts.ends
    with unspool.load(place) as lm:
        output = lm.generate("a", max_new_tokens=9)
        assert (output.text, output.stop_reason) == ("bc", 3)


def test_the_generation_config_gives_the_defaults(folder):
    lm = loaded(folder(generation_config={"temperature": 0.7, "top_k": 5}))
    assert lm.defaults == {"temperature": 0.7, "top_k": 5}
    rows = {name: source for name, _, source in lm.explain().rows}
    assert rows["temperature"] == rows["top_k"] == "model"


def test_a_folder_without_a_tokenizer_works_on_ids(folder):
    with unspool.load(folder(words=False)) as lm:
        assert lm.tokenizer is None
        assert any("no tokenizer: ids in, ids out" in note for note in lm.notes)
        output = lm.generate([0], max_new_tokens=2)
        assert output.token_ids == [1, 2] and "no tokenizer" in output.notes[0]
        with pytest.raises(UnspoolError, match="without a tokenizer; pass token ids"):
            lm.generate("a")


def test_a_tokenizer_of_its_own(folder, tmp_path, kit):
    ids_only = folder(words=False)
    words = tmp_path / "words"
    words.mkdir()
    kit.letters()._backend.save(str(words / "tokenizer.json"))
    for given in (str(words), words, kit.letters()):
        with unspool.load(ids_only, tokenizer=given) as lm:
            assert lm.generate("a", max_new_tokens=2).text == "bc"


def test_a_tokenizer_smaller_than_the_head_bounds_the_vocabulary(folder, kit):
    """B45."""
    table = torch.full((12, 12), -4.0)
    table[:, 9] = 9.0
    table[:, 3] = 5.0
    with unspool.load(folder(table), tokenizer=kit.letters(8)) as lm:
        assert lm.facts.vocab == 8
        assert lm.generate("a", max_new_tokens=3).text == "ddd"


def test_memories(folder):
    place = folder()
    texts = []
    for memory in MEMORIES:
        with unspool.load(place, memory=memory) as lm:
            output = lm.generate("abc", max_new_tokens=4)
            texts.append(output.text)
            assert output.usage.computed == (3 + 4 + 5 + 6 if memory == "none" else 6)
            known = lm.worker.loop.engine.runner.memory
            assert getattr(known, "reserve", 0) == (lm.context if memory == "full" else 0)
    assert texts == ["defg"] * 3


def test_number_types_are_of_the_reference(folder):
    for dtype in ("float32", "float64", torch.float64):
        with unspool.load(folder(), device="cpu", dtype=dtype) as lm:
            assert lm.numerics == "reference"
            assert lm.generate("a", max_new_tokens=2).text == "bc"


@pytest.mark.parametrize("numerics", [None, "default", "fast", "reference"])
def test_numerics(folder, numerics):
    with unspool.load(folder(), device="cpu", numerics=numerics) as lm:
        output = lm.generate("a", max_new_tokens=3)
        assert output.numerics == lm.numerics == (numerics or "default")
        assert output.text == "bcd"


@pytest.mark.parametrize(
    ("choice", "noted"),
    [
        ({"threads": 1}, None),
        ({"kv": "f32"}, None),
        ({"kv": "bf16"}, "kept as bf16"),
        ({"kv": "int8"}, "kept as int8"),
        ({"quantize": "int8"}, "matrices keep their floats"),  # they are too narrow
    ],
)
def test_the_choices_of_the_compiled_way(folder, choice, noted):
    with unspool.load(folder(), device="cpu", **choice) as lm:
        assert lm.generate("a", max_new_tokens=3).text == "bcd"
        assert [noted in note for note in lm.notes] == [True] * (noted is not None)


def test_the_default_by_every_name(smol):
    path = store.find("smollm2")
    assert smol.name == "smollm2"
    again = loaded(path)
    assert again.name == path.name and again.facts.ends == smol.facts.ends >= {2}
    assert again.facts.vocab == smol.facts.vocab == 49152 and again.context == smol.context


def test_the_default_model_that_is_missing_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setattr(store, "_places", lambda model: [])
    for name in (None, "smollm2"):
        with pytest.raises(ModelError, match="run `unspool models fetch smollm2`"):
            unspool.load(name)


def test_a_cached_hugging_face_id(folder, tmp_path, monkeypatch):
    """Found in the cache with its tokenizer and its end tokens; nothing is fetched."""
    constants = pytest.importorskip("huggingface_hub.constants", reason="no cache of ids without")
    place = folder(generation_config=ENDS)
    repo = tmp_path / "hub" / "models--some--letters"
    (repo / "refs").mkdir(parents=True)
    (repo / "refs" / "main").write_text("abc123")
    (repo / "snapshots").mkdir()
    place.rename(repo / "snapshots" / "abc123")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    with unspool.load("some/letters") as lm:
        assert lm.name == "some/letters" and lm.facts.ends == {4, 5}
        assert lm.generate("a", max_new_tokens=9).text == "bcd"
    with pytest.raises(ModelError, match="'some/other' is neither a path nor in the local"):
        unspool.load("some/other")


def test_a_transformers_object(folder):
    pytest.importorskip("transformers", reason="its objects need it")
    model = zoo.hf_markov(zoo.cycle(12))
    model.config.eos_token_id = 2  # a Llama's default: left out of what differs from it
    model.generation_config.eos_token_id = [2, 5]
    model.generation_config.temperature = 0.5
    model.generation_config.do_sample = True
    with unspool.load(model, tokenizer=folder()) as lm:
        assert lm.facts.ends == {2, 5} and lm.defaults["temperature"] == 0.5
        output = lm.generate("c", max_new_tokens=9, temperature=0)
        assert (output.text, output.stop_reason) == ("de", 5)
        assert any("transformers" in note for note in output.notes)
    with unspool.load(zoo.hf_markov(zoo.cycle(12))) as lm:
        assert lm.tokenizer is None and lm.generate([0], max_new_tokens=2).token_ids == [1, 2]


def test_a_transformers_object_finds_the_tokenizer_beside_its_weights(folder, tmp_path):
    transformers = pytest.importorskip("transformers", reason="its objects need it")
    place = folder(config={"eos_token_id": 9})
    model = transformers.AutoModelForCausalLM.from_pretrained(place)
    with unspool.load(model) as lm:
        assert lm.generate("a", max_new_tokens=2).text == "bc"
    (place / "tokenizer.json").rename(place / "vocab.json")
    with unspool.load(model) as lm:
        assert lm.tokenizer is None and any("no tokenizer" in note for note in lm.notes)
    words = transformers.PreTrainedTokenizerFast(tokenizer_file=str(place / "vocab.json"))
    with unspool.load(model, tokenizer=words) as lm:
        assert lm.generate("a", max_new_tokens=2).text == "bc"


def resident() -> float:
    """Megabytes of memory that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the size is read there")
def test_closing_gives_the_memory_back(smol):
    for _ in range(2):  # libraries keep some of what they take at first
        before = resident()  # with the imports, and `smol`
        lm = unspool.load(numerics="reference")
        lm.generate("The color of sky is", max_new_tokens=2)
        assert resident() - before > 400  # 538 MB of weights
        lm.close()
    assert resident() - before < 100


# ---------------------------------------------------------------------------------- what is refused
def empty(place, kit):
    return place


def with_files(**files):
    def write(place, kit):
        for name, content in files.items():
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            (place / name.replace("__", ".")).write_bytes(data)
        return place

    return write


def checkpoint(config=None, **files):
    """A whole checkpoint, but for what is said."""

    def write(place, kit):
        save_file(kit.weights(zoo.cycle(12)), place / "model.safetensors")
        whole = {"config__json": zoo.markov_config(12) | (config or {})}
        return with_files(**(whole | files))(place, kit)

    return write


def truncated(place, kit):
    checkpoint()(place, kit)
    path = place / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-200])
    return place


def one_weight_less(place, kit):
    weights = kit.weights(zoo.cycle(12))
    del weights["model.norm.weight"]
    save_file(weights, place / "model.safetensors")
    return with_files(config__json=zoo.markov_config(12))(place, kit)


def only(name, data):
    def write(place, kit):
        (place / name).write_bytes(data)
        return place / name

    return write


REFUSED = {
    "empty folder": (empty, ModelError, "no weights"),
    "config only": (with_files(config__json=zoo.markov_config(12)), ModelError, "no weights"),
    "pickle": (with_files(pytorch_model__bin=b"\x80\x04", config__json={}), ModelError, "pickled"),
    "pickle file": (only("model.pt", b"\x80\x04"), ModelError, "pickled"),
    "other file": (only("model.onnx", b"x"), ModelError, "give a .gguf or .safetensors"),
    "adapter only": (with_files(adapter_config__json={"r": 8}), ModelError, "merge"),
    "no config": (only("model.safetensors", struct.pack("<Q", 2) + b"{}"), ModelError,
                  "without config.json"),
    "config not json": (checkpoint(config__json=b"{"), FormatError, "config.json"),
    "no model_type": (checkpoint(config__json={"vocab_size": 3}), FormatError, "model_type"),
    "quantised": (checkpoint({"quantization_config": {"quant_method": "gptq"}}), ModelError,
                  "quantized checkpoint (gptq)"),
    "own code": (checkpoint({"auto_map": {"AutoModel": "x.py"}}), ModelError, "auto_map"),
    "truncated safetensors": (truncated, FormatError, "model.safetensors"),
    "hostile safetensors": (checkpoint(model__safetensors=struct.pack("<Q", 2**62)), FormatError,
                            "model.safetensors"),
    "one weight less": (one_weight_less, ModelError, "model.norm.weight"),
    "wrong shape": (checkpoint({"hidden_size": 16}), ModelError, ""),
    "truncated gguf": (only("m.gguf", b"GGUF" + struct.pack("<I", 3)), FormatError, "m.gguf"),
    "hostile gguf": (only("m.gguf", b"GGUF" + struct.pack("<IQQ", 3, 2**60, 2**60)), FormatError,
                     "m.gguf"),
    "no gguf": (only("m.gguf", b"PK\x03\x04"), FormatError, "m.gguf"),
    "damaged tokenizer": (checkpoint(tokenizer__json=b"{}"), FormatError, "tokenizer.json"),
    "other tokenizer": (checkpoint(vocab__json={"a": 0}), FormatError, "no tokenizer.json"),
    "end that is no id": (checkpoint({"eos_token_id": "x"}), FormatError, "eos_token_id='x'"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_a_folder_or_file_that_is_refused(tmp_path, kit, what):
    make, kind, said = REFUSED[what]
    with pytest.raises(kind) as error:
        unspool.load(make(tmp_path, kit))
    message = str(error.value)
    assert said in message and "\n" not in message and len(message) < 500


@pytest.mark.parametrize(
    ("args", "kind", "said"),
    [
        (("nowhere",), ModelError, "'nowhere' is neither a known model (smollm2) nor a path"),
        (("./no/where",), ModelError, "no such file or folder"),
        ((Path("no/where"),), ModelError, "no such file or folder"),
        (("x" * 5000,), ModelError, "is neither a known model"),
        (("a\0b",), ModelError, "is neither a known model"),
        (("",), ModelError, "is neither a known model"),
        (("http://host/v1",), ModelError, "a remote model is not in this version"),
        (("https://host/v1",), ModelError, "a remote model is not in this version"),
        ((42,), ModelError, "a int is no model"),
    ],
)
def test_a_name_that_is_refused(args, kind, said):
    with pytest.raises(kind) as error:
        unspool.load(*args)
    assert said in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"memory": "paged"}, "memory"),
        ({"memory": None}, "memory"),
        ({"numerics": "exact"}, "numerics"),
        ({"dtype": "float16"}, "dtype"),
        ({"dtype": "float32", "numerics": "default"}, "dtype"),
        ({"dtype": "float64", "numerics": "fast"}, "dtype"),
        ({"threads": 0}, "threads"),
        ({"threads": 2, "numerics": "reference"}, "threads"),
        ({"kv": "f16"}, "kv"),
        ({"kv": "bf16", "dtype": "float32"}, "kv"),
        ({"quantize": "int4"}, "quantize"),
        ({"quantize": "int8", "numerics": "reference"}, "quantize"),
        ({"device": "abacus"}, "device"),
        ({"tokenizer": 7}, "tokenizer"),
        ({"tokenizer": ["a"]}, "tokenizer"),
    ],
)
def test_a_setting_that_is_refused(folder, settings, name):
    with pytest.raises(ParameterError) as error:
        unspool.load(folder(), **settings)
    message = str(error.value)
    assert name in message and str(settings[name]) in message and "\n" not in message
    assert error.value.name == name


def test_a_tokenizer_that_is_not_there(folder, tmp_path):
    for given in (tmp_path / "no", str(tmp_path)):
        with pytest.raises(ModelError, match=r"tokenizer=.*there is no tokenizer\.json"):
            unspool.load(folder(), tokenizer=given)


def test_a_template_that_loops_harms_its_request_only(folder):
    endless = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    place = folder(tokenizer_config={"chat_template": endless})
    with unspool.load(place) as lm:
        chat, text = lm.generate([[{"role": "user", "content": "a"}], "a"], max_new_tokens=3)
        assert isinstance(chat.error, TemplateError) and "longer than 1 s" in str(chat.error)
        assert text.text == "bcd" and text.error is None


def test_an_unknown_setting_is_a_type_error(folder):
    with pytest.raises(TypeError, match="colour"):
        unspool.load(folder(), colour="red")
