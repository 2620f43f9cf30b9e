"""Worst cases with proof: the extremes of quantities over a box of values.

In a circuit of resistors and sources a quantity is a ratio of functions affine in each single value, so it is monotone
in each and attains its extreme at a corner. The sign of the nominal gradient only suggests which one, since signs can
change inside the box; branch and bound over values, with enclosures of the gradient, proves it. With diodes the box is
split where several states are possible; states not reachable from the centre's cannot occur.

In some cases two operating points prove a worst case for any number of toleranced resistors (Rayleigh's monotonicity
law). With resistors, ideal diodes and sources of one kind, min E of the convex program increases with every
conductance. Without forward drops, min E is up to its sign half the power delivered by the sources: the total
dissipation. With exactly one source that is its own voltage times its current, so its current (or voltage) is monotone
too. Neither holds with sources of both kinds, nor with forward drops, limiters or smooth devices (Braess's paradox).
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from circuitsim.analysis.probes import Formula, Probe, Reader, parse_probes
from circuitsim.analysis.solve import prepared
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CAPACITOR, CURRENT, DIODE, INDUCTOR, RESISTOR, VOLTAGE
from circuitsim.circuit.expansion import expanded
from circuitsim.errors import UsageError, look_up
from circuitsim.formats import OWN, Result, Table, plain
from circuitsim.models.smooth import SmoothDevice
from circuitsim.netlist.deck import Deck
from circuitsim.netlist.functions import Distribution
from circuitsim.points import computed
from circuitsim.tolerance.spread import (
    UNBOUNDED,
    Asked,
    Centre,
    PortModel,
    Specification,
    Spread,
    State,
    Tolerance,
    Tolerances,
    centre,
    port_model,
    state_of,
    tolerance_analysis,
)
from circuitsim.units import format_quantity

DISSIPATION = "dissipation"
"""Name of the total power dissipated in resistors."""


TOTAL = "Rayleigh: the total dissipation, with sources of one kind, in two solves"
PORT = "Rayleigh: the port of the only source, in two solves"


def rayleigh(circuit: Circuit, probe: Probe | None) -> str | None:
    """The reason why a quantity of a circuit without devices is monotone in all resistances by Rayleigh's law, if it
    is; ``probe`` None is the total dissipation."""
    kind, first, second, value, _ = circuit.arrays()
    if not np.isin(kind, (RESISTOR, DIODE, VOLTAGE, CURRENT)).all():
        return None
    sources = np.flatnonzero(((kind == VOLTAGE) | (kind == CURRENT)) & (value != 0.0))
    if probe is None:
        return TOTAL if np.unique(kind[sources]).size <= 1 else None
    if sources.size != 1:
        return None
    k = int(sources[0])
    if probe.kind == "v":
        ends = {circuit.node_index(probe.first), circuit.node_index(probe.second or "0")}
        return PORT if kind[k] == CURRENT and ends == {int(first[k]), int(second[k])} else None
    return PORT if circuit.element_index(probe.first) == k and (probe.kind == "p" or kind[k] == VOLTAGE) else None


SIGN_ROUNDING = 1e-11
"""Fraction of its scale below which a quantity has no definite sign."""

KEPT = 20_000
"""Maximum number of cached points and states."""

STATES, FLIPS = 24, 4
"""Maximum number of diode states in one box, and of diodes that may change at one point."""


class Region(NamedTuple):
    """A box of deviations, given by its ends (v,)."""

    low: np.ndarray
    high: np.ndarray

    @property
    def middle(self) -> np.ndarray:
        """Its centre."""
        return 0.5 * (self.low + self.high)

    @property
    def open(self) -> np.ndarray:
        """Deviations with nonzero width."""
        return self.high > self.low


class Surface:
    """Quantities over boxes of deviations; each point and each diode state is computed once for all searches.

    Parameters
    ----------
    model : PortModel
    resistance : (r,) float array
        Nominal, Ω.
    weights : (v, r + k) float array
        From deviations to changes of resistances and sources.
    solve : callable
        Deviations (v,) → quantities (q,) at a certified operating point, and the conducting diodes (d,).

    Attributes
    ----------
    single : (v,) bool array
        Variables that affect one element only, which no other variable affects: the quantity is monotone in them.
    """

    def __init__(
        self,
        model: PortModel,
        resistance: np.ndarray,
        weights: np.ndarray,
        solve: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    ) -> None:
        self.model, self.resistance, self.weights = model, resistance, weights
        self.single = np.count_nonzero(weights, axis=1) == 1
        # Scales of relative rounding of derivatives, separately for resistors and sources.
        self.groups = slice(0, resistance.size), slice(resistance.size, None)
        self._point = lru_cache(KEPT)(lambda key: solve(np.frombuffer(key)))
        self._state = lru_cache(KEPT)(lambda key: state_of(model, np.frombuffer(key, dtype=bool)))

    def point(self, deviations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The quantities and the conducting diodes at a point."""
        return self._point(deviations.tobytes())

    def state(self, conducting: np.ndarray) -> State | None:
        """The circuit for the conducting diodes."""
        return self._state(conducting.tobytes())

    def extent(self, box: Region) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Centres and half-widths of conductances and of source changes."""
        middle, half = box.middle @ self.weights, 0.5 * (box.high - box.low) @ np.abs(self.weights)
        ohms, sources = self.groups
        resistance = self.resistance + middle[ohms]
        low, high = 1.0 / (resistance + half[ohms]), 1.0 / (resistance - half[ohms])
        return 0.5 * (low + high), 0.5 * (high - low), middle[sources], half[sources]

    def slopes(self, at: Centre, q: int, box: Region) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Derivatives of a quantity by the deviations (v,) at the centre, bounds on their changes in the box, and ±1
        where the derivative by a deviation of a single element has this sign throughout the box, else 0."""
        slope, change = at.slope[q], at.change[q]
        sure = np.zeros(slope.size)
        for own in self.groups:
            rounding = SIGN_ROUNDING * np.abs(slope[own]).max(initial=0.0)
            sure[own] = np.where(np.abs(slope[own]) > change[own] + rounding, np.sign(slope[own]), 0.0)
        signs = np.where(self.single & box.open, np.sign(np.sign(self.weights) @ sure), 0.0)
        # dg/dR = −g², and slopes are those by minus the conductances.
        factor = np.ones(slope.size)
        factor[self.groups[0]] = self.extent(box)[0] ** 2
        return self.weights @ (slope * factor), np.abs(self.weights) @ (change * factor), signs


