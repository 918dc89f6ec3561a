"""Watermarks: rules whose mark a key finds again, and the detectors. See `detect`."""
from unspool.rules.watermarks.config import detect, watermark_of
from unspool.rules.watermarks.detection import Detection
from unspool.rules.watermarks.gumbel import gumbel_watermark
from unspool.rules.watermarks.kgw import kgw
from unspool.rules.watermarks.synthid import synthid

__all__ = ["Detection", "detect", "gumbel_watermark", "kgw", "synthid", "watermark_of"]
