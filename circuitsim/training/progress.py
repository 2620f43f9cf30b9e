"""A progress line for long runs: rewritten in place on a terminal, a line a minute elsewhere."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from datetime import timedelta
from typing import TextIO


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
