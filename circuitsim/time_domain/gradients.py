"""Exact gradients of values, integrals and mean squares of waveforms, through events.

Those of exact runs are sensitivities (`circuitsim.time_domain.sensitivities`), those of implicit runs come from an
adjoint run. A periodic state is an implicit function of the parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from circuitsim.time_domain.functionals import EventTime, Functional, branch_weights, check
from circuitsim.time_domain.implicit_gradients import implicit_gradient
from circuitsim.time_domain.implicit_result import ImplicitResult
from circuitsim.time_domain.modes import Role
from circuitsim.time_domain.numbers import STEP, Stepped, stepped, unstepped
from circuitsim.time_domain.result import Origin, TransientResult
from circuitsim.time_domain.sensitivities import Sensitivities
from circuitsim.time_domain.shooting import ONCE
from circuitsim.time_domain.steady import ImplicitPeriodicResult, PeriodicResult
from circuitsim.time_domain.tangents import Rest

TOGETHER = 32
"""Number of parameters in one pass, whose matrices are held for each mode: 8 MB for one of 128 states."""


def beginning_derivative(origin: Origin, of: Stepped, rest: Rest) -> float:
    """The effect of a parameter on the functional through the operating point at time 0: by sources, resistances,
    closed switches, and values held by ``.ic``."""
    problem, by = origin.problem, rest.by_value
    value = of.value.imag.copy()
    value[problem.switched] = np.where(origin.start.closed, *of.ohms.imag)
    value[problem.sources] = of.rows.imag @ problem.states(0.0)[0]
    found = float(value[: len(problem.circuit)] @ by[: len(problem.circuit)])
    return found + sum(rest.by_held[name.lower()] * level.imag for name, level in of.held.items())


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
    count = len(functionals)
    shares = np.ones(count) if weights is None else np.asarray(weights, float)
    if isinstance(result, ImplicitPeriodicResult):
        functionals, shares = result.with_its_state(functionals, shares)
    if isinstance(result, ImplicitResult):
        values, gradient = implicit_gradient(result, functionals, names, shares)
        return WaveformGradient(values[:count], gradient)
    for functional in functionals:
        check(result, functional)
    origin, segments = result.origin, result.segments
    steps = [stepped(origin, name) for name in names] or [unstepped(origin)]
    timed = [own for own in functionals if not isinstance(own, EventTime)]
    quantities = {own.quantity: branch_weights(result, own.quantity) for own in timed}
    data, at_rest = (origin, segments, result.stop), origin.start.point is not None
    moves = not isinstance(result, PeriodicResult) and not at_rest

    def forward(steps: list[Stepped]) -> tuple[np.ndarray, np.ndarray]:
        run = Sensitivities(*data, steps, functionals, quantities, strict=True)
        last = run.run(np.array([of.initial.imag if moves else np.zeros(of.initial.size) for of in steps]))
        return run.values, last.imag

    found, last = zip(*(forward(steps[k : k + TOGETHER]) for k in range(0, len(steps), TOGETHER)))
    by_number = np.hstack(found)
    total = shares @ by_number.imag
    if isinstance(result, PeriodicResult) or at_rest:
        by_state = Sensitivities(*data, (), functionals, quantities, strict=True)
        derivative = by_state.run(STEP * np.eye(by_state.q)).imag / STEP
        begin = shares @ by_state.values.imag / STEP
        if isinstance(result, PeriodicResult):
            total = total + np.vstack(last) @ np.linalg.lstsq(np.eye(begin.size) - derivative, begin, rcond=ONCE)[0]
        else:
            rest = _rest(result, begin)
            total = total + [beginning_derivative(origin, of, rest) for of in steps]
    return WaveformGradient(by_number[:, 0].real.copy(), dict(zip(names, (total / STEP).tolist())))


def _rest(result: TransientResult, begin: np.ndarray) -> Rest:
    """The adjoint of the operating point at time 0, from derivatives by the initial states (q,)."""
    problem, start = result.origin.problem, result.origin.start
    by_level, parts = np.zeros(problem.parts.role.size), problem.parts
    by_level[problem.storing] = begin
    by_level[parts.role == Role.WINDING] = parts.turns @ by_level
    before = np.zeros(len(problem.circuit), dtype=bool)
    before[problem.diodes] = result.segments.conducting(np.array([0]))[0, : problem.diodes.size]
    return Rest(start, by_level[: before.size], before)
