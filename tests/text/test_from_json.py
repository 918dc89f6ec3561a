"""Model folders: the ids are those of transformers' AutoTokenizer, whatever the tokenizer."""
from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers import (
    AddedToken,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from unspool.core.errors import FormatError
from unspool.text.from_json import OTHER_BYTES, from_folder
from unspool.text.tokenizer import Tokenizer

CORPUS = [
    "the color of the sky is blue, and the sea is 12 miles deep",
    "def color(sky):\n    return sky  # 123 45",
    "über café naïve — 色即是空 日本語 👩🏽‍🚀 שלום",
] * 3
TEXTS = [
    "the sky is 12",
    " café  色 x\n\n",
    "deep<s> blue </s>the",
    "<think>sea</think> <extra>",
    "",
    " ",
]


def byte_level() -> tokenizers.Tokenizer:
    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<s>", "</s>"], initial_alphabet=alphabet
    )
    made.train_from_iterator(CORPUS, trainer)
    made.add_tokens([AddedToken("<think>", normalized=False), "</think>"])
    made.post_processor = processors.ByteLevel(trim_offsets=False)
    return made


def starting() -> tokenizers.Tokenizer:
    made = byte_level()
    made.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing("<s> $A", "<s> $A <s> $B", [("<s>", 0)]),
        ]
    )
    return made


def byte_fallback() -> tokenizers.Tokenizer:
    made = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    made.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    specials = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    made.train_from_iterator(
        ["▁".join(text.split()) for text in CORPUS[:1]],
        trainers.BpeTrainer(vocab_size=340, special_tokens=specials),
    )
    state = json.loads(made.to_str())
    state["added_tokens"] = state["added_tokens"][:3]
    made = tokenizers.Tokenizer.from_str(json.dumps(state))
    made.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    made.post_processor = processors.TemplateProcessing("<s> $A", "<s> $A $B", [("<s>", 1)])
    return made


def metaspace() -> tokenizers.Tokenizer:
    made = tokenizers.Tokenizer(models.Unigram())
    made.normalizer = normalizers.NFKC()
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    made.decoder = decoders.Metaspace(prepend_scheme="first")
    made.train_from_iterator(
        CORPUS,
        trainers.UnigramTrainer(
            vocab_size=120, unk_token="<unk>", special_tokens=["<unk>", "<s>", "</s>"],
            show_progress=False,
        ),
    )
    made.post_processor = processors.TemplateProcessing("$A </s>", "$A $B </s>", [("</s>", 2)])
    return made


def word_piece() -> tokenizers.Tokenizer:
    made = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece(cleanup=False)
    specials = ["[UNK]", "[CLS]", "[SEP]"]
    made.train_from_iterator(
        CORPUS, trainers.WordPieceTrainer(vocab_size=200, special_tokens=specials)
    )
    made.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", "[CLS] $A [SEP] $B", [("[CLS]", 1), ("[SEP]", 2)]
    )
    return made


Make = Callable[[], tokenizers.Tokenizer]
MAKERS: list[Make] = [byte_level, starting, byte_fallback, metaspace, word_piece]


def write(folder: Path, backend: tokenizers.Tokenizer, **files: Any) -> Path:
    backend.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", **files.pop("config", {})}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


def load(folder: Path) -> Tokenizer:
    tokenizer = from_folder(folder)
    assert tokenizer is not None
    return tokenizer


def same_as_transformers(folder: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="the peer of this comparison")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    peer, ours = transformers.AutoTokenizer.from_pretrained(folder), load(folder)
    assert ours.vocab_size == len(peer)
    for text in TEXTS:
        whole = [*ours.encode(text, specials=True, start=False)]
        assert whole == peer(text, add_special_tokens=False).input_ids, text
        full = [*ours.start_ids, *whole, *ours.end_ids]
        assert full == peer(text).input_ids, text
        assert ours.decode(whole) == peer.decode(
            whole, skip_special_tokens=True, clean_up_tokenization_spaces=False
        ), text
    assert set(ours.specials) >= set(peer.all_special_ids)
    assert ours.bos_id == peer.bos_token_id


@pytest.mark.parametrize("make", MAKERS)
def test_the_files_as_they_are(make: Make, tmp_path: Path) -> None:
    same_as_transformers(write(tmp_path, make()))


ENDS = {"bos_token": "<s>", "eos_token": "</s>"}
CONFIGS: list[dict[str, Any]] = [
    ENDS,
    {**ENDS, "add_bos_token": True},
    {**ENDS, "add_bos_token": False},
    {**ENDS, "add_bos_token": True, "add_eos_token": True},
    {**ENDS, "add_eos_token": False},
    {"bos_token": {"__type": "AddedToken", "content": "<s>", "special": True}},
    {"image_token": "<extra>", "extra_special_tokens": ["<other>"]},
    {"extra_special_tokens": {"image_token": "<extra>"}},
    {"add_bos_token": True},
    {"eos_token": "<extra>"},  # a special token that only the config knows
    {
        "added_tokens_decoder": {
            "900": {"content": "<extra>", "special": True, "normalized": False},
        }
    },
    {"eos_token": "</s>", "additional_special_tokens": ["<extra>"]},
]


@pytest.mark.parametrize("make", [byte_level, starting, byte_fallback])
@pytest.mark.parametrize("config", CONFIGS)
def test_the_config_beside_it(make: Make, config: dict[str, Any], tmp_path: Path) -> None:
    same_as_transformers(write(tmp_path, make(), config=config))


