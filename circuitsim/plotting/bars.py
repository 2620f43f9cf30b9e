"""Bar charts of sensitivities and designs, histograms of tolerances.

Results import this module, so their types are not named here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from circuitsim.plotting.figure import BLUE, INK, RED, gridded, legend, measured, new_figure, plain, stacked, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BARS, PANELS = 20, 8
"""Maximum number of bars in a panel, and of panels in a picture; a note counts those left out."""


def plot_sensitivity(found: Any) -> Figure:
    """One panel per output: its changes for 1 % of each parameter, the largest first."""
    outputs = found.outputs[:PANELS]
    heights = [1.2 + 0.24 * min(len(found.names), BARS)] * len(outputs)
    figure, panels = stacked(found.point.circuit.title, 7.5, heights)
    for q, (output, axes) in enumerate(zip(outputs, panels)):
        rows = [row for row in found.rows(q) if not row.kink]
        label = f"change of {output} for 1 %"
        bars(axes, [(row.name, row.per_percent) for row in rows], label)
        measured(axes.xaxis, label, found.units[q])
    return figure


def plot_montecarlo(found: Any) -> Figure:
    """One row per quantity: histogram with nominal value and limits, and contributions to the variance."""
    quantities = found.quantities[:PANELS]
    figure = new_figure(9.5, 0.6 + 3.0 * len(quantities))
    for row, quantity in enumerate(quantities):
        left = figure.add_subplot(len(quantities), 2, 2 * row + 1)
        _histogram(left, quantity, _limits_of(found, quantity.name))
        right = figure.add_subplot(len(quantities), 2, 2 * row + 2)
        largest = [(name, 100.0 * share) for name, share in quantity.contributions[:10]]
        bars(right, [*largest, ("rest", 100.0 * quantity.unexplained)], f"share of the variance of {quantity.name}, %")
        if row == 0:
            title(left, found.nominal.circuit.title)
    figure.tight_layout()
    return figure


def plot_worst_case(found: Any) -> Figure:
    """One row per quantity: range within the tolerances, proven bounds, nominal value and limits."""
    ranges = found.ranges[:BARS]
    figure, panels = stacked(found.title, 8.0, [0.4 + 0.75] + [0.75] * (len(ranges) - 1))
    for one, axes in zip(ranges, panels):
        _range(axes, one, _limits_of(found, one.name))
    named = {label: handle for axes in figure.axes for handle, label in zip(*axes.get_legend_handles_labels())}
    figure.axes[0].legend(
        named.values(), named, fontsize=7, frameon=False, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=4
    )
    if len(found.ranges) > len(ranges):
        left = len(found.ranges) - len(ranges)
        figure.text(0.99, 0.005, f"and {left} more quantities", fontsize=7, ha="right", color=INK)
    return figure


def plot_design(found: Any) -> Figure:
    """Deviations of the quantities from their targets, and each element's value between its bounds."""
    errors = [
        (name, 100.0 * (value / target - 1.0)) for name, (value, target) in found.outputs.items() if target != 0.0
    ]
    ranges = [(name, value, *found.bounds[name]) for name, value in found.values.items()][:BARS]
    heights = [0.9 + 0.28 * len(rows) for rows in (errors[:BARS], ranges)]
    figure, (above, below) = stacked(found.point.circuit.title, 7.0, heights)
    bars(above, [(name, round(error, 7)) for name, error in errors], "difference from the target, %")
    for row, (_, value, low, high) in enumerate(ranges):
        below.hlines(row, low, high, color=BLUE, linewidth=1.2, label="bounds" if row == 0 else None)
        below.plot([value], [row], "o", color=RED, markersize=5, label="value" if row == 0 else None)
        below.annotate(plain(f"{value:.4g}"), (value, row), (0, 5), textcoords="offset points", fontsize=7, ha="center")
    below.set_yticks(range(len(ranges)), [plain(name) for name, *_ in ranges])
    below.set_ylim(len(ranges) - 0.4, -0.8)
    if all(low > 0.0 for _, _, low, _ in ranges):
        below.set_xscale("log")
    below.set_xlabel("value, Ω, V or A", color=INK)
    below.tick_params(labelsize=8, colors=INK)
    below.legend(fontsize=7, frameon=False, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2)
    return figure


