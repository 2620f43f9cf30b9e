"""Results of the implicit method, and their waveforms at any time by the dense output of each step."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from circuitsim.errors import ConvergenceError, Problem, UsageError
from circuitsim.time_domain.beginning import Start, start
from circuitsim.time_domain.companion import least_norm
from circuitsim.time_domain.implicit import FLOOR, Implicit, ImplicitCertificate
from circuitsim.time_domain.implicit_events import PARASITICS
from circuitsim.time_domain.implicit_step import dense
from circuitsim.time_domain.result import Segments, TransientResult, up_to_end

BALANCE = 10.0
"""Largest imbalance of energies, relative to the accuracy."""
TENTH, HALF, TRIES = 0.1, 0.5, 4
"""Local error of the first run of a small circuit, relative to the accuracy (of a large one it is 1: a tenth takes 1.6
times the steps, and ten random meshes met the accuracy without); target of later runs; maximum number of runs."""
FINEST = 1e-12
"""Finest accuracy that double precision can meet."""
TOGETHER = 2**20
"""Number of stage voltages and currents combined at a time."""
MOST_STEPS = 40_000
"""Maximum expected number of steps of a further run; beyond, the error is reported as it is."""


def implicit_run(
    make: Callable[[float, float], Implicit],
    accuracy: float,
    times: np.ndarray,
    initial: Mapping[str, float] | None,
    held: Mapping[str, float],
    tolerance: float,
    progress: Callable[[float, float], bool | None] | None,
) -> ImplicitResult:
    """A run with output times (n,), s, made for a local error and parasitic capacitances. It is repeated with finer
    steps where the propagated error exceeds the accuracy, and with the next capacitances (`PARASITICS`) where it does
    not reach its end.

    Raises
    ------
    UsageError
        Unknown elements with initial values.
    ConvergenceError
        Endless events, steps that become too short, a certificate that fails.
    """
    local, best, parasitics, runs = 0.0, None, [0.0, *PARASITICS], 0
    while runs < TRIES:
        run = make(accuracy, parasitics[0])
        share = local or (1.0 if run.companion.large else TENTH)
        run.accuracy, run.between = share * accuracy, max(share, TENTH) * run.between
        try:
            result = _run(run, times, initial, held, tolerance, BALANCE * accuracy, progress)
        except ConvergenceError:
            if best is not None:
                return best
            if not run.controlling or len(parasitics) == 1:
                raise
            parasitics.pop(0)
            continue
        if result is None:
            break
        runs += 1
        result.accuracy, best = accuracy, result
        missed = (result.difference or 0.0) / accuracy
        if missed <= 1.0 or result.stop < times[-1] or result.steps * missed**0.25 > MOST_STEPS:
            return result
        local = share * HALF / missed
    if best is None:
        found = run.ledger.certificate(tolerance, BALANCE * accuracy)
        raise ConvergenceError(f"{found.violations}; increase the accuracy")
    return best


def _run(
    run: Implicit,
    times: np.ndarray,
    initial: Mapping[str, float] | None,
    held: Mapping[str, float],
    tolerance: float,
    balance: float,
    progress: Callable[[float, float], bool | None] | None,
) -> ImplicitResult | None:
    """A run; None if it fails its certificate with an energy tolerance of ``balance``."""
    stores = run.companion.elements.copy()
    stores[run.companion.charged_elements] = True
    begun = start(run.circuit, run.sources, run.switching, stores, initial, held)
    x = run.companion.starting(begun.level)

    def certified(times: np.ndarray) -> ImplicitResult | None:
        found = run.ledger.certificate(tolerance, balance)
        return ImplicitResult(run, times, found, begun) if found.certified else None

    def reached() -> float:
        return 0.0 if run.reached is None else run.reached.time

    return up_to_end(lambda: run.run(x, begun.closed, float(times[-1]), progress), reached, times, certified)


class ImplicitResult(TransientResult):
    """Waveforms of the implicit method; see `TransientResult`.

    Attributes
    ----------
    accuracy : float
        Requested accuracy of the waveforms.
    steps : int
        Number of steps.
    difference : float or None
        Largest error of a capacitor voltage, an inductor current or the voltage of a junction with a charge, relative
        to its largest value, as propagated along the run (`circuitsim.time_domain.implicit`); None without such
        elements.
    errors : (2, m) float array, or None
        The same error of each element's voltage, V, and current, A.
    warnings : tuple of Problem
        Of the kind ``several`` if the run begins at one of several operating points, of the kind ``accuracy`` where the
        error exceeds the accuracy or is unknown; those of runs that determine what formulas read.
    run : Implicit
    begun : Start
    """

    method = "implicit"
    points = 9
    earlier: tuple[Problem, ...] = ()
    certificate: ImplicitCertificate  # type: ignore[assignment]

    def __init__(
        self,
        run: Implicit,
        times: np.ndarray,
        certificate: ImplicitCertificate,
        begun: Start,
    ) -> None:
        self.circuit, self.times, self.stop = run.shown, times, float(times[-1])
        self.events, self.energies, self.certificate = tuple(run.events), run.ledger.energies(), certificate
        self.accuracy, self.steps = run.accuracy, len(run.step_starts)
        self.run, self.begun, self._resolution = run, begun, BALANCE * run.accuracy
        self.changing = (*run.companion.diode_names, *run.switching.names)
        self._starts = np.array([step.time for step in run.step_starts if step.time < self.stop])
        self._begins = self._starts + [2.0 * run.step_starts[n].instant for n in range(self._starts.size)]
        self.difference = self._error()
        if run.error.known:
            self.errors = run.error.off[:, : len(self.circuit)]

    def _error(self) -> float | None:
        """See ``difference``; None also where it is not known."""
        own, error = self.run.companion, self.run.error
        shown = own.storing < len(self.circuit)
        places = np.concatenate([own.storing[shown], own.charged_elements])
        if not error.known or not places.size:
            return None
        capacitor = np.append(own.capacitor[shown], np.ones(own.charged.size, dtype=bool))
        off, largest = (np.where(capacitor, *found[:, places]) for found in (error.off, self.run.reach))
        least = FLOOR * np.where(capacitor, self.run.watch.volts, self.run.watch.amperes)
        return float((off / np.maximum(largest, least)).max())

    def checks(self) -> dict[str, Any]:
        """See `TransientResult`; the accuracy, the steps and the error of the run."""
        return super().checks() | {"accuracy": self.accuracy, "steps": self.steps, "difference": self.difference}

    @cached_property
    def warnings(self) -> tuple[Problem, ...]:  # type: ignore[override]
        """See `ImplicitResult`."""
        found, begun = self.difference, getattr(self.begun.point, "warnings", ())
        several = (*self.earlier, *(own for own in begun if own.kind == "several"))
        if not self.run.error.known:
            return *several, Problem("accuracy", "the error of the waveforms could not be carried forward with the run")
        if found is None or found <= self.accuracy:
            return several
        better = 10.0 ** math.floor(math.log10(self.accuracy**2 / found))
        what = f"the waveforms are off by {found:.1e} of their largest values, more than the accuracy"
        hint = f"a run for {better:g} should be within it" if better >= FINEST else "rounding leaves about as much"
        return *several, Problem("accuracy", f"{what} of {self.accuracy:g}", hint=hint)

    @cached_property
    def _waves(self) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[override]
        """At the output times."""
        return self._evaluated(self.times)

    def _evaluated(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """By the dense output: linear equations hold as in the stages, others to the accuracy."""
        where = self._step_at(times)
        ends = np.append(self._starts[1:], self.stop)
        begin = self._begins[where]
        weights = dense(np.clip((times - begin) / np.maximum(ends[where] - begin, 1e-300), 0.0, 1.0))
        found = np.empty((2, times.size, len(self.circuit)))
        count = TOGETHER // (weights.shape[1] * 2 * len(self.circuit)) + 1
        for some in (slice(k, k + count) for k in range(0, times.size, count)):
            steps, at = np.unique(where[some], return_inverse=True)
            stages = np.array([self.run.waves[k][..., : len(self.circuit)] for k in steps.tolist()])
            found[:, some] = np.einsum("ts,tskm->ktm", weights[some], stages[at])
        least_norm(self.circuit, *found)
        found.setflags(write=False)
        return found[0], found[1]

    def _step_at(self, times: np.ndarray) -> np.ndarray:
        """The steps (n,) that contain times, s; at a common end the later one."""
        return np.maximum(np.searchsorted(self._starts, times, side="right") - 1, 0)

    def _moves_at(self, time: float) -> bool:
        """Whether an event whose time depends on circuit parameters is at a time, s."""
        return any(own.time == time and own.late > 0.0 for own in self.run.step_starts)

    @property
    def segments(self) -> Segments:  # type: ignore[override]
        """Not available: the run has no matrix exponentials.

        Raises
        ------
        UsageError
        """
        raise UsageError("only runs of the exact method have segments; ask for method='exact'")

    def segment_starts(self) -> np.ndarray:
        """Start times of intervals in which all waveforms are smooth (n,), s; 0 is the first."""
        return self._starts

    def states(self) -> tuple[np.ndarray, np.ndarray]:
        changes = [step for step in self.run.step_starts if step.fresh]
        sets = [np.concatenate(step.conduction) for step in changes]
        return np.array([step.time for step in changes]), np.array(sets).reshape(len(sets), len(self.changing))
