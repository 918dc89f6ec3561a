"""Lets the tests and the fault script share `laws`."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
