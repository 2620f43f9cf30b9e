"""Bode plots: magnitude in decibels and phase over the frequency, logarithmic from one decade on."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from circuitsim.plotting.figure import INK, ROUNDING, legend, measured, new_figure, plain, title, widen

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from circuitsim.formats.table import Table


def plot_bode(name: str, table: Table) -> Figure:
    """Two panels of the columns that `circuitsim.small_signal.table.response_table` makes."""
    figure = new_figure(8.0, 6.0)
    magnitude, phase = figure.subplots(2, 1, sharex=True)
    frequency = np.asarray(table.columns[0])
    for k in range(1, len(table.header), 3):
        decibels, drawn = np.asarray(table.columns[k + 1]), np.isfinite(table.columns[k + 1])
        label = plain(table.header[k]) + ("" if drawn.any() else " = 0")
        magnitude.plot(frequency, np.where(drawn, decibels, np.nan), linewidth=1.3, label=label)
        phase.plot(frequency, np.where(drawn, table.columns[k + 2], np.nan), linewidth=1.3)
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
        axes.grid(True, which="both", linewidth=0.4, alpha=0.6)
    legend(magnitude)
    title(magnitude, name)
    figure.tight_layout()
    return figure


def _degrees() -> object:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(steps=[1, 1.5, 3, 4.5, 9, 10])
