"""Columns with units, and their texts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np


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
    """

    header: tuple[str, ...]
    units: tuple[str, ...]
    columns: tuple[Any, ...]

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The rows."""
        return zip(*(column.tolist() if isinstance(column, np.ndarray) else column for column in self.columns))

    def to_dict(self) -> dict[str, Any]:
        """For JSON: each column by its name; None where a number is not finite (the decibels of 0)."""
        return {
            name: [None if isinstance(cell, float) and not math.isfinite(cell) else cell for cell in column]
            for name, column in zip(self.header, self.columns)
        }


def table_text(table: Table, form: str, proof: Mapping[str, Any]) -> str:
    """A table as ``csv``, ``json`` (with the entries of ``proof`` beside the columns) or text with units."""
    if form == "json":
        from circuitsim.formats.strict_json import dumps

        return dumps(table.to_dict() | dict(proof))
    from circuitsim.formats import columns

    if form == "csv":
        return columns.csv(table.header, table.rows())
    rows = columns.cells(table.rows(), table.units)
    return "\n".join(columns.table(table.header, rows)) + "\n"
