"""Tests here draw random circuits of devices (`tests/properties/device_circuits.py`) and run ngspice
(`tests/ngspice/ngspice_runs.py`)."""

import sys
from pathlib import Path

for folder in ("properties", "ngspice"):
    sys.path.insert(0, str(Path(__file__).parents[1] / folder))
