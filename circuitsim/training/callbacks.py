"""Callbacks: called with the history after each of its rows; one that returns True ends the training."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from circuitsim.errors import UsageError
from circuitsim.training.history import History

Callback = Callable[[History], object]
"""``callback(history)``; training ends where it returns True."""


@dataclass(frozen=True)
class EarlyStopping:
    """Ends the training where a column of the history no longer falls.

    Parameters
    ----------
    column : str
        For instance ``"loss"`` or ``"test_error"``; less is better.
    patience : int
        Rows after the best one that are still waited for.
    least : float
        By how much a value must lie below the best one before it to count as better.

    Raises
    ------
    UsageError
        Patience below 1; a column that the history does not have.
    """

    column: str
    patience: int = 10
    least: float = 0.0

    def __post_init__(self) -> None:
        if self.patience < 1 or not self.least >= 0.0:
            raise UsageError(f"patience is at least 1 and least not negative, not {self.patience} and {self.least}")

    def __call__(self, history: History) -> bool:
        """Whether the last ``patience`` rows brought nothing better."""
        if not history.rows:
            return False
        if self.column not in history.rows[0]:
            raise UsageError(f"the history has no column {self.column!r}; it has {', '.join(history.rows[0])}")
        best, place = math.inf, 0
        for row, value in enumerate(history.column(self.column)):
            if value < best - self.least:
                best, place = float(value), row
        return len(history.rows) - 1 - place >= self.patience
