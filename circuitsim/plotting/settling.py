"""Settling times and energies of samples, and the outputs of the slowest one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from circuitsim.plotting.figure import legend, measured, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from circuitsim.time_domain.result import TransientResult
    from circuitsim.time_domain.settling import SettlingResult

POINTS = 801
SHOWN = 12
"""Most outputs that are drawn."""
BEYOND = 1.5
"""End of the time axis against the settling time."""


def plot_settling(found: SettlingResult, slowest: TransientResult) -> Figure:
    """Two panels: energy over settling time, one point a sample; outputs of the slowest sample over time.

    Parameters
    ----------
    found : SettlingResult
    slowest : TransientResult
        The run of `SettlingResult.slowest`.
    """
    figure = new_figure(9.0, 3.6)
    left, right = figure.subplots(1, 2)
    time, energy = found.column("time"), found.column("delivered")
    left.plot(time, energy, ".", color="#1f6f8b", markersize=5)
    left.plot(time[found.slowest], energy[found.slowest], "o", color="#b5367a", markersize=7, fillstyle="none")
    left.set_title("samples; the slowest is marked", fontsize=8)
    measured(left.xaxis, "settling time", "s")
    measured(left.yaxis, "energy from the sources", "J")
    row = found.rows[found.slowest]
    times = np.linspace(0.0, min(BEYOND * row.time or slowest.stop, slowest.stop), POINTS)
    for name in found.outputs[:SHOWN]:
        first, _, second = name[2:-1].partition(",")
        right.plot(times, slowest.voltage(first, second or "0", times), linewidth=1.2, label=plain(name))
    right.axvline(row.time, color="#8a919c", linestyle="--", linewidth=0.9)
    right.set_title(f"sample {found.slowest}", fontsize=8)
    legend(right)
    measured(right.xaxis, "time", "s")
    measured(right.yaxis, "outputs", "V")
    for panel in (left, right):
        panel.grid(True, linewidth=0.4, alpha=0.6)
    figure.tight_layout()
    return figure
