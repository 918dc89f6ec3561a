"""The command that prints the figures: what it runs, writes and returns."""

import json
from importlib import import_module

import pytest

from bench.figure import at_most
from bench.figures import SECTIONS, main


def measured(value):
    return lambda name: iter([at_most(f"{name} figure", value, 1.0, "s")])


def test_the_status_says_whether_every_bound_is_kept(capsys):
    assert main(["work", "next"], measured(1.0)) == 0
    out = capsys.readouterr().out
    assert out.index("work figure") < out.index("next figure") and "2 figures, 0 missed" in out
    assert main(["work"], measured(2.0)) == 1
    assert "FAIL" in (out := capsys.readouterr().out) and "work: work figure" in out


def test_all_sections_are_run_by_default(capsys):
    asked = []
    main([], lambda name: (asked.append(name), iter(()))[1])
    assert asked == list(SECTIONS)


def test_the_figures_are_written_down(tmp_path, capsys):
    path = tmp_path / "figures.json"
    main(["load", "--json", str(path)], measured(3.0))
    found = json.loads(path.read_text())
    assert found["figures"] == [at_most("load figure", 3.0, 1.0, "s").json("load")]
    assert found["machine"]["cores"] >= 1 and found["machine"]["numpy"] != "missing"


def test_an_unknown_section_is_refused_by_name(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["speed"])
    assert ended.value.code == 2
    assert "no section 'speed': there are start, load" in capsys.readouterr().err


@pytest.mark.parametrize("name", SECTIONS)
def test_every_section_has_its_figures(name):
    assert callable(import_module(SECTIONS[name][1]).figures)
