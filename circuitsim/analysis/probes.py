"""Quantities by name, in the syntax of ``.print`` and ``.save``: ``v(out)``, ``v(a,b)``, ``i(R1)``, ``p(R1)``,
``r1:r``, ``v(*)``, and expressions of them in braces.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint, inner_parts
from circuitsim.circuit import ELEMENTS, GROUND, Circuit
from circuitsim.errors import TopologyError, UsageError
from circuitsim.netlist.expression import Environment, Evaluator, ExpressionError, Signal, decides
from circuitsim.netlist.functions import CONSTANTS
from circuitsim.netlist.scope import parse_formula, values_at_once
from circuitsim.units import Quantity

UNITS = {quantity.letter: quantity.unit for quantity in Quantity}
VALUE = "value"
SAME_QUANTITY = {"w": "p", "n": "v"}
"""Xyce's names of power and of node quantities."""

FORMS = "write v(node), v(a,b), i(element), p(element), or an expression of them in braces"
_CALL = re.compile(r"([a-z]+)\s*\(\s*([^\s,()]+)\s*(?:,\s*([^\s,()]+)\s*)?\)", re.IGNORECASE)
_BRANCH = re.compile(r"(.+)#branch", re.IGNORECASE)
_VECTOR = re.compile(r"@?(.+)\[([ip])d?\]", re.IGNORECASE)


class Probe(NamedTuple):
    """One quantity of an operating point.

    Attributes
    ----------
    kind : {"v", "i", "p", "value"}
        Voltage (V), current (A), absorbed power (W), or the element's value.
    first : str
        A node (``v``), or an element; as first written in the deck.
    second : str or None
        The node a voltage is measured against; ground, or the reference of a part without it, if None.
    """

    kind: str
    first: str
    second: str | None = None

    def __str__(self) -> str:
        if self.kind == VALUE:
            return f"{self.first}:{self.first[:1].lower()}"
        return f"{self.kind}({self.first}{',' + self.second if self.second is not None else ''})"

    @property
    def unit(self) -> str:
        """V, A or W; empty for the value of an element."""
        return UNITS.get(self.kind, "")


class Formula:
    """An expression of quantities: ``{v(a) - 2*i(R1)}``.

    Parameters
    ----------
    text : str
        The expression, without its braces.
    circuit : Circuit
    """

    unit = ""

    def __init__(self, text: str, circuit: Circuit) -> None:
        self.text = text.strip()
        try:
            self.code = parse_formula(self.text)
            self.probes = {s: _checked(s.kind, s.first, s.second, self.text, circuit) for s in self.code.signals}
        except ExpressionError as error:
            raise UsageError(f"{{{self.text}}}: {error.message}") from None
        if any(signal.kind == "time" for signal in self.code.signals):
            raise UsageError(f"{{{self.text}}}: the time is a column of its own")

    def __str__(self) -> str:
        return "{" + self.text + "}"

    def value(self, known: Mapping[Signal, float], names: Mapping[str, float]) -> float:
        """The value for these values of the quantities and the parameters.

        Raises
        ------
        UsageError
            It is undefined (a division by zero).
        """
        try:
            return Evaluator(signals=known.__getitem__).value(self.code, Environment(dict(names)))
        except ExpressionError as error:
            raise UsageError(f"{self}: {error.message}") from None

    def values(self, known: Mapping[Signal, np.ndarray], names: Mapping[str, float]) -> np.ndarray:
        """The values (n,) for these values of the quantities (n,); see `value`."""
        found = values_at_once(self.code, known, names)
        if found is not None:
            return found
        rows = zip(*(own.tolist() for own in known.values()))
        return np.array([self.value(dict(zip(known, row)), names) for row in rows])

    @property
    def decides(self) -> bool:
        """Whether it has conditions, ``abs``, ``min``, ``max`` and the like, hence corners and jumps of its own."""
        return decides(self.code)

    def decisions(self, known: Mapping[Signal, np.ndarray], names: Mapping[str, float]) -> list[tuple[Any, ...]]:
        """The branches taken for these values of the quantities (n,); it is smooth between two changes of them."""
        found = []
        for row in zip(*(own.tolist() for own in known.values())):
            taken: list[Any] = []
            evaluator = Evaluator(CONSTANTS, dict(zip(known, row)).__getitem__, None, taken)
            evaluator.value(self.code, Environment(dict(names)))
            found.append(tuple(taken))
        return found


