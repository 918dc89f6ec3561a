"""Lets every test import the shared models of `models_zoo`; one compute thread, also in children.

On a busy machine a second thread makes tiny models many times slower.
"""

import os
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent))
