"""Tolerances: which parameters of a circuit deviate, by how much, with which distribution, and which of them
jointly; specifications: allowed ranges of quantities.

A circuit of resistors, sources and ideal diodes is reduced to the ports of its toleranced resistors and diodes. Every
diode is a resistor in the reference circuit. In terms of the ports (toleranced resistors, diodes) and the
observed quantities f the reference circuit is linear,

    (y, f) = M · (1, s, u)

with drops y of the ports, changes s of toleranced sources, and currents u of the elements at the ports in excess of the
reference: u = δg y for a resistor, u = −g y for a blocking diode; a conducting diode has y = 0. The columns of M are
certified operating points, one per port and source. For one diode state and a box of values everything is linear in u,
so centre and enclosure of a box are small dense systems.

In circuits without diodes, controlled sources are part of the reference circuit; M is then not symmetric, and a system
may be singular inside a box, which an enclosure excludes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from circuitsim.analysis.probes import Probe, Reader
from circuitsim.analysis.solve import circuit_at_operating_point, circuit_with_formulas, prepared
from circuitsim.arguments import POSITIVE, QUANTITIES, listed, table
from circuitsim.certificate import TOLERANCE
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR, VOLTAGE
from circuitsim.circuit.parameters import matching, parameter_values
from circuitsim.circuit.source import analysis, circuit_of
from circuitsim.errors import UsageError
from circuitsim.netlist.deck import STEADY, Deck, columns_of, warn_of_time
from circuitsim.netlist.functions import Deviations, Distribution
from circuitsim.units import NumberError, parse

SINGULAR = 1e-13
"""Reciprocal condition number below which a small system counts as singular."""
UNBOUNDED = 1e150
"""Value that marks a missing enclosure."""
CONSISTENT = 1e-9
"""Relative residual of a singular system up to which it has solutions."""


class PortModel(NamedTuple):
    """A circuit reduced to its ports.

    Attributes
    ----------
    g : (r,) float array
        Conductances of the toleranced resistors in the reference circuit, S.
    g_diode : float
        Of every diode, S.
    form : (ports + q, 1 + k + ports) float array
        Drops of the ports, V, and quantities, from 1, source changes, and currents of the ports. Ports are the r
        toleranced resistors, then d diodes.
    sources : int
        Number k of toleranced sources.
    passive : bool
        Whether there is no controlled source: no values make the circuit singular.
    """

    g: np.ndarray
    g_diode: float
    form: np.ndarray
    sources: int
    passive: bool


class State(NamedTuple):
    """The circuit for one set of conducting diodes.

    Attributes
    ----------
    form : (r + q + d, 1 + k + r) float array
        As in `PortModel`, with the toleranced resistors as ports. After the observed quantities come the voltages of
        blocking diodes and minus the currents of conducting ones, all ≤ 0 iff the state is correct.
    diode : (d,) int array
        The diode of each of these.
    """

    form: np.ndarray
    diode: np.ndarray


def port_model(
    circuit: Circuit, resistors: Sequence[int], sources: Sequence[int], probes: Sequence[Probe]
) -> PortModel:
    """The model of a circuit of elementary elements without amplifiers, with diodes or controlled sources.

    Parameters
    ----------
    resistors, sources : sequence of int
        Toleranced elements.
    probes : sequence of Probe
        Voltages and currents to read.
    """
    kind, first, second, value, n_nodes = circuit.arrays()
    diode = kind == DIODE
    ports = np.array([*resistors, *np.flatnonzero(diode).tolist()], dtype=np.int64)
    typical = circuit.arrays().typical_resistance
    still = np.where((kind == VOLTAGE) | (kind == CURRENT), 0.0, np.where(diode, typical, value))
    at_rest = np.append(still, np.zeros(ports.size))
    # A current source parallel to each port carries its element's current in excess of the reference.
    ready = prepared(
        Circuit.from_arrays(
            np.append(np.where(diode, RESISTOR, kind), np.full(ports.size, CURRENT)),
            np.append(first, first[ports]),
            np.append(second, second[ports]),
            at_rest,
            n_nodes,
            names=[f"e{k}" for k in range(at_rest.size)],
            node_names=list(circuit.node_names),
            laws=circuit.laws,
        )
    )
    renamed = [p if p.kind == "v" else Probe(p.kind, f"e{circuit.element_index(p.first)}") for p in probes]
    reader = Reader(renamed, ready.circuit)

    def read(column: np.ndarray) -> np.ndarray:
        point = ready.solve(column)
        return np.append(point.drops[ports], reader.read(point))

    rest = read(at_rest)  # the effect of the constants of controlled sources
    driven = [*sources, *range(kind.size, at_rest.size)]
    units = [read(np.where(np.arange(at_rest.size) == k, 1.0, at_rest)) - rest for k in driven]
    alive = np.append(np.where(diode, typical, value), np.zeros(ports.size))
    form = np.stack([read(alive), *units], axis=1)
    inner = form[: ports.size, 1 + len(sources) :]
    for q, probe in enumerate(probes):
        if probe.kind == "i":
            # A port's element carries u in addition to the current of its reference resistor.
            form[ports.size + q, 1 + len(sources) :] += ports == circuit.element_index(probe.first)
    passive = not circuit.laws
    if passive:
        inner[:] = 0.5 * (inner + inner.T)
    return PortModel(1.0 / value[list(resistors)], 1.0 / typical, form, len(sources), passive)


def state_of(model: PortModel, conducting: np.ndarray) -> State | None:
    """The circuit for the conducting diodes (d,); None where its equations are singular."""
    r, d = model.g.size, conducting.size
    width = 1 + model.sources + r
    known, by_diode = model.form[:, :width], model.form[:, width:]
    # Blocking: u = −g y. Conducting: y = 0. Both are linear equations in the diodes' u.
    left = -by_diode[r : r + d].copy()
    left[np.diag_indices(d)] -= np.where(conducting, 0.0, 1.0 / model.g_diode)
    carried = _solution(left, known[r : r + d])
    if carried is None:
        return None
    form = known + by_diode @ carried
    on, off = np.flatnonzero(conducting), np.flatnonzero(~conducting)
    # The current of a conducting diode is its u, since its drop is zero.
    return State(np.concatenate([form[:r], form[r + d :], form[r + off], -carried[on]]), np.append(off, on))


def _solution(left: np.ndarray, right: np.ndarray) -> np.ndarray | None:
    """The solution; that of least norm where loops of conducting diodes, or diodes in series, make it nonunique; None
    if there is none."""
    if not left.size or np.linalg.cond(left) < 1.0 / SINGULAR:
        return np.linalg.solve(left, right)
    found = np.linalg.lstsq(left, right, rcond=SINGULAR)[0]
    off = np.abs(left @ found - right)
    return found if (off <= CONSISTENT * (np.abs(left) @ np.abs(found) + np.abs(right))).all() else None


class Centre(NamedTuple):
    """A state at the centre of a box, with enclosures over the box.

    Attributes
    ----------
    values, reach : (q,) float arrays
        Quantities at the centre, and bounds on their changes in the box.
    slope, change : (q, r + k) float arrays
        Derivatives by minus the toleranced conductances and by the sources, and bounds on their changes.
    bounded : bool
        Whether the drops have an enclosure: no values in the box make the circuit singular.
    """

    values: np.ndarray
    reach: np.ndarray
    slope: np.ndarray
    change: np.ndarray
    bounded: bool


def centre(
    model: PortModel, state: State, g: np.ndarray, half: np.ndarray, s: np.ndarray, s_half: np.ndarray
) -> Centre:
    """A state at conductances ``g`` (r,) and source changes ``s`` (k,), with enclosures over ± ``half``, ± ``s_half``.

    With Z = −∂y/∂u of the centre and adjoints λ = −∂f/∂u, y − y_c = −Z D y + S δs and f − f_c = −λ D y + T δs hold
    exactly for D = diag(δg), so that |y − y_c| is at most the solution of (I − |Z| r) a = |Z| r |y_c| + |S| r_s.
    """
    delta, k = g - model.g, model.sources
    r = delta.size
    ports, rest = state.form[:r], state.form[r:]
    system = np.eye(r) - ports[:, 1 + k :] * delta
    if not model.passive and r and np.linalg.cond(system) > 1.0 / SINGULAR:
        far = np.full((len(rest), r + k), UNBOUNDED)
        return Centre(rest[:, 0], np.full(len(rest), UNBOUNDED), np.zeros(far.shape), far, False)
    ports = np.linalg.solve(system, ports)
    rest = rest + (rest[:, 1 + k :] * delta) @ ports
    (y, sources, z), (values, by_source, adjoint) = (
        (form[:, 0] + form[:, 1 : 1 + k] @ s, form[:, 1 : 1 + k], -form[:, 1 + k :]) for form in (ports, rest)
    )
    contraction = np.abs(z) * half
    moved = contraction @ np.abs(sources)
    right = np.column_stack([contraction @ np.abs(y) + np.abs(sources) @ s_half, np.ones(r), moved])
    around, around_adjoint, around_source = (np.full(a.shape, UNBOUNDED) for a in (y, adjoint, by_source))
    found = np.linalg.solve(np.eye(r) - contraction, right)
    # A positive solution for a positive right-hand side: the spectral radius of the contraction is below one.
    bounded = bool((found[:, 1] > 0.0).all())
    if bounded:
        turned = np.abs(z).T * half  # for the adjoints; the same if Z is symmetric
        around = found[:, 0]
        around_adjoint = np.linalg.solve(np.eye(r) - turned, turned @ np.abs(adjoint).T).T
        around_source = (np.abs(adjoint) * half) @ (np.abs(sources) + found[:, 2:])
    # f is affine in the sources; the conductances' part holds at all of them, since |y − y_c| does.
    wide = half > 0.0
    reach = np.abs(by_source) @ s_half + (np.abs(adjoint[:, wide]) * half[wide]) @ (np.abs(y) + around)[wide]
    change = np.abs(adjoint) * around + around_adjoint * (np.abs(y) + around)
    slope = np.concatenate([adjoint * y, by_source], axis=1)
    return Centre(values, reach, slope, np.concatenate([change, around_source], axis=1), bounded)


_SPLIT = re.compile(r"\s*(<=|>=|<|>)\s*")

LIMITS = "write LOW<QUANTITY<HIGH, QUANTITY<HIGH or QUANTITY>LOW, for instance '4.9<v(out)<5.1'"


class Specification(NamedTuple):
    """low ≤ quantity ≤ high, in V, A or W."""

    quantity: str
    low: float
    high: float

    def met(self, values: np.ndarray) -> np.ndarray:
        """Which values lie in the range."""
        return (values >= self.low) & (values <= self.high)

    def __str__(self) -> str:
        low = "" if self.low == -math.inf else f"{self.low:g}<"
        high = "" if self.high == math.inf else f"<{self.high:g}"
        return f"{low}{self.quantity}{high}"


def parse_specification(text: str) -> Specification:
    """Parse a specification in the syntax of ``--spec``.

    Raises
    ------
    UsageError
        Invalid text, or an empty range.

    Examples
    --------
    >>> parse_specification("4.9<v(out)<5.1")
    Specification(quantity='v(out)', low=4.9, high=5.1)
    """
    words = _SPLIT.split(text.strip())
    signs, parts = {sign[0] for sign in words[1::2]}, words[0::2]
    rising = parts if signs == {"<"} else parts[::-1]
    numbers = [_number(part) for part in rising]
    if len(signs) != 1 or len(parts) > 3 or numbers.count(None) != 1 or (len(parts) == 3 and numbers[1] is not None):
        raise UsageError(f"--spec {text!r}: {LIMITS}")
    at = numbers.index(None)
    low, high = (-math.inf, *numbers[:at])[-1], (*numbers[at + 1 :], math.inf)[0]
    assert low is not None and high is not None
    if not low <= high:
        raise UsageError(f"--spec {text!r}: no value lies between {low:g} and {high:g}")
    return Specification(rising[at], low, high)


def _number(text: str) -> float | None:
    """A number; None for the quantity of a specification."""
    try:
        return parse(text)
    except NumberError:
        return None


FORM = "write NAMES=AMOUNT, for instance 'R*=1%', 'R*=1%,normal', 'V1=0.1', 'R*=0.5%,lot'"


class Tolerance(NamedTuple):
    """One statement of tolerances.

    Attributes
    ----------
    names : str
        Of elements and device parameters (``D1.vfwd``), with wildcards ``*`` and ``?``.
    amount : float
        Largest deviation: relative to the value if ``relative``, otherwise in its unit.
    relative : bool
    distribution : Distribution
    lot : bool
        Whether all that match ``names`` share one relative deviation; otherwise they deviate independently.
    """

    names: str
    amount: float
    relative: bool = True
    distribution: Distribution = Distribution.UNIFORM
    lot: bool = False

    def __str__(self) -> str:
        amount = f"{100.0 * self.amount:g}%" if self.relative else f"{self.amount:g}"
        words = ([] if self.distribution is Distribution.UNIFORM else [self.distribution.value]) + ["lot"] * self.lot
        return ",".join([f"{self.names}={amount}", *words])


def parse_tolerance(text: str) -> Tolerance:
    """Parse a tolerance in the syntax of ``--tol``.

    Raises
    ------
    UsageError
        Invalid text, an amount that is not positive.

    Examples
    --------
    >>> parse_tolerance("R*=1%,normal").amount
    0.01
    """
    names, equals, rest = text.partition("=")
    words = [word.strip().lower() for word in rest.split(",")]
    if not equals or not names.strip() or not words[0]:
        raise UsageError(f"--tol {text!r}: {FORM}")
    relative = words[0].endswith("%")
    try:
        amount = parse(words[0].removesuffix("%")) / (100.0 if relative else 1.0)
    except NumberError as error:
        raise UsageError(f"--tol {text!r}: {error}; {FORM}") from None
    if not 0.0 < amount < math.inf:
        raise UsageError(f"--tol {text!r}: the tolerance must be positive")
    known = {one.value: one for one in Distribution}
    if unknown := set(words[1:]) - {"lot", *known}:
        raise UsageError(f"--tol {text!r}: {min(unknown)!r} is none of {', '.join(known)}, lot")
    shape = [known[word] for word in words[1:] if word in known] or [Distribution.UNIFORM]
    return Tolerance(names.strip(), amount, relative, shape[-1], "lot" in words)


class Spread(NamedTuple):
    """The tolerances of one circuit.

    Attributes
    ----------
    names : tuple of str
        The p parameters that deviate.
    nominal : (p,) float array
        Their values.
    variables : tuple of str
        Names of the v independent random variables, as shown in tables.
    amount : (v,) float array
        Largest deviation of each.
    distribution : tuple of Distribution
    weights : (v, p) sparse float array
        Change of each parameter per unit deviation: values = nominal + deviations @ weights. Mostly one entry per row.
    """

    names: tuple[str, ...]
    nominal: np.ndarray
    variables: tuple[str, ...]
    amount: np.ndarray
    distribution: tuple[Distribution, ...]
    weights: csr_array

    def values(self, deviations: np.ndarray) -> np.ndarray:
        """Values (…, p) of the parameters for deviations (…, v)."""
        return self.nominal + deviations @ self.weights

    def named(self, deviations: np.ndarray) -> dict[str, float]:
        """The parameters by name for deviations (v,)."""
        return dict(zip(self.names, self.values(deviations).tolist()))


Tolerances = Mapping[str, float | str] | Sequence[str | Tolerance]
"""Tolerances by name, relative to the value where they are numbers, or statements of them."""


def parse_tolerances(stated: Tolerances) -> list[Tolerance]:
    """Tolerances in the forms of `circuitsim.montecarlo`; a number in a mapping is relative to the value.

    Raises
    ------
    UsageError
        A tolerance that is not positive, or invalid.
    """
    if isinstance(stated, Mapping):
        stated = [f"{name}={x}" if isinstance(x, str) else Tolerance(name, float(x)) for name, x in stated.items()]
    found = [parse_tolerance(one) if isinstance(one, str) else one for one in stated]
    for one in found:
        if not 0.0 < one.amount < math.inf:
            raise UsageError(f"{one}: the tolerance must be positive")
    return found


def amount(what: str, value: Any) -> float | str:
    """The rule of a tolerance: a fraction of the value, or text."""
    return value if isinstance(value, str) else float(POSITIVE(what, value))


tolerance_analysis = partial(
    analysis,
    tolerances=table(amount, "{'R*': 0.05}", listed("text such as 'R*=5%'", str, Tolerance)),
    observe=QUANTITIES,
    specifications=listed("text such as '4.9<v(out)<5.1'", str, Specification),
)
"""Rules of the arguments of `Asked.of`."""


LISTED = 100
"""Maximum number of nodes whose voltages are observed where no quantity is named: longer tables are not read."""


class Asked(NamedTuple):
    """The request of a tolerance analysis.

    Attributes
    ----------
    tolerances : list of Tolerance
    specifications : list of Specification
    circuit : Circuit
        At its operating point, with sources by a formula that depend on what deviates.
    spread : Spread
    observe : str
        Quantities; if there are none, and no specifications, those of a deck's ``.print``, or else all node voltages.
    """

    tolerances: list[Tolerance]
    specifications: list[Specification]
    circuit: Circuit
    spread: Spread
    observe: str

    @classmethod
    def of(
        cls,
        source: Circuit | Deck,
        tolerances: Tolerances,
        observe: str | Sequence[str],
        specifications: Sequence[str | Specification],
        tolerance: float = TOLERANCE,
        formulas: bool = False,
    ) -> Asked:
        """From the arguments of `circuitsim.montecarlo`; ``formulas``: whether the analysis evaluates them anew."""
        stated = parse_tolerances(tolerances)
        wanted = [parse_specification(s) if isinstance(s, str) else s for s in specifications]
        warn_of_time(source)
        deck = source.deviations if isinstance(source, Deck) else None
        changed = spread_of(circuit_of(source), stated, deck).names
        circuit = (circuit_with_formulas if formulas else circuit_at_operating_point)(source, tolerance, changed)
        text = " ".join(observe)
        if not text and not specifications:
            own = columns_of(source, STEADY) if isinstance(source, Deck) else None
            text = own or ("v(*)" if len(circuit.node_names) <= LISTED else "")
        return cls(stated, wanted, circuit, spread_of(circuit, stated, deck), text)


class _Row(NamedTuple):
    """A random variable: its name in tables, its distribution, and its effects by name of a parameter."""

    name: str
    amount: float
    distribution: Distribution
    effects: dict[str, float]


def spread_of(circuit: Circuit, tolerances: Sequence[Tolerance], deck: Deviations | None = None) -> Spread:
    """The independent random variables of a circuit's tolerances.

    Of several tolerances of single elements that match one, the last counts, and overrides the deck's; lots are added
    to them.

    Parameters
    ----------
    circuit : Circuit
    tolerances : sequence of Tolerance
    deck : Deviations, optional
        The deck's own tolerances and random functions.

    Raises
    ------
    UsageError
        A tolerance that matches nothing, or only zero values; a resistance that may become negative; an unsupported
        random function of the deck.
    """
    values = parameter_values(circuit)
    own, lots = dict[str, Tolerance](), list[_Row]()
    for tolerance in tolerances:
        found = [name for name in matching(circuit, tolerance.names, values) if values[name] or not tolerance.relative]
        if not found:
            raise UsageError(f"--tol {tolerance}: it matches no element or parameter with a nonzero value")
        if tolerance.lot:
            lots.append(_row(values, f"{tolerance.names} (lot)", tolerance, found))
        else:
            own |= dict.fromkeys(found, tolerance)
    order = {name: p for p, name in enumerate(values)}
    stated = [] if deck is None else _of_deck(circuit, deck, own)
    single = [row for row in stated if len(row.effects) == 1]
    single += [_row(values, name, tolerance, [name]) for name, tolerance in own.items()]
    rows = sorted(single, key=lambda row: order[next(iter(row.effects))])
    rows += [*(row for row in stated if len(row.effects) > 1), *lots]
    if not rows:
        raise UsageError("no tolerance: give at least one, for instance --tol 'R*=1%', or write tol=1% in the deck")
    names = tuple(sorted({name for row in rows for name in row.effects}, key=order.__getitem__))
    column = {name: p for p, name in enumerate(names)}
    place = [column[name] for row in rows for name in row.effects]
    own_row = [k for k, row in enumerate(rows) for _ in row.effects]
    change = [value for row in rows for value in row.effects.values()]
    weights = csr_array((change, (own_row, place)), shape=(len(rows), len(names)))
    nominal = np.array([values[name] for name in names])
    spread = Spread(
        names,
        nominal,
        tuple(_distinct([row.name for row in rows])),
        np.array([row.amount for row in rows]),
        tuple(row.distribution for row in rows),
        weights,
    )
    _check(circuit, spread)
    return spread


def _row(values: Mapping[str, float], name: str, tolerance: Tolerance, members: Sequence[str]) -> _Row:
    effects = {one: abs(values[one]) if tolerance.relative else 1.0 for one in members}
    return _Row(name, tolerance.amount, tolerance.distribution, effects)


def _of_deck(circuit: Circuit, deck: Deviations, replaced: Mapping[str, Tolerance]) -> list[_Row]:
    """The variables of the deck's own tolerances and random functions."""
    if deck.refused:
        raise UsageError(
            "the deck's random functions cannot be sampled: " + "; ".join(deck.refused[:5]) + "\n    hint: "
            "let values of R, L, C, V and I be sums of random functions, each times a number"
        )
    effects: list[dict[str, float]] = [{} for _ in deck.variables]
    for position, terms in deck.effects.items():
        name = circuit.names[position]
        for k, change in terms.items():
            if name not in replaced and change != 0.0:
                effects[k][name] = change
    pairs = [(variable, members) for variable, members in zip(deck.variables, effects) if members]
    labels = [next(iter(members)) if len(members) == 1 else variable.label for variable, members in pairs]
    return [_Row(label, v.amount, v.distribution, members) for label, (v, members) in zip(labels, pairs)]


def _distinct(names: list[str]) -> list[str]:
    """Names, with a number appended to repeated ones."""
    seen: dict[str, int] = {}
    found = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return found


def _check(circuit: Circuit, spread: Spread) -> None:
    """Refuse tolerances that permit a nonpositive resistance."""
    least = spread.nominal - spread.amount @ abs(spread.weights)
    for name, value in zip(spread.names, least.tolist()):
        if name in circuit and circuit[name].kind == "resistor" and value <= 0.0:
            raise UsageError(f"with its tolerance the resistance of {name} may be {value:g} Ω: it must stay positive")
