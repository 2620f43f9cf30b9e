"""Design: element values for targets, within bounds, rounded to preferred values (IEC 60063)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import chain, combinations, product
from typing import Any, NamedTuple

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.analysis.parameters import dependencies
from circuitsim.analysis.probes import UNITS, Reader, parse_probe
from circuitsim.analysis.solve import circuit_at_operating_point, prepared
from circuitsim.arguments import listed, numbers, real, refused, table
from circuitsim.circuit import Circuit
from circuitsim.circuit.parameters import matching, parameter_values
from circuitsim.circuit.source import analysis, circuit_of
from circuitsim.errors import NoSteadyStateError, UsageError
from circuitsim.formats import Result, Table
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


def preferred(name: str, low: float, high: float) -> np.ndarray:
    """The preferred values from ``low`` to ``high`` (> 0), ascending."""
    decades = range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 1)
    found = np.array([float(f"{m:.2f}e{e}") for e in decades for m in mantissas(name).tolist()])
    return found[(found >= low * (1.0 - 1e-12)) & (found <= high * (1.0 + 1e-12))]


DECADES = 3.0
"""Default bounds in decades around the deck's value, of positive parameters."""

STARTS = 8
"""Further starts between the bounds if the targets are not met from the values of the deck."""

STEPS = 8
"""Steps from the quantities at such a start to the targets."""

MET = 1e-6
"""Largest error of a design that meets its targets."""

REFITS = 30
"""Maximum number of evaluations to refit the other values after each rounding."""

PASSES, TRIED = 100, 50
"""Maximum number of exchanges of one or two preferred values for others, and of those that are tried for one."""

NEAR = 12
"""Number of preferred values on either side of one that may take its place: half a decade of E24."""


