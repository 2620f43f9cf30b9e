"""SPICE3 rawfiles, in ASCII or binary, as ``load`` of ngspice and spicelib's ``RawRead`` read them."""

from __future__ import annotations

import re
from struct import pack

from circuitsim._version import __version__
from circuitsim.formats.table import Table
from circuitsim.units import Quantity

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
