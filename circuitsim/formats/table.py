"""Columns with units, and their texts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from circuitsim.formats import columns

OWN = "unit"
"""In place of a column's unit: each row has its own unit, in the column of this name."""
WIDE = 120
"""Line length from which a table of few rows is transposed."""


class Table(NamedTuple):
    """Columns of equal length.

    Attributes
    ----------
    header : tuple of str
        Names of the columns.
    units : tuple of str
        Of each column; empty where it has none, `OWN` where each row has its own.
    columns : tuple of array or list
        Floats or texts.
    named : bool
        Whether the first column names the rows: the index of a pandas frame.
    """

    header: tuple[str, ...]
    units: tuple[str, ...]
    columns: tuple[Any, ...]
    named: bool = False

    @classmethod
    def of(cls, header: str, rows: Iterable[Sequence[Any]], units: Sequence[str] = (), named: bool = False) -> Table:
        """A table from its rows.

        Parameters
        ----------
        header : str
            Names of the columns, with ``", "`` between.
        rows : iterable of sequence
        units : sequence of str
            Of each column; none by default.
        named : bool
            See `Table`.
        """
        names = tuple(header.split(", "))
        cells = tuple(map(list, zip(*rows))) or tuple([] for _ in names)
        return cls(names, tuple(units) or ("",) * len(names), cells, named)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The rows."""
        return zip(*self._lists())

    def _lists(self) -> Iterator[list[Any]]:
        return (column.tolist() if hasattr(column, "tolist") else column for column in self.columns)

    def to_dict(self) -> dict[str, Any]:
        """For JSON: the columns by name; None for non-finite numbers (such as 0 in dB)."""
        return {
            name: [None if isinstance(cell, float) and not math.isfinite(cell) else cell for cell in column]
            for name, column in zip(self.header, self._lists())
        }

    def csv(self) -> str:
        """Comma-separated text."""
        return columns.csv(self.header, self.rows())

    def shown(self, most: int | None = None) -> tuple[list[str], list[list[str]]]:
        """Column names and rows of text, numbers with their units on their column's scale.

        Parameters
        ----------
        most : int, optional
            Rows to show; all by default.
        """
        every = list(self._lists())
        own = self.header.index(OWN) if OWN in self.units else -1
        names, texts = [], []
        for k, (name, unit) in enumerate(zip(self.header, self.units)):
            if k != own:
                units = every[own] if unit == OWN else [unit] * len(every[k])
                scale = 0.0 if unit in ("", OWN) else columns.scale_of(x for x in every[k] if isinstance(x, float))
                names.append(name)
                texts.append([columns.cell(*pair, scale) for pair in zip(every[k][:most], units)])
        return names, [list(row) for row in zip(*texts)]

    def text(self, most: int | None = None) -> str:
        """Aligned text, with a maximum number of rows."""
        header, rows = self.shown(most)
        lines = columns.table(header, rows)
        if 0 < len(rows) < len(header) and max(map(len, lines)) > WIDE:
            first, *others = zip(header, *rows)
            lines = columns.table(first, others)
        left = len(self.columns[0]) - len(rows)
        return "\n".join([*lines, *[f"… and {left:,} more"] * (left > 0)]) + "\n"
