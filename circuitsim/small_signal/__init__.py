"""AC analysis: responses over frequency, poles and sensitivities at an operating point (docs/analyses.md)."""

from circuitsim.small_signal.frequency import AcResult, Poles, ac, poles
from circuitsim.small_signal.stepped import AcSweep, ac_sweep, measure

__all__ = ["AcResult", "AcSweep", "Poles", "ac", "ac_sweep", "measure", "poles"]
