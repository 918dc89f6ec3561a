"""The page of the rules: fresh, complete, and each example an example."""

import dataclasses
import runpy
from pathlib import Path

import pytest

from unspool.core.params import fields
from unspool.core.shaping import Shaping
from unspool.rules import KINDS

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "rules_page.py"))
TEXT = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")


def test_the_page_is_fresh():
    assert SCRIPT["page"]() == TEXT, "stale: run scripts/rules_page.py --write"


def test_every_rule_has_its_section():
    ours = {name for name, kind in KINDS.items() if kind.define.__module__.startswith("unspool.")}
    sections = [line[4:] for line in TEXT.partition("## The rules")[2].splitlines()
                if line.startswith("### ")]
    assert sorted(sections) == sorted(ours)


def test_every_parameter_of_the_distribution_is_named():
    rows = [fields()[f.name] for f in dataclasses.fields(Shaping) if fields()[f.name].built]
    elsewhere = {"remove_invalid_values", "renormalize_logits"}  # they are no rules
    missing = [row.name for row in rows if f"`{row.name}`" not in TEXT]
    assert set(missing) <= elsewhere


@pytest.mark.parametrize("example", SCRIPT["EXAMPLES"], ids=lambda example: example.label)
def test_an_example_shows_an_effect(example):
    before, after = (line.split("|")[2:] for line in SCRIPT["shown"](example))
    assert (before == after) is (example.rule.name == "gumbel_watermark")
