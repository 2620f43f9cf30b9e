"""The progress line of commands whose work may be short or long."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from circuitsim.training.progress import ProgressLine


class LateProgress:
    """How far long work is, on a terminal; loaded only once it has run for a second."""

    def __init__(self, label: str) -> None:
        import time

        self._label, self._clock, self._began = label, time.monotonic, time.monotonic()
        self._line: ProgressLine | None = None

    def update(self, done: int, points: int) -> None:
        """Show the share of the points that is done."""
        if self._line is None and done < points and self._clock() - self._began > 1.0 and sys.stderr.isatty():
            from circuitsim.training.progress import ProgressLine

            self._line = ProgressLine(sys.stderr, self._label)
        if self._line is not None:
            self._line.update(done / points)

    def close(self) -> None:
        """End the line."""
        if self._line is not None:
            self._line.close()
