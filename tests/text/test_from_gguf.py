"""Tokenizers from GGUF metadata: the rules by name, and what is wrong in a file."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from unspool.core.errors import FormatError
from unspool.text.from_gguf import PRE_RULES, from_gguf
from unspool.text.pieces import CHAR_OF_BYTE
from unspool.text.tokenizer import Tokenizer

BYTES = [CHAR_OF_BYTE[byte] for byte in range(256)]


def cuts(pre: str, text: str) -> list[str]:
    """The words a rule cuts `text` into."""
    from tokenizers import pre_tokenizers

    rule = pre_tokenizers.Sequence(PRE_RULES[pre]())
    words = rule.pre_tokenize_str(text)
    return [text[start:end] for _, (start, end) in words]


@pytest.mark.parametrize(
    ("pre", "text", "words"),
    [
        ("smollm", "a  1", ["a", "  ", "1"]),
        ("smollm", "x 1234 y", ["x", " ", "1", "2", "3", "4", " y"]),
        ("smollm", "it's   so\n\n z", ["it", "'s", "  ", " so", "\n\n", " z"]),
        ("gpt-2", "a  1234", ["a", " ", " 1234"]),
        ("gpt-2", "IT'S it's!?", ["IT", "'", "S", " it", "'s", "!?"]),
        ("qwen2", "a  1234", ["a", " ", " ", "1", "2", "3", "4"]),
        ("qwen2", "IT'S(x)\n\n y", ["IT", "'S", "(x", ")\n\n", " y"]),
        ("llama-bpe", "a 1234567", ["a", " ", "123", "456", "7"]),
        ("llama-bpe", "IT'S(x)\n\n y", ["IT", "'S", "(x", ")\n\n", " y"]),
        ("default", "a=b +1234", ["a", "=", "b", " ", "+", "123", "4"]),
        ("default", "hi, you", ["hi", ",", " you"]),
    ],
)
def test_pre_rules(pre: str, text: str, words: list[str]) -> None:
    assert cuts(pre, text) == words


def byte_level(**more: Any) -> dict[str, Any]:
    tokens = [*BYTES, "Ġa", "Ġ1", "12", "ab", "<|end|>", "<tool>"]
    keys = {
        "model": "gpt2",
        "pre": "smollm",
        "tokens": tokens,
        "token_type": [1] * (len(tokens) - 2) + [3, 4],
        "merges": ["Ġ a", "Ġ 1", "1 2", "a b"],
        "eos_token_id": len(tokens) - 2,
        **more,
    }
    return {f"tokenizer.ggml.{key}": value for key, value in keys.items() if value is not None}


def test_special_and_user_defined_tokens() -> None:
    tokenizer = from_gguf(byte_level())
    ids = tokenizer.encode("ab<tool><|end|>")
    assert [tokenizer.label(i) for i in ids[:2]] == ["ab", "<tool>"]  # not a control token
    assert tokenizer.specials == {260} and 260 not in ids
    assert tokenizer.encode("<|end|>", specials=True) == [260]
    assert tokenizer.eos_ids == {260} and tokenizer.start_ids == ()


def test_the_start_token_by_rule_and_by_key() -> None:
    named = {"bos_token_id": 260}
    assert from_gguf(byte_level(**named)).start_ids == ()
    assert from_gguf(byte_level(**named, pre="llama-bpe")).start_ids == (260,)
    assert from_gguf(byte_level(**named, pre="llama-bpe", add_bos_token=False)).start_ids == ()
    assert from_gguf(byte_level(**named, add_bos_token=True)).encode("a")[0] == 260
    assert from_gguf(byte_level(add_eos_token=True)).end_ids == (260,)


def test_llama_bpe_takes_whole_words_before_merging() -> None:
    keys = {"tokens": [*BYTES, "xyz"], "token_type": None, "eos_token_id": None, "merges": []}
    assert from_gguf(byte_level(**keys, pre="llama-bpe")).encode("xyz") == [256]  # by no merge
    assert from_gguf(byte_level(**keys, pre="gpt-2")).encode("xyz") == list(b"xyz")


def test_qwen2_composes_characters_first() -> None:
    tokenizer = from_gguf(byte_level(pre="qwen2"))
    assert tokenizer.encode("e\u0301") == tokenizer.encode("\u00e9")
    plain = from_gguf(byte_level(pre="gpt-2"))
    assert plain.encode("e\u0301") != plain.encode("\u00e9")


# --- sentencepiece -------------------------------------------------------------------------------

SPM = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3)]
SPM += [(f"<0x{byte:02X}>", 0.0, 6) for byte in range(256)]
SPM += [("▁t", -1.0, 1), ("he", -2.0, 1), ("▁the", -3.0, 1), ("▁▁", -4.0, 1)]
SPM += [(char, -10.0 - i, 1) for i, char in enumerate("▁thea")] + [("[IMG]", 0.0, 4)]


def spm(**more: Any) -> Tokenizer:
    keys = {
        "model": "llama",
        "tokens": [text for text, _, _ in SPM],
        "scores": [score for _, score, _ in SPM],
        "token_type": [kind for _, _, kind in SPM],
        "bos_token_id": 1,
        "eos_token_id": 2,
        "unknown_token_id": 0,
        **more,
    }
    return from_gguf({f"tokenizer.ggml.{key}": value for key, value in keys.items()})


def labels(tokenizer: Tokenizer, text: str, **options: bool) -> list[str]:
    return [SPM[i][0] for i in tokenizer.encode(text, **options)]


def test_sentencepiece_by_hand() -> None:
    tokenizer = spm()
    assert labels(tokenizer, "the") == ["<s>", "▁the"]
    assert labels(tokenizer, "the the", start=False) == ["▁the", "▁the"]
    assert labels(tokenizer, " the", start=False) == ["▁", "▁the"]  # "▁t" scores above "▁▁"
    assert labels(tokenizer, "t é", start=False) == ["▁t", "▁", "<0xC3>", "<0xA9>"]
    assert "</s>" not in labels(tokenizer, "a</s>")
    assert labels(tokenizer, "a</s>the", start=False, specials=True) == ["▁", "a", "</s>", "▁the"]
    assert labels(tokenizer, "[IMG]t", start=False) == ["[IMG]", "▁t"]


@pytest.mark.parametrize("text", ["the the", " the", "é 👩🏽‍🚀", "a\nb", "x", "  t  "])
@pytest.mark.parametrize("prefix", [True, False])
def test_sentencepiece_texts_come_back(text: str, prefix: bool) -> None:
    tokenizer = spm(add_space_prefix=prefix)
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.vocab_size == len(SPM)


def test_no_space_prefix() -> None:
    assert labels(spm(add_space_prefix=False), "the", start=False) == ["t", "he"]


# --- the default model ---------------------------------------------------------------------------


def test_the_facts_of_smollm2(smol: Tokenizer, metadata: Mapping[str, Any]) -> None:
    assert smol.vocab_size == 49152 and smol.pre == "smollm"
    assert (smol.bos_id, smol.start_ids, smol.end_ids) == (1, (), ())
    assert smol.eos_ids == {0, 2} and smol.specials == set(range(17))
    assert smol.chat_template == metadata["tokenizer.chat_template"]
    assert smol.encode("The color of sky is") == [504, 2380, 282, 6376, 314]


def test_the_digit_rule_of_smollm2(smol: Tokenizer) -> None:
    assert [smol.label(i) for i in smol.encode("a  1")] == ["a", "  ", "1"]
    code = "    for i in range(10):\n        x[ 2] = 3.14\n"
    assert smol.decode(smol.encode(code)) == code
    pieces = [smol.piece(i) for i in smol.encode(code)]
    assert all(len(p) == 1 for p in pieces if any(48 <= byte <= 57 for byte in p))


# --- faults --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"model": "rwkv"}, "tokenizer.ggml.model is 'rwkv'; supported are 'gpt2' and 'llama'"),
        ({"model": None}, "tokenizer.ggml.model is ''"),
        ({"model": 3}, "tokenizer.ggml.model is int"),
        ({"pre": "tekken"}, "pre is 'tekken'; supported are smollm, llama-bpe, qwen2, gpt-2"),
        ({"tokens": None}, "tokens must be a list of str"),
        ({"tokens": ["a", 3]}, "tokens must be a list of str"),
        ({"tokens": ["a", "b", "a"]}, "has 'a' twice"),
        ({"token_type": [1]}, "token_type has 1 entries; the vocabulary has 262"),
        ({"token_type": "x"}, "token_type must be a list of int"),
        ({"merges": None}, "merges must be a list of str"),
        ({"merges": ["ab"]}, "merges has 'ab'"),
        ({"merges": ["q zz"]}, "merges do not fit the tokens"),
        ({"eos_token_id": 262}, "eos_token_id is 262; ids run from 0 to 261"),
        ({"bos_token_id": -1}, "bos_token_id is -1"),
        ({"bos_token_id": "x"}, "bos_token_id is str"),
        ({"add_bos_token": 3}, "add_bos_token is int"),
    ],
)
def test_a_fault_is_named(more: dict[str, Any], words: str) -> None:
    with pytest.raises(FormatError) as caught:
        from_gguf(byte_level(**more))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("more", [{"scores": [0.0]}, {"scores": "x"}, {"tokens": []}])
def test_a_faulty_sentencepiece_vocabulary(more: dict[str, Any]) -> None:
    with pytest.raises(FormatError):
        spm(**more)


def test_a_template_that_is_no_text() -> None:
    with pytest.raises(FormatError, match="chat_template is int"):
        from_gguf({**byte_level(), "tokenizer.chat_template": 3})


def test_merges_that_the_library_cannot_bear() -> None:
    """It panics on a merge whose result is no token, and a panic is no Exception."""
    faulty = {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "smollm",
              "tokenizer.ggml.tokens": ["a", "b"], "tokenizer.ggml.merges": ["a b"]}
    with pytest.raises(FormatError, match="merges do not fit the tokens"):
        from_gguf(faulty)
