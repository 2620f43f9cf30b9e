"""The curve of a two-terminal circuit, with its breakpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from circuitsim.plotting.figure import FAINT, INK, gridded, measured, new_figure, title

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from circuitsim.analysis.curve import Curve


def plot_curve(found: Curve) -> Figure:
    """Current over voltage; a piecewise-linear curve passes through its breakpoints, drawn as dots."""
    (label, v), (_, i) = next(iter(found.points.axes.items())), next(iter(found.points.columns.items()))
    bends = found.breakpoints or ()
    v = np.concatenate([v, [b.voltage for b in bends]])
    i = np.concatenate([i, [b.current for b in bends]])
    known = np.isfinite(i)
    v, i = v[known], i[known]
    order = np.lexsort((i, v))
    figure = new_figure(6.4, 4.4)
    axes = figure.add_subplot(1, 1, 1)
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
    title(axes, found.points.title)
    figure.tight_layout()
    return figure
