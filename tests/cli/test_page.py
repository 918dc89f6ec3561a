"""What the documents show of the command line is what the program prints."""

import runpy
from pathlib import Path

from unspool.cli.app import VERBS

ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_printed_page_is_the_program_s_own_help():
    page = runpy.run_path(str(ROOT / "scripts" / "print_cli.py"))["page"]()
    assert (ROOT / "docs" / "cli.md").read_text(encoding="utf-8") == page, (
        "stale: run scripts/print_cli.py --write"
    )


def test_it_has_every_verb_every_code_and_the_flags_once():
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert all(f"\n## {verb}\n" in page for verb in VERBS)
    assert all(f"\n| {code} | " in page for code in (0, 1, 2, 3, 4, 5, 130))
    assert page.count("--top-p X") == page.count("--max-new-tokens N") == 1


def test_the_readme_shows_what_make_run_prints(unspool):
    alike = runpy.run_path(str(ROOT / "scripts" / "run_notebooks.py"))["alike"]  # but for rounding
    blocks = (ROOT / "README.md").read_text(encoding="utf-8").split("```")
    chart, _, text = next(b for b in blocks if "█" in b).removeprefix("text\n").partition("\n\n")
    sky = "The color of sky is"
    assert alike(unspool("next", sky, "-k", "10").out, chart + "\n")
    assert unspool("run", sky, "--max-new-tokens", "40").out == text
