"""The modes and windows of a run so far, in arrays that the compiled loop reads.

A mode's state vector is ordered (states of the sources, capacitor voltages and inductor currents, zeros), so that the
sources have the same positions in all modes. A window holds the Chebyshev series of the matrix exponential, shared by
windows of equal mode and length; with decaying parts that of the sources alone, shared by windows of equal length.
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np

from circuitsim.engine.small.pointers import Pinned
from circuitsim.errors import ConvergenceError
from circuitsim.kernels import PRODUCT, SHORT, keep_memory, kernel
from circuitsim.program.components import component_labels
from circuitsim.time_domain.decays import Decays, window_series
from circuitsim.time_domain.mode_kernels import FIRST_ROLE, Parts
from circuitsim.time_domain.mode_rows import entered
from circuitsim.time_domain.modes import WORK, normal_tree
from circuitsim.time_domain.problem import Problem
from circuitsim.time_domain.roots import POINTS
from circuitsim.time_domain.small_matrices import PRODUCTS as EXPONENTIAL
from circuitsim.time_domain.small_matrices import STEPS, TERMS
from circuitsim.time_domain.windows import LENGTHS

OSCILLATION = 8.0
"""Longest window times the largest imaginary part of an eigenvalue, so that no oscillation is missed."""
OVERDAMPED = 0.05
"""Imaginary parts below this fraction of the eigenvalue are rounding, or decay within a window."""
ROTATIONS = 10
"""Products of two numbers for decaying parts, relative to the cube of the number of states: six sweeps of rotations of
all pairs of rows."""
ROOM, LEAST_ROOM = 64, 8
"""Initial room for modes: within half of their memory limit, and the minimum."""
MEMORY = 256_000_000
"""Maximum size of stored windows, bytes; others are recomputed."""
FEW = 8
"""Initial room for windows."""
LARGEST = 2_000_000_000
"""Maximum size of all modes, bytes, which the waveforms of a result need."""


class Modes(NamedTuple):
    """All modes, by number. ``s`` states of sources, ``q`` storing elements, ``d`` diodes and switches, ``N = s + q``.

    Attributes
    ----------
    conducting : (n, d) bool array
    size : (n,) int array
        Number of states.
    place : (n, q) int array
        Positions of the states among the storing elements; for a sum of currents that of one of them.
    onto : (n, q, q) float array
        The states from capacitor voltages and inductor currents; empty with decaying parts, where `place` suffices.
    onto_sources : (n, q, s) float array
        Contributions of the sources' states to that: sums of currents include those of current sources.
    conductance : (n, q) float array
        For a sum of currents that all flow through resistors: the sum of their conductances, S; infinite for all other
        states. Empty with decaying parts.
    system : (n, N, N) float array
        With decaying parts, here (n, s, s), that of the sources alone, and no `current`.
    radius, longest : (n,) float arrays
        Largest absolute eigenvalue, 1/s; longest window, s.
    voltage, current : (n, N, m) float arrays
        One column per branch, so that the sums of all branches are computed side by side; likewise `switching` to
        `source_checks`.
    switching : (n, N, d) float array
        Switching functions, nonnegative in this mode: currents of conducting diodes, minus voltages of blocking ones;
        for switches the distance of the control from its threshold.
    switching_whole : (n, d) bool array
        Which of them are given entirely by decaying parts.
    storing : (n, N, q) float array
        Capacitor voltages and inductor currents.
    sources : (n, s, d) float array
        Infinite currents of conducting diodes, minus infinite voltages of blocking ones, in loops and cuts of sources
        and diodes alone.
    source_checks : (n, s, 2 m) float array
        Those that must be zero: of loops, then of cuts (`mode_kernels.Mode`).
    source_checked : (n,) bool array
        Whether any is not identically zero.
    twigs, links, cut, tree, rest : (n, t), (n, l), (n, t, l), (n, 6), (n, 6) arrays
        The normal tree (`Wiring`).
    window : (n, LENGTHS) int array
        Number of the window by halvings; −1: not computed yet. With decaying parts that of mode 0 is that of all.
    whole : (2, m) bool array
        Voltages and currents that are given entirely by decaying parts.
    """

    conducting: np.ndarray
    size: np.ndarray
    place: np.ndarray
    onto: np.ndarray
    onto_sources: np.ndarray
    conductance: np.ndarray
    system: np.ndarray
    radius: np.ndarray
    longest: np.ndarray
    voltage: np.ndarray
    current: np.ndarray
    switching: np.ndarray
    switching_whole: np.ndarray
    storing: np.ndarray
    sources: np.ndarray
    source_checks: np.ndarray
    source_checked: np.ndarray
    twigs: np.ndarray
    links: np.ndarray
    cut: np.ndarray
    tree: np.ndarray
    rest: np.ndarray
    window: np.ndarray
    whole: np.ndarray


class Library:
    """The modes and windows of one run.

    Parameters
    ----------
    problem : Problem
    longest : float
        Length of the run, s.

    Attributes
    ----------
    modes : Modes
    decays : Decays
    pinned : tuple of Pinned
        The modes and the decays, for kernels.
    """

    def __init__(self, problem: Problem, longest: float) -> None:
        keep_memory()
        self.problem, self.decaying = problem, problem.decays
        s, q = len(problem.system), problem.storing.size
        self._supplied = Pinned(problem.supply)
        # A mode has a part for each state that a resistor affects, and one for each state of a source.
        self.parts = min(q, problem.resistors.size) + s if self.decaying else 0
        self.twigs = _rank(problem.parts)
        self.exponent = int(np.frexp(longest)[1])
        self.count, self.windows = 0, 0
        self.of_sources = _speeds(np.linalg.eigvals(problem.system))
        each = sum(own.nbytes for part in self._room(1) for own in part)
        self._hold(*self._room(max(LEAST_ROOM, min(ROOM, LARGEST // (2 * each)))))
        n = s if self.decaying else s + q
        self.inside = np.zeros((FEW, n, n, POINTS))

    def add(self, conducting: np.ndarray) -> None:
        """Compute the mode of a set of conducting diodes and closed switches; its number is the previous count.

        Raises
        ------
        ConvergenceError
            The modes exceed their memory limit.
        """
        at = self.count
        self._grow()
        modes, (n, m) = self.modes, self.modes.voltage.shape[1:]
        enter = kernel(entered, WORK * m * m + (ROTATIONS * n**3 if self.decaying else 0), PRODUCT)
        enter(self._supplied, conducting, at, *self.pinned)
        if self.decaying:
            modes.radius[at] = max(self.of_sources[0], self.decays.rate[at, 0])  # the largest rate
            modes.longest[at] = self.of_sources[1]
        else:
            n = len(self.problem.system) + int(modes.size[at])
            modes.radius[at], modes.longest[at] = _speeds(np.linalg.eigvals(modes.system[at, :n, :n]))
        self.count += 1

    def add_window(self, mode: int, halvings: int) -> None:
        """Compute the series of one window of a mode; with decaying parts, of the sources in all modes."""
        if self.windows * self.inside[0].nbytes > MEMORY:
            self.modes.window[:], self.windows = -1, 0
        if self.windows == len(self.inside):
            self.inside = np.concatenate([self.inside, np.zeros_like(self.inside)])
        length, n = math.ldexp(1.0, self.exponent - halvings), self.inside.shape[1]
        matrix, radius = self.modes.system[mode], float(self.modes.radius[mode])
        if self.decaying:
            mode, matrix, radius = 0, self.problem.system, self.of_sources[0]
        squared = EXPONENTIAL + math.log2(max(radius * length, 1.0))
        find = kernel(window_series, int(squared) * POINTS * n**3, SHORT)
        find(matrix, radius, length, self.inside[self.windows])
        self.modes.window[mode, halvings] = self.windows
        self.windows += 1

    def _grow(self) -> None:
        """Make room for one more mode."""
        room = self.modes.radius.size
        if self.count < room:
            return
        if 2 * sum(own.nbytes for own in (*self.modes, *self.decays)) > LARGEST:
            raise ConvergenceError(
                f"more than {self.count:,} sets of conducting diodes and closed switches do not fit into memory; end "
                "the run earlier, or take --method implicit"
            )
        modes, decays = self._room(2 * room)
        for old, new in zip((*self.modes, *self.decays), (*modes, *decays)):
            new[tuple(slice(size) for size in old.shape)] = old
        self._hold(modes, decays)

    def _hold(self, modes: Modes, decays: Decays) -> None:
        self.modes, self.decays = modes, decays
        self.pinned = Pinned(modes), Pinned(decays)

    def _room(self, many: int) -> tuple[Modes, Decays]:
        """Zeros for modes; decays are empty without decaying parts."""
        problem, c, t = self.problem, self.parts, self.twigs
        m, s, q, d = problem.parts.role.size, len(problem.system), problem.storing.size, problem.switched.size
        d, n, links, own = d + problem.diodes.size, s + q, m - len(problem.parts.turns) - t, 0 if c else q
        e, x, y, events, k = (m, q, n, d, s + c) if c else (0, 0, 0, 0, 0)

        def zeros(*shape: int, kind: type = float) -> np.ndarray:
            return np.zeros((many, *shape), kind)

        whole = partial(zeros, kind=np.int64)
        modes = Modes(
            conducting=zeros(d, kind=bool),
            size=whole(),
            place=whole(q),
            onto=zeros(own, own),
            onto_sources=zeros(own, s),
            conductance=zeros(own),
            system=zeros(s, s) if c else zeros(n, n),
            radius=zeros(),
            longest=zeros(),
            voltage=zeros(n, m),
            current=zeros(0 if c else n, m),
            switching=zeros(n, d),
            switching_whole=zeros(d, kind=bool),
            storing=zeros(n, q),
            sources=zeros(s, d),
            source_checks=zeros(s, 2 * m),
            source_checked=zeros(kind=bool),
            twigs=whole(t),
            links=whole(links),
            cut=zeros(t, links),
            tree=whole(FIRST_ROLE.size),
            rest=whole(FIRST_ROLE.size),
            window=whole(LENGTHS) - 1,
            whole=problem.whole,
        )
        decays = Decays(
            size=whole(),
            rate=zeros(c),
            start=zeros(c, y),
            lift=zeros(c, e),
            weight=zeros(e),
            drive=zeros(c, s),
            states=zeros(k, x),
            voltage=zeros(k, e),
            current=zeros(k, e),
            switching=zeros(k, events),
        )
        return modes, decays


def _rank(parts: Parts) -> int:
    """The number of branches in every normal tree: the rank of the incidence matrix."""
    if len(parts.turns):
        return normal_tree(parts, parts.role).twigs.size
    return parts.n_nodes - np.unique(component_labels(parts.n_nodes, parts.first, parts.second)).size


def products(n: int, steps: np.ndarray) -> int:
    """Approximate number of products of two numbers for states of ``n`` at these times, s times largest eigenvalues, of
    a segment: a matrix exponential costs about as much as the longest series, of `STEPS`."""
    return int(n * n * TERMS * np.minimum(np.ceil(steps), STEPS).sum())


def _speeds(values: np.ndarray) -> tuple[float, float]:
    """Largest absolute eigenvalue, 1/s, and the longest window on which no oscillation is missed, s."""
    turning = np.abs(values.imag) > OVERDAMPED * np.abs(values)
    fastest = float(np.abs(values.imag[turning]).max(initial=0.0))
    return float(np.abs(values).max(initial=0.0)), OSCILLATION / fastest if fastest > 0.0 else np.inf
