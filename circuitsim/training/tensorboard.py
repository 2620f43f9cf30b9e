"""A callback that writes the history for TensorBoard (extra ``tensorboard``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from circuitsim.errors import UsageError
from circuitsim.training.history import History


class TensorBoard:
    """Writes each new row of the history as scalars, one a column; ``tensorboard --logdir DIRECTORY`` shows them.

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
            from tensorboard.compat.proto.event_pb2 import Event
            from tensorboard.compat.proto.summary_pb2 import Summary
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
        except ImportError as problem:
            raise UsageError(
                "the package tensorboard is missing: pip install 'circuitsim-exact[tensorboard]'"
            ) from problem
        self._event, self._summary = Event, Summary
        self._earlier = any(Path(directory).glob("events.out.tfevents.*"))
        self._writer: Any = EventFileWriter(str(directory))
        self._written = 0

    def __call__(self, history: History) -> None:
        """Write the rows that are new; the step is the row's epoch."""
        import time

        if self._earlier and not self._written:
            self._written = len(history.rows) - 1
        for number, row in enumerate(history.rows[self._written :], start=self._written + 1):
            values = [
                self._summary.Value(tag=name, simple_value=float(value))
                for name, value in row.items()
                if name != "epoch"
            ]
            event = self._event(wall_time=time.time(), step=int(row.get("epoch", number)))
            event.summary.CopyFrom(self._summary(value=values))
            self._writer.add_event(event)
        self._written = len(history.rows)
        self._writer.flush()

    def close(self) -> None:
        """Close the file; it is complete after every row without it."""
        self._writer.close()
