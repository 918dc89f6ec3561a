import pytest

pytestmark = pytest.mark.usefixtures("weights")


def test_every_value_has_a_source(unspool):
    out = unspool("explain", "--temp", "0.7", "--top-k", "40").out
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line.strip()}
    assert rows["temperature"] == ["0.7", "user"]
    assert rows["top_k"] == ["40", "user"]
    assert rows["max_new_tokens"] == ["128", "default"]
    assert rows["strategy"] and rows["rules"] and rows["stops"]


def test_json_is_the_explanation(unspool):
    found = unspool("explain", "--temperature", "0", "--json").json
    assert "greedy" in str(found).lower()
