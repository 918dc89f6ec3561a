"""The composition table has every strategy and every mix, and its page is what a run prints."""
import runpy
from pathlib import Path

import composition_cells as table
import pytest
import subjects
from test_laws import parts

import unspool.mixes
import unspool.strategies
from unspool.memories import MEMORIES

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "composition.md").read_text(encoding="utf-8")


def rows_of(title):
    """The cells of one table of the page, by row and column."""
    lines = PAGE.split(f"\n## {title}\n\n")[1].split("\n\n")[0].splitlines()
    head, *rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines
                   if not line.startswith("|---")]
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}


def test_every_strategy_and_mix_is_in_it():
    rows = set().union(*map(parts, table.ROWS.values()))
    assert rows >= {getattr(unspool.strategies, name) for name in unspool.strategies.__all__}
    columns = [change(table.ROWS["sample"]) for change, _ in table.SHAPING.values()]
    known = {made for name in unspool.mixes.__all__
             if isinstance(made := getattr(unspool.mixes, name), type)}
    assert {type(mix) for setting in columns for mix in setting.mixes} >= known
    assert {f"memory {name}" for name in MEMORIES} <= set(table.RUNNING)


@pytest.mark.parametrize("title", list(table.TABLES))
def test_the_page_has_every_pair(title):
    found = rows_of(title)
    assert list(found) == list(table.ROWS)
    assert all(list(cells) == list(table.TABLES[title]) for cells in found.values())


@pytest.mark.parametrize("row", ["sample", "contrastive", "beam >> sample"])
def test_some_pairs_again(row):
    subject = subjects.SUBJECTS["llama F32"]()
    for title, columns in table.TABLES.items():
        page = rows_of(title)[row]
        for name in list(columns)[::3]:
            tokens, forwards = table.cell(subject, row, *columns[name])
            assert page[name].startswith(f"{tokens} / {forwards} "), f"{name}: the page is stale"
    subject.close_all()


@pytest.mark.slow
def test_the_page_is_printed_by_the_program():
    page = runpy.run_path(str(ROOT / "scripts" / "composition.py"))["page"]()
    assert page == PAGE, "stale: run scripts/composition.py --write"