def parse_probes(text: str, circuit: Circuit) -> list[Probe | Formula]:
    """Parse quantities separated by blanks or commas.

    ``v(x1*)`` is a wildcard, ``x1:r1`` is ``x1.r1``, ``r1:r`` the value of an element. An expression in braces may also
    read the deck's parameters.

    Raises
    ------
    UsageError
        Not a quantity, or a name that the circuit does not have.

    Examples
    --------
    >>> from circuitsim import Circuit
    >>> c = Circuit()
    >>> c.resistor("R1", "In", "out", 1e3)
    >>> [str(p) for p in parse_probes("v(in,OUT) i(r1), p(R1)", c)]
    ['v(In,out)', 'i(R1)', 'p(R1)']
    """
    probes: list[Probe | Formula] = []
    at = 0
    text = text.strip()
    while at < len(text):
        found = _CALL.match(text, at)
        if text[at] == "{":
            end = text.find("}", at)
            if end < 0:
                raise UsageError(f"{text[at:]!r}: unmatched '{{'")
            probes.append(Formula(text[at + 1 : end], circuit))
            at = end + 1
        elif found and not found[3] and ("*" in found[2] or "?" in found[2]):
            at = found.end()
            probes += _matching(SAME_QUANTITY.get(found[1].lower(), found[1].lower()), found[2], found[0], circuit)
        elif found:
            word, at = found[0], found.end()
            probes.append(_checked(found[1].lower(), found[2], found[3], word, circuit))
        else:
            word = re.split(r"[\s,]", text[at:], maxsplit=1)[0]
            at += len(word)
            probes.append(_word(word, circuit))
        at = len(text) - len(text[at:].lstrip(" \t,"))
    return list(dict.fromkeys(probes))


def parse_probe(text: str, circuit: Circuit, refused: str, kinds: Collection[str] = ()) -> Any:
    """The one quantity that a text names.

    Parameters
    ----------
    text : str
        As `parse_probes` takes it.
    circuit : Circuit
    refused : str
        The message if it is none or several.
    kinds : collection of str, optional
        Kinds of a `Probe`; every quantity and formula without them.

    Raises
    ------
    UsageError
    """
    found = parse_probes(text, circuit)
    if len(found) != 1 or (kinds and getattr(found[0], "kind", None) not in kinds):
        raise UsageError(refused)
    return found[0]


def _word(word: str, circuit: Circuit) -> Probe:
    """A quantity in one of ngspice's other spellings: ``V1#branch``, ``@R1[i]``, or a node's bare name."""
    if branch := _BRANCH.fullmatch(word):
        return _checked("i", branch[1], None, word, circuit)
    if vector := _VECTOR.fullmatch(word):
        return _checked(vector[2].lower(), vector[1], None, word, circuit)
    element, colon, own = word.rpartition(":")
    if colon and word not in circuit.node_names and element in circuit:
        row = ELEMENTS[circuit.columns()[0][circuit.element_index(element)]]
        if row.parameter and own.lower() in (*row.keywords, row.letter.lower(), row.parameter):
            return Probe(VALUE, circuit.names[circuit.element_index(element)])
    return _checked("v", word, None, word, circuit)


def _matching(kind: str, pattern: str, word: str, circuit: Circuit) -> list[Probe]:
    """All quantities of a kind whose names match ``pattern`` (``*`` and ``?``)."""
    pattern = pattern.lower()
    if kind not in UNITS:
        raise UsageError(f"{word!r} is not a quantity; {FORMS}")
    every = circuit.node_names[1:] if kind == "v" else circuit.names
    found = [Probe(kind, name) for name in every if fnmatchcase(name.lower(), pattern.replace(":", "."))]
    if not found:
        raise UsageError(f"{word!r}: no name matches")
    return found


def _checked(kind: str, first: str, second: str | None, word: str, circuit: Circuit) -> Probe:
    kind = SAME_QUANTITY.get(kind, kind)
    if kind not in UNITS or (second is not None and kind != "v"):
        raise UsageError(f"{word!r} is not a quantity; {FORMS}")
    try:
        if kind != "v":
            return Probe(kind, circuit.names[_flat(first, circuit.element_index, circuit)])
        places = [_flat(node, circuit.node_index, circuit) for node in (first, second) if node is not None]
    except TopologyError as error:
        raise UsageError(f"{word!r}: {error}") from None
    return Probe("v", *(circuit.node_names[k] for k in places))


