from unspool.core.branch import Branch, Ended
from unspool.core.prefix import prefix
from unspool.stops.tokens import EndTokens, StopTokens


def after(stop, *written, prompt=(4, 9)):
    return stop.after(stop.start(), Branch(0, prefix([*prompt, *written]), len(prompt)))[1]


def test_each_end_token_ends_and_is_named():
    stop = EndTokens((4, 9))
    assert after(stop, 1, 4) == Ended("stop", 4)
    assert after(stop, 9) == Ended("stop", 9)
    assert after(stop, 4, 1) is None  # only the last token is asked about


def test_ignored_end_tokens_end_nothing():
    assert after(EndTokens(frozenset({4}), ignored=True), 4) is None


def test_stop_tokens_are_added_to_the_end_tokens():
    """B24: 7 stops although it is no end token, and the end tokens still do."""
    stops = (EndTokens((4, 9)), StopTokens(frozenset({7})))
    assert [after(stop, 7) for stop in stops] == [None, Ended("stop", 7)]
    assert [after(stop, 4) for stop in stops] == [Ended("stop", 4), None]


def test_the_text_of_the_token_is_cut_off():
    written = {4: b"<end>", 7: "€".encode()}
    assert after(EndTokens(frozenset({4}), piece=written.__getitem__), 4).cut == 5
    assert after(StopTokens(frozenset({7}), written.__getitem__), 7).cut == 3
