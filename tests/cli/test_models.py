from unspool.files.store import KNOWN, find


def test_models_known_by_name_are_listed(unspool):
    rows = unspool("models", "ls", "--json").json["models"]
    assert [row["name"] for row in rows] == list(KNOWN)
    assert [row["name"] for row in rows if row["default"]] == ["smollm2"]
    assert "smollm2" in unspool("models", "ls").out


def test_a_model_that_is_here_is_not_fetched_again(unspool, weights):
    assert unspool("models", "fetch", "smollm2").out == f"{find('smollm2')}\n"
    assert unspool("models", "fetch", "smollm2", "--json").json["path"] == str(weights)


def test_an_unknown_name_is_refused_with_the_known_ones(unspool):
    assert "smollm2" in unspool("models", "fetch", "smolm2", code=4).err
