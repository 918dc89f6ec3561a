"""A peer far below what it reached elsewhere is named."""

import pytest

from unspool.bench.peers import PEERS
from unspool.bench.quoted import QUOTED, misconfigured


@pytest.mark.parametrize(("rate", "gb_s", "named"), [
    (48.0, 27.0, False),  # 60 % of 80
    (47.9, 27.0, True),
    (24.0, 13.5, False),  # half the bandwidth, half the speed
    (23.9, 13.5, True),
    (95.9, 54.0, True),
])
def test_the_bound_is_a_share_of_the_quoted_rate_scaled_to_the_memory(rate, gb_s, named):
    assert bool(misconfigured("decode", "decode", "llama_cpp", rate, gb_s)) is named


def test_where_nothing_is_quoted_nothing_is_said():
    assert misconfigured("decode", "at 2048", "llama_cpp", 1.0, 27.0) is None
    assert misconfigured("batch", "16", "openvino_genai", 1.0, 27.0) is None
    assert misconfigured("batch", "16", "llama_cpp", 1.0, None) is None


def test_the_message_has_all_numbers():
    said = misconfigured("batch", "16", "transformers", 12.34, 54.0)
    assert said is not None
    for part in ("12.3", "126.0", "60%", "105", "27", "54.0"):
        assert part in said


def test_only_known_peers_are_quoted():
    assert {name for row in QUOTED.values() for name in row} <= PEERS.keys()
