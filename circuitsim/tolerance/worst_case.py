"""Worst cases with proof: the extremes of quantities over a box of values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.analysis.probes import Formula, Probe, Reader, parse_probes
from circuitsim.analysis.solve import prepared
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CAPACITOR, CURRENT, DIODE, INDUCTOR, RESISTOR, VOLTAGE
from circuitsim.circuit.expansion import expanded
from circuitsim.errors import UsageError
from circuitsim.executors import executor_of, in_order
from circuitsim.formats.result import Result
from circuitsim.formats.table import Table
from circuitsim.models.smooth import SmoothDevice
from circuitsim.netlist.deck import Deck
from circuitsim.tolerance.bounds import Elements, Found, Region, Search, Surface
from circuitsim.tolerance.port_model import port_model
from circuitsim.tolerance.rayleigh import DISSIPATION, Case, rayleigh
from circuitsim.tolerance.specification import Specification, parse_specification
from circuitsim.tolerance.spread import Distribution, Spread, Tolerance, observed, parse_tolerances, spread_circuit
from circuitsim.units import format_quantity

if TYPE_CHECKING:
    from matplotlib.figure import Figure


BUDGET = 4000
"""Linear systems of a search, by default."""
TOGETHER = 16
"""Quantities of a task, which share one model of the circuit."""

RELATIVE_GAP, ROUNDING = 1e-4, 1e-9
"""Gap that ends a search, of the range found; share of the scale within which a bound counts as reached."""


class Extreme(NamedTuple):
    """The least or largest value of a quantity.

    Attributes
    ----------
    value : float
        Attained, at a certified operating point.
    bound : float
        No value of the box lies beyond; equal to ``value`` where the extreme is exact.
    at : dict of str to float
        The toleranced numbers there.
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
        How they were proven.
    solves, systems : int
        Certified operating points, and small linear systems.
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

    def __init__(
        self,
        title: str,
        ranges: Sequence[Range],
        specifications: Sequence[Specification],
        tolerances: Sequence[Tolerance],
    ) -> None:
        self.title, self.ranges, self.tolerances = title, tuple(ranges), tuple(tolerances)
        self.specifications = tuple((one, _holds(one, self[one.quantity])) for one in specifications)

    def __getitem__(self, name: str) -> Range:
        """The extremes of a quantity; case does not matter."""
        wanted = name.lower().replace(" ", "")
        for found in self.ranges:
            if found.name.lower() == wanted:
                return found
        raise UsageError(f"{name!r} was not observed; there are {', '.join(r.name for r in self.ranges)}")

    def to_dict(self) -> dict[str, Any]:
        """As plain values: the JSON object of ``circuitsim worst-case --format json``."""
        return {
            "schema": 2,
            "title": self.title,
            "tolerances": [str(one) for one in self.tolerances],
            "quantities": {
                r.name: {
                    "unit": r.unit,
                    "nominal": r.nominal,
                    "least": _plain(r.least),
                    "most": _plain(r.most),
                    "exact": r.exact,
                    "method": r.method,
                    "solves": r.solves,
                    "systems": r.systems,
                }
                for r in self.ranges
            },
            "specifications": {str(one): holds for one, holds in self.specifications},
        }

    def tables(self) -> dict[str, Table]:
        """``quantities``: unit, nominal, least, most, their bounds, exact, method; ``corners``: values at the ends."""
        rows = [
            (r.name, r.unit, r.nominal, r.least.value, r.most.value, r.least.bound, r.most.bound, r.exact, r.method)
            for r in self.ranges
        ]
        corners = [(r.name, name, value, r.most.at[name]) for r in self.ranges for name, value in r.least.at.items()]
        header = "quantity, unit, nominal, least, most, least_bound, most_bound, exact, method"
        return {
            "quantities": Table.of(header, rows, named=True),
            "corners": Table.of("quantity, name, least, most", corners),
        }

    def _figure(self) -> Figure:
        from circuitsim.plotting.bars import plot_worst_case

        return plot_worst_case(self)

    def _heading(self) -> tuple[str, str]:
        ends = [f"{r.least.value:.6g} ≤ {r.name} ≤ {r.most.value:.6g} {r.unit}" for r in self.ranges]
        return self.title, ", ".join(ends)

    def _proof(self) -> str:
        return "certified: every extreme is attained, and no value passes its bound"


