"""Callbacks: called with the history after each of its rows; one that returns True ends the training.

A progress line for long runs: rewritten in place on a terminal, a line a minute elsewhere.
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TextIO

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


class ProgressLine:
    """A line rewritten in place on a terminal or in a notebook; elsewhere (a file, a pipe) a line a minute.

    Parameters
    ----------
    stream : text stream
        Usually standard error.
    label : str
        What is running.
    clock : callable
        Seconds from a monotonic clock; a test can pass its own.
    """

    def __init__(
        self,
        stream: TextIO,
        label: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        # The line is rewritten with a carriage return, which the commands' standard error would escape.
        self.stream: TextIO = getattr(stream, "behind", stream)
        self.label = label
        self.clock = clock
        # A notebook's stream is not a terminal, but a carriage return rewrites its line.
        self.rewriting = stream.isatty() or type(self.stream).__module__.startswith("ipykernel")
        # Seconds between two rewritings, or between two lines, of which the first comes after as long.
        self.interval = 0.2 if self.rewriting else 60.0
        self._began = clock()
        self._first: float | None = None
        self._drawn = -float("inf") if self.rewriting else self._began
        self._width = 0

    def due(self) -> bool:
        """Whether an update would be shown now, or is the first."""
        return self._first is None or self.clock() - self._drawn >= self.interval

    def update(self, fraction: float, note: str = "") -> None:
        """Show the fraction done, a note, and the time left at the pace since the first call.

        Parameters
        ----------
        fraction : float
            0 to 1.
        note : str
            Behind the time left.
        """
        now = self.clock()
        if self._first is None:
            # In a resumed run the rate is that of this process's steps only.
            self._first, self._began = fraction, now
        if now - self._drawn < self.interval and (fraction < 1 or not self.rewriting):
            return
        self._drawn = now
        text = f"{self.label} {100 * fraction:5.1f} %"
        gained = fraction - self._first
        if gained > 0:
            text += f"  {timedelta(seconds=round((now - self._began) * (1 - fraction) / gained))} left"
        text += f"  {note}"
        if not self.rewriting:
            print(text.rstrip(), file=self.stream, flush=True)
            return
        # A line that wraps cannot be rewritten in place.
        text = text[: shutil.get_terminal_size().columns - 1]
        print("\r" + text.ljust(self._width), end="", file=self.stream, flush=True)
        self._width = len(text)

    def close(self) -> None:
        """Leave the line as it is and go to the next one."""
        if self._width:
            print(file=self.stream, flush=True)
            self._width = 0
