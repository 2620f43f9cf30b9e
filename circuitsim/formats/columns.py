"""Columns of text: CSV for programs, aligned tables for people."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from circuitsim.units import format_quantity

Cell = str | float | bool | None

_FORMULA = frozenset(("=", "+", "-", "@", "\t", "\r"))
"""Characters that begin a formula in a spreadsheet (OWASP, CSV injection)."""

SMALLEST_SHARE = 1e-12
"""Fraction of the largest number of its kind below which a table shows 0: such numbers are rounding."""


def csv(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """Comma-separated text (RFC 4180, lines ended by ``\\n``).

    Numbers are written so that they read back as the same double; None and nan become empty cells.

    >>> print(csv(["name", "value"], [["a,b", 0.1], ["c", None]]), end="")
    name,value
    "a,b",0.1
    c,
    """
    lines = [",".join(map(_quoted, header))]
    lines += [",".join(map(_csv_cell, row)) for row in rows]
    return "\n".join(lines) + "\n"


def _csv_cell(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, str):
        return _quoted(cell)
    number = float(cell)
    return "" if math.isnan(number) else repr(number)


def cell_text(text: str) -> str:
    """Text of a cell, with a leading apostrophe if a spreadsheet would read it as a formula.

    >>> cell_text("@SUM"), cell_text("+1+cmd|x"), cell_text("-3"), cell_text("v(a)")
    ("'@SUM", "'+1+cmd|x", '-3', 'v(a)')
    """
    if text[:1] not in _FORMULA or len(text) < 2:
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


def _quoted(text: str) -> str:
    text = cell_text(text)
    if any(c in text for c in ',"\r\n') or text != text.strip():
        return '"' + text.replace('"', '""') + '"'
    return text


def quantity(value: float | None, unit: str) -> str:
    """A number with its unit for a table; ``-`` if there is none.

    The prefixes are SI's, so ``M`` is mega and ``m`` is milli.
    """
    if value is None or math.isnan(value):
        return "-"
    if math.isinf(value):
        return "∞" if value > 0.0 else "-∞"
    # + 0.0: no minus sign before a zero
    if not unit or "/" in unit:
        return f"{value + 0.0:.6g} {unit}".rstrip()
    return format_quantity(value + 0.0, unit)


def scale_of(values: Iterable[float | None]) -> float:
    """The largest magnitude of numbers of one kind; 0 if there are none."""
    return max((abs(v) for v in values if v is not None and math.isfinite(v)), default=0.0)


def shown(value: float | None, unit: str, scale: float, share: float = SMALLEST_SHARE) -> str:
    """`quantity`, or 0 if the number is below a fraction of its scale."""
    return quantity(0.0 if value is not None and abs(value) < share * scale else value, unit)


def cell(value: Cell, unit: str, scale: float) -> str:
    """A cell for display: a text unchanged, a number with its unit."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return value if isinstance(value, str) else shown(value, unit, scale)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of an aligned table. Cells of the form ``number unit`` are aligned at the blank between them.

    >>> print("\\n".join(table(["node", "potential"], [["a", "12.5 V"], ["b", "-3 mV"]])))
    node  potential
    a     12.5 V
    b       -3 mV
    """
    body = zip(header, *rows)
    columns = [[name, *_aligned(cells)] for name, *cells in body]
    widths = [max(map(len, column)) for column in columns]
    return ["  ".join(c.ljust(w) for c, w in zip(row, widths)).rstrip() for row in zip(*columns)]


def markdown(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Lines of a table in Markdown."""
    cells = [[*rows[0]], ["---"] * len(rows[0]), *(map(str, row.values()) for row in rows)]
    return ["| " + " | ".join(line) + " |" for line in cells]


def _aligned(cells: list[str]) -> list[str]:
    """Quantity cells, padded so that their numbers end in one column."""
    heads = [_number_length(cell) for cell in cells]
    width = max(heads, default=0)
    return [" " * (width - head) + cell if head else cell for cell, head in zip(cells, heads)]


def _number_length(cell: str) -> int:
    """Length of the number that ``cell`` begins with, 0 if it is not a quantity."""
    number = cell.partition(" ")[0]
    try:
        float(number)
    except ValueError:
        return 0
    return len(number) if " " in cell else 0
