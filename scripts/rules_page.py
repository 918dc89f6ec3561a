"""Prints `docs/rules.md` from the rules, the dialects and the table of parameters; `--write` puts
it there. The examples are shaped by the engine."""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from inspect import cleandoc, signature
from pathlib import Path
from typing import Any

import numpy as np

from unspool import rules as r
from unspool.constraints import Vocabulary, choice
from unspool.core.history import history
from unspool.core.params import fields
from unspool.engine.row import Row
from unspool.engine.stages import probabilities, stages
from unspool.kernels.reading.logits import logits_of
from unspool.rules import KINDS, RuleValue
from unspool.rules.dialects import DIALECTS, GROUPS, STAGES, Dialect, Stage
from unspool.rules.infill import Spelling
from unspool.rules.plain import Seat
from unspool.rules.rows import EVERYTHING, GENERATED
from unspool.rules.watermarks.gumbel import Source
from unspool.rules.watermarks.kgw import Greens
from unspool.rules.watermarks.synthid import Tournament
from unspool.show.visible import visible

PAGE = Path(__file__).resolve().parent.parent / "docs" / "rules.md"
WORDS = (" blue", " clear", " the", " dark", " not", " red", " a", ".")
BLUE, CLEAR, THE, DARK, NOT, RED, A, END = range(8)
LOGITS = np.array([[3.0, 2.5, 2.0, 1.2, 0.8, 0.0, -0.5, -1.5]], np.float32)
PROMPT, WRITTEN = (THE, BLUE, THE, CLEAR), (THE, DARK, THE)
ENDS = (END,)
PIECES = Vocabulary([word.encode() for word in WORDS])
REFERENCE = re.compile(r"arXiv:|doi:|transformers|llama\.cpp|webui|OpenAI")


@dataclass(frozen=True)
class Example:
    """A rule at work. `said`: its data in words; `fresh`: nothing is written yet."""

    rule: RuleValue
    said: str = ""
    fresh: bool = False

    @property
    def label(self) -> str:
        numbers = str(replace(self.rule, data=()))
        return f"`{numbers}` {self.said}".strip()

    @property
    def seat(self) -> Seat:
        """Where the rule is after the text so far, drawn from the same row at every step."""
        rule, text = self.rule, history(PROMPT)
        state = rule.start(PROMPT)
        for token in () if self.fresh else WRITTEN:
            seat = Seat((rule,), (state,), text, (0, 0, text.length, 0), True)
            state = rule.after(state, token, Row(logits_of(LOGITS), 0, seat).candidate(token))
            text = text.extend(token)
        return Seat((rule,), (state,), text, (0, 0, text.length, 0), True)


def halved(ids: Sequence[int], row: Any) -> Any:
    return row / 2


def seen(batch: int, ids: Any) -> list[int]:
    return sorted(set(ids.tolist()))


