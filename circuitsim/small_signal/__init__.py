"""Small signals about an operating point: responses over frequency and poles (docs/analyses.md)."""

from circuitsim.small_signal.frequency import AcResult, ac
from circuitsim.small_signal.measure import measure
from circuitsim.small_signal.poles import Poles, poles
from circuitsim.small_signal.stepped import AcSweep, ac_sweep

__all__ = ["AcResult", "AcSweep", "Poles", "ac", "ac_sweep", "measure", "poles"]
