"""Pictures of a trained circuit: what its conductances became, and the circuit drawn with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from circuitsim._files import atomic_write
from circuitsim.blocks.circuit import CircuitBlock
from circuitsim.circuit.elements import DIODE, RESISTOR
from circuitsim.plotting.figure import stacked, write

SCHEMATIC = 30
"""Elements up to which a circuit to train, with most nodes joined to most others, is readable as a schematic."""

LABELLED = 60
"""Nodes up to which all are named beside their matrix."""


def draw_conductance_histogram(block: CircuitBlock, path: Path) -> None:
    """Trainable conductances before (as the circuit has them) and after (the parameters), on a logarithmic axis."""
    before = CircuitBlock(block.whole, block.roles).parameters["conductance"]
    after = np.maximum(block.parameters["conductance"], np.finfo(float).tiny)
    both = np.concatenate([before, after])
    bins = np.geomspace(both.min() / 1.05, both.max() * 1.05, 41).tolist()
    figure, (axes,) = stacked("", 5.5, [3.4])
    axes.hist(before, bins, label="before", alpha=0.5, color="#8a919c")
    axes.hist(after, bins, label="after", alpha=0.7, color="#b5367a")
    axes.set(xscale="log", xlabel="conductance, S", ylabel="resistors", title=f"{before.size} trainable resistors")
    axes.legend(frameon=False)
    write(figure, path)


def draw_trained(block: CircuitBlock, x: np.ndarray, path: Path) -> None:
    """The circuit at inputs ``x`` with wires as wide as their conductance; of more than `SCHEMATIC` elements the matrix
    of conductances between nodes.
    """
    from circuitsim.analysis import solve
    from circuitsim.plotting import draw_circuit, rendered

    if len(block.circuit) > SCHEMATIC:
        draw_conductance_matrix(block, path)
        return
    circuit = block.trained().with_values(dict(zip(block.roles.inputs, map(float, x))))
    point = solve(circuit)
    kind, _, _, value, _ = circuit.arrays()
    ohmic = (kind == RESISTOR) & (value > 0.0)
    width = np.where(ohmic, 1.0 / np.where(ohmic, value, 1.0), 0.0)
    atomic_write(path, rendered(draw_circuit(point, width, "S"), "png"))


def draw_conductance_matrix(block: CircuitBlock, path: Path) -> None:
    """Conductances between nodes as a matrix on a logarithmic scale, diodes as arrows from anode to cathode."""
    from matplotlib.colors import LogNorm

    circuit = block.trained()
    kind, first, second, value, n = circuit.arrays()
    ohmic, diode = (kind == RESISTOR) & (value > 0.0), kind == DIODE
    matrix = np.zeros((n, n))
    np.add.at(matrix, (first[ohmic], second[ohmic]), 1.0 / value[ohmic])
    shown = np.ma.masked_equal(matrix + matrix.T, 0.0)
    size = float(np.clip(0.16 * n, 3.5, 9.0))
    figure, (axes,) = stacked("", size + 1.6, [size + 0.6])
    if shown.count():
        image = axes.imshow(shown, norm=LogNorm(shown.min(), max(shown.max(), 1.001 * shown.min())), cmap="viridis_r")
        figure.colorbar(image, ax=axes, label="conductance, S", shrink=0.8)
    axes.plot(second[diode], first[diode], linestyle="", marker="$\\rightarrow$", color="#b5367a", markersize=5)
    ticks = range(n if n <= LABELLED else 0)
    names = [circuit.node_names[k] for k in ticks]
    axes.set_xticks(ticks, names, rotation=90, fontsize=6)
    axes.set_yticks(ticks, names, fontsize=6)
    arrows = "; arrows: diodes, from row to column" if diode.any() else ""
    axes.set_title(f"conductances between nodes{arrows}", fontsize=9)
    write(figure, path)
