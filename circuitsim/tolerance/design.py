"""Design: element values for targets, within bounds, rounded to preferred values (IEC 60063)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.analysis.parameters import dependencies
from circuitsim.analysis.probes import Probe, Reader, parse_probes
from circuitsim.analysis.solve import circuit_at_operating_point, prepared
from circuitsim.arguments import listed, numbers, real, refused, table
from circuitsim.circuit import Circuit
from circuitsim.circuit.source import analysis, circuit_of
from circuitsim.errors import NoSteadyStateError, UsageError
from circuitsim.formats.result import Result, proof
from circuitsim.formats.table import Table
from circuitsim.netlist.deck import Deck, warn_of_time
from circuitsim.small_signal.sensitivity import derivatives
from circuitsim.units import NumberError, parse

E24 = "1.0 1.1 1.2 1.3 1.5 1.6 1.8 2.0 2.2 2.4 2.7 3.0 3.3 3.6 3.9 4.3 4.7 5.1 5.6 6.2 6.8 7.5 8.2 9.1"
SERIES = ("E6", "E12", "E24", "E48", "E96", "E192")


def mantissas(name: str) -> np.ndarray:
    """The values of one decade, 1 ≤ value < 10.

    Raises
    ------
    UsageError
        No such series.

    Examples
    --------
    >>> mantissas("E6").tolist()
    [1.0, 1.5, 2.2, 3.3, 4.7, 6.8]
    """
    if name.upper() not in SERIES:
        raise UsageError(f"there is no series {name!r}: {', '.join(SERIES)}")
    count = int(name[1:])
    if count <= 24:
        return np.array(E24.split()[:: 24 // count], dtype=float)
    values = np.round(10.0 ** (np.arange(count) / count), 2)
    values[values == 9.19] = 9.2  # as in the standard
    return values


def neighbours(name: str, value: float) -> tuple[float, float]:
    """The largest preferred value ≤ ``value`` and the smallest ≥ ``value`` (> 0)."""
    decade = np.floor(np.log10(value))
    exponents = np.repeat([decade - 1, decade, decade + 1], mantissas(name).size).astype(int)
    found = np.array([float(f"{m:.2f}e{e}") for m, e in zip(np.tile(mantissas(name), 3).tolist(), exponents.tolist())])
    near = value * (1.0 + 1e-12 * np.array([1.0, -1.0]))
    return float(found[found <= near[0]].max()), float(found[found >= near[1]].min())


DECADES = 3.0
"""Default bounds in decades around the deck's value."""

STARTS = 8
"""Further starts between the bounds if the targets are not met from the values of the deck."""

STEPS = 8
"""Steps from the quantities at such a start to the targets."""

MET = 1e-6
"""Largest error of a design that meets its targets."""

REFITS = 30
"""Maximum number of evaluations to refit the other values after each rounding."""

PASSES = 20
"""Maximum number of passes over all values in search of better preferred neighbours."""


class Target(NamedTuple):
    """A quantity, its target value (V, A, W), and the weight of its relative error."""

    quantity: str
    value: float
    weight: float = 1.0


@dataclass(frozen=True, eq=False, repr=False)
class Design(Result):
    """Element values found for targets.

    Attributes
    ----------
    values : dict of str to float
        Ω, V, A.
    bounds : dict of str to (float, float)
    outputs : dict of str to (float, float)
        By quantity: value at the certified operating point, and target.
    error : float
        Root of the mean squared relative error, with weights.
    continuous_error : float
        The same before values were rounded.
    series : str
        Series of preferred values; empty: no rounding.
    point : OperatingPoint
    """

    PICTURE = "bars.plot_design"

    values: dict[str, float]
    bounds: dict[str, tuple[float, float]]
    outputs: dict[str, tuple[float, float]]
    error: float
    continuous_error: float
    series: str
    point: OperatingPoint

    def tables(self) -> dict[str, Table]:
        """``values``: value, low, high of each element; ``outputs``: value and target of each quantity."""
        values = [(name, value, *self.bounds[name]) for name, value in self.values.items()]
        outputs = [(name, *pair) for name, pair in self.outputs.items()]
        return {
            "values": Table.of("element, value, low, high", values, named=True),
            "outputs": Table.of("quantity, value, target", outputs, named=True),
        }

    def _heading(self) -> tuple[str, str]:
        values = [f"{name} = {value:.6g}" for name, value in self.values.items()]
        before = f" ({self.continuous_error:.3g} before rounding)" if self.series else ""
        missed = "" if self.continuous_error <= MET else "targets not met, "
        return self.point.circuit.title, f"{missed}error {self.error:.3g}{before}, {', '.join(values)}"

    def _proof(self) -> str:
        return proof(self.point.certificate)

    def to_dict(self) -> dict[str, Any]:
        """As plain values: the JSON object of ``circuitsim optimise --format json``."""
        return {
            "schema": 2,
            "title": self.point.circuit.title,
            "values": self.values,
            "bounds": {name: list(ends) for name, ends in self.bounds.items()},
            "outputs": {name: {"value": value, "target": target} for name, (value, target) in self.outputs.items()},
            "error": self.error,
            "continuous_error": self.continuous_error,
            "series": self.series or None,
            "certificate": self.point.certificate.to_dict(),
        }