EXAMPLES = [
    Example(r.logit_bias(data=(((RED,), 2.0), ((THE, A), 3.0), ((NOT,), -np.inf))),
            "2 on `·red`, 3 on `·the·a`, `·not` forbidden"),
    Example(r.encoder_repetition_penalty(1.5)),
    Example(r.repetition_penalty(1.3)),
    Example(r.frequency_penalty(0.7)),
    Example(r.presence_penalty(0.7)),
    Example(r.dry(0.8, 1.75, 1)),
    Example(r.no_repeat_ngram(2)),
    Example(r.encoder_no_repeat_ngram(2)),
    Example(r.bad_words(data=((BLUE,), (THE, DARK))), "`·blue` and `·the·dark`"),
    Example(r.min_length(10, data=ENDS), "`.` ends"),
    Example(r.min_new_tokens(5, data=ENDS), "`.` ends"),
    Example(r.allowed_ids(data=(BLUE, RED, END)), "`·blue`, `·red` and `.`"),
    Example(r.prefix_allowed(data=seen), "what has occurred"),
    Example(r.constrain(data=choice([" the dark", " clear"], PIECES, ENDS)),
            "`·the·dark` or `·clear`", fresh=True),
    Example(r.forced_first(data=(RED,)), "`·red`", fresh=True),
    Example(r.forced_last(8, data=ENDS), "`.`"),
    Example(r.exponential_decay(1, 0.5, data=ENDS), "`.` ends"),
    Example(r.exponential_decay(1, 2.0, data=ENDS), "`.` ends"),
    Example(r.suppress(data=(BLUE, NOT)), "`·blue` and `·not`"),
    Example(r.begin_suppress(data=ENDS), "`.`", fresh=True),
    Example(r.custom(data=halved), "half of every logit"),
    Example(r.greedy()),
    Example(r.temperature(0.5)), Example(r.temperature(2.0)),
    Example(r.dynamic_temperature(0.5, 1.5)),
    Example(r.smoothing(0.5)), Example(r.smoothing(0.5, 3.0)),
    Example(r.top_n_sigma(1.5)), Example(r.top_h(0.5)), Example(r.top_k(3)),
    Example(r.top_p(0.9)), Example(r.min_p(0.1)), Example(r.typical_p(0.4)),
    Example(r.epsilon_cutoff(0.06)), Example(r.eta_cutoff(0.08)), Example(r.top_a(0.5)),
    Example(r.tfs_z(0.8)), Example(r.xtc(1.0, 0.1)),
    Example(r.mirostat_1(2.0, 0.1)), Example(r.mirostat_2(1.2, 0.1)),
    Example(r.kgw(2.0, data=Greens(len(WORDS), 0.5)), "half of the tokens are green"),
    Example(r.gumbel_watermark(data=Source(42, 2)), "only the noise is another"),
    Example(r.synthid(data=Tournament((654, 400, 836), 3)), "three depths"),
    Example(r.adaptive_p(0.3, 0.9)),
    Example(r.infill(data=Spelling(tuple(word.encode() for word in WORDS), ENDS)), "`.` ends"),
]
BEFORE, AFTER = ("".join(visible(WORDS[token]) for token in part) for part in (PROMPT, WRITTEN))
HEAD = f"""# Rules

Printed from the code: every rule that shapes the distribution of the next token, what it does, the
parameters that ask for it, and where it stands in the orders of other engines. A cut never removes
the likeliest token, unless its text says otherwise. Of tokens that are equally likely the one with
the lower id comes first. Probabilities are renormalised after each rule.

The examples are computed by the program on eight tokens. The prompt is
`{BEFORE}`, and `{AFTER}` was written; *at the beginning* nothing was. Shown
are probabilities in percent, a dash for a removed token, and the entropy in bits.
[Why this token](why.md) tells the same of any token of a text.

A rule's *data* is what of it is no number: ids, texts in ids, a function. Parameters name it in
words of their own, see [the parameters](parameters.md).
"""
ORDERS = """## The orders

The place of each stage in the order of each dialect; an engine lacks what has no place. The
parameter `order` names a dialect, or lists stages by these names or by those of their rules and
parameters; `penalties` stands for the three that follow one another. An order of one's own may
repeat a stage.
"""


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def line(cells: Iterable[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    return [line(head), line(["---"] * len(head)), *map(line, rows), ""]


# ── the orders and dialects ──────────────────────────────────────────────────────────────────────
def place(dialect: Dialect, stage: str) -> str:
    """Where a stage stands, from 1 on; with the places of the orders used instead."""
    places = [order.index(stage) + 1 if stage in order else None
              for order in (dialect.order, *dialect.instead.values())]
    found = ["" if at is None else str(at) for at in places]
    return found[0] or ("" if not any(found) else f"({max(found)})")


def orders() -> list[str]:
    rows = [[f"`{name}`", *(place(dialect, name) for dialect in DIALECTS.values())]
            for name in STAGES]
    return [ORDERS, *table(["stage", *DIALECTS], rows)]


def listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def source(dialect: Dialect) -> str:
    """What its file says of it."""
    rooms = [module for name, module in sys.modules.items()
             if name.startswith("unspool.rules.dialects.") and dialect in vars(module).values()]
    return cleandoc(rooms[0].__doc__ or "")


def dialect_lines(dialect: Dialect) -> list[str]:
    """What a dialect says beside its order."""
    defaults = ", ".join(f"`{name}={value!r}`" for name, value in dialect.defaults.items())
    said = {
        f"also called {listed(dialect.also)}": dialect.also,
        f"defaults: {defaults}": defaults,
        **{f"the {what} are counted by {listed(names)}": names for what, names in counted(dialect)},
        f"ties at the cut are kept by {listed(dialect.ties)}": dialect.ties,
        **{f"with `{name}` the order is {listed(order)}": order
           for name, order in dialect.instead.items()},
        f"a temperature above 0 is at least {dialect.floor:g}": dialect.floor,
        f"a bias is limited to {-dialect.most_bias:g}..{dialect.most_bias:g}":
            dialect.most_bias < float("inf"),
        "the bias of a text goes to each of its tokens": dialect.bias_each,
        "an end token is no bad word": dialect.spares_ends,
        "XTC may remove an end token or a new line": not dialect.xtc_spares,
        **{f"not reproduced, `{name}`: {note}": note for name, note in dialect.unlike.items()},
    }
    return [text for text, holds in said.items() if holds]


def counted(dialect: Dialect) -> Iterator[tuple[str, list[str]]]:
    """Which tokens are counted, and by which penalties."""
    for scope, what in ((EVERYTHING, "prompt's tokens and the written ones"),
                        (GENERATED, "written tokens")):
        yield what, [name for name, of in dialect.counted.items()
                     if of == scope and name in dialect.order]


def dialects() -> list[str]:
    out = ["## The dialects", ""]
    for dialect in DIALECTS.values():
        out += [f"### {dialect.name}", "", source(dialect), "",
                *(f"- {told}" for told in dialect_lines(dialect)), ""]
    return out


# ── the rules ────────────────────────────────────────────────────────────────────────────────────
def percent(prob: float) -> str:
    return f"{100 * prob:.1f}" if prob > 0 else "–"


def shown(example: Example) -> list[str]:
    """An example's row before and after."""
    row = Row(logits_of(LOGITS), 0, example.seat)
    [stage] = stages(row)
    before, after = (probabilities(row.upto(count).shaped, row.vocab) for count in (0, 1))
    begin = "at the beginning" if example.fresh else "before"
    return [line([begin, *map(percent, before), f"{stage.entropy_bits_before:.2f}"]),
            line([example.label, *map(percent, after), f"{stage.entropy_bits:.2f}"])]


def called(name: str) -> str:
    """The rule with its numbers: `top_k(k, ties=0)`."""
    taken = list(signature(KINDS[name].define).parameters.values())[1:]
    numbers = [p.name if p.default is p.empty else f"{p.name}={p.default}" for p in taken]
    return f"`{name}({', '.join(numbers)})`"


def definition(name: str) -> str:
    """Its docstring; behind that of its file where only that one says where it is from."""
    kind = KINDS[name]
    own = cleandoc(kind.define.__doc__ or "")
    home = cleandoc(sys.modules[kind.define.__module__].__doc__ or "")
    from_home = not REFERENCE.search(own) and re.search(r"arXiv:|doi:", home.split("\n\n")[0])
    return f"{home}\n\n{own}" if from_home else own


def stage_of(name: str) -> tuple[str, Stage]:
    return next((key, stage) for key, stage in STAGES.items() if name in stage.rules)


def parameters(stage: Stage) -> list[str]:
    rows = []
    for name in (*stage.switches, *stage.beside):
        row = fields()[name]
        calm = ", ".join(f"`{value!r}`" for value in row.neutral) or "unset"
        default = "" if row.default is None else f"`{row.default!r}`"
        rows.append([f"`{name}`", default, calm, cell(row.help)])
    return table(["parameter", "default", "changes nothing", "what it says"], rows) if rows else []


def rule(name: str) -> list[str]:
    """The section of one rule."""
    key, stage = stage_of(name)
    groups = tuple(group for group, members in GROUPS.items() if key in members)
    names = dict.fromkeys((key, *stage.rules, *stage.switches, *stage.also, *groups))
    where = [f"{dialect.name} {place(dialect, key)}" for dialect in DIALECTS.values()
             if place(dialect, key)]
    examples = [example for example in EXAMPLES if example.rule.name == name]
    head = ["", *(visible(word) for word in WORDS), "bits"]
    rows = [row for i, example in enumerate(examples) for row in shown(example)[i > 0:]]
    return [f"### {name}", "", called(name), "", definition(name), "",
            f"Place: {', '.join(where) or 'in no dialect'}. In `order`: {listed(names)}.", "",
            *parameters(stage), line(head), line(["---"] * len(head)), *rows, ""]


def page() -> str:
    """The whole page."""
    out = [HEAD, *orders(), *dialects(), "## The rules", ""]
    for name in dict.fromkeys(example.rule.name for example in EXAMPLES):
        out += rule(name)
    return "\n".join(out)


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        print(page(), end="")
