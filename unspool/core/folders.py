"""Where this machine keeps what can be made again: fetched weights, compiled kernels."""
from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def cache_folder() -> Path:
    """$UNSPOOL_CACHE, or the user's cache folder. It may not exist yet."""
    return Path(os.environ.get("UNSPOOL_CACHE") or platformdirs.user_cache_dir("unspool"))