def parse_target(text: str) -> Target:
    """Parse a target in the syntax of ``--target``: ``v(out)=2.5`` or ``v(out)=2.5,weight=10``.

    Raises
    ------
    UsageError
        Invalid text.
    """
    quantity, equals, rest = text.rpartition(")=")
    number, _, weight = rest.partition(",")
    try:
        if not equals:
            raise NumberError("no quantity")
        factor = parse(weight.strip().removeprefix("weight=")) if weight else 1.0
        found = Target(quantity.strip() + ")", parse(number.strip()), factor)
    except NumberError as error:
        raise UsageError(f"--target {text!r}: {error}; write QUANTITY=VALUE, for instance 'v(out)=2.5'") from None
    if not 0.0 < found.weight < math.inf:
        raise UsageError(f"--target {text!r}: the weight must be positive")
    return found


def bounds(what: str, value: Any) -> tuple[float, ...] | None:
    """The rule of the bounds of an element."""
    found = () if value is None else tuple(numbers(real)(what, value).tolist())
    if found and len(found) != 2:
        raise refused(what, value, "two bounds such as (100, '10k')")
    return found or None


@analysis(
    adjust=table(bounds, "{'R1': (100, '10k')}", listed("a name such as 'R*'", str)),
    targets=listed("text such as 'v(out)=2.5'", str, Target),
)
def optimise(
    source: Circuit | Deck,
    adjust: Sequence[str] | Mapping[str, tuple[float, float] | None],
    targets: Sequence[str | Target],
    series: str = "",
    iterations: int = 200,
) -> Design:
    """Element values with which quantities meet their targets.

    Least squares of the relative errors (trust region with bounds), with exact derivatives from adjoint circuits;
    resistances vary by their logarithm. If that does not meet the targets, eight other starts follow. Preferred values
    are chosen among the neighbours of the continuous solution, one element after another, then improved one at a time;
    each candidate is a certified operating point.

    Parameters
    ----------
    source : Circuit or Deck
    adjust : sequence of str, or dict of str to (float, float)
        Names of elements (with wildcards ``*`` and ``?``), with bounds in a dict; by default three decades
        around a resistance, ± the larger of 1 and twice its size around a source.
    targets : sequence of str or Target
        ``"v(out)=2.5"``; relative errors, absolute ones of a target of 0.
    series : str, optional
        ``E6`` … ``E192``: resistances are rounded to this series.
    iterations : int
        Maximum number of evaluations of the trust region.

    Raises
    ------
    UsageError
        Unknown names or targets.
    NoSteadyStateError
        The circuit has none at its own values.

    Examples
    --------
    >>> import circuitsim
    >>> c = circuitsim.loads('''divider
    ... V1 in 0 10
    ... R1 in out 1k
    ... R2 out 0 1k
    ... ''')
    >>> design = circuitsim.optimise(c, ["R2"], ["v(out)=2.5"], "E24")
    >>> design.values, round(design.outputs["v(out)"][0], 4)
    ({'R2': 330.0}, 2.4812)
    """
    warn_of_time(source)
    circuit = circuit_at_operating_point(source, changed=list(_bounds(circuit_of(source), adjust)))
    bounds = _bounds(circuit, adjust)
    task = _Problem(circuit, bounds, [parse_target(t) if isinstance(t, str) else t for t in targets])
    if not np.isfinite(task.residuals(task.start)).all():
        task.point(task.start)  # raises an error if there is none
    free = np.ones(task.start.size, dtype=bool)
    x = task.fitted(task.start, free, iterations)
    for start in np.random.default_rng(0).uniform(task.low, task.high, (STARTS, x.size)):
        # Where diodes block, quantities may depend on no value: elsewhere they may.
        if task.error(x) > MET:
            x = min(x, task.fitted(task.approached(start), free, iterations, near=True), key=task.error)
    continuous = task.error(x)
    if series:
        x = _rounded(task, x, series)
    values = dict(zip(task.names, task.value(x).tolist()))
    if series:
        # Remove the rounding of the logarithm.
        ohmic = [name for name, is_ohmic in zip(task.names, task.logarithmic) if is_ohmic]
        values |= {name: min(neighbours(series, values[name]), key=lambda r: abs(r - values[name])) for name in ohmic}
    point = task.ready.solve(values)
    outputs = {t.quantity: (value, t.value) for t, value in zip(task.targets, task.read(point).tolist())}
    return Design(values, bounds, outputs, task.error(x), continuous, series.upper(), point)