class Search:
    """The largest value of one quantity over a box.

    Parameters
    ----------
    surface : Surface
    quantity : int
    sign : float
        −1 for the smallest value, whose negative is maximised.

    Attributes
    ----------
    value, bound : float
        The largest value found, times ``sign``, and its upper bound.
    at : (v,) float array
        Its deviations.
    systems, solves : int
        Small linear systems, and operating points.
    """

    def __init__(self, surface: Surface, quantity: int, sign: float) -> None:
        self.surface, self.q, self.sign = surface, quantity, sign
        self.systems = self.solves = 0
        self.value, self.bound, self.at = -np.inf, np.inf, np.zeros(surface.single.size)

    def run(self, region: Region, gap: float, budget: int) -> None:
        """Branch and bound until the gap or the budget of linear systems is reached."""
        order = itertools.count()
        heap = [(-np.inf, next(order), region)]
        closed = -np.inf  # the largest bound of finished boxes
        while heap:
            upper, _, box = heapq.heappop(heap)
            bound = max(-upper, closed)
            if bound <= self.value + gap or self.systems > budget:
                closed = bound
                break
            high, cut = self._examine(box)
            high = min(high, -upper)
            if cut is None or high <= self.value + gap:
                closed = max(closed, high)
                continue
            for part in self._cut(box, *cut):
                heapq.heappush(heap, (-high, next(order), part))
        self.bound = max(closed, self.value)

    def suggest(self, region: Region) -> None:
        """Try the corner that the gradient at the centre suggests."""
        state = self.surface.state(self._try(region.middle))
        if state is not None:
            self._uphill(self._centre(state, region), region)

    def _uphill(self, at: Centre, box: Region) -> None:
        """Try the corner suggested by the gradient at the centre of a box."""
        slope = self.sign * self.surface.slopes(at, self.q, box)[0]
        self._try(np.where(slope > 0.0, box.high, box.low))

    def _try(self, deviations: np.ndarray) -> np.ndarray:
        """Solve at one point; returns the conducting diodes."""
        self.solves += 1
        values, conducting = self.surface.point(deviations)
        value = self.sign * float(values[self.q])
        if value > self.value:
            self.value, self.at = value, deviations.copy()
        return conducting

    def _centre(self, state: State, box: Region) -> Centre:
        self.systems += 1
        return centre(self.surface.model, state, *self.surface.extent(box))

    # ------------------------------------------------------------------ one box
    def _examine(self, box: Region) -> tuple[float, tuple[int, bool] | None]:
        """An upper bound over a box; the variable to split, and whether the circuit is linear there (None: the bound is
        attained)."""
        first = self._try(box.middle)
        waiting, known = [first], {first.tobytes()}
        upper, score = -np.inf, np.zeros(box.low.size)
        only = True
        while waiting:
            conducting = waiting.pop()
            state = self.surface.state(conducting)
            if state is None or len(known) > STATES:
                return np.inf, self._chosen(box, np.zeros(score.size))
            at = self._centre(state, box)
            # A quantity is monotone in each value only if no values in the box make the circuit singular.
            only = only and (self.surface.model.passive or at.bounded)
            unsure = self._unsure(at, state)
            if unsure.size:
                only = False
                if unsure.size > FLIPS:
                    return np.inf, self._chosen(box, self._influence(at, box))
                for size in range(1, unsure.size + 1):
                    for flips in itertools.combinations(unsure.tolist(), size):
                        other = conducting.copy()
                        other[list(flips)] ^= True
                        if other.tobytes() not in known:
                            known.add(other.tobytes())
                            waiting.append(other)
            high, corner = self._linear_bound(state, box)
            upper = max(upper, high)
            score = np.maximum(score, self._influence(at, box))
            if only and corner:
                return high, None
        return upper, self._chosen(box, score, only)

    @staticmethod
    def _unsure(at: Centre, state: State) -> np.ndarray:
        """Diodes that may change state inside the box."""
        start = at.values.size - state.diode.size
        values, reach = at.values[start:], at.reach[start:]
        # A quantity of exactly zero in a box of zero width is degenerate: both states have the same solution.
        return state.diode[values + reach > SIGN_ROUNDING * np.abs(values).max(initial=0.0)]

    def _linear_bound(self, state: State, box: Region) -> tuple[float, bool]:
        """The largest value of the state's linear circuit in the box, or a bound; whether a corner attains it."""
        low, high = box.low.copy(), box.high.copy()
        while True:
            inner = Region(low, high)
            at = self._centre(state, inner)
            value = self.sign * float(at.values[self.q])
            if not inner.open.any():
                self._try(low.copy())
                return value, True
            fixed = self.sign * self.surface.slopes(at, self.q, inner)[2]
            if not fixed.any():
                self._uphill(at, inner)
                return value + float(at.reach[self.q]) if at.bounded else np.inf, False
            low[fixed > 0.0] = high[fixed > 0.0]
            high[fixed < 0.0] = low[fixed < 0.0]

    def _influence(self, at: Centre, box: Region) -> np.ndarray:
        """Bound on the change of the quantity by each deviation in a box."""
        slope, spread, _ = self.surface.slopes(at, self.q, box)
        slope = np.abs(slope)
        return (slope + np.where(spread < UNBOUNDED, spread, slope)) * (box.high - box.low)

    def _chosen(self, box: Region, score: np.ndarray, linear: bool = False) -> tuple[int, bool] | None:
        """The variable of the largest score among those with nonzero width, and ``linear``; if all scores are zero the
        widest one, because all derivatives may vanish at the centre only."""
        score = np.where(box.open, score, -1.0)
        if score.max(initial=0.0) > 0.0:
            return int(score.argmax()), linear
        ohms = np.abs(self.surface.weights[:, self.surface.groups[0]]).sum(axis=1)
        width = (box.high - box.low) * (ohms + 1e-300)
        return (int(width.argmax()), False) if box.open.any() else None

    def _cut(self, box: Region, j: int, linear: bool) -> list[Region]:
        """The two halves of a box, or the two faces where the circuit is linear and thus monotone in the variable."""
        low, high = box.low.copy(), box.high.copy()
        if linear and self.surface.single[j]:
            low[j], high[j] = box.high[j], box.low[j]
        else:
            high[j] = low[j] = box.middle[j]
        return [Region(box.low, high), Region(low, box.high)]


