"""What notebooks show of circuits and results: drawings, tables and curves (`_repr_html_`)."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from circuitsim.circuit.source import circuit_of
from circuitsim.formats import html
from circuitsim.formats.rich import Picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from circuitsim.analysis import OperatingPoint, Sweep
    from circuitsim.analysis.probes import Probe
    from circuitsim.certificate import Certificate
    from circuitsim.circuit import Circuit
    from circuitsim.time_domain import TransientResult
    from circuitsim.training.history import History

DRAWN = 400
"""Most elements of a circuit that is drawn without being asked."""

CURVES = 8
"""Most waveforms in one picture."""


def html_of(source: Any) -> str:
    """HTML of a circuit or result, by the name of its class or of one that it inherits from."""
    return next(_FORMS[kind.__name__](source) for kind in type(source).__mro__ if kind.__name__ in _FORMS)


def svg_of(source: OperatingPoint | Circuit) -> str:
    """The drawing of a circuit; of a large one what `draw_circuit` shows in its place."""
    from circuitsim.plotting import draw_circuit, rendered
    from circuitsim.plotting.svg import circuit_svg

    return circuit_svg(source) or rendered(draw_circuit(source), "svg").decode()


def save(source: OperatingPoint | Circuit, path: str | os.PathLike[str]) -> None:
    """Write the drawing of a circuit; see `Picture.save`.

    Parameters
    ----------
    source : OperatingPoint or Circuit
        What to draw.
    path : str or path-like
        The file; its name ends in ``.png``, ``.svg`` or ``.pdf``.
    """
    from circuitsim._files import write_file
    from circuitsim.errors import UsageError
    from circuitsim.plotting import draw_circuit, rendered

    form = os.path.splitext(os.fspath(path))[1][1:].lower()
    if form not in ("png", "svg", "pdf"):
        raise UsageError(f"{os.fspath(path)!r}: the name must end in .png, .svg or .pdf")
    write_file(path, rendered(draw_circuit(source), form))


def _drawing(source: OperatingPoint | Circuit) -> str:
    from circuitsim.plotting.svg import circuit_svg

    return circuit_svg(source) if len(circuit_of(source)) <= DRAWN else ""


def of_circuit(circuit: Circuit) -> str:
    """Its counts and its drawing."""
    return html.section(repr(circuit), _drawing(circuit))


def of_point(point: OperatingPoint) -> str:
    """Drawing, potentials, elements and certificate."""
    found = point.to_dict()
    title = f"{point.circuit.title or 'Operating point'}: {point.status.value}"
    laws = html.certificate(found["certificate"], "uniqueness" not in found)
    tables = (html.nodes(found, html.SHOWN), html.branches(found, html.SHOWN))
    return html.section(title, _drawing(point), *tables, laws)


def of_certificate(certificate: Certificate) -> str:
    """What holds, in words."""
    return html.section("Certificate", html.certificate(certificate.to_dict()))


def of_sweep(sweep: Sweep) -> str:
    """The curves over the fastest axis, and the first rows."""
    rows = [[cell if isinstance(cell, str) else f"{cell:.6g}" for cell in row] for row in sweep.rows()]
    return html.section(repr(sweep), *sweep_charts(sweep), html.table(sweep.header, rows, html.SHOWN))


def sweep_charts(sweep: Sweep) -> list[str]:
    """The curves over the fastest axis; none of a single point."""
    from circuitsim.plotting import plot_sweep

    return [image(plot_sweep(sweep), repr(sweep))] if sweep.columns and sweep.shape[0] > 1 else []


def image(figure: Figure, words: str) -> str:
    """A figure within a page; ``words`` say what it shows."""
    from circuitsim.plotting import rendered

    data = b64encode(rendered(figure, "svg")).decode()
    return f'<img alt="{escape(words)}" style="max-width:100%" src="data:image/svg+xml;base64,{data}"/>'


def of_history(history: History) -> str:
    """One chart a column, and the last row."""
    if not history.rows:
        return html.section(repr(history))
    last = history.rows[-1]
    rows = [[name, f"{value:.6g}"] for name, value in last.items()]
    return html.section(repr(history), *history_charts(history), html.table(["last row", "value"], rows))


COUNTED = ("epoch", "updates", "skipped", "rate_factor", "seconds", "train_seconds")
"""Columns of a history that are no measurements."""


def history_charts(history: History) -> list[str]:
    """One panel a measured column over the updates."""
    from circuitsim.training.curves import history_figure

    measured = [name for name in history.rows[0] if name not in COUNTED]
    panels = {name: [name] for name in measured if np.isfinite(history.column(name)).sum() > 1}
    words = f"{', '.join(panels)} over updates"
    return [image(history_figure(history, panels), words)] if panels else []


def of_waveforms(result: TransientResult) -> str:
    """Potentials over time, and the certificate."""
    verdict = "certified" if result.certificate.certified else "not certified"
    proof = f"<p>{escape(verdict)}: {escape(str(result.certificate))}</p>"
    return html.section(repr(result), *waveform_charts(result), proof)


def waveform_charts(result: TransientResult) -> list[str]:
    """The first `CURVES` node voltages over time, and the states of diodes."""
    from circuitsim.analysis.probes import all_probes
    from circuitsim.errors import UsageError
    from circuitsim.plotting.transient import plot_waveforms
    from circuitsim.time_domain.table import waveform_table

    probes: list[Probe] = []
    for probe in all_probes(result.circuit):
        if probe.kind != "v" or len(probes) == CURVES:
            break
        with suppress(UsageError):  # a part without a path to ground has no voltages
            result.voltage(probe.first)
            probes.append(probe)
    words = f"{', '.join(map(str, probes))} over time"
    return [image(plot_waveforms(result, waveform_table(result, probes)), words)] if probes else []


_FORMS: dict[str, Callable[[Any], str]] = {
    "Circuit": of_circuit,
    "OperatingPoint": of_point,
    "Certificate": of_certificate,
    "Sweep": of_sweep,
    "History": of_history,
    "TransientResult": of_waveforms,
}
"""What is shown of which class."""

__all__ = ["Picture", "history_charts", "html_of", "save", "svg_of", "sweep_charts", "waveform_charts"]
