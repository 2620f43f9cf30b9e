"""Output formats: tables for people; JSON, CSV and SPICE rawfiles for other programs; HTML for notebooks and reports.

`Table` has columns with units; `Result`, the common base of all analysis results, has tables, a picture and a
certificate. An operating point is given as its JSON dictionary. In HTML all text is escaped. Rawfiles, in ASCII or
binary, are as ``load`` of ngspice and spicelib's ``RawRead`` read them.
"""

from __future__ import annotations

import math
import os
import re
from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from importlib import import_module
from struct import pack
from typing import TYPE_CHECKING, Any, NamedTuple

from circuitsim._version import __version__
from circuitsim.errors import TopologyError, UsageError
from circuitsim.units import Quantity, format_quantity, short

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

Cell = str | float | bool | None

_FORMULA = frozenset("=+-@\t\r")
"""Characters that begin a formula in a spreadsheet (OWASP, CSV injection)."""

SMALLEST_SHARE = 1e-12
"""Fraction of the largest number of a column below which a table shows 0: such numbers are rounding."""


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


def cell(value: Cell, unit: str, least: float) -> str:
    """A cell for display: a text unchanged, a number with its unit.

    Parameters
    ----------
    value : str, float, bool or None
    unit : str
    least : float
        Magnitude below which a number shows as 0.
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, str):
        return value
    return quantity(0.0 if value is not None and abs(value) < least else value, unit)


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
    share : float
        Fraction of a column's largest number below which text shows 0.
    """

    header: tuple[str, ...]
    units: tuple[str, ...]
    columns: tuple[Any, ...]
    named: bool = False
    share: float = SMALLEST_SHARE

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
        return zip(*self.lists())

    def lists(self) -> Iterator[list[Any]]:
        """The columns as lists."""
        return (column.tolist() if hasattr(column, "tolist") else column for column in self.columns)

    def to_dict(self) -> dict[str, Any]:
        """For JSON: the columns by name; None for non-finite numbers (such as 0 in dB)."""
        found: dict[str, Any] = plain(dict(zip(self.header, self.lists())))
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
        every = list(self.lists())
        own = self.header.index(OWN) if OWN in self.units else -1
        names, texts = [], []
        for k, (name, unit) in enumerate(zip(self.header, self.units)):
            if k != own:
                units = every[own] if unit == OWN else [unit] * len(every[k])
                scale = 0.0 if unit in ("", OWN) else scale_of(x for x in every[k] if isinstance(x, float))
                names.append(name)
                texts.append([cell(*pair, self.share * scale) for pair in zip(every[k][:most], units)])
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


# ---------------------------------------------------------------------- an operating point
Point = Mapping[str, Any]
"""`OperatingPoint.to_dict`, or a part of it."""

CSV_HEADER = ("kind", "name", "voltage", "current", "power", "state", "kink", "unique", "low", "high")
"""``kind`` is ``node`` or ``branch``; ``low`` and ``high`` bound the potential of a node that is not unique."""


def as_csv(point: Point) -> str:
    """One row per node, then one row per branch; see `CSV_HEADER`. Volts, amperes, watts."""
    rows = list[list[Cell]]()
    for name, voltage in point["nodes"].items():
        ends = point["intervals"].get(name)
        rows.append(["node", name, voltage, *[None] * 4, ends is None, *(ends or (None, None))])
    for name, b in point["branches"].items():
        rows.append(["branch", name, *map(b.get, CSV_HEADER[2:])])
    return csv(CSV_HEADER, rows)


def as_raw(point: Point) -> str:
    """A SPICE3 rawfile: ``v(node)`` and ``i(element)`` in lower case, as ngspice names its vectors."""
    volts = [(f"v({name})", "V", [v]) for name, v in point["nodes"].items() if name != "0"]
    amperes = [(f"i({name})", "A", [branch["current"]]) for name, branch in point["branches"].items()]
    return rawfile(point["title"], Table(*zip(*volts, *amperes)), "Operating Point")


_TABLE = """
kcl A Kirchhoff's current law within
kvl V Kirchhoff's voltage law within
source V source voltages within
diode_drop V forward diode drop at most
diode_reverse A reverse diode current at most
complementarity W complementarity within
energy_gap W energy above the minimum at most
"""
LAWS = [row.split(" ", 2) for row in _TABLE.strip().splitlines()]
"""Key of a certificate, the unit of its error, and its description."""


