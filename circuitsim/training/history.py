"""What was measured during training: rows in memory, as CSV and JSON lines on disk, and as curves."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

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
