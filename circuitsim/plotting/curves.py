"""Curves: columns of a sweep over the fastest value, waveforms with a strip of conducting diodes, I–V curves with their
breakpoints.

Columns of the same quantity share a panel.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from circuitsim.plotting.figure import (
    BLUE,
    FAINT,
    INK,
    RED,
    STYLES,
    family,
    gridded,
    grows_by_factors,
    measured,
    name_curves,
    plain,
    stacked,
)
from circuitsim.units import Quantity, format_quantity

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from circuitsim.formats.table import Table

PANELS = 12
"""Maximum number of panels of about 3 inches in the largest picture (`figure.LARGEST`)."""


class Panel(NamedTuple):
    """An axis and its columns.

    Attributes
    ----------
    name : str
        Of the axis.
    unit : str
    columns : list of str
    """

    name: str
    unit: str
    columns: list[str]


def panels_of(columns: Iterable[tuple[str, str]]) -> list[Panel]:
    """The panels of columns (name, unit).

    Voltages come first, then currents and powers. Each other column (an expression, a measurement) has a panel of its
    own, up to `PANELS`.

    >>> [panel.columns for panel in panels_of([("i(R1)", "A"), ("v(a)", "V"), ("gain", ""), ("v(b)", "V")])]
    [['v(a)', 'v(b)'], ['i(R1)'], ['gain']]
    """
    shared = {own.unit: Panel(own.label, own.unit, []) for own in Quantity}
    others = []
    for name, unit in columns:
        if unit in shared:
            shared[unit].columns.append(name)
        else:
            others.append(Panel(name, unit, [name]))
    return [*(panel for panel in shared.values() if panel.columns), *others][:PANELS]


CURVES = 200
"""Maximum number of curves of a column."""


def plot_sweep(sweep: Any) -> Figure:
    """One panel per quantity, one curve per column and combination of the slower values, which set the colours.

    Parameters
    ----------
    sweep : Sweep
    """
    panels = panels_of((name, sweep.units[name]) for name in sweep.columns)
    figure, stack = stacked(sweep.title, 7.5, [3.5] * len(panels))
    (fast, x), *slow = ((name, values.reshape(-1, sweep.shape[0])) for name, values in sweep.axes.items())
    colours = family(slow[0][1][:, 0]) if slow else [None]
    note = f"as {slow[0][0]} grows" if slow else ""
    lost: dict[str, None] = {}
    jumps = sweep._jumps().reshape(x.shape)
    style: dict[str, Any] = {"marker": "o" if x.shape[1] < 30 else None, "markersize": 3, "linewidth": 1.3}
    for axes, panel in zip(stack, panels):
        for number, name in enumerate(panel.columns):
            for row, y in enumerate(sweep.columns[name].reshape(x.shape)[:CURVES]):
                at = ", ".join(f"{n}={format_quantity(float(v[row, 0]), sweep.units[n], 4)}" for n, v in slow)
                if slow and not np.isfinite(y).any():
                    lost[at] = None
                    continue
                style |= {"color": colours[row], "linestyle": STYLES[number % len(STYLES)] if slow else "-"}
                ends = np.flatnonzero(jumps[row])
                axes.plot(
                    np.insert(x[row], ends, np.nan),
                    np.insert(y, ends, np.nan),
                    label=plain(f"{name}  {at}".rstrip()),
                    **style,
                )
        if grows_by_factors(x[0]):
            axes.set_xscale("log")
        name_curves(axes, panel.name, panel.unit, note)
    if lost:
        words = plain(f"without a result: {'; '.join([*lost][:4])}{' …' * (len(lost) > 4)}")
        stack[0].text(0.99, 0.03, words, ha="right", fontsize=7, color=RED, transform=stack[0].transAxes)
    for axes in stack:
        measured(axes.xaxis, fast if axes is stack[-1] else "", sweep.units[fast])
    return figure


STRIPS = 24
"""Maximum number of diodes whose states are shown."""


Spans = list[tuple[str, list[tuple[float, float]]]]


def plot_waveforms(heading: str, table: Table, conduction: Spans) -> Figure:
    """One panel per quantity, then one line per diode, drawn while it conducts.

    Parameters
    ----------
    heading : str
        Title of the circuit.
    table : Table
        Columns over the time, which is the first.
    conduction : list of (str, list of (float, float))
        Diodes and switches, and the spans of time, s, in which they conduct.
    """
    time, *waves = (np.asarray(column) for column in table.columns)
    curves = dict(zip(table.header[1:], waves))
    panels = panels_of(list(zip(table.header, table.units))[1:])
    strips = conduction[:STRIPS]
    heights = [3.4] * len(panels) + ([0.7 + 0.18 * len(strips)] if strips else [])
    figure, axes = stacked(heading, 8.0, heights, True)
    for own, panel in zip(axes, panels):
        for name in panel.columns:
            own.plot(time, curves[name], linewidth=1.3, label=plain(name))
        name_curves(own, panel.name, panel.unit)
    if strips:
        for row, (_, spans) in enumerate(strips):
            for begin, end in spans:
                # Ends on whole pixels would show stripes if a period is narrower than a pixel.
                axes[-1].plot([begin, end], [row, row], color=INK, linewidth=5, solid_capstyle="butt", snap=False)
        axes[-1].set_yticks(range(len(strips)), [plain(name) for name, _ in strips], fontsize=7, color=INK)
        axes[-1].set_ylim(len(strips) - 0.5, -0.5)
        axes[-1].set_ylabel("conducting", color=FAINT, fontsize=8)
        gridded(axes[-1], "x")
    measured(axes[-1].xaxis, "time", "s")
    return figure


def plot_curve(found: Any) -> Figure:
    """An I–V curve; a piecewise-linear one passes through its breakpoints, drawn as dots."""
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
    axes.plot(v[order], i[order], color=BLUE, linewidth=1.5)
    if bends:
        axes.plot([b.voltage for b in bends], [b.current for b in bends], "o", color=INK, markersize=4)
    low, high = axes.get_ylim()
    for bend in bends:
        for slope, end in ((bend.below, low), (bend.above, high)):
            if np.isinf(slope):
                axes.plot([bend.voltage] * 2, [bend.current, end], color=BLUE, linewidth=1.5)
    axes.set_ylim(low, high)
    measured(axes.xaxis, label, "V")
    measured(axes.yaxis, "current", "A")
    gridded(axes)
    return figure
