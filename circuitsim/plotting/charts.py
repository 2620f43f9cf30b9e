"""Figures without a display, and charts of results: curves over values, times and frequencies, bars, histograms, maps;
curves of one quantity share a panel.

Results import this module, so their types are not named here.
"""

from __future__ import annotations

import io
import math
import os
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from circuitsim._files import write_file
from circuitsim.errors import UsageError
from circuitsim.units import Quantity, format_quantity

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

    from circuitsim.formats import Table

ROUNDING = 1e-9
"""Relative range of an axis that counts as rounding: the accuracy to which results are certified."""

INK, FAINT = "#30343b", "#8a919c"
BLUE, RED, CYAN = "#3b6ea5", "#b4413c", "#17becf"
"""Colours of data; of limits and poles; of pads."""
STYLES = {"-": "solid", "--": "dashed", ":": "dotted", "-.": "dash-dotted"}
"""Line styles of the quantities in a family of curves, whose colours show the varied value."""
DISTINCT = 10
"""Maximum number of curves in a panel with distinct colours."""
NAMED = 14
"""Maximum number of curves in a panel with names at their ends."""

DPI = 130
LARGEST = 40.0
"""Largest side of a picture, in inches."""
LEFT_OUT = {"png": "Software", "svg": "Date", "pdf": "CreationDate"}
"""Per format, what a picture does not state, so that the same figure gives the same bytes."""


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of that size in inches, within `LARGEST`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from circuitsim.plotting.shown import ShownFigure

    size = min(width, LARGEST), min(height, LARGEST)
    return FigureCanvasAgg(ShownFigure(figsize=size, dpi=DPI, facecolor="white")).figure


def stacked(heading: str, width: float, heights: Sequence[float], sharex: bool = False) -> tuple[Figure, list[Any]]:
    """A figure of panels one below the other.

    Parameters
    ----------
    heading : str
        Title above the first.
    width : float
        Inches.
    heights : sequence of float
        Of each panel, inches.
    sharex : bool
        Whether the panels share one horizontal axis.
    """
    figure = new_figure(width, sum(heights))
    figure.set_layout_engine("tight")
    axes = figure.subplots(len(heights), 1, sharex=sharex, squeeze=False, height_ratios=heights)[:, 0]
    title(axes[0], heading)
    return figure, list(axes)


def rendered(figure: Figure, form: str) -> bytes:
    """A figure as the bytes of a picture; the same figure gives the same bytes.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    form : {"png", "svg", "pdf"}

    Returns
    -------
    bytes
    """
    from matplotlib import backend_bases, rc_context

    buffer, shown = io.BytesIO(), figure.canvas
    drawn = getattr(backend_bases.get_registered_canvas_class(form)(figure), f"print_{form}")  # `savefig` draws twice
    with rc_context({"svg.hashsalt": "circuitsim", "svg.fonttype": "none"}):
        drawn(buffer, metadata={LEFT_OUT[form]: None})
    figure.set_canvas(shown)
    return buffer.getvalue()


