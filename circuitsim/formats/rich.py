"""Drawings and results for notebooks and reports: HTML fragments, in which all text is escaped.

To avoid import cycles, `Picture` loads the drawing modules when it is shown.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from circuitsim.formats.operating_point import laws
from circuitsim.formats.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DRAWN = 400
"""Maximum number of elements of a circuit that is drawn automatically."""


class Picture(NamedTuple):
    """A drawing of a circuit; a notebook shows it.

    Attributes
    ----------
    source : OperatingPoint or Circuit
        What is drawn.
    """

    source: Any

    def svg(self) -> str:
        """The drawing as an ``<svg>`` element; empty for a circuit that is too large."""
        return str(import_module("circuitsim.plotting.circuit").circuit_svg(self.source))

    def inline(self) -> str:
        """`svg` of up to `DRAWN` elements, else nothing."""
        return self.svg() if len(self._circuit) <= DRAWN else ""

    def figure(self) -> Figure:
        """The drawing as a figure; of a large circuit a power grid's map or tables of the worst nodes and elements."""
        found: Figure = import_module("circuitsim.plotting.circuit").draw_circuit(self.source)
        return found

    def _repr_svg_(self) -> str:
        from circuitsim.plotting.figure import rendered

        return self.svg() or rendered(self.figure(), "svg").decode()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the drawing as PNG, SVG or PDF, by the ending of ``path``; an existing file is replaced in one step.

        Raises
        ------
        UsageError
            Another ending.
        """
        from circuitsim.plotting.figure import write

        write(self.figure(), path)

    @property
    def _circuit(self) -> Any:
        return getattr(self.source, "circuit", self.source)

    def __repr__(self) -> str:
        circuit = self._circuit
        return f"Picture of {circuit.title!r}, {len(circuit)} elements: save(path) writes it"


SHOWN, WIDE = 20, 24
"""Maximum rows and columns of a table in a notebook."""


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A ``<table>``; cells of numbers are aligned to the right, except for the first column, the names.

    Parameters
    ----------
    header : sequence of str
    rows : iterable of sequence of str
        Plain texts.
    """
    head = "".join(f'<th style="text-align:left">{escape(cell)}</th>' for cell in header)
    body = "".join(f"<tr><td>{escape(row[0])}</td>" + "".join(map(_cell, row[1:])) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def cells(found: Table, most: int | None = None) -> str:
    """A table, numbers with the units of their columns; with ``most``, its first rows and `WIDE` columns alone."""
    header, rows = found.shown(most)
    wide = None if most is None else WIDE
    left = {"rows": len(found.columns[0]) - len(rows), "columns": len(header[wide or len(header) :])}
    more = "".join(f"<p>… and {count:,} more {name}</p>" for name, count in left.items() if count)
    return table(header[:wide], [row[:wide] for row in rows]) + more


def image(figure: Figure, words: str) -> str:
    """A figure in a page; ``words`` describe it."""
    from circuitsim.plotting.figure import rendered

    data = b64encode(rendered(figure, "svg")).decode()
    return f'<img alt="{escape(words)}" style="max-width:100%" src="data:image/svg+xml;base64,{data}"/>'


def _cell(text: str) -> str:
    side = "right" if text[:1].isdigit() or (text[:1] == "-" and text[1:2].isdigit()) else "left"
    return f'<td style="text-align:{side}">{escape(text)}</td>'


def section(title: str, *parts: str) -> str:
    """Parts under a heading."""
    return f"<div><p><strong>{escape(title)}</strong></p>{''.join(parts)}</div>"


def certificate(found: Mapping[str, Any], energy: bool = True) -> str:
    """A certificate (`Certificate.to_dict`) in words: each equation with its residual.

    Parameters
    ----------
    found : mapping
    energy : bool
        Whether the circuit has an energy: without controlled sources.
    """
    worst = max(found["relative"].values())
    verdict = "Certified" if found["certified"] else "Not certified"
    how = f"within {worst:.1e} of its own scale" if worst else "exactly"
    line = f"{verdict}: every law holds {how} (allowed: {found['tolerance']:.0e} of its own scale)."
    return f"<p>{line}</p>" + table(["law", "largest error", "of its local scale"], laws(found, energy))
