"""Waveforms that are the output of no linear system, so not for exact runs."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np


class Sampled(ABC):
    """A waveform that is the output of no linear system: its state is its value.

    Attributes
    ----------
    what : str
        What such a source is, for messages.
    """

    what: str

    def __init__(self) -> None:
        self.system, self.row = np.zeros((1, 1)), np.ones(1)

    @abstractmethod
    def corners(self, after: float, until: float, most: int) -> np.ndarray:
        """See `Waveform.corners`."""

    @abstractmethod
    def cycles(self, until: float) -> float:
        """See `Waveform.cycles`."""

    @abstractmethod
    def states(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The value."""

    @abstractmethod
    def slope(self, time: float) -> float:
        """The derivative at ``time`` (s), V/s or A/s."""


class FrequencyModulation(Sampled):
    """SPICE's SFFM(offset amplitude carrier index signal): the output of no linear system, so not for exact waveforms.

    Its value is offset + amplitude · sin(2πf_c t + φ_c + index · sin(2πf_s t + φ_s)).

    Parameters
    ----------
    offset, amplitude : float
        V or A.
    carrier : float
        Hz.
    index : float
    signal : float
        Hz.
    carrier_phase, signal_phase : float
        Degrees.
    """

    what = "frequency modulated"

    def __init__(
        self,
        offset: float,
        amplitude: float,
        carrier: float,
        index: float,
        signal: float,
        carrier_phase: float = 0.0,
        signal_phase: float = 0.0,
    ) -> None:
        super().__init__()
        self.offset, self.amplitude, self.index = offset, amplitude, index
        self.carrier, self.signal = 2.0 * math.pi * carrier, 2.0 * math.pi * signal
        self.phases = math.radians(carrier_phase), math.radians(signal_phase)

    def corners(self, after: float, until: float, most: int) -> np.ndarray:
        """None; the arguments are those of `Waveform.corners`."""
        return np.zeros(0)

    def cycles(self, until: float) -> float:
        """The periods at the highest frequency; see `Waveform.cycles`."""
        return until * (abs(self.carrier) + abs(self.index * self.signal)) / (2.0 * math.pi)

    def states(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The value."""
        angle = self.carrier * times + self.phases[0] + self.index * np.sin(self.signal * times + self.phases[1])
        state = (self.offset + self.amplitude * np.sin(angle))[:, None]
        return state, np.full_like(state, abs(self.offset) + abs(self.amplitude))

    def slope(self, time: float) -> float:
        """The derivative at ``time`` (s), V/s or A/s."""
        within = self.signal * time + self.phases[1]
        angle = self.carrier * time + self.phases[0] + self.index * math.sin(within)
        rate = self.carrier + self.index * self.signal * math.cos(within)
        return self.amplitude * math.cos(angle) * rate
