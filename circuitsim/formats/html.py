"""Results as HTML fragments: for notebooks, and as parts of reports. All text from elsewhere is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from circuitsim.formats.columns import quantity

SHOWN = 20
"""Rows of a table in a notebook."""

LAWS = (
    ("kcl", "Kirchhoff's current law: the currents at every node add up to zero", "A"),
    ("kvl", "Kirchhoff's voltage law: the voltages round every loop add up to zero", "V"),
    ("source", "Every voltage source and short has its voltage", "V"),
    ("diode_drop", "No ideal diode has a forward voltage", "V"),
    ("diode_reverse", "No ideal diode carries a reverse current", "A"),
    ("complementarity", "Every ideal diode has either no voltage or no current", "W"),
    ("energy_gap", "The energy is at its minimum", "W"),
)
"""Key of a certificate, what it says in words, and the unit of its error."""


def table(header: Sequence[str], rows: Iterable[Sequence[str]], most: int | None = None) -> str:
    """A ``<table>``; cells of numbers are aligned to the right, but for the first column, the names.

    Parameters
    ----------
    header : sequence of str
    rows : iterable of sequence of str
        Plain texts.
    most : int, optional
        Rows to show; a line below counts the rest.
    """
    rows = list(rows)
    shown = rows if most is None else rows[:most]
    head = "".join(f'<th style="text-align:left">{escape(cell)}</th>' for cell in header)
    body = "".join(f"<tr><td>{escape(row[0])}</td>" + "".join(map(_cell, row[1:])) + "</tr>" for row in shown)
    more = f"<p>… and {len(rows) - len(shown):,} more rows</p>" if len(rows) > len(shown) else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _cell(text: str) -> str:
    side = "right" if text[:1].isdigit() or (text[:1] == "-" and text[1:2].isdigit()) else "left"
    return f'<td style="text-align:{side}">{escape(text)}</td>'


def section(title: str, *parts: str) -> str:
    """Parts under a heading."""
    return f"<div><p><strong>{escape(title)}</strong></p>{''.join(parts)}</div>"


def certificate(found: Mapping[str, Any], energy: bool = True) -> str:
    """A certificate (`Certificate.to_dict`) in words: what holds, and how exactly.

    Parameters
    ----------
    found : mapping
    energy : bool
        Whether the circuit has an energy: without controlled sources.
    """
    relative = found["relative"]
    laws = [law for law in LAWS if law[0] in relative and (energy or law[0] != "energy_gap")]
    rows = [[words, quantity(found[key], unit), _share(relative[key])] for key, words, unit in laws]
    if "devices" in relative:
        gap = quantity(found["device_gap"], "W")
        rows.append(["Every device lies on its curve", gap, _share(relative["devices"])])
    worst = max(relative.values())
    verdict = "Certified" if found["certified"] else "Not certified"
    how = f"within {worst:.1e} of its own scale" if worst else "exactly"
    line = f"{verdict}: every law holds {how} (allowed: {found['tolerance']:.0e} of its own scale)."
    return f"<p>{line}</p>" + table(["law", "largest error", "share of its scale"], rows)


def _share(value: float) -> str:
    return f"{value:.1e}" if value else "0"


def nodes(point: Mapping[str, Any], most: int | None = None) -> str:
    """Potentials of an operating point (`OperatingPoint.to_dict`)."""
    intervals = point["intervals"]
    rows = [
        [name, quantity(volts, "V"), "no: any value of an interval" if name in intervals else "yes"]
        for name, volts in point["nodes"].items()
    ]
    return table(["node", "potential", "unique"], rows, most)


def branches(point: Mapping[str, Any], most: int | None = None) -> str:
    """Elements of an operating point (`OperatingPoint.to_dict`)."""
    rows = [
        [
            name,
            quantity(b["voltage"], "V"),
            quantity(b["current"], "A"),
            quantity(b["power"], "W"),
            b.get("state", "") + (" (kink)" if b.get("kink") else ""),
            "yes" if b["unique"] else "no: least norm",
        ]
        for name, b in point["branches"].items()
    ]
    return table(["element", "voltage", "current", "power", "state", "current unique"], rows, most)