def write(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure, in the format of the file name's extension; an existing file is replaced atomically.

    Raises
    ------
    UsageError
        The name does not end in ``.png``, ``.svg`` or ``.pdf``.
    """
    form = Path(path).suffix[1:].lower()
    if form not in LEFT_OUT:
        raise UsageError(f"{os.fspath(path)!r}: the name must end in .png, .svg or .pdf")
    write_file(path, rendered(figure, form))


def plain(text: str) -> str:
    """A user's text with ``$`` escaped, so that it does not begin a formula."""
    return text.replace("$", r"\$")


def measured(axis: Axis, name: str, unit: str) -> None:
    """Label an axis after its curves are drawn; its numbers have SI prefixes and the unit.

    A range of rounding alone is widened, so that a constant looks constant. Tick labels have as many digits as needed
    to differ.
    """
    from matplotlib.ticker import FuncFormatter

    axis.set_label_text(plain(name), color=INK)
    low, high = axis.get_view_interval()
    scale = max(abs(low), abs(high))
    widen(axis, ROUNDING * scale, 0.05 * scale)
    span = np.ptp(axis.get_view_interval())
    digits = 4 + max(0, math.ceil(math.log10(0.1 * scale / span))) if span > 0.0 else 4
    axis.set_major_formatter(FuncFormatter(lambda value, _: format_quantity(value + 0.0, unit, digits).strip()))


def widen(axis: Axis, rounding: float, margin: float) -> None:
    """Widen an axis around its centre where its range is rounding alone."""
    low, high = axis.get_view_interval()
    if abs(high - low) < rounding:
        middle = 0.5 * (low + high)
        axis.set_view_interval(middle - margin, middle + margin, ignore=True)


def gridded(axes: Axes, axis: Literal["both", "x", "y"] = "both") -> None:
    """Faint lines behind the curves, small numbers at the axes."""
    axes.grid(True, axis=axis, linewidth=0.4, alpha=0.6)
    axes.tick_params(labelsize=8, colors=INK)


def grows_by_factors(x: np.ndarray) -> bool:
    """Whether the values increase geometrically, over at least a factor of 30."""
    if x.size < 3 or (x <= 0).any() or x.max() < 30 * x.min():
        return False
    ratio, step = np.diff(np.log(x)), np.diff(x)
    return bool(np.ptp(ratio) / np.abs(ratio).max() < np.ptp(step) / np.abs(step).max())


def family(values: np.ndarray) -> list[Any]:
    """A colour for each of these values, from dark to light in ascending order."""
    from matplotlib import colormaps

    scale = np.log(values) if grows_by_factors(np.unique(values)) else values
    return [*map(tuple, colormaps["viridis"](0.9 * (scale - scale.min()) / (np.ptp(scale) or 1.0)))]


def name_curves(axes: Axes, name: str, unit: str, note: str = "") -> None:
    """Label the vertical axis of a panel, and each of its curves at its end; for more than `NAMED` state their number
    and quantities.

    Parameters
    ----------
    axes : Axes
    name, unit : str
        Of the axis; without a name it is already labelled.
    note : str
        Meaning of the colours; by default they only distinguish curves.
    """
    if name:
        measured(axes.yaxis, name, unit)
    gridded(axes)
    curves = [line for line in axes.lines if not str(line.get_label()).startswith("_")]
    if not note and len(curves) > DISTINCT:
        for line, colour in zip(curves, family(np.arange(len(curves)))):
            line.set_color(colour)
    how: dict[str, Any] = {"fontsize": 7, "transform": axes.transAxes}
    low, high = axes.get_ylim()
    if len(curves) > NAMED:
        styles = {str(line.get_label()).partition("  ")[0]: str(line.get_linestyle()) for line in curves}
        names = [name + f" ({STYLES[style]})" * (len(styles) > 1) for name, style in styles.items()]
        what = f" of {', '.join(names)}" if len(names) <= len(STYLES) else ""
        words = f"{len(curves)} curves{what}, dark to light {note or 'in their order'}"
        axes.text(0.01, 0.97, plain(words), va="top", **how)
        axes.set_ylim(low, high + 0.1 * (high - low))  # the words are above the curves
        return
    values = [np.asarray(line.get_ydata(), dtype=float) for line in curves]
    last = [float(y[np.isfinite(y)][-1]) if np.isfinite(y).any() else low for y in values]
    order = sorted(range(len(curves)), key=last.__getitem__)
    step = 8.5 * DPI / 72.0 / axes.bbox.height
    place, places = -step, []
    for k in order:  # none over the one below
        place = max(place + step, (last[k] - low) / (high - low))
        places.append(place)
    place = 1.0 + step
    for k, wanted in zip(reversed(order), reversed(places)):  # nor above the panel
        place = min(place - step, wanted)
        axes.text(1.01, place, str(curves[k].get_label()), va="center", color=curves[k].get_color(), **how)


def origin(axes: Axes) -> None:
    """Lines through zero, behind the curves."""
    axes.axhline(0.0, color=FAINT, linewidth=0.8)
    axes.axvline(0.0, color=FAINT, linewidth=0.8)


def shaded(axes: Axes, values: np.ndarray, cmap: str, label: str, **how: Any) -> None:
    """Values as colours, with a colour bar."""
    image = axes.imshow(values, aspect="auto", interpolation="nearest", cmap=cmap, **how)
    axes.figure.colorbar(image, ax=axes, label=label)


def legend(axes: Axes) -> None:
    """The names of the curves, legible over them."""
    axes.legend(fontsize=7, loc="best", framealpha=0.8, edgecolor="none")


def title(axes: Axes, text: str) -> None:
    """The deck's title without a comment's star, on the left, in at most two lines."""
    text = text.lstrip("* ")
    if text:
        width = axes.bbox.width / DPI
        lines = textwrap.wrap(text, min(90, letters(width, 11)))
        if len(lines) > 1:
            lines = textwrap.wrap(text, letters(width, 9), max_lines=2, placeholder=" …")
        size = 11 if len(lines) == 1 else 9
        axes.set_title(plain("\n".join(lines)), loc="left", fontsize=size, color=INK)


def letters(width: float, size: float) -> int:
    """Approximate number of letters of a size, points, in a line of a figure of a given width, inches."""
    return max(20, int((width - 0.2) / (0.62 * size / 72.0)))


# ---------------------------------------------------------------------- charts
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
    """The panels of columns (name, unit), each of at most ``most`` columns; the last of `PANELS` says how many more
    there are.

    Voltages come first, then currents and powers. Each other column (an expression, a measurement) has a panel of its
    own.

    >>> [panel.columns for panel in panels_of([("i(R1)", "A"), ("v(a)", "V"), ("gain", ""), ("v(b)", "V")], 4)]
    [['v(a)', 'v(b)'], ['i(R1)'], ['gain']]
    """
    given = list(columns)
    same = {own: [name for name, unit in given if unit == own.unit] for own in Quantity}
    found = [Panel(q.label, q.unit, all_[k : k + most]) for q, all_ in same.items() for k in range(0, len(all_), most)]
    units = {own.unit for own in Quantity}
    found += (Panel(name, unit, [name]) for name, unit in given if unit not in units)
    more = sum(len(panel.columns) for panel in found[PANELS:])
    if more:
        found[PANELS - 1] = found[PANELS - 1]._replace(name=f"{found[PANELS - 1].name}\n(then {more} more)")
    return found[:PANELS]


CURVES = 200
"""Maximum number of curves of a column."""


def plot_sweep(sweep: Any) -> Figure:
    """One panel per quantity, one curve per column and combination of the slower values, which set the colours.

    Parameters
    ----------
    sweep : Sweep
    """
    (fast, x), *slow = ((name, values.reshape(-1, sweep.shape[0])) for name, values in sweep.axes.items())
    columns = ((name, sweep.units[name]) for name in sweep.drawn)
    styles = [*STYLES] if slow else ["-"] * len(sweep.drawn)
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
        more = f",\nfirst {STRIPS} of {len(conduction)}" if len(conduction) > STRIPS else ""
        axes[-1].set_ylabel(f"conducting{more}", color=FAINT, fontsize=8)
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
    origin(axes)
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


def plot_harmonics(found: Any) -> Figure:
    """Amplitude and phase of each harmonic of one quantity."""
    heading = f"{found.quantity}, total harmonic distortion {found._percent}"
    figure, panels = stacked(heading, 8.0, [2.5, 2.5], True)
    # The first row is the mean.
    _, _, frequency, amplitude, phase, _ = (np.asarray(own)[1:] for own in found.tables()["harmonics"].columns)
    for axes, values, label in zip(panels, (amplitude, phase), ("amplitude", "phase, °")):
        axes.stem(frequency, values)
        gridded(axes)
        measured(axes.yaxis, label, "")
    measured(axes.xaxis, "frequency", "Hz")
    return figure


def plot_poles(found: Any) -> Figure:
    """Poles in the complex plane, on symmetric logarithmic axes if they span decades."""
    poles = found.values
    figure, (axes,) = stacked(found.title, 6.0, [5.0])
    origin(axes)
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


BARS, GROUPS = 20, 8
"""Maximum number of bars in a panel, and of panels in a picture; a note counts those left out."""


def plot_sensitivity(found: Any) -> Figure:
    """One panel per output: its changes for 1 % of each parameter, the largest first."""
    outputs = found.outputs[:GROUPS]
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
    quantities = found.quantities[:GROUPS]
    figure = new_figure(9.5, 0.6 + 3.0 * len(quantities))
    rows = figure.subplots(len(quantities), 2, squeeze=False)
    for quantity, (left, right) in zip(quantities, rows):
        _histogram(left, quantity, _limits_of(found, quantity.name))
        largest = [(name, 100.0 * share) for name, share in quantity.contributions[:10]]
        bars(right, [*largest, ("rest", 100.0 * quantity.unexplained)], f"share of the variance of {quantity.name}, %")
    title(rows[0, 0], found.nominal.circuit.title)
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


LISTED = 30
"""Maximum number of inputs or outputs whose names are shown."""


def plot_matrix(found: Any) -> Figure:
    """Entries of an effective matrix as colours: a column per input, a row per output."""
    matrix, inputs, outputs = found.matrix, found.inputs, found.outputs
    rows, columns = matrix.shape
    heights = [min(7.0, 2.4 + 0.4 * rows)]
    figure, (axes,) = stacked(found.circuit.title, min(9.0, 2.8 + 0.4 * columns), heights)
    most = float(np.abs(matrix).max()) or 1.0
    shaded(axes, matrix, "RdBu_r", "output per input", vmin=-most, vmax=most)
    for axis, names in ((axes.xaxis, inputs), (axes.yaxis, outputs)):
        axis.set_ticks(range(len(names)) if len(names) <= LISTED else [])
        if len(names) <= LISTED:
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
    shaded(left, loss, "viridis", "voltage lost to wires, % of the input", vmin=low, vmax=high, extent=extent)
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
    shaded(axes, image.T, "inferno", "drop, mV", origin="lower", extent=(x[0], x[-1], y[0], y[-1]))
    circuit = found.point.circuit
    nodes = [circuit.node_index(pad.node) for pad in found.pads if pad.net == k]
    axes.plot(*found.places[nodes].T, "^", color=CYAN, markersize=4, markeredgecolor=INK, markeredgewidth=0.4)
    worst = found.places[circuit.node_index(net.worst_node)]
    axes.plot(worst[:1], worst[1:], "o", markersize=11, markerfacecolor="none", markeredgecolor="lime")
    axes.set(xlabel=f"net of {net.nominal:g} V: at most {1e3 * net.worst:.3g} mV at {net.worst_node}")
    axes.ticklabel_format(style="plain", useOffset=False)
