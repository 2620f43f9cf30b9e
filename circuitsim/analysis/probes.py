"""Quantities by name, as ``.print`` and ``.save`` write them: ``v(out)``, ``v(a,b)``, ``i(R1)``, ``p(R1)``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from circuitsim.circuit import GROUND, Circuit
from circuitsim.errors import TopologyError, UsageError

if TYPE_CHECKING:
    from circuitsim.analysis.operating_point import OperatingPoint

UNITS = {"v": "V", "i": "A", "p": "W"}

_CALL = re.compile(r"([a-z]+)\s*\(\s*([^\s,()]+)\s*(?:,\s*([^\s,()]+)\s*)?\)", re.IGNORECASE)
_BRANCH = re.compile(r"(.+)#branch", re.IGNORECASE)
_VECTOR = re.compile(r"@?(.+)\[([ip])d?\]", re.IGNORECASE)


class Probe(NamedTuple):
    """One quantity of an operating point.

    Attributes
    ----------
    kind : {"v", "i", "p"}
        Voltage (V), current (A) or absorbed power (W).
    first : str
        A node (``v``), or an element (``i``, ``p``); as first written in the deck.
    second : str or None
        The node a voltage is measured against; ground, or the reference of a part without it, if None.
    """

    kind: str
    first: str
    second: str | None = None

    def __str__(self) -> str:
        return f"{self.kind}({self.first}{',' + self.second if self.second is not None else ''})"

    @property
    def unit(self) -> str:
        """V, A or W."""
        return UNITS[self.kind]


def parse_probes(text: str, circuit: Circuit) -> list[Probe]:
    """The quantities that ``text`` names, separated by blanks or commas.

    Raises
    ------
    UsageError
        Something that is no such quantity, or a name that the circuit does not have.

    Examples
    --------
    >>> from circuitsim import Circuit
    >>> c = Circuit()
    >>> c.resistor("R1", "In", "out", 1e3)
    >>> [str(p) for p in parse_probes("v(in,OUT) i(r1), p(R1)", c)]
    ['v(In,out)', 'i(R1)', 'p(R1)']
    """
    probes = []
    at = 0
    text = text.strip()
    while at < len(text):
        found = _CALL.match(text, at)
        if found:
            word, at = found[0], found.end()
            probes.append(_checked(found[1].lower(), found[2], found[3], word, circuit))
        else:
            word = re.split(r"[\s,]", text[at:], maxsplit=1)[0]
            at += len(word)
            probes.append(_word(word, circuit))
        at = len(text) - len(text[at:].lstrip(" \t,"))
    return list(dict.fromkeys(probes))


def _word(word: str, circuit: Circuit) -> Probe:
    """A quantity in one of ngspice's other spellings: ``V1#branch``, ``@R1[i]``, or a node's bare name."""
    if branch := _BRANCH.fullmatch(word):
        return _checked("i", branch[1], None, word, circuit)
    if vector := _VECTOR.fullmatch(word):
        return _checked(vector[2].lower(), vector[1], None, word, circuit)
    return _checked("v", word, None, word, circuit)


def _checked(kind: str, first: str, second: str | None, word: str, circuit: Circuit) -> Probe:
    if kind not in UNITS or (second is not None and kind != "v"):
        raise UsageError(f"{word!r} is no quantity that can be shown; write v(node), v(a,b), i(element) or p(element)")
    try:
        if kind != "v":
            return Probe(kind, circuit.names[circuit.element_index(first)])
        names = [circuit.node_names[circuit.node_index(node)] for node in (first, second) if node is not None]
    except TopologyError as error:
        raise UsageError(f"{word!r}: {error}") from None
    return Probe("v", *names)


def all_probes(circuit: Circuit) -> list[Probe]:
    """Every node's potential (ground apart) and every element's current."""
    nodes = [Probe("v", name) for k, name in enumerate(circuit.node_names) if k != GROUND]
    return nodes + [Probe("i", name) for name in circuit.names]


class Reader:
    """Reads many probes from operating points of one circuit, as one vector."""

    def __init__(self, probes: Sequence[Probe], circuit: Circuit) -> None:
        self.size = len(probes)
        where = {kind: np.array([k for k, p in enumerate(probes) if p.kind == kind], dtype=np.int64) for kind in UNITS}
        volts = [probes[k] for k in where["v"]]
        self._voltages, self._currents, self._powers = where.values()
        self._plus = np.array([circuit.node_index(p.first) for p in volts], dtype=np.int64)
        self._minus = np.array([-1 if p.second is None else circuit.node_index(p.second) for p in volts], np.int64)
        self._carriers = self._elements(circuit, (probes[k] for k in self._currents))
        self._absorbers = self._elements(circuit, (probes[k] for k in self._powers))

    @staticmethod
    def _elements(circuit: Circuit, probes: Iterable[Probe]) -> np.ndarray:
        return np.array([circuit.element_index(p.first) for p in probes], dtype=np.int64)

    def read(self, point: OperatingPoint) -> np.ndarray:
        """The values of the probes, V, A, W, as a float array (n_probes,)."""
        values = np.empty(self.size)
        v, i = point.voltages, point.currents
        values[self._voltages] = v[self._plus] - np.where(self._minus < 0, 0.0, v[self._minus])
        values[self._currents] = i[self._carriers]
        values[self._powers] = point.powers[self._absorbers]
        return values
