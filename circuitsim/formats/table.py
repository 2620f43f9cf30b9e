"""Columns with units, and their texts: aligned for people, CSV, JSON and SPICE3 rawfiles for programs.

Rawfiles, in ASCII or binary, are as ``load`` of ngspice and spicelib's ``RawRead`` read them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from struct import pack
from typing import Any, NamedTuple

from circuitsim._version import __version__
from circuitsim.errors import TopologyError
from circuitsim.units import Quantity, format_quantity

Cell = str | float | bool | None

_FORMULA = frozenset("=+-@\t\r")
"""Characters that begin a formula in a spreadsheet (OWASP, CSV injection)."""

SMALLEST_SHARE = 1e-12
"""Fraction of the largest number of its kind below which a table shows 0: such numbers are rounding."""


def csv(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """Comma-separated text (RFC 4180, lines ended by ``\\n``).

    Numbers are written so that they read back as the same double; None and nan become empty cells.

    Parameters
    ----------
    header : sequence of str
    rows : iterable of sequence of str, float, bool or None

    Examples
    --------
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

    Parameters
    ----------
    value : float or None
    unit : str
        Empty for a pure number.
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
    """`quantity`, or 0 if the number is below a fraction of its scale.

    Parameters
    ----------
    value : float or None
    unit : str
    scale : float
        The largest number of its kind.
    share : float
        Of the scale: what is smaller shows as 0.
    """
    return quantity(0.0 if value is not None and abs(value) < share * scale else value, unit)


def cell(value: Cell, unit: str, scale: float) -> str:
    """A cell for display: a text unchanged, a number with its unit.

    Parameters
    ----------
    value : str, float, bool or None
    unit : str
    scale : float
        As for `shown`.
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return value if isinstance(value, str) else shown(value, unit, scale)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of an aligned table. Cells of the form ``number unit`` are aligned at the blank between them.

    Parameters
    ----------
    header : sequence of str
    rows : iterable of sequence of str

    Examples
    --------
    >>> print("\\n".join(table(["node", "potential"], [["a", "12.5 V"], ["b", "-3 mV"]])))
    node  potential
    a     12.5 V
    b       -3 mV
    """
    columns = [[name, *_aligned(cells)] for name, *cells in zip(header, *rows)]
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


def plain(value: Any) -> Any:
    """Plain values for JSON: named tuples as dicts, arrays as lists, numbers that are not finite as None."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {key: plain(own) for key, own in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(own) for own in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


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
        found: dict[str, Any] = plain(dict(zip(self.header, self._lists())))
        return found

    def csv(self) -> str:
        """Comma-separated text."""
        return csv(self.header, self.rows())

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
                scale = 0.0 if unit in ("", OWN) else scale_of(x for x in every[k] if isinstance(x, float))
                names.append(name)
                texts.append([cell(*pair, scale) for pair in zip(every[k][:most], units)])
        return names, [list(row) for row in zip(*texts)]

    def text(self, most: int | None = None) -> str:
        """Aligned text, with a maximum number of rows."""
        header, rows = self.shown(most)
        lines = table(header, rows)
        if 0 < len(rows) < len(header) and max(map(len, lines)) > WIDE:
            first, *others = zip(header, *rows)
            lines = table(first, others)
        left = len(self.columns[0]) - len(rows)
        return "\n".join([*lines, *[f"… and {left:,} more"] * (left > 0)]) + "\n"


DATE = "Thu Jan  1 00:00:00  1970"
COMMAND = f"* circuitsim {__version__}, in the form of ngspice"

TYPES = {"s": "time", "Hz": "frequency", "°C": "temp-sweep", "Ω": "res-sweep"} | {
    own.unit: own.label for own in Quantity
}
"""Types of columns by their units, as ngspice names them."""


def rawfile(title: str, table: Table, plot: str) -> str:
    """An ASCII rawfile of one plot; several, one after another, are a rawfile of several plots.

    The date is fixed, so that the output is reproducible; the command names the program whose format it has, by which
    readers recognise it.

    Parameters
    ----------
    title : str
        Title of the deck.
    table : Table
        The swept columns (or the time) first; nan where a row has no operating point. If any is complex, all are
        written as real and imaginary parts. Columns of texts are left out.
    plot : str
        ``"Operating Point"``, ``"DC transfer characteristic"``, ``"AC Analysis"`` or ``"Transient Analysis"``; ngspice
        derives the kind of plot from it.
    """
    import numpy as np

    columns = zip(table.header, table.units, map(np.asarray, table.columns))
    kept = [(name, unit, values) for name, unit, values in columns if values.dtype.kind in "fc"]
    phasors = any(values.dtype.kind == "c" for _, _, values in kept)
    rows = np.array([values for _, _, values in kept]).T.tolist()
    head = [
        f"Title: {' '.join(title.split())}",
        f"Date: {DATE}",
        f"Plotname: {plot}",
        f"Flags: {'complex' if phasors else 'real'}",
        f"No. Variables: {len(kept)}",
        f"No. Points: {len(rows)}",
        f"Command: {COMMAND}",
        "Variables:",
        *(
            f"\t{k}\t{''.join(name.lower().split())}\t{TYPES.get(unit, 'notype')}"
            for k, (name, unit, _) in enumerate(kept)
        ),
        "Values:",
    ]
    body = []
    for number, row in enumerate(rows):
        cells = [f"{value.real!r},{value.imag!r}" if phasors else repr(value) for value in row]
        body.append(f"{number}\t" + "\n\t".join(cells))
    return "\n".join([*head, *body]) + "\n"


def binary(text: str) -> bytes:
    """The binary form of an ASCII rawfile: the same headers, and all values as little-endian doubles."""
    found = b""
    for plot in re.split("^(?=Title: )", text, flags=re.MULTILINE)[1:]:
        head, _, body = plot.partition("Values:\n")
        cells = (line.rpartition("\t")[2].split(",") for line in body.splitlines())
        numbers = [float(one) for cell in cells for one in cell]
        found += f"{head}Binary:\n".encode() + pack(f"<{len(numbers)}d", *numbers)
    return found


def dumps(value: Any) -> str:
    """``value`` as indented JSON that ends with a newline.

    Raises
    ------
    TopologyError
        A non-finite number (a `ValueError`): JSON has no NaN and no Infinity.
    """
    import json

    try:
        return json.dumps(value, indent=1, allow_nan=False, ensure_ascii=True) + "\n"
    except ValueError as problem:
        raise TopologyError(
            "a power or an energy is larger than a double can hold (1.8e308): choose smaller values of the sources"
        ) from problem