BUDGET = 4000
"""Default number of linear systems of a search."""
TOGETHER = 16
"""Number of quantities in one task, which share a model of the circuit."""

RELATIVE_GAP, ROUNDING = 1e-4, 1e-9
"""Gap that ends a search, relative to the range found; fraction of the scale within which a bound counts as
attained."""


class Extreme(NamedTuple):
    """The least or largest value of a quantity.

    Attributes
    ----------
    value : float
        Attained, at a certified operating point.
    bound : float
        No value of the box lies beyond; equal to ``value`` where the extreme is exact.
    at : dict of str to float
        Values of the toleranced parameters there.
    """

    value: float
    bound: float
    at: dict[str, float]

    @property
    def gap(self) -> float:
        """Distance of value and bound; infinite without a bound."""
        return abs(self.bound - self.value)


class Range(NamedTuple):
    """The extremes of one quantity.

    Attributes
    ----------
    name, unit : str
    nominal : float
    least, most : Extreme
    method : str
        Method of proof.
    solves, systems : int
        Numbers of certified operating points and of small linear systems.
    """

    name: str
    unit: str
    nominal: float
    least: Extreme
    most: Extreme
    method: str
    solves: int
    systems: int

    @property
    def exact(self) -> bool:
        """Whether both extremes are exact."""
        return self.least.gap == 0.0 == self.most.gap

    def to_dict(self) -> dict[str, Any]:
        """As plain values, without the name; None without a bound."""
        found: dict[str, Any] = plain(self) | {"exact": self.exact}
        del found["name"]
        return found


