"""Curves: columns of a sweep over the fastest value, waveforms with a strip of conducting diodes, I–V curves with their
breakpoints, Bode plots, harmonics, poles.

Columns of the same quantity share a panel.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from circuitsim.plotting.figure import (
    BLUE,
    FAINT,
    INK,
    RED,
    ROUNDING,
    STYLES,
    family,
    gridded,
    grows_by_factors,
    measured,
    name_curves,
    new_figure,
    plain,
    stacked,
    widen,
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


def panels_of(columns: Iterable[tuple[str, str]], most: int) -> list[Panel]:
    """The panels of columns (name, unit), up to `PANELS`, each of at most ``most`` columns.

    Voltages come first, then currents and powers. Each other column (an expression, a measurement) has a panel of its
    own.

    >>> [panel.columns for panel in panels_of([("i(R1)", "A"), ("v(a)", "V"), ("gain", ""), ("v(b)", "V")], 4)]
    [['v(a)', 'v(b)'], ['i(R1)'], ['gain']]
    """
    given = list(columns)
    same = {own: [name for name, unit in given if unit == own.unit] for own in Quantity}
    found = [Panel(q.label, q.unit, all_[k : k + most]) for q, all_ in same.items() for k in range(0, len(all_), most)]
    units = {own.unit for own in Quantity}
    return [*found, *(Panel(name, unit, [name]) for name, unit in given if unit not in units)][:PANELS]


CURVES = 200
"""Maximum number of curves of a column."""


def plot_sweep(sweep: Any) -> Figure:
    """One panel per quantity, one curve per column and combination of the slower values, which set the colours.

    Parameters
    ----------
    sweep : Sweep
    """
    (fast, x), *slow = ((name, values.reshape(-1, sweep.shape[0])) for name, values in sweep.axes.items())
    columns = ((name, sweep.units[name]) for name in sweep.columns)
    styles = [*STYLES] if slow else ["-"] * len(sweep.columns)
    panels = panels_of(columns, len(styles))
    figure, stack = stacked(sweep.title, 7.5, [3.5] * len(panels))
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
                style |= {"color": colours[row], "linestyle": styles[number]}
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
    panels = panels_of(list(zip(table.header, table.units))[1:], len(waves))
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


def plot_bode(name: str, table: Table, varied: tuple[str, np.ndarray] | None = None) -> Figure:
    """Two panels of the columns of `circuitsim.small_signal.frequency.response_table`.

    Parameters
    ----------
    name : str
        Title of the circuit.
    table : Table
        For several runs, one after another.
    varied : (str, (runs,) float array), optional
        What is varied between runs, and its values, which set the colours.
    """
    frequency = np.asarray(table.columns[0])
    colours = [None] if varied is None else family(varied[1])
    many = len(table.header) // (3 * len(colours))
    styles = ["-"] * many if varied is None else [*STYLES]
    figure, stack = stacked(name, 8.0, [3.0, 3.0] * min(-(-many // len(styles)), PANELS // 2), True)
    pairs = [*zip(stack[::2], stack[1::2])]
    for k in range(1, len(table.header), 3):
        drawn = np.isfinite(table.columns[k + 1])
        label = plain(table.header[k]) + ("" if drawn.any() else " = 0")
        run, quantity = divmod(k // 3, many)
        group, style = divmod(quantity, len(styles))
        how: dict[str, Any] = {"linewidth": 1.3, "color": colours[run], "linestyle": styles[style]}
        for magnitude, phase in pairs[group : group + 1]:
            magnitude.plot(frequency, table.columns[k + 1], label=label, **how)
            phase.plot(frequency, np.where(drawn, table.columns[k + 2], np.nan), **how)
    if frequency[-1] >= 10.0 * frequency[0] > 0.0:
        stack[-1].set_xscale("log")
    measured(stack[-1].xaxis, "frequency", "Hz")
    for magnitude, phase in pairs:
        magnitude.set_ylabel("magnitude, dB", color=INK)
        phase.set_ylabel("phase, °", color=INK)
        phase.locator_params(axis="y", nbins=10, steps=[1, 1.5, 3, 4.5, 9, 10])
        # d(20 log10 |x|) = 20 / ln 10 d|x| / |x|, d(arg x) = 180 / π |dx| / |x|.
        widen(magnitude.yaxis, 20.0 / math.log(10.0) * ROUNDING, 1.0)
        widen(phase.yaxis, math.degrees(ROUNDING), 1.0)
    for axes in stack:
        name_curves(axes, "", "", "" if varied is None else f"as {varied[0]} grows")
    return figure


def plot_harmonics(name: str, table: Table) -> Figure:
    """Amplitude and phase of each harmonic of one quantity.

    Parameters
    ----------
    name : str
    table : Table
        From `circuitsim.time_domain.fourier.fourier_table`; its first row is the mean.
    """
    figure, panels = stacked(name, 8.0, [2.5, 2.5], True)
    _, _, frequency, amplitude, phase, _ = (np.asarray(column)[1:] for column in table.columns)
    for axes, values, label in zip(panels, (amplitude, phase), ("amplitude", "phase, °")):
        axes.stem(frequency, values)
        gridded(axes)
        measured(axes.yaxis, label, "")
    measured(axes.xaxis, "frequency", "Hz")
    return figure


def plot_poles(name: str, poles: np.ndarray) -> Figure:
    """Poles in the complex plane, on symmetric logarithmic axes if they span decades.

    Parameters
    ----------
    name : str
        Title of the circuit.
    poles : (k,) complex array
        rad/s.
    """
    figure, (axes,) = stacked(name, 6.0, [5.0])
    axes.axhline(0.0, color=INK, linewidth=0.8)
    axes.axvline(0.0, color=INK, linewidth=0.8)
    axes.plot(poles.real, poles.imag, "x", color=RED, markersize=8, markeredgewidth=1.8)
    if not poles.size:
        axes.text(0.5, 0.6, "no poles", ha="center", color=INK, transform=axes.transAxes)
    sizes = np.abs(poles[poles != 0.0])
    if sizes.size and sizes.max() > 100.0 * sizes.min():
        for scale in (axes.set_xscale, axes.set_yscale):
            scale("symlog", linthresh=float(sizes.min()))
    measured(axes.xaxis, "real part, 1/s", "")
    measured(axes.yaxis, "imaginary part, 1/s", "")
    gridded(axes)
    return figure


ACROSS = 4
"""Maximum number of panels in a row of `plot_lines`."""


class Line(NamedTuple):
    """A curve of a picture: its panel, its name, its points, its style (`matplotlib`)."""

    panel: str
    name: str
    x: Sequence[float]
    y: Sequence[float]
    style: Mapping[str, Any] = {}


def plot_lines(lines: Sequence[Line], settings: Mapping[str, Any]) -> Figure:
    """Curves in panels side by side, with a legend of their names below; names that begin with ``_`` are not shown.

    Parameters
    ----------
    lines : sequence of Line
    settings : mapping
        Of all axes, as `matplotlib.axes.Axes.set` takes them.
    """
    from matplotlib.ticker import LogLocator, MaxNLocator

    panels = list(dict.fromkeys(line.panel for line in lines))
    across = min(len(panels), ACROSS)
    down = -(-len(panels) // across)
    figure = new_figure(max(8.0, 3.2 * across), max(4.6, 2.4 * down))
    figure.set_layout_engine("constrained")
    named: dict[str, Any] = {}
    for place, panel in enumerate(panels, 1):
        axes = figure.add_subplot(down, across, place)
        for line in lines:
            if line.panel == panel:
                (drawn,) = axes.plot(line.x, line.y, label=line.name, **line.style)
                named |= {} if line.name.startswith("_") else {line.name: drawn}
        axes.set_title(panel, fontsize="small")
        axes.set(**settings)
        if axes.get_yscale() == "log" and axes.get_ylim()[1] < 100.0 * axes.get_ylim()[0]:
            ticks = LogLocator(subs=(1, 1.5, 2, 3, 4, 6))
            axes.yaxis.set(major_locator=ticks, major_formatter="{x:g}", minor_formatter="")
        if axes.get_xscale() == "linear" and "xticks" not in settings:
            axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, nbins=6))
        gridded(axes)
    columns = min(6, len(named))
    figure.legend(named.values(), named, loc="outside lower center", ncols=columns, frameon=False, fontsize=8)
    return figure
