"""Fits of decks to waveforms and measurements."""

from circuitsim.fitting.fit import WaveformFit
from circuitsim.fitting.numbers import TimedDeck
from circuitsim.fitting.targets import MeasureTarget, WaveTarget, read_targets

__all__ = ["MeasureTarget", "TimedDeck", "WaveTarget", "WaveformFit", "read_targets"]
