"""Prints `docs/parameters.md` from the table of parameters; `--write` puts it there."""

import sys
from itertools import groupby
from pathlib import Path

from unspool.core.params import fields
from unspool.core.values import Parameter

PAGE = Path(__file__).resolve().parent.parent / "docs" / "parameters.md"
HEAD = """# Parameters

Every decoding parameter, under the name used here. Flags carry the same names with dashes. The
other spellings are accepted too; two spellings of one parameter must agree. `None` is unset. A
parameter is honoured or refused by name, never ignored: an unknown name, a wrong type, NaN, or a
value outside its range is an error that says what to do.

Where a value is not given, the model's own generation config decides, else the default below.
Values that change nothing are always accepted, also for a parameter that is not in this version.

## Greedy or sampling
A named strategy decides for itself, and `num_beams` above 1 names beam search. Else, the first
that applies:

1. the user's temperature 0: greedy (with `do_sample=True` an error)
2. the user's `do_sample`
3. the user's temperature, or a `top_k`, `top_p` or `min_p` that cuts: sampling
4. the model's `do_sample`
5. the model's temperature above 0, or a `top_k`, `top_p` or `min_p` that cuts: sampling
6. greedy

## Limits
Of `max_new_tokens` and `max_length` the first reached ends the text; with `max_length` alone the
default of `max_new_tokens` does not apply. A stop outranks a length. `eos_token_id` replaces the
model's end tokens, `stop_token_ids` are added to them.

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
    out = [HEAD]
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
