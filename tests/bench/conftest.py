"""Lets the tests of this folder import `bench`, which is not installed."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))
