"""Callbacks: called with the history after each of its rows; one that returns True ends the training."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
            raise UsageError(f"patience must be at least 1, least non-negative, not {self.patience} and {self.least}")

    def __call__(self, history: History) -> bool:
        """Whether the last ``patience`` rows brought no improvement."""
        if self.column not in history.rows[0]:
            raise UsageError(f"the history has no column {self.column!r}; it has {', '.join(history.rows[0])}")
        best, place = math.inf, 0
        for row, value in enumerate(history.column(self.column)):
            if value < best - self.least:
                best, place = float(value), row
        return len(history.rows) - 1 - place >= self.patience


class TensorBoard:
    """Writes each new row of the history as scalars, one per column; ``tensorboard --logdir DIRECTORY`` shows them.

    Needs the extra ``tensorboard``.

    Parameters
    ----------
    directory : str or Path
        Made if missing; several runs lie in directories side by side. Where it holds files of an earlier part of a
        run, a continued run adds its new rows only.

    Raises
    ------
    UsageError
        The package ``tensorboard`` is not installed.
    """

    def __init__(self, directory: str | Path) -> None:
        try:
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
        except ImportError as problem:
            raise UsageError(
                "the package tensorboard is missing: pip install 'circuitsim-exact[tensorboard]'"
            ) from problem
        self._earlier = any(Path(directory).glob("events.out.tfevents.*"))
        self._writer: Any = EventFileWriter(str(directory))
        self._written = 0

    def __call__(self, history: History) -> None:
        """Write the rows that are new; the step is the row's epoch."""
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        if self._earlier and not self._written:
            self._written = len(history.rows) - 1
        for number, row in enumerate(history.rows[self._written :], start=self._written + 1):
            step = int(row.get("epoch", number))
            values = [Summary.Value(tag=name, simple_value=x) for name, x in row.items() if name != "epoch"]
            self._writer.add_event(Event(wall_time=time.time(), step=step, summary=Summary(value=values)))
        self._written = len(history.rows)
        self._writer.flush()

    def close(self) -> None:
        """Close the file; it is complete after every row without it."""
        self._writer.close()
