"""What was measured during training: rows in memory, as CSV and JSON lines on disk, and as curves.

Callbacks are called with the history after each of its rows; one that returns True ends the training. One of them is a
progress line for long runs: rewritten in place on a terminal, a line a minute elsewhere.
"""

from __future__ import annotations

import csv
import io
import json
import math
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, TextIO

from circuitsim._files import atomic_write, naming
from circuitsim.errors import UsageError
from circuitsim.formats import Result, Table, image, plain
from circuitsim.plotting.charts import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


COUNTED = ("epoch", "updates", "skipped", "rate_factor", "seconds", "train_seconds")
"""Columns that are not measurements."""

BOUNDS = ("lower", "upper")
"""Bounds of the loss; where it is tiny, their rounding may have either sign."""

PANELS: dict[str, tuple[str, ...]] = {
    "loss": ("loss", *BOUNDS),
    "error": ("error",),
    "largest relative residual": ("residual", "nudged_residual", "certificate"),
    "fraction of clamped units and diodes that change": ("kink_share",),
    "fraction of samples without a certified state": ("uncertified_fraction",),
    "log-likelihood of a sample, nats": ("log_likelihood", "pseudo_likelihood"),
    "mean squared error of the reconstruction": ("reconstruction",),
    "error of the gradient": ("bound", "exact_bias"),
    "maximum energy change by one unit, nats": ("delta",),
    "Gibbs steps of an update": ("k",),
}
"""Label of a vertical axis → the columns of its panel; a column of no panel has one of its own by its name."""

UNSEEN = (*COUNTED, "vacuous", "distance", "kinks", "clamped", "sweeps")
"""Columns that have no panel."""

ACROSS, MOST, LINE = 4, 16, 30
"""Panels in a row, and in all; characters of a line of a vertical label."""


def marker_of(points: int) -> str:
    """Marker of a curve: points are shown where they are few, so that one epoch is visible."""
    return "." if points < 30 else ""


def history_figure(rows: Sequence[Mapping[str, float]]) -> Figure:
    """What a history measures over the updates, up to `ACROSS` panels in a row, `MOST` in all.

    Parameters
    ----------
    rows : sequence of mapping of str to float
        At least one. Columns with and without ``test_`` share a panel, bounds that of the loss; an axis is logarithmic
        where it spans a factor of ten. Columns without a finite value are left out, and, but for the loss, those that
        never change.
    """
    from matplotlib.ticker import MaxNLocator

    panels: dict[str, list[str]] = {}
    for name in rows[0]:
        title, found = name.removeprefix("test_"), {row[name] for row in rows if math.isfinite(row[name])}
        if title not in UNSEEN and len(found) > (len(rows) > 1 and title != "loss"):
            label = next((label for label, columns in PANELS.items() if title in columns), title)
            panels.setdefault(label, []).append(name)
    shown = list(panels.items())[:MOST]
    across, down = min(max(1, len(shown)), ACROSS), max(1, math.ceil(len(shown) / ACROSS))
    figure = new_figure(4.5 * across, 3.4 * down)
    figure.set_layout_engine("constrained")
    updates = [row.get("updates", number) for number, row in enumerate(rows, 1)]
    for place, (label, names) in enumerate(shown, 1):
        axes = figure.add_subplot(down, across, place)
        axes.ticklabel_format(useOffset=False)
        for name in names:
            axes.plot(updates, [row[name] for row in rows], marker=marker_of(len(updates)), label=name)
        own = [name for name in names if name not in BOUNDS] or names
        values = [value for name in own for row in rows if math.isfinite(value := row[name])]
        if 0.0 < 10.0 * min(values) < max(values):
            axes.set_yscale("log", nonpositive="mask")
        axes.set(xlabel="updates", ylabel=fill(label, LINE))
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True, min_n_ticks=1))
        axes.legend(frameon=False)
    return figure


Value = float | int | bool

Row = dict[str, Value]


class History(Result):
    """Rows with the same columns, appended one at a time.

    Parameters
    ----------
    directory : Path, optional
        Directory of ``history.csv`` and ``history.jsonl``; None: rows in memory only.

    Notes
    -----
    Each row is on disk as soon as it comes. A checkpoint holds the rows as well, and a resumed run puts the files back
    to where it starts. A number that is not finite is an empty cell in the CSV and null in the JSON lines.
    """

    CSV = "history.csv"
    LINES = "history.jsonl"

    def __init__(self, directory: Path | None = None) -> None:
        self.directory = directory
        self.rows: list[Row] = []

    def append(self, row: Mapping[str, Value]) -> None:
        """Add a row, in memory and on disk."""
        self._add([dict(row)])

    def restart(self, rows: Iterable[Row]) -> None:
        """Replace all rows by ``rows``: the history of a checkpoint (or none)."""
        self.rows = []
        self._add([dict(row) for row in rows])

    def _add(self, rows: list[Row]) -> None:
        """Add rows, also to the files, which begin with them where there were none."""
        begins = not self.rows
        for row in rows:
            if self.rows and list(row) != list(self.rows[0]):
                raise UsageError(f"the history's columns are {list(self.rows[0])}, a new row has {list(row)}")
            self.rows.append(row)
        if self.directory is None:
            return
        finite = plain(rows)
        table = io.StringIO()
        writer = csv.writer(table, lineterminator="\n")
        writer.writerows([*[list(row) for row in finite[:1] if begins], *(row.values() for row in finite)])
        texts = {self.LINES: "".join(f"{json.dumps(row)}\n" for row in finite), self.CSV: table.getvalue()}
        for name, text in texts.items():
            path = self.directory / name
            if begins:
                atomic_write(path, text.encode())
            else:
                with naming(path), open(path, "a", encoding="utf-8", newline="") as file:
                    file.write(text)

    def column(self, name: str) -> list[Value]:
        """One column, in order."""
        return [row[name] for row in self.rows]

    def tables(self) -> dict[str, Table]:
        """``rows``: all columns."""
        names = tuple((self.rows or [{}])[0])
        return {"rows": Table(names, ("",) * len(names), tuple(map(self.column, names)))}

    def last(self) -> list[str]:
        """What the last row measures, a line each."""
        row = self.rows[-1]
        names = [name for name in row if name not in COUNTED]
        width = max(map(len, names))
        return [f"{name:{width}}  {row[name]:.4g}" for name in names if math.isfinite(row[name])]

    def _figure(self) -> Figure:
        return history_figure(self.rows)

    def _picture(self) -> str:
        return image(self._figure(), f"{', '.join(self.rows[0])} over updates") if self.rows else ""

    def _heading(self) -> tuple[str, str]:
        last = [f"{name} {value:.4g}" for name, value in (self.rows or [{}])[-1].items()]
        return "", f"{len(self.rows)} rows{', last: ' * bool(last)}{', '.join(last)}"


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
