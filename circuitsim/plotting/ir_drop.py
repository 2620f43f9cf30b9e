"""Voltage drops of a power grid over its plane."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from circuitsim.errors import UsageError
from circuitsim.plotting.figure import CYAN, INK, new_figure, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
    net, places, drop = found.nets[k], found.places[inside], 1e3 * found.drop[inside]
    low, high = places.min(axis=0), places.max(axis=0)
    side = np.maximum(high - low, 1.0)
    spots = np.array([min(SPOTS, max(1, math.isqrt(len(drop)) // 2), np.unique(x).size) for x in places.T])
    at = np.minimum(((places - low) / side * spots).astype(np.int64), spots - 1)
    image = np.full((spots[1], spots[0]), -np.inf)
    np.maximum.at(image, (at[:, 1], at[:, 0]), drop)
    image[np.isinf(image)] = np.nan
    extent = (low[0], low[0] + side[0], low[1], low[1] + side[1])
    drawn = axes.imshow(image, origin="lower", extent=extent, aspect="auto", cmap="inferno", interpolation="nearest")
    axes.figure.colorbar(drawn, ax=axes, label="drop, mV")
    circuit = found.point.circuit
    nodes = [circuit.node_index(pad.node) for pad in found.pads if pad.net == k]
    axes.plot(*found.places[nodes].T, "^", color=CYAN, markersize=4, markeredgecolor=INK, markeredgewidth=0.4)
    worst = found.places[circuit.node_index(net.worst_node)]
    axes.plot(worst[:1], worst[1:], "o", markersize=11, markerfacecolor="none", markeredgecolor="lime")
    axes.set(xlabel=f"net of {net.nominal:g} V: at most {1e3 * net.worst:.3g} mV at {net.worst_node}")
    axes.ticklabel_format(style="plain", useOffset=False)
