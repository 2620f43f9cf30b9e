"""Pictures of a trained circuit: what its conductances became, and the circuit drawn with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from circuitsim._files import atomic_write
from circuitsim.blocks.circuit import CircuitBlock
from circuitsim.circuit.elements import RESISTOR
from circuitsim.training.curves import save_figure


def draw_conductance_histogram(block: CircuitBlock, path: Path) -> Path:
    """Trainable conductances before (as the circuit has them) and after (the parameters), on a logarithmic axis."""
    from matplotlib.figure import Figure

    arrays = block.circuit.arrays()
    names = [a.name for a in block.roles.trainable]
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


def draw_trained(block: CircuitBlock, x: np.ndarray, path: Path) -> Path | None:
    """The circuit at inputs ``x`` with wires as wide as their conductance; None where it is too large for a picture."""
    from circuitsim.analysis import solve
    from circuitsim.plotting import draw_circuit, rendered
    from circuitsim.plotting.circuit import MOST

    if len(block.circuit) > MOST:
        return None
    circuit = block.trained().with_values(dict(zip(block.roles.inputs, map(float, x))))
    point = solve(circuit)
    kind, _, _, value, _ = circuit.arrays()
    ohmic = (kind == RESISTOR) & (value > 0.0)
    width = np.where(ohmic, 1.0 / np.where(ohmic, value, 1.0), 0.0)
    atomic_write(path, rendered(draw_circuit(point, width, "S"), "png"))
    return path