class _Problem:
    """Residuals and derivatives in the variables: logarithms of resistances, values of sources."""

    def __init__(self, circuit: Circuit, bounds: Mapping[str, tuple[float, float]], targets: Sequence[Target]) -> None:
        if not targets:
            raise UsageError("no target: give at least one, for instance --target 'v(out)=2.5'")
        self.circuit, self.names = circuit, list(bounds)
        self.probes = [_probe(target, circuit) for target in targets]
        self.targets = [t._replace(quantity=str(probe)) for t, probe in zip(targets, self.probes)]
        self.wanted = np.array([t.value for t in targets])
        self.weight = np.array([t.weight / (abs(t.value) or 1.0) for t in targets])
        self.logarithmic = np.array([circuit[name].kind == "resistor" for name in self.names])
        self.low, self.high = (self._variable(np.array([ends[k] for ends in bounds.values()])) for k in (0, 1))
        self.margin = 1e-9 * (self.high - self.low)
        start = self._variable(np.array([circuit[name].value for name in self.names]))
        self.start = np.clip(start, self.low + self.margin, self.high - self.margin)
        self.ready = prepared(circuit)
        self._last: tuple[bytes, OperatingPoint] | None = None

    def _variable(self, value: np.ndarray) -> np.ndarray:
        return np.where(self.logarithmic, np.log(np.where(self.logarithmic, value, 1.0)), value)

    def value(self, x: np.ndarray) -> np.ndarray:
        """Element values."""
        return np.where(self.logarithmic, np.exp(np.where(self.logarithmic, x, 0.0)), x)

    def point(self, x: np.ndarray) -> OperatingPoint:
        """The operating point."""
        key = x.tobytes()
        if self._last is None or self._last[0] != key:
            self._last = key, self.ready.solve(dict(zip(self.names, self.value(x).tolist())))
        return self._last[1]

    def read(self, point: OperatingPoint) -> np.ndarray:
        """The quantities."""
        return Reader(self.probes, self.circuit).read(point)

    def residuals(self, x: np.ndarray) -> np.ndarray:
        """Weighted relative errors; large values where there is no steady state."""
        try:
            return self.weight * (self.read(self.point(x)) - self.wanted)
        except NoSteadyStateError:
            return np.full(self.wanted.size, 1e6)

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        """Exact derivatives of the residuals; where one-sided, those towards larger values."""
        point = self.point(x)
        by = dependencies(point)
        found, own = derivatives(point, self.probes, by), [by.names.index(name) for name in self.names]
        slope = np.where(np.isnan(found.derivative), np.nan_to_num(found.above), found.derivative)[:, own]
        return self.weight[:, None] * slope * np.where(self.logarithmic, self.value(x), 1.0)

    def fitted(self, x: np.ndarray, free: np.ndarray, evaluations: int, near: bool = False) -> np.ndarray:
        """The best values of the free variables, the others being fixed; if ``near``, by small steps: the trust region
        begins with a radius of 1, by which resistances change by less than a factor of 3."""
        from scipy.optimize import least_squares

        begin = np.clip(x, self.low + self.margin, self.high - self.margin)[free]
        origin = begin if near else np.zeros(begin.size)

        def whole(part: np.ndarray) -> np.ndarray:
            full = x.copy()
            full[free] = origin + part
            return full

        found = least_squares(
            lambda part: self.residuals(whole(part)),
            begin - origin,
            lambda part: self.jacobian(whole(part))[:, free],
            (self.low[free] - origin, self.high[free] - origin),
            xtol=1e-12,
            ftol=1e-14,
            gtol=1e-14,
            max_nfev=evaluations,
        )
        return whole(found.x)

    def approached(self, x: np.ndarray) -> np.ndarray:
        """Values from ``x`` towards the targets, by targets at `STEPS` on the line between."""
        between = copy(self)
        try:
            begin = self.read(self.point(x))
            for share in np.linspace(0.0, 1.0, STEPS, endpoint=False)[1:]:
                between.wanted = begin + share * (self.wanted - begin)
                x = between.fitted(x, np.ones(x.size, dtype=bool), REFITS, near=True)
        except NoSteadyStateError:  # on the way: what was reached is a start as well
            return x
        return x

    def error(self, x: np.ndarray) -> float:
        """Root of the mean squared residual."""
        return float(np.sqrt(np.mean(self.residuals(x) ** 2)))


