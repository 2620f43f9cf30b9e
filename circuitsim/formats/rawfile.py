"""SPICE3 rawfiles (ASCII), as ``load`` of ngspice reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Variable(NamedTuple):
    """A column of a rawfile: its name (``v(out)``, ``i(v1)``), its type (``voltage``, ``current``) and its values."""

    name: str
    type: str
    values: Sequence[float]


def rawfile(title: str, plot: str, variables: Sequence[Variable]) -> str:
    """An ASCII rawfile of one plot.

    It carries no date, so that the same deck gives the same bytes.

    Parameters
    ----------
    title : str
        Title of the deck.
    plot : str
        ``"Operating Point"`` or ``"DC transfer characteristic"``; ngspice takes the kind of plot from it.
    variables : sequence of Variable
        Equally long columns, the swept one first.

    Raises
    ------
    ValueError
        Columns of unequal length, or none.
    """
    lengths = {len(variable.values) for variable in variables}
    if len(lengths) != 1:
        raise ValueError("a rawfile needs columns, all of one length")
    (points,) = lengths
    head = [
        f"Title: {' '.join(title.split())}",
        f"Plotname: {plot}",
        "Flags: real",
        f"No. Variables: {len(variables)}",
        f"No. Points: {points}",
        "Variables:",
        *(f"\t{k}\t{variable.name}\t{variable.type}" for k, variable in enumerate(variables)),
        "Values:",
    ]
    body = []
    for point in range(points):
        body += [f"{point if k == 0 else ''}\t{float(v.values[point])!r}" for k, v in enumerate(variables)]
    return "\n".join([*head, *body]) + "\n"
