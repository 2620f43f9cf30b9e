"""Matrices of circuits; voltage losses along the wires of a crossbar, and their effect on its currents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from circuitsim.plotting.figure import FAINT, INK, new_figure, plain, stacked

if TYPE_CHECKING:
    from matplotlib.figure import Figure


NAMED = 30
"""Maximum number of inputs or outputs whose names are shown."""


def plot_matrix(name: str, matrix: np.ndarray, inputs: Sequence[str], outputs: Sequence[str]) -> Figure:
    """Entries as colours: a column per input, a row per output.

    Parameters
    ----------
    name : str
        Title of the circuit.
    matrix : (q, k) float array
    inputs, outputs : sequence of str
    """
    rows, columns = matrix.shape
    figure, (axes,) = stacked(name, min(9.0, 2.8 + 0.4 * columns), [min(7.0, 2.4 + 0.4 * rows)])
    most = float(np.abs(matrix).max()) or 1.0
    image = axes.imshow(matrix, aspect="auto", interpolation="nearest", cmap="RdBu_r", vmin=-most, vmax=most)
    figure.colorbar(image, ax=axes, label="output per input")
    for axis, names in ((axes.xaxis, inputs), (axes.yaxis, outputs)):
        axis.set_ticks(range(len(names)) if len(names) <= NAMED else [])
        if len(names) <= NAMED:
            axis.set_ticklabels([plain(own) for own in names], fontsize=7)
    axes.tick_params(axis="x", rotation=90 if columns > 6 else 0)
    axes.set(xlabel="input", ylabel="output")
    return figure


def plot_crossbar(layer: Any, x: np.ndarray) -> Figure:
    """The fraction of its input voltage that each device loses to the wires, and the currents of the bit lines.

    Parameters
    ----------
    layer : CrossbarLayer
    x : (rows,) float array
        Voltages of the word lines, V; rows at 0 V are left white.

    Returns
    -------
    matplotlib.figure.Figure
        `circuitsim.plotting.rendered` makes a file of it.
    """
    found = layer.voltages(x)
    rows, columns = layer.conductance.shape
    figure = new_figure(10.0, 4.2)
    left, right = figure.subplots(1, 2)
    loss = 100.0 * np.where(np.asarray(x)[:, None] == 0.0, np.nan, found.loss)
    # Currents of other word lines may raise a bit line above ground; a device then loses more, or gains.
    low, high = min(0.0, float(np.nanmin(loss, initial=0.0))), float(np.nanmax(loss, initial=0.0)) or 1.0
    extent = (0.5, columns + 0.5, rows + 0.5, 0.5)
    image = left.imshow(
        loss, aspect="auto", interpolation="nearest", cmap="viridis", vmin=low, vmax=high, extent=extent
    )
    figure.colorbar(image, ax=left, label="voltage lost to wires, % of the input")
    left.set(xlabel="bit line", ylabel="word line")
    left.set_title(f"{rows} × {columns} devices, wires {layer.word_wire:g} and {layer.bit_wire:g} Ω", fontsize=10)
    number = np.arange(1, columns + 1)
    right.plot(number, 1e6 * layer.ideal(x), color=FAINT, label="ideal wires")
    right.plot(number, 1e6 * layer(x), color=INK, label="with wire resistance")
    right.set(xlabel="bit line", ylabel="current, µA", ylim=(min(0.0, right.get_ylim()[0]), None))
    right.legend(frameon=False)
    figure.tight_layout()
    return figure
