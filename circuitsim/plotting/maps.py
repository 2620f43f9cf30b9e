"""Maps: matrices of circuits, voltage losses along the wires of a crossbar, voltage drops of a power grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from circuitsim.errors import UsageError
from circuitsim.plotting.figure import CYAN, FAINT, INK, new_figure, plain, stacked, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
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


SPOTS = 400
"""Maximum number of spots along a side."""

NETS = 4
"""Maximum number of nets drawn, the largest first."""


def plot_drops(found: Any) -> Figure:
    """The largest drop in each spot of the plane, with the pads (triangles) and the worst node (ring) of each net.

    Parameters
    ----------
    found : IrDrop

    Returns
    -------
    matplotlib.figure.Figure
        `circuitsim.plotting.rendered` makes a file of it.

    Raises
    ------
    UsageError
        No node of a net has coordinates in its name.
    """
    placed = ~np.isnan(found.places[:, 0])
    shown = [k for k in range(len(found.nets)) if np.any(placed & (found.net == k))][:NETS]
    if not shown:
        raise UsageError("no node's name ends in its coordinates, as n1_1200_350: there is no plane to draw drops on")
    figure = new_figure(1.0 + 5.4 * len(shown), 5.2)
    axes = figure.subplots(1, len(shown), squeeze=False)[0]
    for own, k in zip(axes, shown):
        _draw_net(own, found, k, placed & (found.net == k))
    title(axes[0], found.point.circuit.title)
    figure.tight_layout()
    return figure


def _draw_net(axes: Axes, found: Any, k: int, inside: np.ndarray) -> None:
    """One net: drops in mV."""
    from scipy.stats import binned_statistic_2d

    net, places, drop = found.nets[k], found.places[inside], 1e3 * found.drop[inside]
    spots = [min(SPOTS, max(1, math.isqrt(len(drop)) // 2), np.unique(x).size) for x in places.T]
    image, x, y, _ = binned_statistic_2d(*places.T, drop, "max", spots)
    drawn = axes.imshow(
        image.T,
        origin="lower",
        extent=(x[0], x[-1], y[0], y[-1]),
        aspect="auto",
        cmap="inferno",
        interpolation="nearest",
    )
    axes.figure.colorbar(drawn, ax=axes, label="drop, mV")
    circuit = found.point.circuit
    nodes = [circuit.node_index(pad.node) for pad in found.pads if pad.net == k]
    axes.plot(*found.places[nodes].T, "^", color=CYAN, markersize=4, markeredgecolor=INK, markeredgewidth=0.4)
    worst = found.places[circuit.node_index(net.worst_node)]
    axes.plot(worst[:1], worst[1:], "o", markersize=11, markerfacecolor="none", markeredgecolor="lime")
    axes.set(xlabel=f"net of {net.nominal:g} V: at most {1e3 * net.worst:.3g} mV at {net.worst_node}")
    axes.ticklabel_format(style="plain", useOffset=False)
