"""Small signals about an operating point: responses over frequency and poles (docs/ac.md)."""

from circuitsim.small_signal.frequency import AcResult, ac
from circuitsim.small_signal.measure import measure
from circuitsim.small_signal.poles import Poles, poles

__all__ = ["AcResult", "Poles", "ac", "measure", "poles"]