def _flat(name: str, index: Callable[[str], int], circuit: Circuit) -> int:
    """The number of a name; Xyce writes ``x1:r1`` for ``x1.r1``, and ``x1:port`` for the node at the port."""
    try:
        return index(name)
    except TopologyError:
        if ":" not in name:
            raise
        return index(name.replace(":", "."))


def all_probes(circuit: Circuit) -> list[Probe]:
    """Every node voltage (except ground) and every element current, without `inner_parts`."""
    nodes, elements = inner_parts(circuit)
    nodes[GROUND] = True
    shown = (("v", circuit.node_names, nodes), ("i", circuit.names, elements))
    return [Probe(kind, names[k]) for kind, names, hidden in shown for k in (~hidden).nonzero()[0].tolist()]


def drawn_probes(circuit: Circuit, kinds: str = "vi") -> list[Probe]:
    """What a plot shows by default: voltages and currents outside sub-circuits (``X1.m``) and sources with parasitics
    (``V1.inner``), or all of them if there are no others.

    >>> from circuitsim.netlist import loads
    >>> text = "t\\nV1 +3.3V 0 1 Rser=1\\nX1 +3.3V b s\\nR1 b 0 1\\n.subckt s a b\\nR1 a m 1\\nR2 m b 1\\n.ends\\n"
    >>> [str(probe) for probe in drawn_probes(loads(text).circuit)]
    ['v(+3.3V)', 'v(b)', 'i(V1)', 'i(R1)']
    """
    found, names = [probe for probe in all_probes(circuit) if probe.kind in kinds], {*circuit.names}
    owners = ((probe, probe.first.partition(".")) for probe in found)
    return [probe for probe, (owner, dot, _) in owners if not (dot and (owner in names or owner[:1] in "xX"))] or found


def _places(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    """Positions among the probes, and of nodes or elements."""
    place, at = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return place, at


class Reader:
    """Evaluates many probes at operating points of one circuit, as one vector."""

    def __init__(
        self, probes: Sequence[Probe | Formula], circuit: Circuit, names: Mapping[str, float] = MappingProxyType({})
    ) -> None:
        self.size, self.names = len(probes), names
        plain = [(k, p) for k, p in enumerate(probes) if isinstance(p, Probe)]
        self._at: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        for kind in (*UNITS, VALUE):
            index = circuit.node_index if kind == "v" else circuit.element_index
            self._at[kind] = _places([(k, index(p.first)) for k, p in plain if p.kind == kind])
        self._minus = _places([(k, circuit.node_index(p.second)) for k, p in plain if p.second is not None])
        self._absorbers = self._at["p"][1]
        self._first, self._second = (end[self._absorbers] for end in circuit.arrays()[1:3])
        self._formulas = [
            (k, p, list(p.probes), Reader(list(p.probes.values()), circuit))
            for k, p in enumerate(probes)
            if isinstance(p, Formula)
        ]

    @property
    def plain(self) -> bool:
        """Whether all probes are voltages, currents and powers."""
        return not self._formulas and not self._at[VALUE][0].size

    def columns(self, v: np.ndarray, i: np.ndarray, powers: np.ndarray | None = None) -> np.ndarray:
        """Voltages, currents and powers (…, n_probes), V, A, W, from potentials (…, n_nodes) and currents (…, m).

        Powers are computed from node voltages unless given (…, n_powers).
        """
        found = np.empty((*v.shape[:-1], self.size))
        for kind, own in (("v", v), ("i", i)):
            place, at = self._at[kind]
            found[..., place] = own[..., at]
        place, at = self._minus
        found[..., place] -= v[..., at]
        if powers is None:
            powers = (v[..., self._first] - v[..., self._second]) * i[..., self._absorbers]
        found[..., self._at["p"][0]] = powers
        return found

    def read(self, point: OperatingPoint) -> np.ndarray:
        """The values of the probes, V, A, W, as a float array (n_probes,)."""
        values = self.columns(point.voltages, point.currents, point.powers[self._absorbers])
        place, at = self._at[VALUE]
        values[place] = point.circuit.arrays().value[at]
        for k, formula, signals, reader in self._formulas:
            values[k] = formula.value(dict(zip(signals, reader.read(point).tolist())), self.names)
        return values
