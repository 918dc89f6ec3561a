"""The measurements find the tests' own models and files."""

from bench.trees import load_test


def test_a_module_is_loaded_once():
    corpus = load_test("files/test_gguf")
    assert len(corpus.HOSTILE) > 50 and load_test("files/test_gguf") is corpus