def laws(certificate: Point, energy: bool, head: str) -> Table:
    """A certificate in words: each law with its largest residual, absolute and relative to its local scale.

    Parameters
    ----------
    certificate : mapping
        `Certificate.to_dict`.
    energy : bool
        Whether the circuit has an energy: without controlled sources.
    head : str
        Name of the first column.
    """
    relative = certificate["relative"]
    found = [(text, certificate[key], unit, relative[key]) for key, unit, text in LAWS if key != "energy_gap" or energy]
    if "devices" in relative:
        found.append(("devices off their curves by at most", certificate["device_gap"], "W", relative["devices"]))
    rows = [(text, size, unit, f"{share:.1e}" if share else "0") for text, size, unit, share in found]
    return Table.of(f"{head}, residual, {OWN}, relative", rows, ("", OWN, "", ""))


# ---------------------------------------------------------------------- HTML
def _charts() -> Any:
    """The charts, whose modules import this one."""
    return import_module("circuitsim.plotting.charts")


DRAWN = 400
"""Maximum number of elements of a circuit that is drawn automatically."""


class Picture(NamedTuple):
    """A drawing of a circuit; a notebook shows it.

    Attributes
    ----------
    source : OperatingPoint or Circuit
        What is drawn.
    """

    source: Any

    def svg(self) -> str:
        """The drawing as an ``<svg>`` element; empty for a circuit that is too large."""
        return str(import_module("circuitsim.plotting.circuit").circuit_svg(self.source))

    def inline(self) -> str:
        """`svg` of up to `DRAWN` elements, else nothing."""
        return self.svg() if len(self._circuit) <= DRAWN else ""

    def figure(self) -> Figure:
        """The drawing as a figure; of a large circuit a power grid's map or tables of the worst nodes and elements."""
        found: Figure = import_module("circuitsim.plotting.circuit").draw_circuit(self.source)
        return found

    def _repr_svg_(self) -> str:
        return self.svg() or _charts().rendered(self.figure(), "svg").decode()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the drawing as PNG, SVG or PDF, by the ending of ``path``; an existing file is replaced in one step.

        Raises
        ------
        UsageError
            Another ending.
        """
        _charts().write(self.figure(), path)

    @property
    def _circuit(self) -> Any:
        return getattr(self.source, "circuit", self.source)

    def __repr__(self) -> str:
        circuit = self._circuit
        return f"Picture of {circuit.title!r}, {len(circuit)} elements: save(path) writes it"


SHOWN, ACROSS = 20, 24
"""Maximum rows and columns of a table in a notebook."""


def html_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A ``<table>``; cells of numbers are aligned to the right, except for the first column, the names.

    Parameters
    ----------
    header : sequence of str
    rows : iterable of sequence of str
        Plain texts.
    """
    head = "".join(f'<th style="text-align:left">{escape(cell)}</th>' for cell in header)
    body = "".join(f"<tr><td>{escape(row[0])}</td>" + "".join(map(_cell, row[1:])) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_cells(found: Table, most: int | None = None) -> str:
    """A table, numbers with the units of their columns.

    Parameters
    ----------
    found : Table
    most : int, optional
        Rows to show, of at most `ACROSS` columns; all by default.
    """
    header, rows = found.shown(most)
    wide = None if most is None else ACROSS
    left = {"rows": len(found.columns[0]) - len(rows), "columns": len(header[wide or len(header) :])}
    more = "".join(f"<p>… and {count:,} more {name}</p>" for name, count in left.items() if count)
    return html_table(header[:wide], [row[:wide] for row in rows]) + more


def image(figure: Figure, words: str) -> str:
    """A figure in a page.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    words : str
        Its description.
    """
    data = b64encode(_charts().rendered(figure, "svg")).decode()
    return f'<img alt="{escape(words)}" style="max-width:100%" src="data:image/svg+xml;base64,{data}"/>'


def _cell(text: str) -> str:
    side = "right" if text[:1].isdigit() or (text[:1] == "-" and text[1:2].isdigit()) else "left"
    return f'<td style="text-align:{side}">{escape(text)}</td>'


def section(title: str, *parts: str) -> str:
    """Parts under a heading.

    Parameters
    ----------
    title : str
    *parts : str
    """
    return f"<div><p><strong>{escape(title)}</strong></p>{''.join(parts)}</div>"


def html_certificate(found: Mapping[str, Any], energy: bool = True) -> str:
    """A certificate (`Certificate.to_dict`) in words: each equation with its residual.

    Parameters
    ----------
    found : mapping
    energy : bool
        Whether the circuit has an energy: without controlled sources.
    """
    worst = max(found["relative"].values())
    verdict = "Certified" if found["certified"] else "Not certified"
    how = f"within {worst:.1e} of its own scale" if worst else "exactly"
    line = f"{verdict}: every law holds {how} (allowed: {found['tolerance']:.0e} of its own scale)."
    return f"<p>{line}</p>" + html_cells(laws(found, energy, "law"))


# ---------------------------------------------------------------------- results
LINE, TITLE = 120, 40
"""Maximum number of characters of a `repr`, and of the title in it."""


def verdict(certificate: Any) -> str:
    """The verdict of a certificate in a word or two."""
    return "certified" if certificate.certified else "not certified"


def proof(certificate: Any) -> str:
    """The certificate of an operating point in one line."""
    found, allowed = certificate.worst, certificate.tolerance
    return f"{verdict(certificate).capitalize()}: largest relative residual {found:.1g} (tolerance {allowed:g})"


class Result(ABC):
    """The result of an analysis.

    A subclass defines `tables`, `PICTURE` or `_figure`, `_heading`, and `_proof` if there is another certificate than
    that of the operating point ``point``.
    """

    PICTURE = ""
    ROWS: int | None = SHOWN
    """Maximum number of rows of a table after the first in `text`."""

    @abstractmethod
    def tables(self) -> dict[str, Table]:
        """The result as tables by name, the main one first."""

    def _figure(self) -> Figure:
        """The figure of `plot`, by default that of the function `PICTURE` of `circuitsim.plotting.charts`."""
        figure: Figure = getattr(_charts(), self.PICTURE)(self)
        return figure

    @abstractmethod
    def _heading(self) -> tuple[str, str]:
        """Title of the circuit (or none), and a short description of the result."""

    def _proof(self) -> str:
        """The certificate in one line, by default that of the operating point of ``point``."""
        point = getattr(self, "point", None)
        return "" if point is None else proof(point.certificate)

    def to_dict(self) -> dict[str, Any]:
        """The main table as plain values for JSON: one list per column, None for non-finite numbers."""
        return next(iter(self.tables().values())).to_dict()

    def to_dataframe(self, table: str | None = None) -> pandas.DataFrame:
        """A table as a pandas frame; numbers in base units.

        Parameters
        ----------
        table : str, optional
            One of the names of `tables`; the main table without it.

        Raises
        ------
        UsageError
            There is no such table.
        """
        import pandas

        tables = self.tables()
        if table is not None and table not in tables:
            raise UsageError(f"there is no table {table!r}; there are {', '.join(tables)}")
        found = tables[table or next(iter(tables))]
        frame = pandas.DataFrame(dict(zip(found.header, found.columns)))
        return frame.set_index(found.header[0]) if found.named else frame

    def text(self, tables: Sequence[Table] = ()) -> str:
        """The result as text: heading, tables, and the certificate in one line.

        Parameters
        ----------
        tables : sequence of Table
            In place of the result's own.
        """
        main, *others = tables or self._shown().values()
        parts = [*self._lines(), "", main.text()]
        parts += [table.text(self.ROWS) for table in others if len(table.columns[0])]
        return "\n".join([*parts, self._proof()]).rstrip() + "\n"

    def plot(self, path: str | os.PathLike[str] | None = None, **options: Any) -> Figure:
        """Draw the result.

        Parameters
        ----------
        path : str or path-like, optional
            Also write the figure there: PNG, SVG or PDF, by the ending of the name.
        **options
            Waveforms and frequency responses take ``columns="v(out) i(R1)"``.

        Returns
        -------
        matplotlib.figure.Figure
        """
        figure = self._figure(**options)
        if path is not None:
            _charts().write(figure, path)
        return figure

    def _shown(self) -> dict[str, Table]:
        """The displayed tables."""
        return self.tables()

    def _certificate(self) -> str:
        """The certificate as HTML."""
        return f"<p>{escape(self._proof())}</p>"

    def _picture(self) -> str:
        """The figure as HTML."""
        return image(self._figure(), self._caption())

    def _caption(self) -> str:
        """Title and description."""
        return ": ".join(self._lines())

    def _lines(self) -> list[str]:
        """Title, without a comment's star, and description."""
        title, words = self._heading()
        return [line for line in (title.lstrip("* "), words) if line]

    def _repr_html_(self) -> str:
        tables = [f"<p>{escape(name)}</p>{html_cells(table, SHOWN)}" for name, table in self._shown().items()]
        return section(repr(self), self._picture(), *tables, self._certificate())

    def __repr__(self) -> str:
        title, words = self._heading()
        name = f"{short(title.lstrip('* '), TITLE)!r}: " if title else ""
        kind = type(self).__name__.removeprefix("Lazy").replace("Implicit", "Transient")
        text = f"{kind}({name}{words})"
        return text if len(text) <= LINE else text[: LINE - 4].rpartition(", ")[0] + ", …)"
