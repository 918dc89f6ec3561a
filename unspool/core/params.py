"""Every decoding parameter, once: name, type, range, default, aliases and what it does.

Flags, HTTP schema, forms and pages are printed from this table. A parameter is honoured or refused
by name, never ignored; None means unset. Knows no model and no default that depends on one: see
`defaults.py`.
"""
# ruff: noqa: RUF009 -- each row of the table is declared by a short call
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from functools import cache, partial
from typing import Any

from unspool.core import conflicts, naming
from unspool.core.errors import ParameterError
from unspool.core.mixing import Mixing
from unspool.core.plan import Plan, Program
from unspool.core.schedule import Schedule
from unspool.core.values import IDS, Parameter, Repeats, p, parameter, shown

length = partial(p, "length and stopping")
output = partial(p, "what comes back")
text = partial(p, "prompt and text")


@dataclass(frozen=True, slots=True)
class Params(Mixing):
    """What one request asks of decoding. Every field is None until given; values are checked.

    Raises ParameterError: wrong type, out of range, in conflict, or not in this version.
    """

    max_new_tokens: int | None = length(
        128, "1..", "most tokens to write (chat over HTTP: the room left)",
        "max_tokens max_completion_tokens max_output_tokens n_predict", neutral=None)
    max_length: int | None = length(None, "1..", "most tokens in all, the prompt included")
    min_new_tokens: int | None = length(
        0, "0..", "tokens written before one that ends the text may come", "min_tokens", 3)
    min_length: int | None = length(
        0, "0..", "tokens in all before one that ends the text may come", part=3)
    max_time: float | None = length(
        None, "0<..1e9", "most seconds; the text ends after them", "t_max_predict_ms*0.001")
    stop: tuple[str, ...] | None = length(
        None, "64 x 1..1024", "strings that end the text and are cut off it",
        "stop_strings stop_sequences", neutral=([],))
    stop_token_ids: tuple[int, ...] | None = length(
        None, IDS, "token ids that end the text, besides the end tokens", neutral=([],))
    eos_token_id: tuple[int, ...] | None = length(
        None, IDS, "the end tokens, in place of the model's own")
    ignore_eos: bool | None = length(False, "", "end tokens may be written and end nothing")
    include_stop_str_in_output: bool | None = length(False, "", "keep the stop string in the text")
    repetition_detection: Repeats | None = length(
        None, "0..1024", "end when a pattern of min_pattern_size (1) to max_pattern_size tokens "
        "repeats min_count (2) times in a row; max_pattern_size 0 is off")
    confidence_stop: float | None = length(
        0.0, "0..1", "end when the likeliest token's raw probability is below this")
    thinking_token_budget: int | None = length(None, "0..", "most tokens of thinking", part=8)
    anchor: Any = length(None, "", "text that a long continuation must not drift from", part=5)

    logprobs: int | None = output(
        None, "0..512", "alternatives listed with each token (0: its own log-probability only)",
        "top_logprobs n_probs")
    why: bool | None = output(
        False, "", "keep for each token what each rule did there, and how it came to be picked")
    prompt_logprobs: int | None = output(None, "0..512", "the same for the prompt", part=8)
    prompt_logprob_start: int | None = output(None, "0..", "from this token on", part=8)
    prompt_logprob_token_ids: tuple[int, ...] | None = output(
        None, "128 x 0..", "ids whose log-probability is wanted in the prompt", "", 8, ([],))
    logprob_token_ids: tuple[int, ...] | None = output(
        None, "128 x 0..", "ids whose log-probability is wanted", part=8, neutral=([],))
    logprobs_mode: str | None = output("raw_logprobs", "1..64", "before or after rules", part=8)
    echo: bool | None = output(False, "", "the prompt before the text", "return_full_text", 8)
    stream: bool | None = output(False, "", "call `stream` instead", part=8)
    return_token_ids: bool | None = output(True, "", "results hold ids", "", 8, (False,))
    output_attentions: bool | None = output(False, "", "attention maps", part=8)
    output_hidden_states: bool | None = output(False, "", "hidden states", part=8)
    trace_decode_token_ids: Any = output(None, "", "tokens to write whatever happens", part=8)
    skip_special_tokens: bool | None = output(True, "", "leave special tokens out of the text")
    spaces_between_special_tokens: bool | None = output(True, "", "a space between", part=8)
    detokenize: bool | None = output(True, "", "False: ids only", part=8)

    token_healing: bool | None = text(
        False, "", "let the prompt's last token be written anew", part=8)
    add_special_tokens: bool | None = text(
        None, "", "the tokenizer's own start and end around the prompt; unset: around plain text, "
        "not around a rendered chat")
    add_generation_prompt: bool | None = text(
        True, "", "open the answer's turn after a chat's last message")
    continue_final_message: bool | None = text(
        False, "", "go on within a chat's last message")
    chat_template: Any = text(None, "", "a template of your own", part=7)
    chat_template_kwargs: Any = text(None, "", "values for the template", "", 7, ({},))
    documents: Any = text(None, "", "documents for the template", part=7, neutral=([],))
    tools: Any = text(None, "", "functions that a chat may call", part=7, neutral=([],))
    tool_choice: Any = text(None, "", "which of them", "", 7, ("none", "auto"))
    parallel_tool_calls: bool | None = text(True, "", "several at once", "", 7, (False,))
    reasoning_effort: Any = text(None, "", "how long to think", part=7, neutral=("none",))
    truncate_prompt_tokens: int | None = text(None, "-1..", "keep so many prompt tokens", part=5)
    truncation_side: str | None = text(None, "1..8", "the side that is cut", part=5)
    truncation: str | None = text("disabled", "1..16", "shorten a prompt that is too long", part=5)

    use_cache: bool | None = text(True, "", "remember keys and values between steps")
    cache_salt: str | None = text(
        "", "0..256", "requests with different salts share no memory")
    cache_implementation: Any = text(None, "", "the kind of memory", "", 5, ("dynamic",))
    cache_config: Any = text(None, "", "settings of the memory", part=5)
    max_cache_len: int | None = text(None, "1..", "most tokens in memory", part=5)
    prefill_chunk_size: int | None = text(None, "1..", "prompt tokens per forward", part=5)
    skip_reading_prefix_cache: bool | None = text(False, "", "compute the prompt anew", part=5)

    def __post_init__(self) -> None:
        for name, row in fields().items():
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, row.check(value))
        conflicts.check(self)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Params:
        """Parameters from any spelling. None is unset; an unknown name, also with None, is refused.

        Raises ParameterError, also when two spellings of one parameter have different values.
        """
        return cls(**{name: value for name, (_, value) in spelled(given).items()})

    def given(self) -> dict[str, Any]:
        """What was set, by canonical name, in the order of the table."""
        found = ((name, getattr(self, name)) for name in fields())
        return {name: value for name, value in found if value is not None}

    def active(self, name: str) -> Any:
        """The value, or None where it is unset or changes nothing."""
        value = getattr(self, name)
        return None if value is None or fields()[name].is_neutral(value) else value

    def to_json(self) -> dict[str, Any]:
        """What was set, as JSON can write it; a strategy object by its repr."""
        return {name: plain(value) for name, value in self.given().items()}


