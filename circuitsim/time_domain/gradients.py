"""Exact gradients of values, integrals and mean squares of waveforms, through events.

They are forward sensitivities of exact runs (`circuitsim.time_domain.sensitivities`) and of implicit ones
(`circuitsim.time_domain.implicit_sensitivities`). A periodic state is an implicit function of the parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, get_args

import numpy as np

from circuitsim.arguments import NAMES, checked, listed, numbers, real
from circuitsim.errors import UsageError
from circuitsim.time_domain.functionals import EventTime, Functional, Value, branch_weights, check
from circuitsim.time_domain.implicit_result import ImplicitResult
from circuitsim.time_domain.implicit_sensitivities import implicit_sensitivities
from circuitsim.time_domain.numbers import STEP, ExactDirections, Stepped
from circuitsim.time_domain.result import RESULT, TransientResult
from circuitsim.time_domain.sensitivities import Sensitivities
from circuitsim.time_domain.shooting import ONCE
from circuitsim.time_domain.steady import ImplicitPeriodicResult, PeriodicResult, states_of

TOGETHER = 32
"""Number of parameters in one pass, whose matrices are held for each mode: 8 MB for one of 128 states."""


class WaveformGradient(NamedTuple):
    """Values of functionals, and the gradient of their weighted sum.

    Attributes
    ----------
    values : (f,) float array
    gradient : dict of str to float
        By name: per Ω, F, H; per V or A of a DC source; per unit of a factor on a source with a waveform; per unit of
        the number of a device, a switch, a coupling, an initial value.
    """

    values: np.ndarray
    gradient: dict[str, float]


@checked(
    result=RESULT,
    functionals=listed("a functional such as Value('v(out)', 1e-3)", *get_args(Functional)),
    names=NAMES,
    weights=numbers(real, 0),
)
def waveform_gradient(
    result: TransientResult,
    functionals: Sequence[Functional],
    names: Sequence[str],
    weights: Sequence[float] | None = None,
) -> WaveformGradient:
    """Functionals of waveforms and the gradient of their weighted sum by numbers of the circuit.

    Parameters
    ----------
    result : TransientResult
        Of `circuitsim.time_domain.transient`, or of `steady_state`: then the beginning moves with the numbers.
    functionals : sequence of Value, Integral, EventValue or EventTime
    names : sequence of str
        Resistors, capacitors, inductors and sources by name; parameters of piecewise-linear devices (``D1.vfwd``);
        ``vt``, ``vh``, ``ron`` and ``roff`` of switches (``S1.vt``); couplings ``k(L1,L2)``; initial values that the
        run was begun with (``C1.ic``), or held at (``L1.ic``, ``v(out)``).
    weights : sequence of float, optional
        All 1 without them; of a loss its derivatives by the functionals.

    Returns
    -------
    WaveformGradient

    Raises
    ------
    UsageError
        An event at which a waveform only touches zero, a jump between two sets of diodes, times outside the run, other
        quantities and names.

    Examples
    --------
    ``waveform_gradient(run, [Integral("v(out)", 0.0, 0.02)], ["R1", "D1.vfwd"]).gradient["D1.vfwd"]``
    """
    shares = shares_of(weights, len(functionals))
    if isinstance(result, ImplicitResult):
        values, by_number = _of_implicit(result, functionals, names)
    else:
        values, by_number = _of_exact(result, functionals, names)
    return WaveformGradient(values, dict(zip(names, (shares @ by_number).tolist())))


def shares_of(weights: Sequence[float] | None, count: int) -> np.ndarray:
    """The weights of ``count`` values, 1 by default."""
    shares = np.ones(count) if weights is None else np.asarray(weights, float)
    if shares.shape != (count,):
        raise UsageError(f"{shares.size} weights for {count} values: give one of each")
    return shares


def _of_implicit(
    result: ImplicitResult, functionals: Sequence[Functional], names: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Values of functionals (f,), and their derivatives by numbers (f, n)."""
    if not isinstance(result, ImplicitPeriodicResult):
        return implicit_sensitivities(result, functionals, names)
    f, n, (states, quantities) = len(functionals), len(names), states_of(result.circuit)
    ends = [Value(quantity, result.stop) for quantity in quantities]
    initial = [f"{state}.ic" for state in states]
    values, by = implicit_sensitivities(result, [*functionals, *ends], [*names, *initial])
    return values[:f], by[:f, :n] + _through_period(by[:f, n:], by[f:, n:], by[f:, :n])


def _through_period(by_state: np.ndarray, monodromy: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Derivatives of functionals through the periodic state, x = x(T; x): from those by the initial states (f, q), and
    from those of the final states by these (q, q) and by numbers (q, n)."""
    found = np.linalg.lstsq(np.eye(len(monodromy)) - monodromy.T, by_state.T, rcond=ONCE)[0]
    return np.asarray(found.T @ last)


def _of_exact(
    result: TransientResult, functionals: Sequence[Functional], names: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Values of functionals (f,), and their derivatives by numbers (f, n)."""
    for functional in functionals:
        check(result, functional)
    of = ExactDirections(result.origin, names)
    timed = [own for own in functionals if not isinstance(own, EventTime)]
    quantities = {own.quantity: branch_weights(result, own.quantity) for own in timed}

    def forward(steps: list[Stepped], initial: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        run = Sensitivities(result.origin, result.segments, result.stop, steps, functionals, quantities, strict=True)
        last = run.run(initial)
        return run.values, last.imag.T / STEP

    diodes = result.origin.problem.diodes
    before = np.zeros(len(result.origin.problem.circuit), dtype=bool)
    before[diodes] = result.segments.conducting(np.array([0]))[0, : diodes.size]
    initial = STEP * of.states(before) * (not isinstance(result, PeriodicResult))
    passes = [slice(k, k + TOGETHER) for k in range(0, len(of.steps), TOGETHER)]
    found, last = zip(*(forward(of.steps[own], initial[own]) for own in passes))
    values, by_number = found[0][:, 0].real.copy(), np.hstack(found).imag / STEP
    if isinstance(result, PeriodicResult):
        by_state, monodromy = forward([], STEP * np.eye(len(last[0])))
        by_number = by_number + _through_period(by_state.imag / STEP, monodromy, np.hstack(last))
    return values, by_number
