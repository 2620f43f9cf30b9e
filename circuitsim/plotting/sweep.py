"""Columns of a sweep over the value that runs fastest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from circuitsim.plotting.figure import INK, gridded, legend, measured, plain, stacked
from circuitsim.plotting.panels import panels_of
from circuitsim.units import format_quantity

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CURVES = 200
"""Largest number of curves in a panel; a note counts the omitted ones."""


def plot_sweep(sweep: Any) -> Figure:
    """One panel a quantity, one curve a column and a combination of the slower values.

    Parameters
    ----------
    sweep : Sweep
    """
    panels = panels_of((name, sweep.units[name]) for name in sweep.columns)
    figure, stack = stacked(sweep.title, 7.5, [3.5] * len(panels))
    for axes, panel in zip(stack, panels):
        _panel(axes, sweep, panel.columns)
        measured(axes.yaxis, panel.name, panel.unit)
    fast = next(iter(sweep.axes))
    for axes in stack:
        measured(axes.xaxis, fast if axes is stack[-1] else "", sweep.units[fast])
    return figure


def _panel(axes: Axes, sweep: Any, names: list[str]) -> None:
    x = next(iter(sweep.axes.values())).reshape(-1, sweep.shape[0])
    slow = list(sweep.axes.items())[1:]
    curves = [(name, row) for name in names for row in range(x.shape[0])]
    colours = _colours(min(len(curves), CURVES))
    for (name, row), colour in zip(curves, colours):
        y = sweep.columns[name].reshape(x.shape)
        at = [(n, float(values.reshape(x.shape)[row, 0])) for n, values in slow]
        settings = ", ".join(f"{n}={format_quantity(value, sweep.units[n], 4)}" for n, value in at)
        label = plain(f"{name}  {settings}".rstrip())
        marker = "o" if x.shape[1] < 30 else None
        axes.plot(x[row], y[row], color=colour, label=label, linewidth=1.3, marker=marker, markersize=3)
    if grows_by_factors(x[0]):
        axes.set_xscale("log")
    gridded(axes)
    if len(curves) <= 14:
        legend(axes)
    else:
        shown = f"first {CURVES} of {len(curves)}" if len(curves) > CURVES else f"{len(curves)}"
        axes.text(
            0.01,
            0.97,
            f"{shown} curves, dark to light in the order of the columns",
            fontsize=7,
            va="top",
            transform=axes.transAxes,
            color=INK,
        )


def _colours(count: int) -> list[tuple[float, ...]]:
    import matplotlib

    if count <= 10:
        return [tuple(c) for c in matplotlib.colormaps["tab10"](np.arange(count))]
    return [tuple(c) for c in matplotlib.colormaps["viridis"](np.linspace(0.0, 0.9, count))]


def grows_by_factors(x: np.ndarray) -> bool:
    """Whether the values grow by a factor rather than by a step, over at least a factor of 30."""
    if x.size < 3 or (x <= 0).any() or x.max() < 30 * x.min():
        return False
    ratio, step = np.diff(np.log(x)), np.diff(x)
    return bool(np.ptp(ratio) / np.abs(ratio).max() < np.ptp(step) / np.abs(step).max())
