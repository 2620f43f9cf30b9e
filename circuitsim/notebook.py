"""What notebooks show of circuits and results: drawings, tables and curves (`_repr_html_`)."""

from __future__ import annotations

import os
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any

from circuitsim.circuit.source import circuit_of
from circuitsim.formats import html
from circuitsim.formats.rich import Picture
from circuitsim.units import Quantity

if TYPE_CHECKING:
    from circuitsim.analysis import OperatingPoint, Sweep
    from circuitsim.certificate import Certificate
    from circuitsim.circuit import Circuit
    from circuitsim.time_domain import TransientResult
    from circuitsim.training.history import History

DRAWN = 400
"""Most elements of a circuit that is drawn without being asked."""

CURVES = 8
"""Most curves of a sweep, or waveforms, in one picture."""


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
    """One chart a unit, of the first `CURVES` curves over the fastest axis."""
    from circuitsim.plotting.chart import Axis, line_chart
    from circuitsim.plotting.panels import panels_of
    from circuitsim.plotting.sweep import grows_by_factors

    fast, values = next(iter(sweep.axes.items()))
    slow = list(sweep.axes.items())[1:]
    n = sweep.shape[0]
    charts = []
    for panel in panels_of((name, sweep.units[name]) for name in sweep.columns):
        curves: dict[str, Any] = {}
        for name in panel.columns:
            for k in range(len(sweep) // n):
                at = ", ".join(f"{axis} = {column[k * n]:.4g}" for axis, column in slow)
                curves[f"{name}, {at}" if at else name] = sweep.columns[name][k * n : (k + 1) * n].tolist()
        chosen = dict(list(curves.items())[:CURVES])
        if chosen and n > 1:
            across = Axis(fast, sweep.units[fast], grows_by_factors(values[:n]))
            charts.append(line_chart(values[:n].tolist(), chosen, across, Axis(panel.name, panel.unit)))
    return charts


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
    """One chart a measured column over the updates; positive ones that fall or rise tenfold have a logarithmic axis."""
    from circuitsim.plotting.chart import Axis, line_chart
    from circuitsim.training.curves import spans_decades

    updates = [float(value) for value in history.column("updates")]
    charts = []
    for name in (name for name in history.rows[0] if name not in COUNTED):
        values = [float(value) for value in history.column(name)]
        finite = [value for value in values if abs(value) < float("inf")]
        if len(finite) < 2:
            continue
        charts.append(line_chart(updates, {name: values}, Axis("updates"), Axis(name, "", spans_decades(finite))))
    return charts


def of_waveforms(result: TransientResult) -> str:
    """Potentials over time, and the certificate."""
    verdict = "certified" if result.certificate.certified else "not certified"
    proof = f"<p>{escape(verdict)}: {escape(str(result.certificate))}</p>"
    return html.section(repr(result), *waveform_charts(result), proof)


def waveform_charts(result: TransientResult) -> list[str]:
    """The first `CURVES` potentials over time."""
    from circuitsim.errors import UsageError
    from circuitsim.plotting.chart import Axis, line_chart

    curves: dict[str, Any] = {}
    for name in result.circuit.node_names[1:]:
        if len(curves) == CURVES:
            break
        try:
            curves[f"v({name})"] = result.voltage(name).tolist()
        except UsageError:  # a part without a path to ground has no potential
            continue
    axes = Axis("time", "s"), Axis(Quantity.VOLTAGE.label, Quantity.VOLTAGE.unit)
    return [line_chart(result.times.tolist(), curves, *axes)] if curves else []


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
