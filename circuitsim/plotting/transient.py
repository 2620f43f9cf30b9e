"""Waveforms over time, with the conducting diodes as a strip."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from circuitsim.plotting.figure import FAINT, INK, gridded, legend, measured, plain, stacked
from circuitsim.plotting.panels import panels_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from circuitsim.formats.table import Table

STRIPS = 24
"""Most diodes whose states are shown."""


Spans = list[tuple[str, list[tuple[float, float]]]]


def plot_waveforms(heading: str, table: Table, conduction: Spans) -> Figure:
    """One panel a quantity, then one line a diode, drawn while it conducts.

    Parameters
    ----------
    heading : str
        Title of the circuit.
    table : Table
        Columns over the time, which is the first.
    conduction : list of (str, list of (float, float))
        Diodes and switches, and the spans of time, s, in which they conduct.
    """
    time = np.asarray(table.columns[0])
    waves = dict(zip(table.header, table.columns))
    panels = panels_of(list(zip(table.header, table.units))[1:])
    strips = conduction[:STRIPS]
    heights = [3.4] * len(panels) + ([0.7 + 0.18 * len(strips)] if strips else [])
    figure, axes = stacked(heading, 8.0, heights, True)
    for own, panel in zip(axes, panels):
        for name in panel.columns:
            own.plot(time, waves[name], linewidth=1.3, label=plain(name))
        measured(own.yaxis, panel.name, panel.unit)
        gridded(own)
        legend(own)
    if strips:
        for row, (_, spans) in enumerate(strips):
            for begin, end in spans:
                axes[-1].plot([begin, end], [row, row], color=INK, linewidth=5, solid_capstyle="butt")
        axes[-1].set_yticks(range(len(strips)), [plain(name) for name, _ in strips], fontsize=7, color=INK)
        axes[-1].set_ylim(len(strips) - 0.5, -0.5)
        axes[-1].set_ylabel("conducting", color=FAINT, fontsize=8)
        gridded(axes[-1], "x")
    measured(axes[-1].xaxis, "time", "s")
    return figure
