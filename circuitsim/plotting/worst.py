"""Circuits too large for a drawing: the map of a power grid's voltage drops, or tables of the worst."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from circuitsim.circuit import ELEMENTS, Circuit
from circuitsim.circuit.source import circuit_of
from circuitsim.errors import TopologyError
from circuitsim.formats.table import Table
from circuitsim.plotting.figure import INK, new_figure, plain, title
from circuitsim.units import short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from circuitsim.analysis import OperatingPoint
    from circuitsim.analysis.ir_drop import IrDrop

SHOWN = 12
"""Number of rows in a table."""


def drops_of(source: OperatingPoint | Circuit) -> IrDrop | None:
    """The voltage drops of a solved power grid whose node names have coordinates; None for other circuits."""
    from circuitsim.analysis.ir_drop import ir_drop

    if isinstance(source, Circuit):
        return None
    try:
        found = ir_drop(source)
    except TopologyError:
        return None
    return found if np.isfinite(found.places).any() else None


def worst(source: OperatingPoint | Circuit) -> list[Table]:
    """Tables: the nodes with the largest drops of a power grid, otherwise with the largest voltages in magnitude, and
    the elements with the largest powers; for an unsolved circuit, the number of elements of each kind."""
    circuit = circuit_of(source)
    if isinstance(source, Circuit):
        kinds = Counter(circuit.arrays().kind.tolist())
        return [Table.of("elements, number", [(ELEMENTS[kind].name, n) for kind, n in kinds.most_common()])]
    grid = drops_of(source)
    if grid is not None:
        rows = [(short(name, 40), volts, drop) for name, _, volts, drop in grid.worst(SHOWN)]
        first = Table.of("worst node, voltage, drop", rows, ("", "V", "V"))
    else:
        order = np.argsort(-np.abs(source.voltages), kind="stable")[:SHOWN]
        names = [short(circuit.node_names[k], 40) for k in order.tolist()]
        first = Table(("largest node voltages", "voltage"), ("", "V"), (names, source.voltages[order]))
    order = np.argsort(-np.abs(source.powers), kind="stable")[:SHOWN]
    names = [short(circuit.names[k], 40) for k in order.tolist()]
    numbers = source.powers[order], source.drops[order], source.currents[order]
    return [first, Table(("largest powers", "power", "voltage", "current"), ("", "W", "V", "A"), (names, *numbers))]


def draw_worst(source: OperatingPoint | Circuit) -> Figure:
    """The map of the drops if there is one, otherwise the tables of `worst` as a figure."""
    grid = drops_of(source)
    if grid is not None:
        from circuitsim.plotting.ir_drop import plot_drops

        return plot_drops(grid)
    circuit = circuit_of(source)
    lines = [f"{len(circuit.node_names):,} nodes, {len(circuit):,} elements: too many for a drawing"]
    for table in worst(source):
        lines += ["", *table.text().splitlines()]
    figure = new_figure(5.5, 0.8 + 0.145 * len(lines))
    axes = figure.add_axes((0.03, 0.02, 0.94, 0.9))
    axes.set_axis_off()
    title(axes, circuit.title)
    axes.text(0.0, 1.0, plain("\n".join(lines)), va="top", family="monospace", fontsize=8, color=INK)
    return figure
