"""Every law on every setting and subject; every strategy and memory has a setting; and that the
laws of bits can fail."""
import laws
import pytest
from subjects import MORE, SUBJECTS, on_blas

import unspool.strategies
from unspool.memories import MEMORIES

MADE = {}


@pytest.fixture(scope="module", autouse=True)
def closed():
    """The subjects' models are made once and closed in the end."""
    yield
    for subject in MADE.values():
        subject.close_all()
    MADE.clear()


def subject(kind):
    if kind not in MADE:
        MADE[kind] = {**SUBJECTS, **MORE}[kind]()
    return MADE[kind]


def entries():
    """(subject, law, setting), those of the larger matrix marked slow."""
    for kind in (*SUBJECTS, *MORE):
        for law, names in laws.matrix(exact=kind != "reference"):
            name = f"{law.__name__}, {', '.join(names) or 'alone'}"
            marks = [pytest.mark.slow] if kind in MORE else []
            yield pytest.param(kind, law, names, id=f"{kind}: {name}", marks=marks)


@pytest.mark.parametrize(("kind", "law", "names"), list(entries()))
def test_law_holds(kind, law, names):
    held = subject(kind)
    law(held, *names)
    assert held.models, "the law has looked at no model"


@pytest.mark.parametrize("law", [
    laws.company_changes_no_bit,
    lambda blas: laws.together_is_alone(blas, "greedy"),
    lambda blas: laws.chunked_is_whole(blas, "sample"),
], ids=["company", "together", "chunked"])
def test_products_through_a_blas_break_the_law(law):
    """The inverse: the same law says no to a decoder whose sums depend on the batch."""
    with pytest.raises(AssertionError, match="differ"):
        law(on_blas())


def test_every_strategy_is_in_the_matrix():
    found = {getattr(unspool.strategies, name) for name in unspool.strategies.__all__}
    assert found == {type(setting.strategy) for setting in laws.EVERY.values()}


def test_every_memory_obeys_the_protocol():
    assert {"dense", "full", "none"} <= set(MEMORIES)
    assert all(make(64).exact for make in MEMORIES.values())
