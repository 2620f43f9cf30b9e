"""Poles of the small-signal circuit: the natural frequencies s at which A₀ + s A₁ is singular.

With A₁ = P D Pᵀ (one column of P per energy-storing element) and a shift σ at which A₀ + σ A₁ is regular,

    s = σ − 1/μ,   μ the eigenvalues of D Pᵀ (A₀ + σ A₁)⁻¹ P        (k × k)

and μ = 0 where the circuit has no state: capacitors in loops with voltage sources, inductors in cuts with current
sources, ideally coupled inductors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from circuitsim.analysis.switched import at_frequencies
from circuitsim.circuit import Circuit
from circuitsim.circuit.couplings import UNCOUPLED
from circuitsim.circuit.elements import CAPACITOR, CURRENT, INDUCTOR, RESISTOR, VOLTAGE
from circuitsim.errors import ConvergenceError, UsageError
from circuitsim.formats.result import Result
from circuitsim.formats.table import Table
from circuitsim.netlist.deck import Deck
from circuitsim.program.flow import spanning_forest
from circuitsim.program.precise import Pairs
from circuitsim.small_signal.equations import (
    Formulation,
    SmallSignalEquations,
    nodal,
    of_tree,
    small_signal_equations,
)
from circuitsim.small_signal.frequency import MOST_TERMS, SAFETY
from circuitsim.small_signal.linearized import linearized
from circuitsim.small_signal.solution import Solution

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LARGEST = 3000
"""Maximum number of energy-storing elements."""
BACKWARD = 2.0**-50
"""Rounding error of an eigenvalue problem, relative to its norm and order: four units of 2⁻⁵² for the QR algorithm
(Wilkinson, 1965) and the entries."""
SHIFTS, FARTHEST = 12, 1e-40
"""Maximum number of shifts down and up, and the range of each way, 40 decades."""
EXACT = 2.0**-80
"""Relative error of a pole at a shift where the equations are singular: of the 2⁻¹⁰⁶ of pairs of doubles, 26 bits are
left for the condition of the equations."""

SINGULAR = (
    "the small-signal equations are singular at every frequency: an unconnected part, or ideally coupled windings in "
    "parallel"
)


@dataclass(frozen=True, eq=False, repr=False)
class Poles(Result):
    """Natural frequencies.

    Attributes
    ----------
    values : (k,) complex array
        rad/s, in ascending magnitude; pairs of conjugates in order of imaginary part. Real parts within their bound of
        the imaginary axis are 0.
    kinks : tuple of str
        Diodes without current and voltage at the operating point.
    bounds : (k,) float array
        Error bound of each real part, 1/s.
    title : str
        Of the circuit.
    """

    values: np.ndarray
    kinks: tuple[str, ...]
    bounds: np.ndarray
    title: str = ""

    @property
    def hertz(self) -> np.ndarray:
        """|s| / 2π (k,), Hz."""
        return np.abs(self.values) / (2.0 * np.pi)

    @property
    def damping(self) -> np.ndarray:
        """−Re s / |s| (k,): 1 for decays without oscillation, 0 for undamped oscillations, negative for growth."""
        size = np.abs(self.values)
        return np.divide(-self.values.real, size, out=np.zeros(size.size), where=size > 0.0)

    @property
    def stability(self) -> str:
        """``"stable"``, ``"marginal"`` or ``"unstable"``.

        Stable: every small signal decays. Unstable: one grows exponentially. Marginal: neither, but a pole lies on the
        imaginary axis, as far as `bounds` tell (`rounding`).
        """
        real = self.values.real
        return "unstable" if (real > 0.0).any() else "marginal" if (real == 0.0).any() else "stable"

    @property
    def stable(self) -> bool:
        """Whether every small signal decays: all poles are left of the imaginary axis."""
        return self.stability == "stable"

    @property
    def rounding(self) -> float:
        """The largest bound of a pole on the imaginary axis, 1/s.

        It is 0 where topology places all of them there, and where none lies there.
        """
        return float(self.bounds[self.values.real == 0.0].max(initial=0.0))

    def tables(self) -> dict[str, Table]:
        """``poles``: real and imaginary part, frequency and damping."""
        columns = self.values.real, self.values.imag, self.hertz, self.damping
        return {"poles": Table(("real", "imaginary", "frequency", "damping"), ("1/s", "1/s", "Hz", ""), columns)}

    def to_dict(self) -> dict[str, Any]:
        """The poles as plain values, and their stability: the JSON object of ``circuitsim ac --poles``."""
        stable = {"stable": self.stable, "stability": self.stability, "rounding": self.rounding}
        return super().to_dict() | stable

    def _figure(self) -> Figure:
        from circuitsim.plotting.bode import plot_poles

        return plot_poles(self.title, self.values)

    def _heading(self) -> tuple[str, str]:
        return self.title, f"{self.values.size} poles, {self.stability}"

    def _proof(self) -> str:
        within = f"; real parts are known to {self.rounding:.1e} 1/s" if self.rounding else ""
        return self.stability + within


def poles(circuit: Circuit | Deck, couplings: Mapping[tuple[str, str], float] = UNCOUPLED) -> Poles:
    """The poles of the small-signal circuit at the operating point.

    Parameters
    ----------
    circuit : Circuit or Deck
    couplings : mapping of (str, str) to float, optional
        Coupling factors of pairs of inductors, -1 to 1; ±1 is ideal.

    Raises
    ------
    UsageError
        More than `LARGEST` capacitors and inductors; couplings that no inductors have; a circuit with amplifiers.
    InfeasibleError, UnboundedError
        No operating point.
    ConvergenceError
        Equations that are singular at every s.
    """
    circuit, couplings = at_frequencies(circuit, couplings)
    system = small_signal_equations(linearized(circuit), couplings, factored=True)
    count = system.storages.size
    if count > LARGEST:
        raise UsageError(f"poles are computed for up to {LARGEST:,} capacitors and inductors, not {count:,}")
    live = np.flatnonzero(system.storages != 0.0)
    if not live.size:
        _solution(system, 1.0)
        return Poles(np.zeros(0, dtype=complex), system.linear.kinks, np.zeros(0), circuit.title)
    with np.errstate(over="ignore"):  # poles up to the range of doubles
        found, bounds = _Spectrum(system, live).poles()
    order = np.lexsort((found.imag, np.round(np.log(np.abs(found) + 1e-300), 9)))
    return Poles(found[order], system.linear.kinks, bounds[order], circuit.title)


class _Spectrum:
    """All poles with error bounds, from several shifts.

    The eigenvalues at a shift σ resolve the poles with magnitudes near σ. Faster and slower ones are computed at shifts
    of their own magnitude, poles near the imaginary axis at a shift on it, which avoids cancellation in the real part.
    """

    def __init__(self, system: SmallSignalEquations, live: np.ndarray) -> None:
        self.system, self.live, self.centre = system, live, _shift(system, live)
        arrays = system.linear.arrays
        self.states, self.zeros = _states(system, live)
        self.passive = not system.linear.laws and not (arrays.value[arrays.kind == RESISTOR] < 0.0).any()
        self.passive = self.passive and not (arrays.value[system.elements] < 0.0).any()
        self.lossless = self.passive and not (arrays.value[arrays.kind == RESISTOR] > 0.0).any()

    def poles(self) -> tuple[np.ndarray, np.ndarray]:
        """Values (k,) and bounds (k,)."""
        first = self._near(complex(self.centre))
        (low, slow), (high, fast) = (first.beyond(self.centre, down) for down in (True, False))
        half = first.between(low, high)
        for down, edge, left in ((True, low, slow), (False, high, fast)):
            view, shift, least = first, self.centre, self.zeros if down else 0
            for _ in range(SHIFTS):
                shift = 0.1 * min(edge, shift) if down else 10.0 * max(edge, shift)
                if left <= least or not FARTHEST <= shift / self.centre <= 1.0 / FARTHEST:
                    break
                try:
                    found = self._near(complex(shift))
                except ConvergenceError:  # singular to 32 digits
                    break
                new, still = found.beyond(shift, down)
                more = found.between(*sorted((new, edge)))
                if still + _count(more) != left:  # this shift does not separate them
                    break
                view, half, edge, left = found, half + more, new, still
            more = view.between(0.0, edge) if down else view.between(edge, np.inf)
            left = left - _count(more) if down else 0
            half += [*more, *[(0j, 0.0 if left == self.zeros else edge)] * left]
        values, bounds = np.array([s for s, _ in half], complex), np.array([bound for _, bound in half])
        for k in np.flatnonzero((np.abs(values.real) <= bounds) & (values != 0.0)).tolist():
            values[k], bounds[k] = self._at_axis(values[k], values, bounds)
        over = np.abs(values.real) <= bounds
        if self.lossless:  # energy is conserved
            return np.append(1j * values.imag, -1j * values.imag[values.imag > 0.0]), np.zeros(_count(half))
        if self.passive:  # energy never increases
            over |= values.real > 0.0
            bounds = np.maximum(bounds, np.where(over, np.abs(values.real), 0.0))
        values[over] = 1j * values[over].imag
        turned = values.imag > 0.0
        return np.append(values, values[turned].conj()), np.append(bounds, bounds[turned])

    def _at_axis(self, pole: complex, values: np.ndarray, bounds: np.ndarray) -> tuple[complex, float]:
        """A pole near the imaginary axis and its bound, from a shift on the axis."""
        size = abs(pole)
        own = int(np.flatnonzero(values == pole)[0])
        try:
            found, errors, *_ = self._near(1j * size)
        except ConvergenceError:  # singular there to 32 digits
            return 1j * size, EXACT * size
        rank = int((np.abs(values - 1j * size) < abs(pole - 1j * size)).sum())
        nearest = np.argsort(np.abs(found - 1j * size), kind="stable")[rank]
        if not errors[nearest] < bounds[own]:
            return pole, float(bounds[own])
        return complex(found[nearest]), float(errors[nearest])

    @staticmethod
    def _balanced(response: np.ndarray, off: np.ndarray) -> tuple[np.ndarray, float]:
        """A similar matrix, and the norm of its rounding error plus errors ``off`` of its entries, for the best of some
        diagonal scalings between none and the one that balances rows and columns."""
        from scipy.linalg import lapack

        scale = (lapack.zgebal if np.iscomplexobj(response) else lapack.dgebal)(response, scale=1, permute=0)[3]
        found: list[tuple[np.ndarray, float]] = []
        for power in (0.0, 0.25, 0.5, 0.75, 1.0):
            own = np.exp2(np.round(power * np.log2(scale)))
            ratio = own / own[:, None]
            made = response * ratio
            found.append((made, BACKWARD * len(own) * float(np.linalg.norm(made)) + float(np.linalg.norm(off * ratio))))
        return min(found, key=lambda own: own[1])

    def _near(self, shift: complex) -> _View:
        """The poles as resolved by one shift."""
        from scipy.linalg import eig

        # Symmetric scaling by |D|^½ balances capacitances and inductances.
        storages = self.system.storages[self.live]
        root = np.sqrt(np.abs(storages))
        inner, off = _inner(self.system, shift, self.live)
        response = np.sign(storages)[:, None] * (root[:, None] * inner * root)
        off = root[:, None] * off * root
        response[np.abs(response) <= off] = 0.0  # balancing would amplify rounding
        response, wrong = self._balanced(response, off)
        mu, left, right = eig(response, left=True)
        # |δμ| ≤ ‖δR‖ / |yᴴ x| for unit vectors (Wilkinson, 1965).
        condition = 1.0 / np.maximum(np.abs((left.conj() * right).sum(axis=0)), 1e-300)
        wrong = wrong * condition
        order = np.argsort(-np.abs(mu), kind="stable")
        mu, wrong = mu[order], wrong[order]
        mu, wrong = mu[: self.states], wrong[: self.states]
        mu = np.where(mu == 0.0, np.finfo(float).tiny, mu)
        away = np.where(np.abs(mu) > np.finfo(float).tiny, np.abs(mu) - wrong, 0.0)
        bounds = np.divide(wrong / np.abs(mu), away, out=np.full(mu.size, np.inf), where=away > 0.0)
        return _View(shift - 1.0 / mu, bounds, 1.0 / (np.abs(mu) + wrong))


def _count(half: list[tuple[complex, float]]) -> int:
    """Number of poles, including the conjugates of those above the real axis."""
    return sum(2 if pole.imag > 0.0 else 1 for pole, _ in half)


class _View(NamedTuple):
    """Poles (k,) as resolved by one shift, their error bounds, and minimum distances from the shift."""

    values: np.ndarray
    bounds: np.ndarray
    away: np.ndarray

    def _known(self) -> np.ndarray:
        return self.bounds < 0.5 * np.abs(self.values)

    def beyond(self, shift: float, down: bool) -> tuple[float, int]:
        """A magnitude that no resolved pole's bound crosses, and the number of poles below or above it, unresolved ones
        included."""
        size = np.abs(self.values)
        own = ~self._known() & ((size <= shift) if down else (size > shift))
        if down:
            edge = min(float((size + self.bounds)[own].max(initial=0.0)), shift)
            return edge, int((size <= edge).sum())
        edge = max(float(self.away[own].min(initial=np.inf)) - shift, shift)
        return edge, int((own | (self._known() & (size > edge))).sum())

    def between(self, low: float, high: float) -> list[tuple[complex, float]]:
        """The resolved poles between two magnitudes with imaginary parts ≥ 0, and their bounds."""
        size = np.abs(self.values)
        inside = self._known() & (size > low) & (size <= high) & (self.values.imag >= 0.0)
        return list(zip(self.values[inside].tolist(), self.bounds[inside].tolist()))


def _solution(system: SmallSignalEquations, shift: complex) -> tuple[Formulation, Solution]:
    """Factors of A₀ + σ A₁.

    Raises
    ------
    ConvergenceError
        It is singular.
    """
    for by_tree in (False, True):
        made = of_tree(system, shift, MOST_TERMS) if by_tree else nodal(system)
        if made is not None:
            try:
                return made, Solution(made, shift.imag / (2.0 * np.pi), shift.real, by_tree)
            except ArithmeticError:
                continue
    raise ConvergenceError(SINGULAR)


def _inner(system: SmallSignalEquations, shift: complex, live: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pᵀ (A₀ + σ A₁)⁻¹ P for the columns ``live`` of P, real for a real shift, and its error bounds."""
    made, solution = _solution(system, shift)
    memory = made.memory[live].toarray()
    found, off = np.zeros((2, live.size, live.size), dtype=complex)
    for k, row in enumerate(memory):
        x, left = solution.of(Pairs.of(row.astype(complex)))
        found[:, k] = memory @ x.high + memory @ x.low
        off[:, k] = SAFETY * np.max([np.abs(memory @ part.high) for part in left], axis=0)
    return (found if shift.imag else found.real), off.real