def worst_case(
    source: Circuit | Deck,
    tolerances: Mapping[str, float | str] | Sequence[str | Tolerance] = (),
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
        Ranges to hold everywhere.
    gap : float, optional
        Distance of value and bound that ends a search, V or A; by default 1e-4 of the range.
    budget : int
        Most linear systems of each search; what gap is left is stated.
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
    stated = parse_tolerances(tolerances)
    wanted = [parse_specification(s) if isinstance(s, str) else s for s in specifications]
    circuit, spread = spread_circuit(source, stated)
    if Distribution.NORMAL in spread.distribution:
        first = spread.variables[spread.distribution.index(Distribution.NORMAL)]
        raise UsageError(
            f"{first}: normal tolerances have no limits: a worst case needs uniform or truncated ones, "
            f"for instance --tol '{first}=5%' in their place"
        )
    _check(circuit, spread)
    text = observed(source, observe, specifications)
    words = [word for word in text.split() if word.lower() == DISSIPATION]
    plain = " ".join([*(w for w in text.split() if w.lower() != DISSIPATION), *(s.quantity for s in wanted)])
    names: list[str] = [*(str(p) for p in parse_probes(plain, circuit)), *([DISSIPATION] if words else [])]
    if not names:
        raise UsageError("nothing is observed: name at least one quantity, for instance v(out)")
    tasks = [
        _Task(circuit, spread, tuple(names[k : k + TOGETHER]), gap, budget) for k in range(0, len(names), TOGETHER)
    ]
    ranges: list[Range] = []
    with executor_of(workers, executor) as (pool, count):
        for found in in_order(pool, count, run_task, tasks):
            ranges += found
            if progress is not None:
                progress(len(ranges), len(names))
    return WorstCase(circuit.title, ranges, wanted, stated)


TOLERANCED = (RESISTOR, VOLTAGE, CURRENT)
"""Codes of the elements whose values may deviate."""


class _Task(NamedTuple):
    """Some quantities of a circuit."""

    circuit: Circuit
    spread: Spread
    names: tuple[str, ...]
    gap: float | None
    budget: int


def run_task(task: _Task) -> list[Range]:
    """The extremes of some quantities, in their order."""
    circuit, spread, names, gap, budget = task
    rising = _rising(spread)
    only = rising is not None and all(circuit[n].kind == "resistor" for n in spread.names)
    found: dict[str, Range] = {}
    searched: list[Probe] = []
    for name in names:
        probe = None if name == DISSIPATION else parse_probes(name, circuit)[0]
        if isinstance(probe, Formula):
            raise UsageError(f"{name}: worst cases are proven of v(node), v(a,b) and i(element)")
        case = None if circuit.devices else rayleigh(circuit, only, probe)
        if case is not None and rising is not None:
            found[name] = _two_solves(circuit, spread, rising, probe, case)
        elif probe is None or probe.kind not in ("v", "i"):
            raise UsageError(
                f"{name}: worst cases are proven of v(node), v(a,b) and i(element); of dissipation and of the power of "
                "a source with Rayleigh's monotonicity, which needs resistors, ideal diodes and sources of one kind, "
                "and tolerances of resistors alone, none of which raises one and lowers another"
            )
        elif probe.kind == "i" and circuit.element_index(probe.first) in circuit.devices:
            raise UsageError(f"{probe}: observe the current of an element in series with the device")
        else:
            searched.append(probe)
    if searched:
        found |= {one.name: one for one in _searched(circuit, spread, searched, gap, budget)}
    return [found[name] for name in names]


def _check(circuit: Circuit, spread: Spread) -> None:
    """Refuse elements without a proof."""
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
        if name not in circuit or kind[circuit.element_index(name)] not in TOLERANCED:
            raise UsageError(f"{name}: worst cases are proven over resistances and sources; give those a tolerance")


def _rising(spread: Spread) -> np.ndarray | None:
    """Sign of each variable's effects (v,); None where one variable raises a number and lowers another."""
    low, high = (end(axis=1).toarray().ravel() for end in (spread.weights.min, spread.weights.max))
    return None if ((low < 0.0) & (high > 0.0)).any() else np.where(low < 0.0, -1.0, 1.0)


def _two_solves(circuit: Circuit, spread: Spread, rising: np.ndarray, probe: Probe | None, case: Case) -> Range:
    """The extremes where Rayleigh's monotonicity holds: all numbers at their largest, and all at their smallest."""
    ready = prepared(circuit)

    def read(point: OperatingPoint) -> float:
        return point.power() if probe is None else float(Reader([probe], circuit).read(point)[0])

    found = []
    for sign in (-1.0, 1.0):
        values = spread.values(sign * rising * spread.amount)
        at = dict(zip(spread.names, values.tolist()))
        value = read(ready.solve(at))
        found.append(Extreme(value, value, at))
    least, most = sorted(found, key=lambda one: one.value)
    name, unit = (DISSIPATION, "W") if probe is None else (str(probe), probe.unit)
    return Range(name, unit, read(ready.solve()), least, most, case.value, 3, 0)


def _searched(circuit: Circuit, spread: Spread, probes: Sequence[Probe], gap: float | None, budget: int) -> list[Range]:
    """The extremes by branch and bound."""
    elementary = expanded(circuit).circuit if circuit.devices else circuit
    places = [circuit.element_index(name) for name in spread.names]
    kind, value = elementary.arrays().kind, elementary.arrays().value
    ohmic = np.array([kind[k] == RESISTOR for k in places], dtype=bool)
    resistors = [k for k, is_ohmic in zip(places, ohmic) if is_ohmic]
    sources = [k for k, is_ohmic in zip(places, ohmic) if not is_ohmic]
    weights = spread.weights.toarray()
    single = np.count_nonzero(weights, axis=1) == 1
    elements = Elements(value[resistors], weights[:, ohmic], weights[:, ~ohmic], single)
    ready, reader, diodes = prepared(elementary), Reader(probes, elementary), kind == DIODE
    nominal = ready.solve()

    def solve(deviations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        column = value.copy()
        column[places] = spread.values(deviations)
        point = ready.solve(column, nominal)
        return reader.read(point), point.currents[diodes] > 0.0

    surface = Surface(port_model(elementary, resistors, sources, probes), elements, solve)
    largest = {"v": float(np.abs(nominal.voltages).max()), "i": float(np.abs(nominal.currents).max())}
    found = []
    for q, (probe, middle) in enumerate(zip(probes, reader.read(nominal).tolist())):
        rounding = ROUNDING * largest[probe.kind]
        # Where every value is a variable of its own, the tree of a linear circuit ends at corners: no gap is needed.
        ends = not diodes.any() and single.all() and gap is None
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
    searches = [Search(surface, q, sign) for sign in (-1.0, 1.0)]
    slack = max(_gap(gap, searches, region), rounding)
    least, most = (search.run(region, slack, budget) for search in searches)
    low, high = _extreme(least, -1.0, spread, rounding), _extreme(most, 1.0, spread, rounding)
    method = "proven at corners" if low.gap == 0.0 == high.gap else _within([low, high], probe.unit)
    solves, systems = least.solves + most.solves, least.systems + most.systems
    return Range(str(probe), probe.unit, middle, low, high, method, solves, systems)


def _gap(gap: float | None, searches: Sequence[Search], region: Region) -> float:
    """The gap that ends a search: a share of the range between the corners that the nominal gradients suggest."""
    if gap is not None:
        return gap
    for search in searches:
        search.suggest(region)
    return RELATIVE_GAP * max(searches[0].value + searches[1].value, 0.0)


def _extreme(found: Found, sign: float, spread: Spread, rounding: float) -> Extreme:
    exact = found.bound <= found.value + rounding
    at = dict(zip(spread.names, spread.values(found.at).tolist()))
    return Extreme(sign * found.value, sign * (found.value if exact else found.bound), at)


def _within(ends: Sequence[Extreme], unit: str) -> str:
    worst = max(end.gap for end in ends)
    return "no bound within the budget" if worst == np.inf else f"proven within {format_quantity(worst, unit, 3)}"


def _holds(one: Specification, found: Range) -> bool | None:
    """Whether a range is kept everywhere; None where neither is proven."""
    if one.low <= found.least.bound and found.most.bound <= one.high:
        return True
    return False if found.least.value < one.low or found.most.value > one.high else None


def _plain(extreme: Extreme) -> dict[str, Any]:
    bounded = abs(extreme.bound) < np.inf
    return {"value": extreme.value, "bound": extreme.bound if bounded else None, "at": extreme.at}


__all__ = ["Extreme", "Range", "WorstCase", "worst_case"]