@cache
def fields() -> Mapping[str, Parameter]:
    """The table: canonical name to everything known of the parameter."""
    rows = ((f.name, str(f.type), f.metadata) for f in dataclass_fields(Params))
    return {name: parameter(name, kind, row) for name, kind, row in rows}


@cache
def spellings() -> dict[str, tuple[Parameter, float]]:
    """Every accepted name, with its parameter and the factor that turns its unit into ours."""
    return naming.spellings(fields().values())


def spelled(given: Mapping[str, Any]) -> dict[str, tuple[str, Any]]:
    """Canonical name to (the spelling used, the checked value), for all that is not None."""
    found: dict[str, tuple[str, Any]] = {}
    for spelling, value in given.items():
        if naming.foreign(spelling, value):
            continue
        if spelling not in spellings():
            naming.unknown(spelling, spellings())
        if value is None:
            continue
        row, factor = spellings()[spelling]
        checked = row.check(value if factor == 1 else row.check(value) * factor)
        before, other = found.setdefault(row.name, (spelling, checked))
        if not same(other, checked):
            raise ParameterError(
                f"{before}={shown(other)} with {spelling}={shown(checked)}: two spellings of "
                f"{row.name} must agree; give one of them", row.name)
    return found


def same(one: Any, other: Any) -> bool:
    """Whether two values are one; arrays, which do not answer that, by what they hold."""
    return one is other or bool(plain(one) == plain(other))


def plain(value: Any) -> Any:
    """`value` made of JSON's types only; numbers and arrays of other libraries by their values."""
    if isinstance(value, Repeats):
        return value._asdict()
    if isinstance(value, Schedule | Plan | Program):
        return str(value)  # as it can be given again
    if hasattr(value, "tolist") and not isinstance(value, type):
        value = value.tolist()
    if isinstance(value, set | frozenset):
        value = sorted(value, key=repr)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    return value if isinstance(value, bool | int | float | str | None) else repr(value)
