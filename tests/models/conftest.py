"""Tests here draw random circuits of devices (`tests/properties/device_circuits.py`)."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "properties"))
