"""SPICE3 rawfiles, in ASCII or binary, as ``load`` of ngspice and spicelib's ``RawRead`` read them."""

from __future__ import annotations

from collections.abc import Sequence
from struct import pack
from typing import NamedTuple

from circuitsim._version import __version__
from circuitsim.formats.table import Table
from circuitsim.units import Quantity


class Variable(NamedTuple):
    """A column of a rawfile: its name (``v(out)``, ``i(v1)``), its type (``voltage``, ``current``) and its values."""

    name: str
    type: str
    values: Sequence[float] | Sequence[complex]


DATE = "Thu Jan  1 00:00:00  1970"
COMMAND = f"* circuitsim {__version__}, in the form of ngspice"

TYPES = {"s": "time", "Hz": "frequency", "°C": "temp-sweep", "Ω": "res-sweep"} | {
    own.unit: own.label for own in Quantity
}
"""Types of columns by their units, as ngspice names them."""


def swept(title: str, table: Table, plot: str) -> str:
    """A rawfile of a DC sweep, a transient or an AC analysis.

    Parameters
    ----------
    title : str
        Title of the deck.
    table : Table
        The swept columns (or the time) first; nan where a row has no operating point. Columns of texts are left out.
    plot : str
        ``"DC transfer characteristic"``, ``"Transient Analysis"``, ``"AC Analysis"``.
    """
    import numpy as np

    variables = [
        Variable("".join(name.lower().split()), TYPES.get(unit, "notype"), values.tolist())
        for name, unit, values in zip(table.header, table.units, map(np.asarray, table.columns))
        if values.dtype.kind in "fc"
    ]
    return rawfile(title, plot, variables)


def rawfile(title: str, plot: str, variables: Sequence[Variable]) -> str:
    """An ASCII rawfile of one plot.

    The date is fixed, so that the output is reproducible; the command names the program whose format it has, by which
    readers recognise it.

    Parameters
    ----------
    title : str
        Title of the deck.
    plot : str
        ``"Operating Point"``, ``"DC transfer characteristic"``, ``"AC Analysis"`` or ``"Transient Analysis"``; ngspice
        derives the kind of plot from it.
    variables : sequence of Variable
        Equally long columns, the swept one first. If any is complex, all are written as real and imaginary parts.

    Raises
    ------
    ValueError
        Columns of unequal length, or none.
    """
    lengths = {len(variable.values) for variable in variables}
    if len(lengths) != 1:
        raise ValueError("a rawfile needs columns, all of one length")
    (points,) = lengths
    phasors = any(isinstance(value, complex) for variable in variables for value in variable.values)

    def cell(value: complex) -> str:
        return f"{float(value.real)!r},{float(value.imag)!r}" if phasors else repr(float(value.real))

    head = [
        f"Title: {' '.join(title.split())}",
        f"Date: {DATE}",
        f"Plotname: {plot}",
        f"Flags: {'complex' if phasors else 'real'}",
        f"No. Variables: {len(variables)}",
        f"No. Points: {points}",
        f"Command: {COMMAND}",
        "Variables:",
        *(f"\t{k}\t{variable.name}\t{variable.type}" for k, variable in enumerate(variables)),
        "Values:",
    ]
    body = []
    for point in range(points):
        body += [f"{point if k == 0 else ''}\t{cell(v.values[point])}" for k, v in enumerate(variables)]
    return "\n".join([*head, *body]) + "\n"


def binary(text: str) -> bytes:
    """The binary form of an ASCII rawfile: the same header, then all values as little-endian doubles."""
    head, _, body = text.partition("Values:\n")
    cells = (line.rpartition("\t")[2].split(",") for line in body.splitlines())
    numbers = [float(one) for cell in cells for one in cell]
    return f"{head}Binary:\n".encode() + pack(f"<{len(numbers)}d", *numbers)
