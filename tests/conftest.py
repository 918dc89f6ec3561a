"""Lets every test import the shared models of `models_zoo`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
