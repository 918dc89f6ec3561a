import math
import re

import pytest

SKY = "The color of sky is"
TOP = {
    " a": 0.1134, " ": 0.0945, " the": 0.0742, " not": 0.0435, " blue": 0.0323,
    " determined": 0.0254, " indeed": 0.0217, ' "': 0.0147, " often": 0.0144, " set": 0.0113,
}  # fmt: skip

pytestmark = pytest.mark.usefixtures("weights")


def test_the_ten_likeliest_tokens_after_the_color_of_sky_is(unspool):
    found = unspool("next", SKY, "-k", "10", "--json").json
    assert list(found) == ["prompt", "model", "numerics", "entropy_bits", "top"]
    assert (found["prompt"], found["numerics"]) == (SKY, "default")
    assert [row["text"] for row in found["top"]] == list(TOP)
    for rank, row in enumerate(found["top"], 1):
        assert list(row) == ["id", "text", "prob", "logprob", "rank"]
        assert row["prob"] == pytest.approx(TOP[row["text"]], abs=5e-4)
        assert row["logprob"] == pytest.approx(math.log(row["prob"]))
        assert row["rank"] == rank


def test_bars_and_a_page_show_the_same_numbers(unspool, tmp_path):
    page = tmp_path / "next.html"
    ran = unspool("next", SKY, "--plot", str(page))
    lines = ran.out.splitlines()
    assert lines[0] == SKY and len(lines) == 12
    assert "11.34%" in lines[1] and lines[1].endswith("·a")
    assert f"wrote {page}" in ran.err
    share = re.search(r"<td>·a</td><td>([\d.]+)%", page.read_text(encoding="utf-8"))[1]
    assert f"{float(share):.2f}%" in lines[1]


def test_rules_shape_what_is_shown(unspool):
    rows = unspool("next", SKY, "--top-k", "3", "-k", "5", "--json").json["top"]
    kept = [row for row in rows if row["prob"] > 0]
    assert [row["text"] for row in kept] == list(TOP)[:3]
    assert sum(row["prob"] for row in kept) == pytest.approx(1)


def test_a_chart_that_cannot_be_written_is_a_failure_in_one_line(unspool, tmp_path):
    ran = unspool("next", SKY, "--plot", str(tmp_path / "no" / "folder.html"), code=1)
    error = ran.err.splitlines()[-1]
    assert error.startswith("Error: ") and "folder.html: cannot be written" in error