def _rounded(task: _Problem, x: np.ndarray, series: str) -> np.ndarray:
    """Preferred resistances near the continuous solution."""
    x, free = x.copy(), np.ones(x.size, dtype=bool)
    places = np.flatnonzero(task.logarithmic)
    # Round the most influential values first, so that the others can compensate.
    order = places[np.argsort(-np.abs(task.jacobian(x)[:, places]).max(axis=0), kind="stable")]
    for j in order.tolist():
        free[j] = False
        candidates = []
        for choice in _choices(task, x, j, series):
            trial = x.copy()
            trial[j] = choice
            if free.any():
                trial = task.fitted(trial, free, REFITS)
            candidates.append((task.error(trial), trial))
        x = min(candidates, key=lambda pair: pair[0])[1]
    for _ in range(PASSES):
        best, better = task.error(x), x
        for j in places.tolist():
            for factor in (0.999, 1.001):
                for choice in _choices(task, x + (np.arange(x.size) == j) * math.log(factor), j, series):
                    trial = x.copy()
                    trial[j] = choice
                    if (error := task.error(trial)) < best:
                        best, better = error, trial
        if better is x:
            break
        x = better
    return x


def _choices(task: _Problem, x: np.ndarray, j: int, series: str) -> list[float]:
    """Logarithms of the preferred values around a resistance, within its bounds if any is."""
    found = [math.log(value) for value in neighbours(series, float(task.value(x)[j]))]
    inside = [choice for choice in found if task.low[j] - 1e-12 <= choice <= task.high[j] + 1e-12]
    if not inside:
        raise UsageError(f"{series} has no value within the bounds of {task.names[j]}")
    return inside


def _probe(target: Target, circuit: Circuit) -> Probe:
    found = parse_probes(target.quantity, circuit)
    if len(found) != 1 or not isinstance(found[0], Probe) or found[0].kind not in ("v", "i", "p"):
        raise UsageError(f"{target.quantity!r}: a target is one of v(node), v(a,b), i(element) and p(element)")
    return found[0]


def _bounds(
    circuit: Circuit, adjust: Sequence[str] | Mapping[str, tuple[float, float] | None]
) -> dict[str, tuple[float, float]]:
    """Bounds of the adjustable elements, by name."""
    given: Mapping[str, tuple[float, float] | None] = adjust if isinstance(adjust, Mapping) else dict.fromkeys(adjust)
    found: dict[str, tuple[float, float]] = {}
    for patterns, ends in given.items():
        for pattern in patterns.split():
            matching = [n for n in circuit.names if fnmatchcase(n.lower(), pattern.lower())]
            if not matching:
                raise UsageError(f"no element is called {pattern!r}: resistors and sources can be adjusted")
            for name in matching:
                found[name] = _ends(circuit, name, ends)
    if not found:
        raise UsageError("nothing to adjust: name elements, for instance --adjust 'R*'")
    return found


def _ends(circuit: Circuit, name: str, ends: tuple[float, float] | None) -> tuple[float, float]:
    element = circuit[name]
    if element.kind not in ("resistor", "voltage source", "current source") or element.value is None:
        raise UsageError(f"{name} is a {element.kind}: resistors and sources can be adjusted")
    ohmic = element.kind == "resistor"
    if ends is None:
        if ohmic and element.value <= 0.0:
            raise UsageError(f"{name} is 0 Ω: give bounds, for instance {name}=1:1k")
        factor = 10.0**DECADES
        far = 2.0 * max(abs(element.value), 0.5)
        ends = (element.value / factor, element.value * factor) if ohmic else (element.value - far, element.value + far)
    if not ends[0] < ends[1] or (ohmic and not ends[0] > 0.0):
        raise UsageError(f"{name}: invalid bounds {ends[0]:g} and {ends[1]:g}" + " (must be above 0 Ω)" * ohmic)
    return ends