@dataclass(frozen=True, eq=False, repr=False)
class WorstCase(Result):
    """Extremes of quantities.

    Attributes
    ----------
    title : str
    ranges : tuple of Range
    specifications : tuple of (Specification, bool or None)
        Whether each holds in the whole box; None: not proven.
    tolerances : tuple of Tolerance
    """

    PICTURE = "plot_worst_case"

    title: str
    ranges: tuple[Range, ...]
    specifications: tuple[tuple[Specification, bool | None], ...]
    tolerances: tuple[Tolerance, ...]

    def __getitem__(self, name: str) -> Range:
        """The extremes of a quantity; case does not matter."""
        return look_up(name, {one.name: one for one in self.ranges}, "result")

    def to_dict(self) -> dict[str, Any]:
        """As plain values: the JSON object of ``circuitsim worst-case --format json``."""
        return {
            "schema": 2,
            "title": self.title,
            "tolerances": [str(one) for one in self.tolerances],
            "quantities": {r.name: r.to_dict() for r in self.ranges},
            "specifications": {str(one): holds for one, holds in self.specifications},
        }

    def tables(self) -> dict[str, Table]:
        """``quantities``: unit, nominal, least, most, their bounds, exact, method; ``corners``: values
        at the ends; ``specifications``: whether each holds (None: not proven).
        """
        rows = [
            (*r[:3], r.least.value, r.most.value, r.least.bound, r.most.bound, r.exact, r.method) for r in self.ranges
        ]
        corners = [(r.name, name, value, r.most.at[name]) for r in self.ranges for name, value in r.least.at.items()]
        header = "quantity, unit, nominal, least, most, least_bound, most_bound, exact, method"
        return {
            "quantities": Table.of(header, rows, ("", "", *[OWN] * 5, "", ""), True),
            "specifications": Table.of("specification, holds", [(str(s), holds) for s, holds in self.specifications]),
            "corners": Table.of("quantity, name, least, most", corners),
        }

    def _heading(self) -> tuple[str, str]:
        ends = [f"{r.least.value:.6g} ≤ {r.name} ≤ {r.most.value:.6g} {r.unit}" for r in self.ranges]
        return self.title, ", ".join(ends)

    def _proof(self) -> str:
        return "Certified: every extreme is attained, and no value passes its bound"


