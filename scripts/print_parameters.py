"""Prints `docs/parameters.md` from the table of parameters; `--write` puts it there."""

import sys
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from textwrap import fill

from unspool.core.defaults import TRUNCATION
from unspool.core.params import fields
from unspool.core.values import Parameter
from unspool.rules.dialects import DIALECTS, GROUPS
from unspool.rules.rows import EVERYTHING

PAGE = Path(__file__).resolve().parent.parent / "docs" / "parameters.md"
HEAD = """# Parameters

Every decoding parameter, under the name used here. Flags carry the same names with dashes. The
other spellings are accepted too; two spellings of one parameter must agree. `None` is unset. A
parameter is honoured or refused by name, never ignored: an unknown name, a wrong type, NaN, or a
value outside its range is an error that says what to do.

Where a value is not given, the model's own generation config decides, else the dialect that
`order` names, else the default below.
Values that change nothing are always accepted, also for a parameter that is not in this version.

## Greedy or sampling
A named strategy decides for itself, and `num_beams` above 1 names beam search. Else, the first
that applies:

1. the user's temperature 0: greedy (with `do_sample=True` an error)
2. the user's `do_sample`
3. the user's temperature, or something that shapes the draw alone: sampling. Those are
   {TRUNCATION}
4. the model's `do_sample`
5. the model's temperature above 0, or one of the same: sampling
6. a temperature above 0 that is the default of the dialect which `order` names: sampling
7. greedy

Penalties, biases, bans and forced tokens shape a greedy text and a search too. What shapes the
draw alone changes nothing under greedy, and a note says so; in a search it counts when the request
asks for it.

## The order of the rules
`order` names a dialect: `unspool` (the default), `hf`, `vllm`, `vllm-v2`, `sglang`, `llama.cpp` or
`mlx`. It brings that engine's order, its defaults (where neither the request nor the model's
generation config says anything), which tokens its penalties count and which ties its cuts keep.
A list of stages, `["penalties", "top_k", "temperature"]` or `"penalties,top_k,temperature"`, sets
the order alone; a stage may be repeated. A parameter whose stage is not in the order is refused.

{DIALECTS}

## Limits
Of `max_new_tokens` and `max_length` the first reached ends the text; with `max_length` alone the
default of `max_new_tokens` does not apply. A stop outranks a length. `eos_token_id` replaces the
model's end tokens, `stop_token_ids` are added to them.

## Values that name tokens
- `logit_bias`: `{5: 2.0, "7": -1, " blue": false}`: a key is an id, the digits of one, or a text;
  of several tokens the last gets the number, where the others stand before it. `false` forbids. Or
  `[[[5, 6], 2.0], [" blue", -1]]`, where a key is an id, a list of ids or a text.
- `bad_words`: texts, of which every spelling is forbidden (as written, behind a space, in the
  middle of a word), or lists of ids. The last token is forbidden where the others stand before it,
  in the prompt too.
- `choice`: texts, or lists of ids. `dry_sequence_breakers`: at most 64 texts.
- `exponential_decay_length_penalty`: `[start, factor]`, start counted in written tokens.
- `logits_processor`: a function `(ids, logits) -> logits`, a LogitsProcessor of transformers, or a
  list of them. `prefix_allowed_tokens_fn`: a function `(0, ids) -> ids`, as in transformers.
- `watermark`: `{"kind": "kgw" | "gumbel" | "synthid", ...}`, or a config of transformers.

On the command line they are JSON. Ids outside the vocabulary are refused.

## Loading
What `unspool.load` takes besides the model. All but `dtype` and `tokenizer` are flags too.

| name | values | default | what it does |
| --- | --- | --- | --- |
| `numerics` | `default`, `fast`, `reference` | see below | how the numbers are computed |
| `device` | `cpu`, `cuda`, `mps`, `auto` | `auto` | where; `auto` is the best there is |
| `dtype` | `float32`, `float64` | `float32` | the number type of `reference` |
| `memory` | `dense`, `full`, `none` | `dense` | what is remembered of a text |
| `tokenizer` | a folder, a tokenizer | the model's | in place of the model's own |
| `threads` | whole number, 1.. | all cores | how many cores compute |
| `kv` | `f32`, `bf16`, `int8` | `f32` | how keys and values are kept |
| `quantize` | `int8` |  | rounds weights that are stored in floats |

- `numerics="default"` computes on the CPU with compiled kernels, on the weights as they are stored.
  A token's scores are the same bits alone or in a batch, whole or in chunks, read anew or
  remembered, with any number of threads. On another device it is torch, without that promise.
- `numerics="fast"` computes on the CPU with 8-bit arithmetic and promises none of that.
- `numerics="reference"` is the plain formulas in torch, which the others are compared with. It
  needs the extra `torch`.

Where `numerics` is not given it is `default` on the CPU, and `reference` on another device or with
a `dtype`. A model that is not of our own families (Llama, Mistral, Qwen2, Qwen3) runs through
transformers, and that is always `reference`; a note says so. `threads`, `kv` and `quantize` belong
to `default` and `fast` on the CPU, and are refused by name elsewhere. The memory `dense` grows with
a text, `full` has room for the longest one from the start, `none` reads the whole text again at
every token.
"""


def listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def dialects() -> str:
    """A section of its own for each dialect."""
    out = []
    for d in DIALECTS.values():
        out += [f"- **`{d.name}`**: {', '.join(d.order)}."]
        out += [f"  Beside `{name}`: {', '.join(order)}." for name, order in d.instead.items()]
        if d.defaults:
            out += ["  Defaults: " + ", ".join(f"`{k}={v}`" for k, v in d.defaults.items()) + "."]
        counted = [name for name in GROUPS["penalties"] if name in d.order]
        everything = [name for name in counted if d.counted[name] == EVERYTHING]
        rest = [name for name in counted if name not in everything]
        for names, what in ((everything, "the prompt and what is written"),
                            (rest, "what is written")):
            out += [f"  {listed(names)} count{'s' * (len(names) == 1)} {what}."] if names else []
        out += [f"  Ties are kept by {listed(d.ties)}."] if d.ties else []
        out += [f"  A temperature above 0 is at least {d.floor:g}."] if d.floor else []
        out += [f"  `{name}`: {what}." for name, what in d.unlike.items()]
    return "\n".join(wrapped(line) for line in out)


def wrapped(text: str) -> str:
    return fill(text, 100, subsequent_indent="  " if text.startswith("-") else text[:2],
                break_on_hyphens=False)


def head() -> str:
    drawn = wrapped(f"   {listed(TRUNCATION)}.").replace("\n", "\n ")
    return HEAD.replace("   {TRUNCATION}", drawn).replace("{DIALECTS}", dialects())


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def values(row: Parameter) -> str:
    """What the parameter takes, in words."""
    kinds = {
        "int": f"whole number, {row.range}",
        "float": f"number, {row.range}",
        "bool": "True or False",
        "str": f"string of {row.range} characters",
        "bool | str": str(row.range).replace(" |", ","),
        "tuple[int, ...]": f"up to {row.range.most} ids",
        "tuple[str, ...]": f"up to {row.range.most} strings of {row.range} characters",
        "Repeats": f"sizes and a count, each {row.range}",
        "str | Strategy": "a name or a strategy",
        "Any": "",
    }
    return kinds[row.type]


def line(row: Parameter) -> str:
    default = "" if row.default is None else f"`{row.default!r}`"
    also = ", ".join(f"`{alias.partition('*')[0]}`" for alias in row.aliases)
    return f"| `{row.name}` | {cell(values(row))} | {default} | {cell(row.help)} | {also} |"


def page() -> str:
    """The whole page."""
    rows = sorted(fields().values(), key=lambda row: row.group)
    built = [row for row in rows if row.built]
    out = [head()]
    for group, members in groupby(built, key=lambda row: row.group):
        out += [f"## {group.capitalize()}", "| name | values | default | what it does | also |",
                "| --- | --- | --- | --- | --- |", *map(line, members), ""]
    out += ["## Known and not in this version",
            "Refused by name, unless `None` or a value that changes nothing.", "",
            "| name | what it does | accepted | also |", "| --- | --- | --- | --- |"]
    for row in sorted((row for row in rows if not row.built), key=lambda row: row.name):
        calm = ", ".join(f"`{value!r}`" for value in row.neutral)
        also = ", ".join(f"`{alias}`" for alias in row.aliases)
        out.append(f"| `{row.name}` | {cell(row.help)} | {calm} | {also} |")
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        print(page(), end="")
