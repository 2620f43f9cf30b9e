"""What was measured during training: rows in memory, and as CSV and JSON lines on disk."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from circuitsim._files import atomic_write, naming
from circuitsim.errors import UsageError
from circuitsim.formats.html import image
from circuitsim.formats.result import Result
from circuitsim.formats.table import Table
from circuitsim.training.curves import COUNTED, history_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
        finite = [{name: value if math.isfinite(value) else None for name, value in row.items()} for row in rows]
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
