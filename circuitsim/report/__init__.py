"""Reports: one self-contained HTML file with drawing, tables, certificate and curves."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from circuitsim._version import __version__
from circuitsim.formats import Result, html_cells, html_certificate, html_table, image
from circuitsim.units import format_quantity, short

if TYPE_CHECKING:
    from circuitsim.analysis import OperatingPoint
    from circuitsim.circuit import Circuit
    from circuitsim.errors import Problem
    from circuitsim.training.history import History

ROWS = 500
"""Maximum number of rows of a table of an analysis; longer ones are for ``circuitsim run --output``."""

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
"""Content security policy: the page may load nothing."""

_TOOLS = """\
<div class="tools">
<input id="search" type="search" placeholder="node or element" aria-label="Search a node or an element">
{path}<button type="button" id="in" aria-label="Zoom in">+</button>
<button type="button" id="out" aria-label="Zoom out">−</button>
<button type="button" id="fit">fit</button>
<span class="faint">drag, wheel; keys + − 0 and arrows</span>
</div>
"""


def page(title: str, parts: Iterable[str], problems: Iterable[Problem] = ()) -> str:
    """The whole file.

    Parameters
    ----------
    title : str
        Plain text.
    parts : iterable of str
        Results of the other functions of this module.
    problems : iterable of Problem
        Warnings and notes, listed at the end.
    """
    from circuitsim.plotting.circuit import STYLE

    noted = [f"<li>{escape(problem.message)}</li>" for problem in problems]
    notes = f"<h2>Notes</h2><ul>{''.join(dict.fromkeys(noted))}</ul>" if noted else ""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>{escape(title)}</title>
<style>{_text("page.css")}{STYLE}</style>
</head>
<body>
<main>
<div class="tools" style="float:right"><button type="button" id="theme">light / dark</button></div>
<h1>{escape(title)}</h1>
{"".join(parts)}
{notes}
</main>
<footer><p>circuitsim {__version__}</p></footer>
<script>{_text("page.js")}</script>
</body>
</html>
"""


def operating_point(point: OperatingPoint) -> str:
    """Drawing, tables and certificate."""
    circuit = point.circuit
    head = (
        f"<p>{len(circuit.node_names)} nodes, {len(circuit)} elements: {point.status.value}, "
        f"{escape(format_quantity(point.absorbed, 'W', 4))} absorbed.</p>"
    )
    if point.uniqueness is not None:
        head += f"<p>Operating points: {escape(point.uniqueness.value)}.</p>"
    return "".join(
        [
            "<h2>Operating point</h2>",
            head,
            drawing(point),
            "<h2>Certificate</h2>",
            html_certificate(point.certificate.to_dict(), point.uniqueness is None),
            *(f"<h2>{name.capitalize()}</h2>{_long(html_cells(table))}" for name, table in point.tables().items()),
        ]
    )


def failure(circuit: Circuit, message: str, elements: Collection[str]) -> str:
    """A circuit without operating point: the reason, and the drawing with the elements that cause it in red.

    Parameters
    ----------
    circuit : Circuit
    message : str
        Plain text.
    elements : collection of str
        Names of the elements to mark.
    """
    return f'<p class="bad">{escape(message)}</p>' + drawing(circuit, elements)


def drawing(source: OperatingPoint | Circuit, marked: Collection[str] = ()) -> str:
    """The drawing with its tools; for circuits too large to draw, the worst nodes and elements, and a grid's map.

    Parameters
    ----------
    source : OperatingPoint or Circuit
    marked : collection of str
        Names of elements to draw in red.
    """
    from circuitsim.circuit import Circuit
    from circuitsim.plotting.circuit import circuit_svg

    picture = circuit_svg(source, marked, style=False)
    if not picture:
        return _worst(source)
    solved = not isinstance(source, Circuit)
    path = '<button type="button" id="path" aria-pressed="false">conducting path</button>\n' if solved else ""
    legend = "Colour: voltage. Width and arrows: current. Filled diodes conduct." if solved else ""
    return (
        f'<h2>Circuit</h2>{_TOOLS.format(path=path)}<div id="drawing" tabindex="0" role="group" '
        f'aria-label="Drawing of the circuit: arrow keys move it, plus and minus zoom">{picture}</div>'
        f'<p id="said" role="status" aria-live="polite"></p><p class="faint">{legend}</p>'
    )


def _worst(source: OperatingPoint | Circuit) -> str:
    """Tables in place of a drawing."""
    from circuitsim.plotting import draw_circuit
    from circuitsim.plotting.circuit import drops_of, worst

    parts = ["<h2>Circuit</h2><p>Too many nodes for a drawing.</p>"]
    if drops_of(source) is not None:
        parts.append(image(draw_circuit(source), "Voltage drops over the plane"))
    return "".join([*parts, *map(html_cells, worst(source))])


def analysis(heading: str, found: Result, columns: str | None = None) -> str:
    """An analysis result: its figure, and its tables of at most `ROWS` rows, without empty ones.

    Parameters
    ----------
    heading : str
        Plain text.
    found : Result
    columns : str, optional
        Those of the figure of waveforms or responses.
    """
    picture = image(found.plot(columns=columns), found._caption()) if columns else found._picture()
    tables = (table for table in found.tables().values() if 0 < len(table.columns[0]) <= ROWS)
    cells = (_long(html_cells(table)) for table in tables)
    return "".join([f"<h2>{heading}</h2><p>{escape(found._caption())}</p>", picture, *cells])


def measurements(values: Mapping[str, float | None]) -> str:
    """Results of the deck's ``.meas`` cards."""
    from circuitsim.measurements import measurements_table

    return f"<h2>Measurements</h2>{html_cells(measurements_table(values))}"


def history(found: History, options: dict[str, Any]) -> str:
    """Training curves, the last row, and the options of the run.

    Parameters
    ----------
    found : History
    options : dict
        By name; None values are omitted.
    """
    last = [[name, f"{value:.6g}"] for name, value in found.rows[-1].items()] if found.rows else []
    stated = [[name, short(str(value), 200)] for name, value in options.items() if value is not None]
    return "".join(
        [
            "<h2>Training</h2>",
            found._picture(),
            html_table(["last row", "value"], last),
            "<h2>Options</h2>",
            _long(html_table(["option", "value"], stated)),
        ]
    )


def _long(table: str) -> str:
    return f'<div class="long">{table}</div>'


def _text(name: str) -> str:
    """A file beside this module."""
    with open(os.path.join(os.path.dirname(__file__), name), encoding="utf-8") as file:
        return file.read()
