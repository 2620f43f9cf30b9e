"""`Circuit` to SPICE text that ngspice runs and that reads back to the same circuit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from circuitsim.circuit import GROUND, Circuit
from circuitsim.circuit.elements import DIODE, ELEMENTS, RESISTOR, VOLTAGE
from circuitsim.models import ELEMENTARY, Device
from circuitsim.models.formula_law import OfFormula
from circuitsim.netlist import controlled_writer, portable
from circuitsim.netlist.amplifier import DEFINITION
from circuitsim.netlist.definitions import IDEAL_MODEL
from circuitsim.units import exact, short

if TYPE_CHECKING:
    from circuitsim.netlist.roles import Roles
    from circuitsim.netlist.timed import Timed

# What ngspice 39 takes in a name, found by trying each sign; @ and $ are left out, they mean something elsewhere.
_LEGAL = re.compile(r"[A-Za-z0-9_.:\[\]<>#%!~/|^+*?-]+")
_ILLEGAL = re.compile(r"[^A-Za-z0-9_.:\[\]<>#%!~/|^+*?-]")
_RESERVED = frozenset(("time", "temper", "hertz", "params:", "params"))
_CARD_LIKE = re.compile(r"\s*(?:\.|[rvidlc]\w*\s+\S+\s+\S+\s+[+-]?\.?[0-9]\S*\s*$)", re.I)

MODEL = f".model {IDEAL_MODEL} D(is=1e-12 n=0.01)"
"""A diode with a forward drop of about 6 mV at 5 mA: as near to ideal as ngspice still converges with."""


class ModelCards:
    """The ``.model`` cards of devices, one for all with equal parameters.

    Parameters
    ----------
    idle : mapping of str to str
        What models state beside their law, by their names in lower case.

    Attributes
    ----------
    lines : list of str
        The cards.
    """

    def __init__(self, idle: Mapping[str, str]) -> None:
        self.idle = idle
        self.lines: list[str] = []
        self._names: dict[tuple[object, ...], str] = {}
        self._taken = Names([IDEAL_MODEL])

    def words(self, device: Device, name: str, first: str, second: str) -> str:
        """The fields behind the nodes on the card of an element ``name``: model and number of cells, or a formula."""
        if isinstance(device, OfFormula):
            return device.formula(name, first, second)
        stated = device.parameters()
        key = type(device), device.label, *stated.items()
        if key not in self._names:
            wanted = device.label or f"{device.model.letter}model"
            free = is_legal(wanted) and wanted.lower() not in self._taken.taken
            if free:
                self._taken.taken.add(wanted.lower())
            self._names[key] = name = wanted if free else self._taken.legal(wanted, wanted)
            listed = " ".join(f"{parameter}={exact(value)}" for parameter, value in stated.items())
            listed += self.idle.get(device.label.lower(), "")
            if device.model.dialect:
                self.lines.append(f"* {name} is {device.model.dialect}")
            self.lines.append(f".model {name} {device.model.card_type}({listed})")
        return " ".join([self._names[key], *(f"{word}={exact(count)}" for word, count in device.counts().items())])


class Names:
    """Distinct legal names for names of any kind; legal ones are unchanged."""

    def __init__(self, taken: Iterable[str]) -> None:
        self.taken = {name.lower() for name in taken}
        self.changed: list[tuple[str, str]] = []

    def legal(self, name: str, wanted: str) -> str:
        """``name`` itself if legal (checked before), or a new name made from ``wanted``."""
        base = _ILLEGAL.sub("_", wanted).replace("//", "/_")
        new, k = base, 2
        while new.lower() in self.taken:
            new, k = f"{base}_{k}", k + 1
        self.taken.add(new.lower())
        self.changed.append((name, new))
        return new


def is_legal(name: str) -> bool:
    """Whether ngspice takes ``name`` as it is."""
    return bool(_LEGAL.fullmatch(name)) and "//" not in name and name.lower() not in _RESERVED


def safe_title(title: str) -> str:
    """``title`` on one line that neither program takes for a card."""
    line = "".join(c if c.isprintable() else " " for c in title).strip().rstrip("\\")
    return f"* {line}" if _CARD_LIKE.match(line) else line


def node_names(circuit: Circuit) -> tuple[list[str], list[tuple[str, str]]]:
    """A legal name for each node, and those that had to be changed."""
    names = [str(name) for name in circuit.node_names]
    names[GROUND] = "0"
    good = [name for name in names if is_legal(name)]
    if len(good) == len(names):
        return names, []
    new = Names(good)
    return [name if is_legal(name) else new.legal(name, f"n_{name}") for name in names], new.changed


def element_names(circuit: Circuit) -> tuple[list[str], list[str], list[tuple[str, str]]]:
    """For each element the letter and the name it is written with, and the names that had to be changed."""
    letters = [row.letter for row in ELEMENTS]
    zero = ELEMENTS[VOLTAGE].letter
    written = [
        zero if code == RESISTOR and value == 0 else letters[code]
        for code, value in zip(circuit.columns()[0], circuit.columns()[3])
    ]
    for k in circuit.laws:
        written[k] = controlled_writer.letter(circuit, k)
    for k in circuit.dynamics.formulas if circuit.dynamics is not None else ():
        written[k] = str(circuit.names[k])[:1].upper()  # its card is written as it was
    legal = [name[:1] in (letter, letter.lower()) and is_legal(name) for name, letter in zip(circuit.names, written)]
    new = Names(name for name, same in zip(circuit.names, legal) if same)
    names = [
        str(name) if same else new.legal(str(name), with_letter(str(name), letter))
        for name, letter, same in zip(circuit.names, written, legal)
    ]
    return written, names, new.changed


def with_letter(name: str, letter: str) -> str:
    """``name`` begun with the letter of its kind; ``x1.r1`` becomes ``R.x1.r1``, as ngspice flattens it."""
    if name[:1] in (letter, letter.lower()):
        return name
    return f"{letter}.{name}" if "." in name else f"{letter}{name}"


def text_of(circuit: Circuit, roles: Roles | None = None, timed: Timed | None = None, ngspice: bool = False) -> str:
    """The deck; see `circuitsim.netlist.dumps`. ``timed`` says what acts over time and frequency."""
    if timed is None:
        from circuitsim.netlist.timed import of_circuit

        timed = of_circuit(circuit)
    nodes, changed = node_names(circuit)
    written, names, renamed = element_names(circuit)
    lines = [safe_title(circuit.title)]
    lines += [f"* node {printable(old)} is written {new}" for old, new in changed]
    lines += [f"* {printable(old)} is written {new}" for old, new in renamed if not plainly(old, new)]
    if roles is not None:
        from circuitsim.netlist.role_directives import directives

        lines += directives(roles, circuit, names if timed is None else timed.names(names), nodes)
    cards = {row.letter: row.spice for row in ELEMENTS[:ELEMENTARY]}
    cards[ELEMENTS[DIODE].letter] += f" {IDEAL_MODEL}"
    kind, first, second, values = circuit.columns()
    models, own_names, own_nodes, ideal = (
        ModelCards({} if timed is None else timed.idle()),
        Names(names),
        Names(nodes),
        DIODE in kind,
    )
    for k, value in enumerate(values):
        if k in circuit.laws:
            lines += controlled_writer.lines(circuit, k, names, nodes)
            continue
        own = None if timed is None else timed.card(k, names, nodes)
        if own is not None:
            lines.append(own)
            continue
        device = circuit.devices.get(k)
        card, last = cards.get(written[k], ""), exact(value)
        if device is not None and device.model.dialect and ngspice:
            ends = nodes[first[k]], nodes[second[k]]
            lines += portable.lines(device, names[k], *ends, own_names, own_nodes)
            ideal = True
            continue
        if device is not None:
            card, last = device.model.spice, models.words(device, names[k], nodes[first[k]], nodes[second[k]])
        lines.append(card.format(name=names[k], first=nodes[first[k]], second=nodes[second[k]], value=last))
    if ideal:
        lines.append(MODEL)
    lines += models.lines
    if circuit.amplified:
        lines += DEFINITION.splitlines()
    lines += [*([".op"] if timed is None else timed.closing(names, nodes)), ".end", ""]
    return "\n".join(lines)


def plainly(old: str, new: str) -> bool:
    """Whether the new name only puts the element's letter before the old one."""
    return new[1:].lstrip(".") == old


def printable(name: str) -> str:
    """``name`` for a comment."""
    return short("".join(c if c.isprintable() else "?" for c in name).replace(";", ","), 80)
