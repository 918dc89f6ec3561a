import json
import platform


def test_the_facts_of_a_report(unspool):
    facts = unspool("env", "--json").json
    assert facts["python"] == platform.python_version()
    assert facts["packages"]["numpy"] and facts["packages"]["numba"] and facts["devices"]["cpu"]
    assert facts["compiled for"].keys() == {"cpu", "features"}
    assert "smollm2" in facts["models"]
    lines = [line.split() for line in unspool("env").out.splitlines()]
    assert ["packages", "numpy", facts["packages"]["numpy"]] in lines


def test_the_processor_is_the_one_that_the_compiler_is_told(started):
    """In a process of its own: the compiler reads the environment once."""
    process = started("env", "--json", NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="+avx2,-fma")
    facts = json.loads(process.communicate(timeout=120)[0])
    assert facts["compiled for"] == {"cpu": "generic", "features": "avx2"}
    assert facts["variables"]["NUMBA_CPU_FEATURES"] == "+avx2,-fma"