Bounds = tuple[float, float]
"""The least and the largest value of a parameter, Ω, V, A or its own unit."""


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

    PICTURE = "plot_design"

    values: dict[str, float]
    bounds: dict[str, Bounds]
    outputs: dict[str, Bounds]
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
    adjust: Sequence[str] | Mapping[str, Bounds | None],
    targets: Sequence[str | Target],
    series: str = "",
    iterations: int = 200,
) -> Design:
    """Element values with which quantities meet their targets.

    Least squares of the relative errors (trust region with bounds), with exact derivatives from adjoint circuits;
    resistances and positive parameters of devices vary by their logarithm. If that does not meet the targets, eight
    other starts follow. Preferred values are chosen among the neighbours of the continuous solution, one element after
    another, then one or two are exchanged for others within half a decade of E24 while that helps; each candidate is a
    certified operating point.

    Parameters
    ----------
    source : Circuit or Deck
    adjust : sequence of str, or dict of str to (float, float)
        Names of elements and of parameters of devices (``D1.is``), with wildcards ``*`` and ``?``, with bounds in a
        dict; by default three decades around what varies by its logarithm, ± the larger of 1 and twice its size around
        a source.
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
    values = task.values(x)
    if series:  # their three digits, without the rounding of the logarithm
        values |= {task.names[j]: float(f"{values[task.names[j]]:.3g}") for j in task.ohmic.tolist()}
    point = task.ready.solve(values)
    outputs = {t.quantity: (value, t.value) for t, value in zip(task.targets, task.read(point).tolist())}
    return Design(values, bounds, outputs, task.error(x), continuous, series.upper(), point)


class _Problem:
    """Residuals and derivatives in the variables: logarithms of resistances and positive parameters of devices, else
    values."""

    def __init__(self, circuit: Circuit, bounds: Mapping[str, Bounds], targets: Sequence[Target]) -> None:
        if not targets:
            raise UsageError("no target: give at least one, for instance --target 'v(out)=2.5'")
        self.circuit, self.names = circuit, list(bounds)
        one_of = "a target is one of v(node), v(a,b), i(element) and p(element)"
        self.probes = [parse_probe(t.quantity, circuit, f"{t.quantity!r}: {one_of}", UNITS) for t in targets]
        self.targets = [t._replace(quantity=str(probe)) for t, probe in zip(targets, self.probes)]
        self.wanted = np.array([t.value for t in targets])
        self.weight = np.array([t.weight / (abs(t.value) or 1.0) for t in targets])
        own = parameter_values(circuit)
        self.logarithmic = np.array([_by_logarithm(circuit, name, own[name]) for name in self.names])
        self.ohmic = np.array([j for j, name in enumerate(self.names) if name in circuit and self.logarithmic[j]], int)
        self.low, self.high = (self._variable(np.array([ends[k] for ends in bounds.values()])) for k in (0, 1))
        self.margin = 1e-9 * (self.high - self.low)
        start = self._variable(np.array([own[name] for name in self.names]))
        self.start = np.clip(start, self.low + self.margin, self.high - self.margin)
        self.ready = prepared(circuit)
        self._last: tuple[bytes, OperatingPoint] | None = None

    def _variable(self, value: np.ndarray) -> np.ndarray:
        return np.log(value, out=value.copy(), where=self.logarithmic)

    def value(self, x: np.ndarray) -> np.ndarray:
        """Values of the parameters."""
        return np.exp(x, out=x.copy(), where=self.logarithmic)

    def values(self, x: np.ndarray) -> dict[str, float]:
        """Values by name."""
        return dict(zip(self.names, self.value(x).tolist()))

    def point(self, x: np.ndarray) -> OperatingPoint:
        """The operating point."""
        key = x.tobytes()
        if self._last is None or self._last[0] != key:
            self._last = key, self.ready.solve(self.values(x))
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
        found = derivatives(point, self.probes, dependencies(point))
        places = {name: k for k, name in enumerate(found.names)}
        if missing := [name for name in self.names if name not in places]:
            raise UsageError(f"{missing[0]} cannot be adjusted: near its value the device has other parts")
        slope = np.where(np.isnan(found.derivative), np.nan_to_num(found.above), found.derivative)
        slope = slope[:, [places[name] for name in self.names]]
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
    """Preferred resistances near the continuous solution: rounded one after another, while the others compensate; then
    one or two at a time exchanged for neighbours."""
    x, free = x.copy(), np.ones(x.size, dtype=bool)
    values = {j: np.log(preferred(series, *np.exp([task.low[j], task.high[j]]))) for j in task.ohmic.tolist()}
    for j, own in values.items():
        if not own.size:
            raise UsageError(f"{series} has no value within the bounds of {task.names[j]}")
    # The most influential first, so that the others can compensate.
    for j in task.ohmic[np.argsort(-np.abs(task.jacobian(x)[:, task.ohmic]).max(axis=0), kind="stable")].tolist():
        free[j] = False
        near = sorted(_around(values[j], x[j], 1).tolist(), key=lambda value: abs(value - x[j]))
        trials = [_changed(x, [j], value) for value in near]
        x = min([task.fitted(trial, free, REFITS) for trial in trials] if free.any() else trials, key=task.error)
    for _ in range(PASSES):
        better = _exchanged(task, x, values)
        if better is None:
            break
        x = better
    return task.fitted(x, free, REFITS) if free.any() else x


def _exchanged(task: _Problem, x: np.ndarray, values: Mapping[int, np.ndarray]) -> np.ndarray | None:
    """The values with one or two preferred ones exchanged so that the error is less; of all such exchanges only those
    are tried whose errors are the least to first order."""
    error, slope, best = task.residuals(x), task.jacobian(x), task.error(x)
    moves = [
        (np.linalg.norm(error + slope[:, chosen] @ (some - x[chosen])), chosen, some)
        for chosen in map(list, chain(combinations(values, 1), combinations(values, 2)))
        for some in product(*(_around(values[j], x[j], NEAR) for j in chosen))
    ]
    for _, chosen, some in sorted(moves, key=lambda move: move[0])[:TRIED]:
        trial = _changed(x, chosen, some)
        if task.error(trial) < best:
            return trial
    return None


def _changed(x: np.ndarray, places: Sequence[int], values: Any) -> np.ndarray:
    """A copy of ``x`` with other values at some places."""
    found = x.copy()
    found[list(places)] = values
    return found


def _around(values: np.ndarray, x: float, count: int) -> np.ndarray:
    """The ``count`` values below ``x``, those equal to it, and as many above."""
    low, high = np.searchsorted(values, [x - 1e-9, x + 1e-9])
    return values[max(low - count, 0) : high + count]


ADJUSTABLE = "resistors, sources and parameters of devices (D1.is) can be adjusted"


def _bounds(circuit: Circuit, adjust: Sequence[str] | Mapping[str, Bounds | None]) -> dict[str, Bounds]:
    """Bounds of the adjustable parameters, by name."""
    given: Mapping[str, Bounds | None] = adjust if isinstance(adjust, Mapping) else dict.fromkeys(adjust)
    found, values = dict[str, Bounds](), parameter_values(circuit)
    for patterns, ends in given.items():
        for pattern in patterns.split():
            names = matching(circuit, pattern, dict.fromkeys([*circuit.names, *values]))
            if not names:
                raise UsageError(f"nothing is called {pattern!r}: {ADJUSTABLE}")
            for name in names:
                found[name] = _ends(circuit, name, values.get(name), ends)
    if not found:
        raise UsageError("nothing to adjust: name elements, for instance --adjust 'R*'")
    return found


def _by_logarithm(circuit: Circuit, name: str, value: float) -> bool:
    """Whether a parameter varies by its logarithm: a resistance, or a positive parameter of a device."""
    return circuit[name].kind == "resistor" if name in circuit else value > 0.0


def _ends(circuit: Circuit, name: str, value: float | None, ends: Bounds | None) -> Bounds:
    if name in circuit and circuit[name].kind not in ("resistor", "voltage source", "current source"):
        raise UsageError(f"{name} is a {circuit[name].kind}: {ADJUSTABLE}")
    assert value is not None
    positive = _by_logarithm(circuit, name, value)
    if ends is None:
        if positive and value <= 0.0:
            raise UsageError(f"{name} is 0 Ω: give bounds, for instance {name}=1:1k")
        factor, far = 10.0**DECADES, 2.0 * max(abs(value), 0.5)
        ends = (value / factor, value * factor) if positive else (value - far, value + far)
    if not ends[0] < ends[1] or (positive and not ends[0] > 0.0):
        raise UsageError(f"{name}: invalid bounds {ends[0]:g} and {ends[1]:g}" + " (must be above 0)" * positive)
    return ends
