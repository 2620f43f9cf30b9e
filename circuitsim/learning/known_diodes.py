"""Conducting diodes of the latest samples of a circuit: those of the nearest one are where another begins."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.analysis.batch_solution import BatchSolution
from circuitsim.circuit import Circuit

REMEMBERED = 4096
"""Most samples of which the diodes are remembered."""


class Start(NamedTuple):
    """What `CircuitBlock.relax` takes of a state to start from."""

    solution: BatchSolution


class KnownDiodes:
    """The latest inputs of a circuit with their conducting diodes, one bit each.

    Copies begin with none.

    Parameters
    ----------
    circuit : Circuit
        Of resistors, ideal diodes and sources.
    most : int
        Samples to remember.
    """

    def __init__(self, circuit: Circuit, most: int = REMEMBERED) -> None:
        self.circuit, self.most = circuit, most
        self._x: np.ndarray | None = None
        self._closed = np.zeros((0, 0), dtype=np.uint8)
        self._diodes = 0

    def __reduce__(self) -> tuple[type[KnownDiodes], tuple[Circuit, int]]:
        return KnownDiodes, (self.circuit, self.most)

    def __len__(self) -> int:
        return 0 if self._x is None else len(self._x)

    def start(self, x: np.ndarray) -> Start | None:
        """The diodes of the nearest known input, of several the latest, for each row of ``x`` (batch, inputs); None
        where none is known."""
        if self._x is None or not len(x):
            return None
        known = self._x[::-1]
        distance = (known**2).sum(axis=1) - 2.0 * (x @ known.T)
        bits = self._closed[::-1][distance.argmin(axis=1)]
        closed = np.unpackbits(bits, axis=1, count=self._diodes).astype(bool)
        none = np.zeros((len(x), 0))
        return Start(BatchSolution(self.circuit, none, none, closed, none, none, none, none, 0.0))

    def add(self, x: np.ndarray, closed: np.ndarray) -> None:
        """Remember inputs (batch, inputs) and their conducting diodes (batch, diodes); the oldest are forgotten."""
        bits = np.packbits(closed, axis=1)
        before = (x[:0], bits[:0]) if self._x is None else (self._x, self._closed)
        self._x, self._closed = (np.concatenate(pair)[-self.most :] for pair in zip(before, (x, bits)))
        self._diodes = closed.shape[1]
