"""`transient`: waveforms from 0 to a time, with their certificate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from types import MappingProxyType

import numpy as np

from circuitsim import errors as circuit_errors
from circuitsim.analysis.switching import Switch
from circuitsim.arguments import POSITIVE, instance, number, table
from circuitsim.circuit import Circuit
from circuitsim.circuit.couplings import UNCOUPLED
from circuitsim.circuit.elements import CAPACITOR, INDUCTOR
from circuitsim.circuit.source import analysis
from circuitsim.circuit.waveforms import WAVEFORM, Waveform, check_cycles
from circuitsim.errors import CircuitError, ConvergenceError, UsageError
from circuitsim.models.smooth import SmoothDevice
from circuitsim.netlist.deck import Deck, equidistant
from circuitsim.netlist.deck import points as spaced
from circuitsim.netlist.functions import Grid
from circuitsim.time_domain.deck import beside, setting, stated
from circuitsim.time_domain.exact_run import ExactRun
from circuitsim.time_domain.formula_sources import FormulaOfSolution
from circuitsim.time_domain.implicit import Implicit
from circuitsim.time_domain.implicit_result import implicit_run
from circuitsim.time_domain.problem import STATES, Problem
from circuitsim.time_domain.proof import SHORTER, Waves, certify, intervals, shortened
from circuitsim.time_domain.result import Origin, Segments, TransientResult, evaluate, up_to_end

POINTS, LARGEST_POINTS = 1001, 1_000_000
"""Default and maximum number of output times."""
LARGEST_WAVES = 2_000_000_000
"""Maximum size of all waveforms, bytes."""
ACCURACY = 1e-4
"""Default accuracy of the implicit method."""
EARLIER = 0.1
"""Accuracy of a run that determines what formulas read, relative to that of the run with their values."""
NONE: Mapping[str, Waveform] = MappingProxyType({})


class Method(Enum):
    """Methods of transient analysis."""

    EXACT = "exact"
    IMPLICIT = "implicit"

    @classmethod
    def _missing_(cls, value: object) -> Method:
        raise UsageError(f"{value!r} is not a method: use exact or implicit")


waves = partial(
    analysis,
    waveforms=table(WAVEFORM, "{'V1': Sine(0, 1, 50)} (output times: points=, step=)"),
    method=instance("'exact' or 'implicit'", Method, str),
    switches=table(instance("a Switch", Switch), "{'S1': Switch(('a', '0'), 1.0)}"),
)
"""Rules of the arguments of analyses over time."""


def needs_implicit(circuit: Circuit, waveforms: Mapping[str, Waveform] = NONE) -> str:
    """Why a circuit needs the implicit method: its first controlled source, smooth device or source without an exact
    waveform, or more than `STATES` capacitors and inductors. Empty where the exact method applies.
    """
    names, kind = circuit.names, circuit.arrays().kind
    if circuit.laws:
        return f"{names[min(circuit.laws)]} is a controlled source"
    for k, device in circuit.devices.items():
        if isinstance(device, SmoothDevice):
            return f"{names[k]} is a {device.model.name}"
    for name, wave in waveforms.items():
        if wave.what:
            return f"{name} is {wave.what}"
    states = int(((kind == CAPACITOR) | (kind == INDUCTOR)).sum())
    return f"{states} capacitors and inductors, more than {STATES}" if states > STATES else ""


@waves(max_step=number(0, between=True, endless=True))
def transient(
    circuit: Circuit | Deck,
    stop: float | None = None,
    waveforms: Mapping[str, Waveform] = NONE,
    initial: Mapping[str, float] | None = None,
    points: int | None = None,
    tolerance: float = 1e-9,
    switches: Mapping[str, Switch] = MappingProxyType({}),
    couplings: Mapping[tuple[str, str], float] = UNCOUPLED,
    progress: Callable[[float, float], bool | None] | None = None,
    begin: float = 0.0,
    held: Mapping[str, float] = MappingProxyType({}),
    method: Method | str | None = None,
    accuracy: float = ACCURACY,
    step: float | None = None,
    max_step: float | None = None,
) -> TransientResult:
    """The waveforms of a circuit of R, C, L, convex devices, switches and sources from 0 to ``stop`` s.

    Parameters
    ----------
    circuit : Circuit or Deck
        A deck states waveforms, switches, couplings, ``.ic`` and, by its ``.tran`` card, output times; arguments come
        before its own.
    stop : float, optional
        s; of a deck, without it, the end that its ``.tran`` card states.
    waveforms : mapping of str to Waveform, optional
        Of voltage and current sources by name; all other sources keep the circuit's values.
    initial : mapping of str to float, optional
        Voltages of capacitors and of junctions with a charge, V, and inductor currents, A, by name, all others 0
        (SPICE's ``uic``); without it the operating point at time 0.
    points : int, optional
        Number of output times, evenly spaced, both ends included; 1001 without it.
    tolerance : float
        Tolerance of Kirchhoff's laws, the elements' equations and the energy balance (`TransientCertificate`).
    switches : mapping of str to Switch, optional
        Resistors by name that are switches.
    couplings : mapping of (str, str) to float, optional
        Coupling factors of pairs of inductors, −1 to 1.
    progress : callable, optional
        Called with the time that is reached and ``stop``, s, from time to time; True ends the run there.
    begin : float
        First output time, s; the run itself begins at 0.
    held : mapping of str to float, optional
        Potentials of nodes, V, and currents of inductors, A, that the operating point at time 0 is held at (SPICE's
        ``.ic``). With `initial` they are the initial values of inductors and of capacitors that it does not name.
    method : Method or str, optional
        ``exact`` or ``implicit``; without it exact where it applies (`TransientResult.reason`).
    accuracy : float
        Largest error of capacitor voltages and inductor currents of the implicit method, over the largest value of
        each; where it is larger, the result has a warning.
    step : float, optional
        Distance of the output times, s, in place of their number; the last one is shorter where it has to be.
    max_step : float, optional
        Longest step of the implicit method, s; the exact one has none.

    Returns
    -------
    TransientResult
        An `ImplicitResult` of the implicit method.

    Raises
    ------
    UsageError
        A time that is not positive, an unknown source, too many states; for a deck, what it states itself.
    InfeasibleError, UnboundedError
        Sources that contradict each other at some time, through diodes or at once; the error names them and the time.
    ConvergenceError
        Events that do not end; waveforms that fail their certificate.

    Notes
    -----
    An error after time 0 has the certified waveforms before it as `CircuitError.partial_result`.
    """
    longest = np.inf
    if isinstance(circuit, Deck):
        own, dynamics = setting(circuit, step, stop, initial), circuit.dynamics
        if dynamics is not None:
            dynamics.check_changes(waveforms)
            couplings = dynamics.coupled(couplings)
        waveforms, switches = beside(own.waveforms, waveforms), beside(own.switches, switches)
        circuit, stop, initial, longest = own.circuit, own.stop, own.initial, own.max_step
        begin, held = begin or own.begin, {**own.held, **held}
        step = own.step if points is None else step
    elif circuit.dynamics is not None and stop is not None:  # without ``stop`` the times below are an error
        grid = Grid(step or stop / ((points or POINTS) - 1 or 1), stop)
        circuit, waveforms, switches, couplings = stated(circuit, grid, waveforms, switches, couplings)
    times = output_times(begin, stop, points, step)
    if 16 * times.size * len(circuit) > LARGEST_WAVES:
        most = LARGEST_WAVES // (16 * len(circuit))
        raise UsageError(
            f"{times.size:,} output times of {len(circuit):,} elements: at most {most:,}; take a larger step"
        )
    stop = float(times[-1])
    for name, wave in waveforms.items():
        check_cycles(name, wave, stop)
    before = partial(
        partial(transient, circuit, stop, initial=initial, tolerance=tolerance, switches=switches, couplings=couplings),
        progress=progress,
        held=held,
        method=method,
        accuracy=EARLIER * accuracy,
        max_step=min(longest, max_step or stop),
    )
    waveforms, earlier = _determined(waveforms, before)
    needs = needs_implicit(circuit, waveforms) if method is None else ""
    chosen = Method(("implicit" if needs else "exact") if method is None else method)
    if chosen is Method.IMPLICIT:
        longest = min(longest, max_step or np.inf)
        make = partial(Implicit, circuit, waveforms, switches, couplings, tolerance, longest=longest)
        made = implicit_run(make, accuracy, times, initial, held, tolerance, progress)
        if made.run.parasitic:
            named = ", ".join(str(circuit.node_names[k]) for k in made.run.controlling)
            how = f"where its operating point ends the circuit switches as with {made.run.parasitic:g} F at {named}"
            needs = f"{needs}; {how}" if needs else how
        made.reason, made.earlier = needs, earlier
        return made
    run = ExactRun(Problem(circuit, waveforms, switches, couplings), stop)
    run.begin(initial, held)
    return up_to_end(lambda: run.go(progress), run.end_here, times, lambda times: finished(run, times, tolerance))


def _determined(
    waveforms: Mapping[str, Waveform], run: Callable[..., TransientResult]
) -> tuple[Mapping[str, Waveform], tuple[circuit_errors.Problem, ...]]:
    """All waveforms, those that are formulas of voltages and currents after a run for each of their levels, and the
    warnings of these runs: such sources do not influence what they read, so before they are known they are constant.

    Raises
    ------
    UsageError
        A run was ended.
    """
    unknown = {name: wave for name, wave in waveforms.items() if isinstance(wave, FormulaOfSolution)}
    waveforms, warned = (
        {name: wave for name, wave in waveforms.items() if name not in unknown},
        list[circuit_errors.Problem](),
    )
    for level in sorted({wave.level for wave in unknown.values()}):
        own = {name: wave for name, wave in unknown.items() if wave.level == level}
        try:
            found = run(waveforms=waveforms)
            waveforms |= {name: wave.after(found) for name, wave in own.items()}
        except CircuitError as error:
            error.partial_result = None  # it lacks these sources
            raise
        warned += found.warnings
    return waveforms, tuple(dict.fromkeys(warned))


def output_times(begin: float, stop: float | None, points: int | None, step: float | None = None) -> np.ndarray:
    """Output times (points,), s, from ``begin`` to ``stop``."""
    if stop is None:
        raise UsageError("the stop time is missing: give stop, s")
    stop = POSITIVE("stop", stop)
    if not 0.0 <= begin < stop:
        raise UsageError(f"the first output time is {begin:g} s: it must lie between 0 and {stop:g} s")
    if points is not None and step is not None:
        raise UsageError("give points or step, not both")
    if step is None:
        count = POINTS if points is None else points
    else:
        try:
            grid = spaced(begin, stop, POSITIVE("step", step))
        except ValueError as error:
            raise UsageError(f"output times: {error}; take a larger step") from None
        count = len(grid) + (grid[-1] != stop)
    if not 2 <= count <= LARGEST_POINTS:
        raise UsageError(f"a run has 2 to {LARGEST_POINTS:,} output times, not {count:,}; use another step")
    if step is None:
        grid = equidistant(begin, stop, (stop - begin) / max(count - 1, 1), count)
    return np.append(grid, stop)[:count]


def _waves(problem: Problem, segments: Segments, times: np.ndarray, outputs: int) -> Waves:
    """Waveforms at times (t,) within a run, of which the first ``outputs`` are output times, for its certificate."""
    voltage, current, where = evaluate(segments, times)
    m, r, closed = problem.own.role.size, problem.resistors, segments.conducting(where)[:, problem.diodes.size :]
    ohms = np.tile(problem.own.value[r], (times.size, 1))
    ohms[:, np.searchsorted(r, problem.switched)] = problem.switching.ohms(closed)
    beyond = [problem.beyond(closed[own], voltage[own], current[own]) for own in (np.s_[:outputs], np.s_[outputs:])]
    return Waves(times, outputs, voltage[:, :m].T, current[:, :m].T, ohms.T, np.concatenate(beyond).T)


def finished(run: ExactRun, times: np.ndarray, tolerance: float) -> TransientResult:
    """The result of a run with its certificate.

    Raises
    ------
    ConvergenceError
        The certificate fails.
    """
    problem, segments, energies = run.problem, run.segments(), run.energies()
    late, coarse = intervals(segments.start, run.stop), np.zeros(0, dtype=bool)
    for _ in range(SHORTER):
        late = shortened(late, coarse) if coarse.any() else late
        own = _waves(problem, segments, np.append(times, late), times.size)
        found, places, coarse = certify(problem, own, energies.imbalance, tolerance)
        if not coarse.any():
            break
    if not found.certified:
        raise ConvergenceError(f"{found.violated(places)}; use the implicit method or a larger tolerance")
    waves = problem.terminals.of_parts(own.voltage[:, : times.size].T, own.current[:, : times.size].T)
    problem.terminals.hold(*waves, tolerance)
    return TransientResult(
        problem.terminals,
        times,
        segments,
        run.changes(),
        energies,
        run.stop,
        found,
        waves,
        [problem.circuit.names[k] for k in (*problem.diodes, *problem.switched)],
        Origin(problem, tuple(run.jumps)),
        run.began,
    )
