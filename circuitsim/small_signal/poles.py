"""Poles of the small-signal circuit: the natural frequencies s at which A₀ + s A₁ is singular.

With A₁ = P D Pᵀ (one column of P an element that stores energy) and a shift σ at which A₀ + σ A₁ is regular,

    s = σ − 1/μ,   μ the eigenvalues of D Pᵀ (A₀ + σ A₁)⁻¹ P        (k × k)

and μ = 0 where the circuit has no state: capacitors in loops with voltage sources, inductors in cuts with current
sources, ideally coupled inductors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.switched import at_frequencies
from circuitsim.circuit import Circuit
from circuitsim.circuit.couplings import UNCOUPLED
from circuitsim.circuit.elements import CAPACITOR, CURRENT, INDUCTOR, RESISTOR, VOLTAGE
from circuitsim.errors import ConvergenceError, UsageError
from circuitsim.program.flow import spanning_forest
from circuitsim.program.precise import Pairs
from circuitsim.small_signal.equations import SmallSignalEquations, small_signal_equations
from circuitsim.small_signal.formulation import nodal, of_tree
from circuitsim.small_signal.frequency import MOST_TERMS
from circuitsim.small_signal.linearized import linearized
from circuitsim.small_signal.solution import Solution

LARGEST = 3000
"""Most elements that store energy."""
NEGLIGIBLE = 1e-13
"""An eigenvalue μ below this share of the largest is zero, where controlled sources or ideal couplings leave the number
of states open."""

SINGULAR = (
    "the small-signal equations are singular at every frequency: a part that no element ties to the rest, or ideally "
    "coupled windings in parallel"
)


class Poles(NamedTuple):
    """Natural frequencies.

    Attributes
    ----------
    values : (k,) complex array
        rad/s, in ascending magnitude; pairs of conjugates in order of imaginary part.
    kinks : tuple of str
        Diodes without current and voltage at the operating point.
    """

    values: np.ndarray
    kinks: tuple[str, ...]

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
    def stable(self) -> bool:
        """Whether every small signal decays."""
        return bool((self.values.real < 0.0).all())


def poles(circuit: Circuit, couplings: Mapping[tuple[str, str], float] = UNCOUPLED) -> Poles:
    """The poles of the small-signal circuit at the operating point.

    Parameters
    ----------
    circuit : Circuit
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
    system = small_signal_equations(linearized(circuit), couplings)
    count = system.storages.size
    if count > LARGEST:
        raise UsageError(f"poles of {count:,} capacitors and inductors are not computed, only of up to {LARGEST:,}")
    live = np.flatnonzero(system.storages != 0.0)
    if not live.size:
        return Poles(np.zeros(0, dtype=complex), system.linear.kinks)
    shift = _shift(system, live)
    inner = _inner(system, shift, live)
    # Symmetric scaling by |D|^½ balances capacitances and inductances.
    root = np.sqrt(np.abs(system.storages[live]))
    response = np.sign(system.storages[live])[:, None] * (root[:, None] * (inner) * root)
    mu = np.linalg.eigvals(response)
    mu = mu[np.argsort(-np.abs(mu), kind="stable")]
    states = _states(system, live)
    mu = mu[:states] if states is not None else mu[np.abs(mu) > NEGLIGIBLE * np.abs(mu[0])]
    found = shift - 1.0 / mu
    order = np.lexsort((found.imag, np.round(np.log(np.abs(found) + 1e-300), 9)))
    return Poles(found[order], system.linear.kinks)


def _inner(system: SmallSignalEquations, shift: float, live: np.ndarray) -> np.ndarray:
    """Pᵀ (A₀ + σ A₁)⁻¹ P for the columns ``live`` of P."""
    n = system.linear.arrays.n_nodes
    for turn in range(2):
        made = nodal(system) if turn == 0 else of_tree(system, shift, MOST_TERMS)
        if made is None:
            break
        try:
            solution = Solution(made.coefficients(0.0, shift), dense=turn > 0)
        except ArithmeticError:
            continue
        memory = system.memory[:, live].toarray()
        own = np.vstack([made.paths[1:].T @ memory[: n - 1], memory[n - 1 :]])
        columns = [solution.of(Pairs.of(np.append(column, np.zeros(column.size))))[0] for column in own.T]
        return np.asarray(own.T @ np.column_stack([column.high.real for column in columns]))
    raise ConvergenceError(SINGULAR)


def _shift(system: SmallSignalEquations, live: np.ndarray) -> float:
    """A positive real s of the size of the circuit's natural frequencies: there passive circuits are regular."""
    arrays = system.linear.arrays
    ohms = arrays.value[(arrays.kind == RESISTOR) & (arrays.value > 0.0)]
    typical = float(np.exp(np.log(ohms).mean())) if ohms.size else 1.0
    storages = system.storages[live]
    rates = np.where(storages > 0.0, 1.0 / (typical * np.abs(storages)), typical / np.abs(storages))
    return float(np.exp(np.log(rates).mean()))


def _states(system: SmallSignalEquations, live: np.ndarray) -> int | None:
    """The number of states, from the topology alone; None with controlled sources or ideal couplings.

    Capacitors beyond a forest of voltage sources and capacitors, and inductors that a forest of everything else still
    needs, are no states.
    """
    if system.linear.laws or system.ideal:
        return None
    arrays = system.linear.arrays
    kind, n = arrays.kind, arrays.n_nodes
    places = system.elements[live]
    capacitors, coils = places[kind[places] == CAPACITOR], places[kind[places] == INDUCTOR]
    idle = np.zeros(kind.size, dtype=bool)
    idle[system.elements] = system.storages == 0.0
    short = (kind == VOLTAGE) | (idle & (kind == INDUCTOR)) | ((kind == RESISTOR) & (arrays.value == 0.0))
    shorts = np.flatnonzero(short)
    taken = spanning_forest(n - 1, arrays.first, arrays.second, np.concatenate([shorts, capacitors]))
    free = int(np.isin(capacitors, taken).sum())
    others = np.flatnonzero((kind != CURRENT) & ~np.isin(np.arange(kind.size), coils) & ~(idle & (kind == CAPACITOR)))
    taken = spanning_forest(n - 1, arrays.first, arrays.second, np.concatenate([others, coils]))
    return free + int((~np.isin(coils, taken)).sum())


__all__ = ["Poles", "poles"]