def plot_worst_drops(name: str, rows: Sequence[tuple[str, float]]) -> Figure:
    """The largest voltage drops of a power grid.

    Parameters
    ----------
    name : str
        Title of the circuit.
    rows : sequence of (str, float)
        Nodes and drops, V, the largest first.
    """
    figure, (axes,) = stacked(name, 7.0, [1.4 + 0.24 * len(rows)])
    bars(axes, rows, "drop")
    measured(axes.xaxis, "drop", "V")
    return figure


def plot_samples(name: str, columns: Sequence[tuple[str, str, np.ndarray]]) -> Figure:
    """One panel per quantity, one bar per sample, and the mean.

    Parameters
    ----------
    name : str
    columns : sequence of (str, str, array)
        Name, unit and values of each quantity.
    """
    figure, panels = stacked(name, 7.5, [2.6] * len(columns), True)
    for axes, (label, unit, values) in zip(panels, columns):
        axes.bar(range(len(values)), values, color=BLUE)
        axes.axhline(values.mean(), color=RED, linewidth=1.0, linestyle="--", label="mean")
        measured(axes.yaxis, label, unit)
        gridded(axes, "y")
    axes.set_xlabel("sample", color=INK)
    axes.xaxis.get_major_locator().set_params(integer=True)
    legend(panels[0])
    return figure


def _range(axes: Axes, one: Any, limits: Sequence[float]) -> None:
    least, most = one.least, one.most
    if not one.exact:
        axes.hlines(0.0, least.bound, most.bound, color=BLUE, linewidth=1.2, label="proven bounds")
    axes.barh([0.0], [most.value - least.value], left=[least.value], height=0.5, color=BLUE, label="attained")
    axes.plot([one.nominal], [0.0], "|", color="white", markersize=14, markeredgewidth=4.0)
    axes.plot([one.nominal], [0.0], "|", color=INK, markersize=14, markeredgewidth=1.5, label="nominal")
    _limits(axes, limits)
    measured(axes.xaxis, "", one.unit)
    axes.set_yticks([0.0], [plain(one.name)])
    axes.set_ylim(-0.6, 0.6)
    axes.use_sticky_edges = False
    axes.margins(x=0.08)
    axes.tick_params(labelsize=8, colors=INK)
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)


def _limits_of(found: Any, name: str) -> list[float]:
    """The ends of the ranges specified for a quantity."""
    own = [one for one, _ in found.specifications if one.quantity.lower() == name.lower()]
    return [end for one in own for end in (one.low, one.high)]


def _limits(axes: Axes, limits: Sequence[float]) -> None:
    for k, limit in enumerate(x for x in limits if abs(x) < float("inf")):
        axes.axvline(limit, color=RED, linewidth=1.0, linestyle="--", label="limit" if k == 0 else None)


def _histogram(axes: Axes, quantity: Any, limits: Sequence[float]) -> None:
    counts, edges = quantity.counts, quantity.edges
    axes.stairs(counts / counts.sum() * 100.0, edges, fill=True, color=BLUE)
    axes.axvline(quantity.nominal, color=INK, linewidth=1.0, label="nominal")
    _limits(axes, limits)
    measured(axes.xaxis, quantity.name, quantity.unit)
    axes.locator_params(axis="x", nbins=5)
    axes.set_ylabel("samples, %", color=INK)
    axes.tick_params(labelsize=8, colors=INK)
    axes.legend(fontsize=7, frameon=False)


def bars(axes: Axes, rows: Sequence[tuple[str, float]], label: str) -> None:
    """Horizontal bars with their names, the first at the top."""
    shown = list(rows)[:BARS]
    axes.barh([plain(name) for name, _ in shown], [value for _, value in shown], color=BLUE, height=0.7)
    axes.invert_yaxis()
    axes.axvline(0.0, color=INK, linewidth=0.8)
    axes.set_xlabel(plain(label), color=INK)
    gridded(axes, "x")
    note = f"and {len(rows) - len(shown)} of smaller effect" if len(rows) > len(shown) else ""
    if not any(value for _, value in shown):
        note = "all are 0"
    axes.text(0.99, 0.02, note, fontsize=7, ha="right", transform=axes.transAxes, color=INK)
