"""Columns with units, and their texts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from circuitsim.formats import columns


class Table(NamedTuple):
    """Columns of equal length.

    Attributes
    ----------
    header : tuple of str
        Names of the columns.
    units : tuple of str
        Of each column; empty where it has none.
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
        """For JSON: each column by its name; None where a number is not finite (the decibels of 0)."""
        return {
            name: [None if isinstance(cell, float) and not math.isfinite(cell) else cell for cell in column]
            for name, column in zip(self.header, self._lists())
        }

    def csv(self) -> str:
        """Comma-separated text."""
        return columns.csv(self.header, self.rows())

    def text(self) -> str:
        """Aligned text for people, numbers with the units of their columns."""
        return "\n".join(columns.table(self.header, columns.cells(self.rows(), self.units))) + "\n"
