"""Bode plots, logarithmic from one decade on; harmonics; poles in the complex plane."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from circuitsim.plotting.figure import (
    BLUE,
    INK,
    RED,
    ROUNDING,
    STYLES,
    family,
    gridded,
    measured,
    name_curves,
    plain,
    stacked,
    widen,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from circuitsim.formats.table import Table


def plot_bode(name: str, table: Table, varied: np.ndarray | None = None) -> Figure:
    """Two panels of the columns of `circuitsim.small_signal.frequency.response_table`.

    Parameters
    ----------
    name : str
        Title of the circuit.
    table : Table
        For several runs, one after another.
    varied : (runs,) float array, optional
        The value varied between runs, which sets the colours.
    """
    figure, (magnitude, phase) = stacked(name, 8.0, [3.0, 3.0], True)
    frequency = np.asarray(table.columns[0])
    colours = [None] if varied is None else family(varied)
    many = len(table.header) // (3 * len(colours))
    for k in range(1, len(table.header), 3):
        decibels, drawn = np.asarray(table.columns[k + 1]), np.isfinite(table.columns[k + 1])
        label = plain(table.header[k]) + ("" if drawn.any() else " = 0")
        run, quantity = divmod(k // 3, many)
        how: dict[str, Any] = {"linewidth": 1.3, "color": colours[run]}
        how["linestyle"] = "-" if varied is None else STYLES[quantity % len(STYLES)]
        magnitude.plot(frequency, np.where(drawn, decibels, np.nan), label=label, **how)
        phase.plot(frequency, np.where(drawn, table.columns[k + 2], np.nan), **how)
    if frequency[-1] >= 10.0 * frequency[0] > 0.0:
        phase.set_xscale("log")
    magnitude.set_ylabel("magnitude, dB", color=INK)
    phase.set_ylabel("phase, °", color=INK)
    measured(phase.xaxis, "frequency", "Hz")
    phase.yaxis.set_major_locator(_degrees())
    # d(20 log10 |x|) = 20 / ln 10 d|x| / |x|, d(arg x) = 180 / π |dx| / |x|.
    widen(magnitude.yaxis, 20.0 / math.log(10.0) * ROUNDING, 1.0)
    widen(phase.yaxis, math.degrees(ROUNDING), 1.0)
    for axes in (magnitude, phase):
        name_curves(axes, "", "")
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
        axes.vlines(frequency, 0.0, values, linewidth=2.0, color=BLUE)
        axes.plot(frequency, values, "o", markersize=4, color=BLUE)
        axes.axhline(0.0, color=INK, linewidth=0.8)
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


def _degrees() -> object:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(steps=[1, 1.5, 3, 4.5, 9, 10])
