"""Every law on every setting and subject; every strategy, mix and memory has a setting; and that
the laws of bits can fail."""
import laws
import pytest
from searches import MIXED, PROGRAMS, SCHEDULED, SEARCHES
from single_laws import company_changes_no_bit
from subjects import MORE, SUBJECTS, on_blas

import unspool.mixes
import unspool.strategies
from unspool.memories import MEMORIES

FEWER = "qwen3 Q8_0"  # searches, which look at no weights, are run on the other two

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
            search = bool({*SEARCHES, *MIXED, *SCHEDULED, *PROGRAMS} & set(names))
            marks = [pytest.mark.slow] if kind in MORE or (kind == FEWER and search) else []
            yield pytest.param(kind, law, names, id=f"{kind}: {name}", marks=marks)


@pytest.mark.parametrize(("kind", "law", "names"), list(entries()))
def test_law_holds(kind, law, names):
    held = subject(kind)
    law(held, *names)
    assert held.models, "the law has looked at no model"


@pytest.mark.parametrize("law", [
    company_changes_no_bit,
    lambda blas: laws.together_is_alone(blas, "greedy"),
    lambda blas: laws.chunked_is_whole(blas, "sample"),
], ids=["company", "together", "chunked"])
def test_products_through_a_blas_break_the_law(law):
    """The inverse: the same law says no to a decoder whose sums depend on the batch."""
    with pytest.raises(AssertionError, match="differ"):
        law(on_blas())


def parts(setting):
    """The types of its strategies and mixes, those within a schedule too."""
    strategies = [setting.strategy, *(stage.strategy for stage in setting.program)]
    inner = [getattr(strategy, "strategy", strategy) for strategy in strategies]
    return set(map(type, (*strategies, *inner, *setting.mixes)))


@pytest.mark.parametrize("room", [unspool.strategies, unspool.mixes])
def test_every_strategy_and_mix_is_in_the_matrix(room):
    known = {made for name in room.__all__ if isinstance(made := getattr(room, name), type)}
    assert known <= set().union(*map(parts, laws.EVERY.values()))


def test_every_memory_obeys_the_protocol():
    assert {"dense", "full", "none"} <= set(MEMORIES)
    assert all(make(64).exact for make in MEMORIES.values())
