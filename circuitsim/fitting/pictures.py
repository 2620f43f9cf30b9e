"""Waveforms before and after a fit, with their targets."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from circuitsim.analysis.probes import VALUE, Formula, parse_probes
from circuitsim.errors import UsageError
from circuitsim.fitting.fit import WaveformFit
from circuitsim.fitting.targets import WaveTarget
from circuitsim.plotting.figure import gridded, legend, measured, plain, stacked, write
from circuitsim.time_domain.result import columns

POINTS = 1001
PANELS = 4
"""Maximum number of quantities drawn."""


def draw_fit(fit: WaveformFit, first: np.ndarray, path: Path) -> None:
    """Draw the first sample: one panel per quantity, before (dashed), after, target (dots).

    Parameters
    ----------
    fit : WaveformFit
    first : (n,) float array
        The numbers before.
    path : Path
        PNG to write.
    """
    own = fit.targets[0]
    names = list(own.outputs) if isinstance(own, WaveTarget) else _measured(fit)
    runs = [fit.run(0, values, POINTS) for values in (first, fit.values())]
    heading = fit.timed.deck.operating_circuit.title
    figure, axes = stacked(heading, 8.0, [2.7] * max(len(names[:PANELS]), 1), True)
    for panel, name in zip(axes, names):
        probes = parse_probes(name, runs[0].circuit)
        for run, label, style, colour in zip(runs, ("before", "after"), ("--", "-"), ("#8a919c", "#b5367a")):
            panel.plot(run.times, columns(run, probes, {}, run.times)[0], style, color=colour, label=label)
        if isinstance(own, WaveTarget):
            panel.plot(own.times, own.outputs[name], ".", color="#1f6f8b", markersize=4, label="target")
        measured(panel.yaxis, plain(name), probes[0].unit)
        gridded(panel)
        legend(panel)
    measured(axes[-1].xaxis, "time", "s")
    write(figure, path)


def _measured(fit: WaveformFit) -> list[str]:
    """Voltages and currents used by the measurements."""
    found: dict[str, None] = {}
    for own in fit.targets:
        for word in () if isinstance(own, WaveTarget) else own.text.split()[1:]:
            try:
                probes = parse_probes(word.partition("=")[0], fit.timed.deck.operating_circuit)
            except UsageError:
                continue
            found.update({str(p): None for p in probes if not isinstance(p, Formula) and p.kind != VALUE})
    return list(found)
