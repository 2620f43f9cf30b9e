"""`transient`: waveforms from 0 to a time, with their certificate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from circuitsim.circuit import Circuit
from circuitsim.errors import ConvergenceError, UsageError
from circuitsim.transient.course import Course
from circuitsim.transient.problem import Problem, Switch
from circuitsim.transient.proof import certify
from circuitsim.transient.result import TransientResult, evaluate
from circuitsim.transient.waveforms import Waveform

LARGEST_POINTS = 1_000_000
"""Most output times."""
NONE: Mapping[str, Waveform] = MappingProxyType({})


def transient(
    circuit: Circuit,
    stop: float,
    waveforms: Mapping[str, Waveform] = NONE,
    initial: Mapping[str, float] | None = None,
    points: int = 1001,
    tolerance: float = 1e-9,
    switches: Mapping[str, Switch] = MappingProxyType({}),
    couplings: Mapping[tuple[str, str], float] = MappingProxyType({}),
    progress: Callable[[float, float], bool | None] | None = None,
    begin: float = 0.0,
    held: Mapping[str, float] = MappingProxyType({}),
) -> TransientResult:
    """The waveforms of a circuit of R, C, L, ideal diodes, switches and sources from 0 to ``stop`` s.

    Parameters
    ----------
    circuit : Circuit
    stop : float
        s.
    waveforms : mapping of str to Waveform, optional
        Of voltage and current sources by name; all other sources keep the circuit's values.
    initial : mapping of str to float, optional
        Capacitor voltages, V, and inductor currents, A, by name, all others 0 (SPICE's ``uic``); without it the
        operating point at time 0.
    points : int
        Number of output times, evenly spaced, both ends included.
    tolerance : float
        What Kirchhoff's laws, the diodes' laws and the energy balance are held to (`TransientCertificate`).
    switches : mapping of str to Switch, optional
        Resistors by name that are switches.
    couplings : mapping of (str, str) to float, optional
        Coupling factors of pairs of inductors, between −1 and 1.
    progress : callable, optional
        Called with the time that is reached and ``stop``, s, from time to time; True ends the run there.
    begin : float
        First output time, s; the run itself begins at 0.
    held : mapping of str to float, optional
        Potentials of nodes, V, and currents of inductors, A, that the operating point at time 0 is held at (SPICE's
        ``.ic``). With `initial` they are the initial values of inductors and of capacitors that it does not name.

    Returns
    -------
    TransientResult

    Raises
    ------
    UsageError
        A time that is not positive, an unknown source, too many states.
    InfeasibleError, UnboundedError
        Sources that contradict each other at some time, through diodes or at once; the error names them and the time.
    ConvergenceError
        Events that do not end; waveforms that fail their certificate.
    """
    if not 0.0 < stop < np.inf:
        raise UsageError(f"a run ends at a positive time, not at {stop!r} s")
    if not 0.0 <= begin < stop:
        raise UsageError(f"the first output time is {begin:g} s: it must lie between 0 and {stop:g} s")
    if not 2 <= points <= LARGEST_POINTS:
        raise UsageError(f"a run has 2 to {LARGEST_POINTS:,} output times, not {points}")
    problem = Problem(circuit, waveforms, switches, couplings)
    run = Course(problem, stop)
    run.begin(initial, held)
    run.go(progress)
    times = np.linspace(begin, stop, points)
    if run.stop < stop:
        if run.stop <= begin:
            raise UsageError(f"the run was ended at {run.stop:g} s, before its first output time of {begin:g} s")
        times, stop = np.append(times[times < run.stop], run.stop), run.stop
    return finished(run, times, tolerance)


def finished(run: Course, times: np.ndarray, tolerance: float) -> TransientResult:
    """The result of a run with its certificate.

    Raises
    ------
    ConvergenceError
        The certificate fails.
    """
    problem, segments, energies = run.problem, run.segments(), run.energies()
    voltage, current, where = evaluate(segments, times)
    m = problem.own.role.size
    ohms = np.broadcast_to(problem.own.value[problem.resistors], (times.size, problem.resistors.size)).copy()
    places = np.searchsorted(problem.resistors, problem.switched)
    ohms[:, places] = problem.ohms(segments.conducting(where)[:, problem.diodes.size :])
    voltage, current = voltage[:, :m], current[:, :m]
    found = certify(problem.own, problem.diodes, voltage, current, ohms, energies.imbalance, tolerance)
    if not found.certified:
        raise ConvergenceError(f"the waveforms fail their certificate: {found}; accept less with a larger tolerance")
    waves = problem.terminals.of_parts(voltage, current)
    problem.terminals.hold(*waves, tolerance)
    return TransientResult(
        problem.terminals, times, segments, run.events(), energies, run.stop, found, waves,
        [problem.circuit.names[k] for k in (*problem.diodes, *problem.switched)],
        run.origin(),
    )  # fmt: skip
