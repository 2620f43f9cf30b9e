"""Kinks: diodes and clamped units whose state changes between the states that an estimate compares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from circuitsim.blocks.protocol import State


class Kinks(NamedTuple):
    """Kinks of an estimate.

    Attributes
    ----------
    changes : (batch,) int array
        Diodes and clamped units that change between the states used; of one free state (implicit differentiation) those
        at a kink, where either state is correct.
    switches : int
        Diodes and units with bounds of the block.
    """

    changes: np.ndarray
    switches: int

    @property
    def share(self) -> float:
        """Fraction of all diodes and units with bounds, over the batch."""
        return float(self.changes.sum()) / max(1, self.changes.size * self.switches)


def changed(states: Sequence[State]) -> Kinks | None:
    """Kinks between states; None where a block does not tell which of its diodes conduct (``active``)."""
    first, *others = (getattr(state, "active", None) for state in states)
    if first is None or any(other is None for other in others):
        return None
    differs = np.any([other != first for other in others], axis=0)
    return Kinks(differs.sum(axis=1), first.shape[1])
