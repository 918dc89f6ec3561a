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
