"""The curve of a two-terminal circuit, with its breakpoints; the slopes of an output at an operating point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from circuitsim.plotting.figure import FAINT, INK, gridded, legend, measured, plain, stacked

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_curve(found: Any) -> Figure:
    """Current over voltage; a piecewise-linear curve passes through its breakpoints, drawn as dots."""
    (label, v), (_, i) = next(iter(found.points.axes.items())), next(iter(found.points.columns.items()))
    bends = found.breakpoints or ()
    v = np.concatenate([v, [b.voltage for b in bends]])
    i = np.concatenate([i, [b.current for b in bends]])
    known = np.isfinite(i)
    v, i = v[known], i[known]
    order = np.lexsort((i, v))
    figure, (axes,) = stacked(found.points.title, 6.4, [4.4])
    axes.axhline(0.0, color=FAINT, linewidth=0.8)
    axes.axvline(0.0, color=FAINT, linewidth=0.8)
    axes.plot(v[order], i[order], color="tab:blue", linewidth=1.5)
    if bends:
        axes.plot([b.voltage for b in bends], [b.current for b in bends], "o", color=INK, markersize=4)
    low, high = axes.get_ylim()
    for bend in bends:
        for slope, end in ((bend.below, low), (bend.above, high)):
            if np.isinf(slope):
                axes.plot([bend.voltage] * 2, [bend.current, end], color="tab:blue", linewidth=1.5)
    axes.set_ylim(low, high)
    measured(axes.xaxis, label, "V")
    measured(axes.yaxis, "current", "A")
    gridded(axes)
    return figure


def plot_slopes(
    name: str,
    source: tuple[str, float, str],
    output: tuple[str, float, str],
    slopes: tuple[float, float],
    notes: Sequence[str],
) -> Figure:
    """An output about an operating point, to first order.

    Parameters
    ----------
    name : str
        Title of the circuit.
    source, output : (str, float, str)
        Name, value and unit.
    slopes : (float, float)
        Towards smaller and larger values of the source.
    notes : sequence of str
        Lines of the legend.
    """
    (label, x, unit), (other, y, own) = source, output
    figure, (axes,) = stacked(name, 6.4, [4.4])
    step = 0.1 * abs(x) or 1.0
    ends = x + step * np.array([-1.0, 0.0, 1.0])
    axes.plot(ends, [y - step * slopes[0], y, y + step * slopes[1]], color="tab:blue", linewidth=1.5)
    axes.plot([x], [y], "o", color=INK, markersize=5, label="operating point")
    for note in notes:
        axes.plot([], [], " ", label=plain(note))
    measured(axes.xaxis, label, unit)
    measured(axes.yaxis, other, own)
    gridded(axes)
    legend(axes)
    return figure
