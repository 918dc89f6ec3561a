"""Where a model runs: a home that cannot be written, one core, odd files, damaged weights."""

import json
import os
import struct
import subprocess
import sys
from pathlib import Path
from threading import enumerate as threads

import pytest
import torch
from safetensors.torch import load_file, save_file

import unspool
from unspool.core.errors import ParameterError, RowError, UnspoolError
from unspool.core.folders import cache_folder

ROOT = Path(__file__).parents[2]
WRITE = """
import json, os, sys
{before}
import unspool
with unspool.load({place!r}, device="cpu") as lm:
    out = lm.generate("a", max_new_tokens=3)
    print(json.dumps([out.text, [t.logprob.hex() for t in out.tokens], lm.model.threads]))
"""


def written(place, before="", **environment):
    """What a fresh process writes: the text, its log-probabilities' bits, the threads; and stderr.
    """
    known = {k: v for k, v in os.environ.items() if k not in ("UNSPOOL_CACHE", "XDG_CACHE_HOME")}
    ran = subprocess.run([sys.executable, "-c", WRITE.format(before=before, place=str(place))],
                         env={**known, "PYTHONPATH": str(ROOT), **environment},
                         capture_output=True, text=True, timeout=250)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout), ran.stderr


def test_a_home_that_cannot_be_written(folder, tmp_path):
    """It works, and says that machine code cannot be kept."""
    home = tmp_path / "home"
    home.write_text("a file where the home should be: not even the superuser can write into it")
    (text, _, _), said = written(folder(), HOME=str(home))
    assert text == "bcd"
    assert "kernels are compiled anew in every process" in said and "Traceback" not in said


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system does not pin")
def test_one_core_means_one_thread_and_the_same_bits(folder):
    place, cache = folder(), {"UNSPOOL_CACHE": str(cache_folder())}
    many = written(place, **cache)[0]
    pin = "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})"
    one = written(place, pin, **cache)[0]
    assert one[2] == 1 and many[2] == len(os.sched_getaffinity(0))
    assert one[:2] == many[:2] and one[0] == "bcd" and len(one[1]) == 3


def test_a_header_of_odd_length_puts_every_weight_at_an_odd_address(folder):
    place = folder()
    with unspool.load(place, device="cpu") as lm:
        want = lm.generate("abca", max_new_tokens=5)
    path = place / "model.safetensors"
    data = path.read_bytes()
    [length] = struct.unpack("<Q", data[:8])
    odd = 1 + length % 2
    path.write_bytes(struct.pack("<Q", length + odd) + data[8:8 + length] + b" " * odd
                     + data[8 + length:])
    with unspool.load(place, device="cpu") as lm:
        found = lm.generate("abca", max_new_tokens=5)
    assert found.tokens == want.tokens and want.text == "bcdef"


@pytest.mark.parametrize("numerics", ["default", "fast", "reference"])
def test_a_damaged_weight_ends_the_requests_that_meet_it_and_no_other(folder, numerics):
    place = folder()
    path = place / "model.safetensors"
    weights = load_file(path)
    weights["model.embed_tokens.weight"][5, 3] = torch.nan  # of "f"
    save_file(weights, path)
    with unspool.load(place, device="cpu", numerics=numerics) as lm:
        late, well, early = lm.generate(["c", "g", "f"], max_new_tokens=4)
        assert isinstance(late.error, RowError) and isinstance(early.error, RowError)
        assert (late.text, late.finish_reason, early.text) == ("def", "error", "")
        assert (well.text, well.error) == ("hijk", None)
        alone = lm.generate("g", max_new_tokens=4)
        assert alone.tokens == well.tokens
        with pytest.raises(RowError, match="NaN"):
            lm.generate("f", max_new_tokens=1)


@pytest.mark.parametrize(("name", "value"), [
    ("threads", -1), ("threads", 1.5), ("threads", True), ("threads", "2"),
    ("kv", None), ("kv", 16), ("kv", "F32"), ("quantize", True), ("quantize", "int8 "),
])
def test_a_choice_that_is_none_is_refused_before_the_file_is_looked_for(name, value):
    with pytest.raises(ParameterError, match=f"^{name}=") as raised:
        unspool.load("./no/such/model.gguf", **{name: value})
    assert raised.value.name == name and "\n" not in str(raised.value)


def test_a_closed_model_refuses_and_its_threads_are_gone(folder):
    before = set(threads())
    lm = unspool.load(folder(), device="cpu", threads=3)
    assert lm.generate("a", max_new_tokens=2).text == "bc"
    team = [t for t in set(threads()) - before if t.name.startswith("unspool-")]
    assert len(team) >= 2
    lm.close()
    assert not any(thread.is_alive() for thread in team)
    for call in (lm.generate, lm.next, lm.score, lm.stream):
        with pytest.raises(UnspoolError, match="closed"):
            call("a")
    assert not hasattr(lm.model, "weights")
