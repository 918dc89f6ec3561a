import platform


def test_the_facts_of_a_report(unspool):
    facts = unspool("env", "--json").json
    assert facts["python"] == platform.python_version()
    assert facts["packages"]["numpy"] and facts["devices"]["cpu"]
    assert "smollm2" in facts["models"]
    lines = [line.split() for line in unspool("env").out.splitlines()]
    assert ["packages", "numpy", facts["packages"]["numpy"]] in lines