@pytest.mark.parametrize("make", MAKERS)
def test_pieces_join_to_the_text(make: Make, tmp_path: Path) -> None:
    tokenizer = load(write(tmp_path, make()))
    for text in TEXTS:
        ids = tokenizer.encode(text, start=False)
        decoder = tokenizer.decoder()
        parts = [decoder.feed(tokenizer.piece(i)) for i in ids]
        assert "".join(parts) + decoder.flush() == tokenizer.decode(ids)


def test_the_files_win_in_transformers_order(tmp_path: Path) -> None:
    write(
        tmp_path,
        byte_level(),
        config={"eos_token": "</s>", "chat_template": "config"},
        generation_config={"eos_token_id": [0, 7]},
        special_tokens_map={"bos_token": "<s>"},
    )
    (tmp_path / "config.json").write_text('{"eos_token_id": 9}')
    tokenizer = load(tmp_path)
    assert tokenizer.eos_ids == {0, 1, 7}  # generation config and tokenizer; not the model's
    assert tokenizer.bos_id == 0 and tokenizer.chat_template == "config"
    (tmp_path / "generation_config.json").unlink()
    (tmp_path / "chat_template.jinja").write_text("file")
    tokenizer = load(tmp_path)
    assert tokenizer.eos_ids == {1, 9} and tokenizer.chat_template == "file"


def test_several_templates(tmp_path: Path) -> None:
    several = [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}]
    write(tmp_path, byte_level(), config={"chat_template": several})
    assert load(tmp_path).chat_template == "d"


def test_chat_with_a_start_token_in_the_template(tmp_path: Path) -> None:
    template = "{{ bos_token }}{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}"
    config = {**ENDS, "chat_template": template}
    tokenizer = load(write(tmp_path, starting(), config=config))
    ids = tokenizer.encode_chat([{"role": "user", "content": "the<s></s> sky"}])
    assert [i for i in ids if i in tokenizer.specials] == [0, 1] and (ids[0], ids[-1]) == (0, 1)
    tokenizer.close()


def test_the_default_tokenizer_survives_being_saved(smol: Tokenizer, tmp_path: Path) -> None:
    folder = write(tmp_path, smol._backend)
    for text in [*TEXTS, "a  1\ufdd0<|im_end|>"]:
        assert load(folder).encode(text) == smol.encode(text)


def test_a_folder_without_a_tokenizer(tmp_path: Path) -> None:
    assert from_folder(tmp_path) is None
    (tmp_path / "tokenizer.model").write_bytes(b"x")
    with pytest.raises(FormatError, match=r"has tokenizer.model but no tokenizer.json"):
        from_folder(tmp_path)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"model": {"type": "BPE", "vocab": {}, "merges": [["a", "b"]]}}', "\0"],
)
def test_a_damaged_tokenizer(tmp_path: Path, text: str) -> None:
    (tmp_path / "tokenizer.json").write_text(text)
    with pytest.raises(FormatError, match=r"tokenizer.json of .* cannot be read"):
        from_folder(tmp_path)


def test_a_truncated_or_mutated_tokenizer_is_read_or_refused(tmp_path: Path) -> None:
    whole = byte_level().to_str().encode()
    draw, refused = random.Random(3), 0
    for _ in range(150):
        data = bytearray(whole)
        if draw.random() < 0.5:
            del data[draw.randrange(len(data)) :]
        for _ in range(draw.randint(1, 4)):
            if data:
                data[draw.randrange(len(data))] = draw.randrange(256)
        (tmp_path / "tokenizer.json").write_bytes(data)
        try:
            tokenizer = load(tmp_path)
        except FormatError:
            refused += 1
            continue
        assert tokenizer.vocab_size >= 0
    assert refused > 50


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("tokenizer_config", "[]", "tokenizer_config.json holds list"),
        ("tokenizer_config", "{", "tokenizer_config.json is not JSON"),
        ("tokenizer_config", r'{"eos_token": "\ud800"}', "tokenizer_config.json is not JSON"),
        ("tokenizer_config", '{"added_tokens_decoder": {"x": 1}}', "must map ids to tokens"),
        ("tokenizer_config", '{"added_tokens_decoder": {"1": 1}}', "added_tokens_decoder"),
        ("tokenizer_config", '{"chat_template": 3}', "chat_template in tokenizer_config"),
        ("tokenizer_config", '{"extra_special_tokens": 3}', "extra_special_tokens in tokenizer_c"),
        ("tokenizer_config", '{"chat_template": [{"name": "default", "template": 3}]}', "is int"),
        ("generation_config", '{"eos_token_id": "x"}', "eos_token_id in generation_config.json"),
        ("generation_config", '{"eos_token_id": [true]}', "eos_token_id in generation_config.json"),
    ],
)
def test_a_fault_beside_it(tmp_path: Path, name: str, text: str, words: str) -> None:
    write(tmp_path, byte_level())
    (tmp_path / f"{name}.json").write_text(text)
    with pytest.raises(FormatError) as caught:
        from_folder(tmp_path)
    assert words in str(caught.value)


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"])
@pytest.mark.parametrize("there", ["a pipe", "an endless device", "a folder"])
def test_only_a_plain_file_is_read(tmp_path: Path, name: str, there: str) -> None:
    write(tmp_path, byte_level())
    (tmp_path / name).unlink(missing_ok=True)
    if there == "a pipe":
        os.mkfifo(tmp_path / name)
    elif there == "a folder":
        (tmp_path / name).mkdir()
    else:
        (tmp_path / name).symlink_to("/dev/zero")
    with pytest.raises(FormatError, match="not a plain file"):
        from_folder(tmp_path)


def test_a_file_larger_than_any_in_use(tmp_path: Path) -> None:
    write(tmp_path, byte_level())
    (tmp_path / "tokenizer_config.json").write_text(" " * (OTHER_BYTES + 1))
    with pytest.raises(FormatError, match="more than"):
        from_folder(tmp_path)
