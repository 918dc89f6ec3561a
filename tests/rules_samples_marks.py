"""Values worth trying of the watermarks, weak to strong, and those that change nothing."""
from unspool.rules import gumbel_watermark, kgw, synthid
from unspool.rules.watermarks.gumbel import Source
from unspool.rules.watermarks.kgw import Greens
from unspool.rules.watermarks.synthid import Tournament

KEYS = (654, 400, 836, 123, 340, 443, 597, 160, 57)

SAMPLES = {
    "kgw": (
        kgw(0.5, data=Greens(12, 0.5)), kgw(2.0, data=Greens(1000, 0.25, 42, width=3)),
        kgw(2.0, data=Greens(1000, 0.5, 42, selfhash=True, width=1)),
        kgw(6.0, data=Greens(12, 0.5, 99, selfhash=True, width=4))),
    "gumbel_watermark": (gumbel_watermark(data=Source(42)), gumbel_watermark(data=Source(42, 1))),
    "synthid": (
        synthid(data=Tournament(KEYS[:1], 2)), synthid(data=Tournament(KEYS, 3, skips=True)),
        synthid(data=Tournament(KEYS, 5, 7, 1000, remembered=2)),
        synthid(data=Tournament(tuple(range(1, 13))))),
}
NEUTRAL = {
    "kgw": kgw(0.0, data=Greens(1000)),
    "gumbel_watermark": gumbel_watermark(data=Source(42)),  # only the noise of the pick is another
    "synthid": synthid(data=Tournament(())),
}
