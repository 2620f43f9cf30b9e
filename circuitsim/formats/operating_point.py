"""An operating point, given as its JSON dictionary, in the other formats of ``circuitsim solve``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from circuitsim.formats.table import Cell, Table, csv, quantity, rawfile, scale_of, shown, table

SMALLEST_SHARE = 1e-24
"""Of the largest voltage, current or power: what the table shows as 0. One column has parts of unlike scales (a
nanoampere beside a kiloampere), each of which may hold what is 1e-12 of it."""

Point = Mapping[str, Any]
"""`OperatingPoint.to_dict`, or a part of it."""

CSV_HEADER = ("kind", "name", "voltage", "current", "power", "state", "kink", "unique", "low", "high")
"""``kind`` is ``node`` or ``branch``; ``low`` and ``high`` bound the potential of a node that is not unique."""


def as_csv(point: Point) -> str:
    """One row per node, then one row per branch; see `CSV_HEADER`. Volts, amperes, watts."""
    rows = list[list[Cell]]()
    for name, voltage in point["nodes"].items():
        ends = point["intervals"].get(name)
        rows.append(["node", name, voltage, *[None] * 4, ends is None, *(ends or (None, None))])
    for name, b in point["branches"].items():
        rows.append(["branch", name, *map(b.get, CSV_HEADER[2:])])
    return csv(CSV_HEADER, rows)


def as_raw(point: Point) -> str:
    """A SPICE3 rawfile: ``v(node)`` and ``i(element)`` in lower case, as ngspice names its vectors."""
    volts = [(f"v({name})", "V", [v]) for name, v in point["nodes"].items() if name != "0"]
    amperes = [(f"i({name})", "A", [branch["current"]]) for name, branch in point["branches"].items()]
    return rawfile(point["title"], Table(*zip(*volts, *amperes)), "Operating Point")


def as_table(point: Point) -> str:
    """The operating point as text: potentials, branches, power and the certificate."""
    lines = [point["title"].lstrip("* "), "", *_nodes(point), "", *_branches(point), ""]
    if not all(branch["unique"] for branch in point["branches"].values()):
        lines += ["* not unique: the smallest currents that satisfy Kirchhoff's current law", ""]
    if any(branch.get("kink") for branch in point["branches"].values()):
        lines += ["° kink: current and voltage are both zero, either state is correct", ""]
    lines += _summary(point)
    return "\n".join(lines).lstrip("\n") + "\n"


def _numbers(values: Collection[float], unit: str) -> list[str]:
    """A column of numbers with their unit."""
    scale = scale_of(values)
    return [shown(value, unit, scale, SMALLEST_SHARE) for value in values]


def _nodes(point: Point) -> list[str]:
    nodes, intervals = point["nodes"], point["intervals"]
    columns = {"node": nodes, "voltage": _numbers(nodes.values(), "V")}
    if intervals:
        columns["anywhere in"] = [_interval(*intervals[name]) if name in intervals else "" for name in nodes]
    return table([*columns], zip(*columns.values()))


def _interval(low: float | None, high: float | None) -> str:
    left = "(-∞" if low is None else f"[{quantity(low, 'V')}"
    return f"{left}, " + ("∞)" if high is None else f"{quantity(high, 'V')}]")


def _branches(point: Point) -> list[str]:
    branches = point["branches"].values()
    units = {"voltage": "V", "current": "A", "power": "W"}
    columns = {name: _numbers([b[name] for b in branches], unit) for name, unit in units.items()}
    columns["current"] = [text + " *" * (not b["unique"]) for text, b in zip(columns["current"], branches)]
    columns["state"] = [b.get("state", "") + " °" * bool(b.get("kink")) for b in branches]
    return table(["branch", *columns], zip(point["branches"], *columns.values()))


def _summary(point: Point) -> list[str]:
    name = point["solver"]["name"]
    dissipated = sum(max(0.0, b["power"]) for b in point["branches"].values())
    head = f"{point['status']} by {name}; {quantity(dissipated, 'W')} absorbed"
    certificate = point["certificate"]
    worst = max(certificate["relative"].values(), default=0.0)
    proof = f"Certified: largest relative residual {worst:.1g} (tolerance {certificate['tolerance']:g})"
    return [head, *_verdict(point), proof]


_VERDICTS = {
    "unique": "the only operating point: proven",
    "several": "one of several operating points; another:",
    "unknown": "no other operating point was found; nothing proves that there is none",
}


def _verdict(point: Point) -> list[str]:
    """For a circuit with controlled sources: whether there are other operating points."""
    if "uniqueness" not in point:
        return []
    lines, other = [_VERDICTS[point["uniqueness"]]], point["other"]
    if other is not None:
        lines += table(["node", "voltage"], [[name, quantity(v, "V")] for name, v in other["nodes"].items()])
    return lines


_TABLE = """
kcl A Kirchhoff's current law within
kvl V Kirchhoff's voltage law within
source V source voltages within
diode_drop V forward diode drop at most
diode_reverse A reverse diode current at most
complementarity W complementarity within
energy_gap W energy above the minimum at most
"""
LAWS = [row.split(" ", 2) for row in _TABLE.strip().splitlines()]
"""Key of a certificate, the unit of its error, and its description."""


def laws(certificate: Point, energy: bool) -> list[list[str]]:
    """A certificate in words: each law, its largest error, and that of its local scale.

    Parameters
    ----------
    certificate : mapping
        `Certificate.to_dict`.
    energy : bool
        Whether the circuit has an energy: without controlled sources.
    """
    relative = certificate["relative"]
    found = [(text, certificate[key], unit, relative[key]) for key, unit, text in LAWS if key != "energy_gap" or energy]
    if "devices" in relative:
        found.append(("devices off their curves by at most", certificate["device_gap"], "W", relative["devices"]))
    return [[text, quantity(size, unit), f"{share:.1e}" if share else "0"] for text, size, unit, share in found]


def certificate_table(point: Point) -> list[str]:
    """Each law of a certificate with its largest residual, absolute and relative."""
    certificate = point["certificate"]
    head = f"certificate (tolerance {certificate['tolerance']:g})"
    rows = [["  " + text, *cells] for text, *cells in laws(certificate, "uniqueness" not in point)]
    return table([head, "residual", "relative"], rows)