def _shift(system: SmallSignalEquations, live: np.ndarray) -> float:
    """A positive real s of the order of the natural frequencies, where passive circuits are regular."""
    arrays = system.linear.arrays
    ohms = arrays.value[(arrays.kind == RESISTOR) & (arrays.value > 0.0)]
    typical = float(np.exp(np.log(ohms).mean())) if ohms.size else 1.0
    storages = system.storages[live]
    rates = np.where(storages > 0.0, 1.0 / (typical * np.abs(storages)), typical / np.abs(storages))
    return float(np.exp(np.log(rates).mean()))


def _states(system: SmallSignalEquations, live: np.ndarray) -> tuple[int | None, int]:
    """The number of states, and of those at s = 0, from the topology alone; None and 0 with controlled sources or ideal
    couplings.

    Capacitors that close loops in a forest of voltage sources and capacitors are no states, nor are inductors that a
    forest of all other elements needs. Currents persist in loops of inductors and voltage sources, charges in cut-sets
    of capacitors and current sources.
    """
    if system.linear.laws or system.ideal:
        return None, 0
    arrays = system.linear.arrays
    kind, n = arrays.kind, arrays.n_nodes
    places = system.elements[live]
    capacitors, inductors = places[kind[places] == CAPACITOR], places[kind[places] == INDUCTOR]
    idle = np.zeros(kind.size, dtype=bool)
    idle[system.elements] = system.storages == 0.0
    shorts = np.flatnonzero(
        (kind == VOLTAGE) | (idle & (kind == INDUCTOR)) | ((kind == RESISTOR) & (arrays.value == 0.0))
    )
    others = np.flatnonzero(
        (kind != CURRENT) & ~np.isin(np.arange(kind.size), inductors) & ~(idle & (kind == CAPACITOR))
    )

    def joined(*edges: np.ndarray) -> np.ndarray:
        return spanning_forest(n - 1, arrays.first, arrays.second, np.concatenate(edges))

    free = int(np.isin(capacitors, joined(shorts, capacitors)).sum())
    free += int((~np.isin(inductors, joined(others, inductors))).sum())
    loops = int((~np.isin(inductors, joined(shorts, inductors))).sum())
    cuts = int(np.isin(capacitors, joined(np.setdiff1d(others, capacitors), inductors, capacitors)).sum())
    return free, loops + cuts


__all__ = ["Poles", "poles"]