@tolerance_analysis()
def worst_case(
    source: Circuit | Deck,
    tolerances: Tolerances = (),
    observe: str | Sequence[str] = (),
    specifications: Sequence[str | Specification] = (),
    gap: float | None = None,
    budget: int = BUDGET,
    workers: int | None = 1,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> WorstCase:
    """The least and largest values of quantities over all values within tolerances, with proof.

    Parameters
    ----------
    source : Circuit or Deck
        Resistors, sources, ideal and piecewise-linear diodes; without diodes also linear controlled sources.
    tolerances : mapping, or sequence of str or Tolerance, optional
        Of resistances and sources, as for `circuitsim.montecarlo`; distributions do not matter, but normal ones have no
        limits and are refused.
    observe : str or sequence of str
        ``"v(out) v(a,b) i(R1)"``, and ``dissipation`` where Rayleigh's monotonicity proves it.
    specifications : sequence of str or Specification, optional
        Ranges to check in the whole box.
    gap : float, optional
        Distance of value and bound that ends a search, V or A; by default 1e-4 of the range.
    budget : int
        Maximum number of linear systems of each search; a remaining gap is reported.
    workers, executor
        As for `circuitsim.montecarlo`; by default no other process; a task is up to 16 quantities.
    progress : callable, optional
        Called with the quantities done and those in all.

    Raises
    ------
    UsageError
        Elements or quantities without a proof.

    Examples
    --------
    >>> import circuitsim
    >>> deck = circuitsim.loads('''divider
    ... V1 in 0 10
    ... R1 in out 1k
    ... R2 out 0 1k
    ... ''')
    >>> found = circuitsim.worst_case(deck, ["R*=1%"], "v(out)")["v(out)"]
    >>> round(found.least.value, 9), round(found.most.value, 9), found.exact
    (4.95, 5.05, True)
    """
    stated, wanted, circuit, spread, text = Asked.of(source, tolerances, observe, specifications)
    if Distribution.NORMAL in spread.distribution:
        first = spread.variables[spread.distribution.index(Distribution.NORMAL)]
        raise UsageError(
            f"{first}: normal tolerances have no limits: a worst case needs uniform or truncated ones, "
            f"for instance --tol '{first}=5%' in their place"
        )
    _check(circuit, spread)
    words = [*text.split(), *(s.quantity for s in wanted)]
    named = [word for word in words if word.lower() != DISSIPATION]
    probes = [*parse_probes(" ".join(named), circuit), *[None] * (len(named) < len(words))]
    if not probes:
        raise UsageError("nothing is observed: name at least one quantity, for instance v(out)")
    tasks = [probes[k : k + TOGETHER] for k in range(0, len(probes), TOGETHER)]
    ranges: list[Range] = []
    for some in computed(partial(extremes, circuit, spread, gap, budget), tasks, workers, executor):
        ranges += some
        if progress is not None:
            progress(len(ranges), len(probes))
    found = WorstCase(circuit.title, tuple(ranges), (), tuple(stated))
    return replace(found, specifications=tuple((one, _holds(one, found[one.quantity])) for one in wanted))


def extremes(
    circuit: Circuit, spread: Spread, gap: float | None, budget: int, probes: Sequence[Probe | Formula | None]
) -> list[Range]:
    """The extremes of quantities, in order; None is the total dissipation."""
    low, high = (end(axis=1).toarray().ravel() for end in (spread.weights.min, spread.weights.max))
    # Rayleigh's law needs variables that raise all of their resistances, or lower all.
    opposed = ((low < 0.0) & (high > 0.0)).any()
    monotone = not (opposed or circuit.devices) and all(circuit[name].kind == "resistor" for name in spread.names)
    found, searched = dict[int, Range](), dict[int, Probe]()
    for place, probe in enumerate(probes):
        if isinstance(probe, Formula):
            raise UsageError(f"{probe}: worst cases are proven for v(node), v(a,b) and i(element)")
        case = rayleigh(circuit, probe) if monotone else None
        if case is not None:
            found[place] = _two_solves(circuit, spread, np.where(low < 0.0, -1.0, 1.0), probe, case)
        elif probe is None or probe.kind not in ("v", "i"):
            raise UsageError(
                f"{probe or DISSIPATION}: worst cases are proven for v(node), v(a,b) and i(element); for dissipation "
                "and the power of a source with Rayleigh's monotonicity, which needs resistors, ideal diodes and "
                "sources of one kind, and tolerances of resistors alone, none of which raises one and lowers another"
            )
        elif probe.kind == "i" and circuit.element_index(probe.first) in circuit.devices:
            raise UsageError(f"{probe}: observe the current of an element in series with the device")
        else:
            searched[place] = probe
    if searched:
        found |= zip(searched, _searched(circuit, spread, [*searched.values()], gap, budget))
    return [found[place] for place in range(len(probes))]


def _check(circuit: Circuit, spread: Spread) -> None:
    """Refuse elements that no proof covers."""
    kind = circuit.arrays().kind
    smooth = [circuit.names[k] for k, device in circuit.devices.items() if isinstance(device, SmoothDevice)]
    others = np.isin(kind, (RESISTOR, DIODE, VOLTAGE, CURRENT, INDUCTOR, CAPACITOR))
    others[[*circuit.devices, *circuit.laws]] = True
    named = smooth + [circuit.names[k] for k in np.flatnonzero(~others).tolist()]
    if named:
        raise UsageError(
            "worst cases are proven for resistors, sources, ideal and piecewise-linear diodes, or controlled sources, "
            f"not with {named[0]}; circuitsim montecarlo samples the circuit"
        )
    if circuit.laws and (circuit.devices or (kind == DIODE).any()):
        raise UsageError(
            f"worst cases with controlled sources ({circuit.names[min(circuit.laws)]}) are proven without diodes; "
            "circuitsim montecarlo samples the circuit"
        )
    for name in spread.names:
        if name not in circuit or kind[circuit.element_index(name)] not in (RESISTOR, VOLTAGE, CURRENT):
            raise UsageError(f"{name}: worst cases are proven over resistances and sources; give those a tolerance")


def _two_solves(circuit: Circuit, spread: Spread, rising: np.ndarray, probe: Probe | None, case: str) -> Range:
    """The extremes by Rayleigh's monotonicity law: all parameters at their largest, and all at their smallest."""
    ready = prepared(circuit)

    def value(at: dict[str, float]) -> float:
        point = ready.solve(at)
        return point.power() if probe is None else float(Reader([probe], circuit).read(point)[0])

    corners = [spread.named(sign * rising * spread.amount) for sign in (-1.0, 1.0)]
    least, most = sorted((Extreme(x := value(at), x, at) for at in corners), key=lambda one: one.value)
    name, unit = (DISSIPATION, "W") if probe is None else (str(probe), probe.unit)
    return Range(name, unit, value({}), least, most, case, 3, 0)


def _searched(circuit: Circuit, spread: Spread, probes: Sequence[Probe], gap: float | None, budget: int) -> list[Range]:
    """The extremes by branch and bound."""
    elementary = expanded(circuit).circuit
    places = np.array([circuit.element_index(name) for name in spread.names], dtype=np.int64)
    kind, value = elementary.arrays().kind, elementary.arrays().value
    ohmic = kind[places] == RESISTOR
    order = np.argsort(~ohmic, kind="stable")  # resistors first
    resistors = places[ohmic]
    ready, reader, diodes = prepared(elementary), Reader(probes, elementary), kind == DIODE
    nominal = ready.solve()

    def solve(deviations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        column = value.copy()
        column[places] = spread.values(deviations)
        point = ready.solve(column, nominal)
        return reader.read(point), point.currents[diodes] > 0.0

    model = port_model(elementary, resistors.tolist(), places[~ohmic].tolist(), probes)
    surface = Surface(model, value[resistors], spread.weights.toarray()[:, order], solve)
    largest = {"v": float(np.abs(nominal.voltages).max()), "i": float(np.abs(nominal.currents).max())}
    found = []
    for q, (probe, middle) in enumerate(zip(probes, reader.read(nominal).tolist())):
        rounding = ROUNDING * largest[probe.kind]
        # If every value has a variable of its own, the search of a linear circuit ends at corners without a gap.
        ends = not diodes.any() and surface.single.all() and gap is None
        found.append(_range(surface, q, probe, middle, spread, rounding if ends else gap, rounding, budget))
    return found


def _range(
    surface: Surface,
    q: int,
    probe: Probe,
    middle: float,
    spread: Spread,
    gap: float | None,
    rounding: float,
    budget: int,
) -> Range:
    """The extremes of one quantity."""
    region = Region(-spread.amount, spread.amount)
    below, above = searches = [Search(surface, q, sign) for sign in (-1.0, 1.0)]
    if gap is None:  # a fraction of the range between the corners suggested by the nominal gradients
        for search in searches:
            search.suggest(region)
        gap = RELATIVE_GAP * max(below.value + above.value, 0.0)
    ends = []
    for search in searches:
        search.run(region, max(gap, rounding), budget)
        bound = search.value if search.bound <= search.value + rounding else search.bound
        ends.append(Extreme(search.sign * search.value, search.sign * bound, spread.named(search.at)))
    least, most = ends
    worst = max(least.gap, most.gap)
    method = "proven at corners"
    if worst:
        within = f"proven within {format_quantity(worst, probe.unit, 3)}"
        method = within if worst < np.inf else "no bound within the budget"
    solves, systems = below.solves + above.solves, below.systems + above.systems
    return Range(str(probe), probe.unit, middle, least, most, method, solves, systems)


def _holds(one: Specification, found: Range) -> bool | None:
    """Whether a specification holds in the whole box; None where neither it nor its negation is proven."""
    if one.low <= found.least.bound and found.most.bound <= one.high:
        return True
    return False if found.least.value < one.low or found.most.value > one.high else None
