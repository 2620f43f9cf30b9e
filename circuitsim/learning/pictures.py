"""Pictures of a trained circuit: what its conductances became, and the circuit drawn with them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from circuitsim._files import atomic_write
from circuitsim.blocks.circuit import CircuitBlock
from circuitsim.circuit import GROUND, Circuit
from circuitsim.circuit.elements import DIODE, RESISTOR
from circuitsim.training.curves import save_figure

SCHEMATIC = 30
"""Elements up to which a circuit to train, with most nodes joined to most others, is readable as a schematic."""

LABELLED = 60
"""Nodes up to which all are named beside their matrix."""


def draw_conductance_histogram(block: CircuitBlock, path: Path) -> Path:
    """Trainable conductances before (as the circuit has them) and after (the parameters), on a logarithmic axis."""
    from matplotlib.figure import Figure

    arrays = block.circuit.arrays()
    names = [a.name for a in block.roles.trainable if a.name in block.circuit]
    elements = np.array([block.circuit.element_index(name) for name in names])
    before = 1.0 / arrays.value[elements[arrays.kind[elements] == RESISTOR]]
    after = np.maximum(block.parameters["conductance"], np.finfo(float).tiny)
    low, high = min(before.min(), after.min()), max(before.max(), after.max())
    bins = np.geomspace(low / 1.05, high * 1.05, 41).tolist()
    figure = Figure(figsize=(5.5, 3.4), layout="constrained")
    axes = figure.add_subplot()
    axes.hist(before, bins, label="before", alpha=0.5, color="#8a919c")
    axes.hist(after, bins, label="after", alpha=0.7, color="#b5367a")
    axes.set(xscale="log", xlabel="conductance, S", ylabel="resistors", title=f"{before.size} trainable resistors")
    axes.legend(frameon=False)
    return save_figure(figure, path)


def draw_trained(block: CircuitBlock, x: np.ndarray, path: Path) -> Path:
    """The circuit at inputs ``x`` with wires as wide as their conductance; of more than `SCHEMATIC` elements the matrix
    of conductances between nodes.
    """
    from circuitsim.analysis import solve
    from circuitsim.plotting import draw_circuit, rendered

    if len(block.circuit) > SCHEMATIC:
        return draw_conductance_matrix(block, path)
    circuit = block.trained().with_values(dict(zip(block.roles.inputs, map(float, x))))
    point = solve(circuit)
    kind, _, _, value, _ = circuit.arrays()
    ohmic = (kind == RESISTOR) & (value > 0.0)
    width = np.where(ohmic, 1.0 / np.where(ohmic, value, 1.0), 0.0)
    atomic_write(path, rendered(draw_circuit(point, width, "S"), "png"))
    return path


def draw_conductance_matrix(block: CircuitBlock, path: Path) -> Path:
    """Conductances between nodes as a matrix on a logarithmic scale, diodes as arrows from anode to cathode.

    Nodes are in the order of their distance from the inputs, outputs last among equals.
    """
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    circuit = block.trained()
    matrix, diodes = _between_nodes(circuit)
    order = _by_distance(circuit, block.roles.inputs, [p for p, _ in block.roles.outputs])
    names = [circuit.node_names[k] for k in order]
    shown = np.ma.masked_equal(matrix[np.ix_(order, order)], 0.0)
    size = float(np.clip(0.16 * len(order), 3.5, 9.0))
    figure = Figure(figsize=(size + 1.6, size + 0.6), layout="constrained")
    axes = figure.add_subplot()
    if shown.count():
        image = axes.imshow(shown, norm=LogNorm(shown.min(), max(shown.max(), 1.001 * shown.min())), cmap="viridis_r")
        figure.colorbar(image, ax=axes, label="conductance, S", shrink=0.8)
    place = {node: k for k, node in enumerate(order)}
    for anode, cathode in diodes:
        axes.plot(place[cathode], place[anode], marker="$\\rightarrow$", color="#b5367a", markersize=5)
    ticks = range(len(names)) if len(names) <= LABELLED else []
    axes.set_xticks(ticks, [names[k] for k in ticks], rotation=90, fontsize=6)
    axes.set_yticks(ticks, [names[k] for k in ticks], fontsize=6)
    title = "conductances between nodes" + ("; arrows: diodes, from row to column" if diodes else "")
    axes.set_title(title, fontsize=9)
    return save_figure(figure, path)


def _between_nodes(circuit: Circuit) -> tuple[np.ndarray, list[tuple[int, int]]]:
    """Conductance between each two nodes, S (n_nodes, n_nodes), and (anode, cathode) of the diodes."""
    kind, first, second, value, n = circuit.arrays()
    matrix, diode = np.zeros((n, n)), kind == DIODE
    ohmic = (kind == RESISTOR) & (value > 0.0)
    np.add.at(matrix, (first[ohmic], second[ohmic]), 1.0 / value[ohmic])
    return matrix + matrix.T, list(zip(first[diode].tolist(), second[diode].tolist()))


def _by_distance(circuit: Circuit, inputs: Sequence[str], outputs: Sequence[str]) -> list[int]:
    """The nodes by their number of elements from the inputs' nodes; ground first, outputs last among equals."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import dijkstra

    _, first, second, _, n = circuit.arrays()
    places = [circuit.element_index(name) for name in inputs]
    front = np.setdiff1d([first[places], second[places]], GROUND)
    apart = (first != GROUND) & (second != GROUND)
    graph = coo_matrix((np.ones(int(apart.sum())), (first[apart], second[apart])), (n, n))
    distance = dijkstra(graph, directed=False, indices=front, unweighted=True, min_only=True)
    distance[GROUND] = -1
    last = {circuit.node_index(name) for name in outputs}
    touched = np.unique([first, second]).tolist()
    return sorted(touched, key=lambda node: (distance[node], node in last, node))
