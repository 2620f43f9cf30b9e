"""Fits of decks to waveforms and measurements."""

from circuitsim.fitting.fit import MeasureTarget, TimedDeck, WaveformFit, WaveTarget, read_targets

__all__ = ["MeasureTarget", "TimedDeck", "WaveTarget", "WaveformFit", "read_targets"]
