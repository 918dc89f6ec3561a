"""The string form of strategies: what is written is read as the same, and an error says where."""
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unspool.core.errors import ParameterError
from unspool.core.plan import Plan, Program
from unspool.core.schedule import Schedule, jumps, ramp
from unspool.llm.grammar import CUTS, FIRST, SEARCHES, parse, pieces
from unspool.llm.plan import beam, sample

NAMES = st.sampled_from(sorted(SEARCHES))
KEYS = st.text(string.ascii_lowercase, min_size=4, max_size=8)
ANY = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
SAID = ANY.filter(bool)
RAMPS = st.lists(st.tuples(st.integers(0, 99), st.floats(-9, 9)), min_size=2, max_size=3,
                 unique_by=lambda p: p[0]).map(sorted)
VALUES = (st.integers(-10**9, 10**9) | st.floats(allow_nan=False, allow_infinity=False) | ANY
          | st.booleans() | st.none() | st.lists(ANY | st.integers(), max_size=3)
          | st.dictionaries(ANY, st.floats(-9, 9), max_size=2)
          | RAMPS.map(lambda points: Schedule(tuple(points)))
          | RAMPS.map(lambda points: jumps(*points)))
ENDS = (st.tuples(st.just("tokens") | st.just("step"), st.integers(1, 10**6))
        | st.tuples(st.just("text") | st.just("regex"), SAID)
        | st.tuples(st.just("entropy_above"), st.floats(0, 99)))
PARAMS = st.dictionaries(KEYS, VALUES, max_size=3).map(lambda d: tuple(d.items()))
ENDING = st.builds(Plan, NAMES, PARAMS, st.lists(ENDS, min_size=1, max_size=3).map(tuple))
LAST = st.builds(Plan, NAMES, PARAMS, st.lists(ENDS, max_size=2).map(tuple))
PROGRAMS = LAST | st.builds(lambda plans, last: Program((*plans, last)),
                            st.lists(ENDING, min_size=1, max_size=3), LAST)


@given(PROGRAMS)
def test_what_is_written_is_read_as_the_same(program):
    assert parse(str(program)) == program


@given(st.text(max_size=30) | st.text("beam:@>=,'\"\\.5/! ", max_size=30))
def test_any_text_is_read_or_refused_in_one_line(text):
    try:
        parse(text)
    except ParameterError as error:
        assert error.name == "strategy" and "\n" not in str(error).replace(text, "")


@pytest.mark.parametrize(("text", "program"), [
    ("beam:5@20 >> sample:t=.8,top_p=.95",
     beam(5).for_tokens(20) >> sample(temperature=0.8, top_p=0.95)),
    ("beam:5@20>>sample", beam(5).for_tokens(20) >> sample()),
    (" greedy @ text='. ' , 50 >> top_k:5@step=90 >> beam",
     Plan("greedy").until(text=". ").for_tokens(50) >> sample(top_k=5).until(step=90)
     >> Plan("beam")),
    ("sample@entropy>2.5 >> greedy", sample().until(entropy_above=2.5) >> Plan("greedy")),
    ("sample@entropy_above=2.5 >> greedy", sample().until(entropy_above=2.5) >> Plan("greedy")),
    (r"greedy@regex='\d+\\.' >> sample", Plan("greedy").until(regex=r"\d+\.") >> sample()),
    ("greedy@text=\"it's\\n\" >> sample", Plan("greedy").until(text="it's\n") >> sample()),
    ("greedy@text=5 >> sample", Plan("greedy").until(text="5") >> sample()),
    ("greedy@text='[1]' >> sample", Plan("greedy").until(text="[1]") >> sample()),
    ("greedy@tokens=7", Plan("greedy").for_tokens(7)),
    ("sample:1.2..0.5/40", sample(temperature=ramp(1.2, 0.5, 40))),
    ("beam:5!2/10,length_penalty=0", beam(jumps((0, 5), (10, 2)), length_penalty=0)),
    ("lexical_beam:rain", Plan("lexical_beam", (("must_contain", "rain"),))),
    ("lexical_beam:'[\"rain\", [\"sun\", \"a,b@c >> d\"]]',width=3", Plan("lexical_beam", (
        ("must_contain", ["rain", ["sun", "a,b@c >> d"]]), ("num_beams", 3)))),
    ("self_consistency:8,answer='(\\d+)'", Plan("self_consistency", (
        ("best_of", 8), ("answer", r"(\d+)")))),
    ("sample:boosts='{\" sea\": 2}'", sample(boosts={" sea": 2})),
    ("sample:answer='\"[1]\"'", sample(answer="[1]")),
    ("greedy@text='é ☃' >> sample", Plan("greedy").until(text="é ☃") >> sample()),
])  # fmt: skip
def test_programs_by_their_string(text, program):
    assert parse(text) == program and parse(str(program)) == program


@pytest.mark.parametrize("name", FIRST)
def test_a_first_value_means_what_its_name_says(name):
    if not FIRST[name]:
        return
    found = parse(f"{name}:0.5")
    assert found.params == ((FIRST[name], 0.5),)
    assert found.name == ("sample" if name in CUTS else name)


@pytest.mark.parametrize(("text", "said", "place"), [
    ("beem", "there is no strategy 'beem'; did you mean beam?", 1),
    ("beam:5@3 >> smaple", "did you mean sample?", 13),
    ("zzz", "there are greedy, sample, beam", 1),
    ("beam:5@3 >> ", "there is no strategy ''", 13),
    ("beam:5@3@4", "a stage has one @; join its ends by commas", 9),
    ("beam:5@", "'' ends nothing; after @ comes a number of tokens", 8),
    ("beam:5@20, foo=3", "'foo=3' ends nothing", 12),
    ("beam:5@-3", "tokens=-3: must be a whole number from 1 on", 8),
    ("beam:5@2.5", "tokens=2.5: must be a whole number from 1 on", 8),
    ("beam:5@tokens>3", "'tokens>3' ends nothing", 8),
    ("beam:5@entropy>x", "entropy_above='x': must be a number of bits", 8),
    ("sample:t>3", "'t>3' is no setting of its own", 8),
    ("sample:t=1,  t=2", "'t=2' is no setting of its own", 14),
    ("sample:t=1..2", "'1..2' is not a number, a schedule as in 1.2..0.5/40, or a word", 8),
    ("sample:t=1..2/0", "'1..2/0' is not a number", 8),
    ("sample:t='1", "\"'1\" is no text in quotes", 8),
    ("greedy@text='it's' >> sample", "is no text in quotes", 8),
    ("greedy@text='a >> sample", "is no text in quotes", 8),
    ("greedy:5", "'5' is no setting of its own", 8),
    ("top_p", "top_p needs a value, as in 'top_p:0.9'", 1),
])
def test_an_error_says_what_and_where(text, said, place):
    with pytest.raises(ParameterError) as error:
        parse(text)
    message = str(error.value)
    assert said in message and message.endswith(f"(at character {place})")
    assert message.startswith(f"strategy={text!r}: ") and error.value.name == "strategy"
    assert len(message) < 300


def test_a_program_without_an_end_is_refused():
    with pytest.raises(ParameterError, match="stage 1, beam:num_beams=5, never ends"):
        parse("beam:5 >> sample")


def test_marks_within_quotes_part_nothing():
    assert list(pieces("a,'b,c',\"d\\\",e\"", ",")) == [("a", 0), ("'b,c'", 2), ('"d\\",e"', 8)]
