"""The modes and windows that a run has met, in arrays that the compiled loop reads.

A mode's state vector is ordered (states of the sources, capacitor voltages and inductor currents, zeros): the sources
keep their places in all modes. A window holds the matrix exponentials at its Chebyshev nodes; windows of one mode and
length share them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from circuitsim.engine.small.pointers import Pinned
from circuitsim.errors import ConvergenceError
from circuitsim.time_domain.decays import Decays
from circuitsim.time_domain.exponentials import PRODUCTS as EXPONENTIAL
from circuitsim.time_domain.exponentials import STEPS, TERMS
from circuitsim.time_domain.kernels import time_kernel
from circuitsim.time_domain.mode_rows import DONE, Supply
from circuitsim.time_domain.modes import UNCOUPLED, Mode, Parts, Role, normal_tree, shared_of
from circuitsim.time_domain.roots import POINTS, SHARES
from circuitsim.time_domain.trees import FIRST_ROLE, Wiring
from circuitsim.time_domain.windows import LENGTHS

TURN = 8.0
"""Longest window times the largest imaginary part of an eigenvalue: an oscillation is not passed over."""
OVERDAMPED = 0.05
"""Imaginary parts below this share of the eigenvalue are rounding, or die out within a window."""
WORK = 8
"""Products of two numbers that a mode takes, over its elements times its states."""
ROTATIONS = 10
"""Products of two numbers by which decaying parts are found, over the cube of the number of states: six sweeps of
rotations of all pairs of rows."""
ROOM, LEAST_ROOM = 64, 8
"""Room for modes at first: within the half of what they may take, and at least."""
MEMORY = 256_000_000
"""Most bytes of matrix exponentials; beyond it they are computed anew."""

FEW = 8
"""Room for windows of the sources at first."""
LARGEST = 2_000_000_000
"""Most bytes of all modes: they stay, since the waveforms of a result are computed from them."""


NOTHING = UNCOUPLED, UNCOUPLED
"""No matrices of least squares (`circuitsim.time_domain.mode_equations.equations`)."""
NO_BRANCHES = np.zeros(0, np.int64)
UNWIRED = Wiring(NO_BRANCHES, NO_BRANCHES, UNCOUPLED, NO_BRANCHES, NO_BRANCHES, UNCOUPLED)
"""No normal tree: `entered` makes it."""


class Modes(NamedTuple):
    """All modes, by number. ``s`` states of sources, ``q`` storing elements, ``d`` diodes and switches, ``N = s + q``.

    Attributes
    ----------
    conducting : (n, d) bool array
    size : (n,) int array
        Number of states.
    place : (n, q) int array
        The states among the storing elements; of a sum of currents one of them.
    onto : (n, q, q) float array
        The states from capacitor voltages and inductor currents; empty with decaying parts, where `place` says it all.
    onto_sources : (n, q, s) float array
        What the sources' states add to that: a sum of currents has those of current sources in it.
    conductance : (n, q) float array
        Of a sum of currents, all of which flow through resistors: their conductances together, S; infinite for all
        other states. Empty with decaying parts.
    system : (n, N, N) float array
        Of decaying parts the sources' states alone, (n, s, s): derivatives of a run need all
        (`Library.complete`).
    radius, longest : (n,) float arrays
        Largest absolute eigenvalue, 1/s; longest window, s.
    voltage, current : (n, N, m) float arrays
        A column a branch, so that sums of all branches go side by side; `slack` to `source_checks` likewise. Of
        decaying parts no currents, (n, 0, 0): those of `Decays` are whole.
    slack : (n, N, d) float array
        Not negative in this mode: currents of conducting diodes, minus voltages of blocking ones; for switches the
        distance of the control from its threshold.
    storing : (n, N, q) float array
        Capacitor voltages and inductor currents.
    sources : (n, s, d) float array
        Infinite currents of conducting diodes, minus infinite voltages of blocking ones, in loops and cuts of sources
        and diodes alone.
    source_checks : (n, s, c) float array
        All of these that must be zero (`Mode.source_loops`, `Mode.source_cuts`), those that are not zero first.
    source_many : (n,) int array
        How many of them are not zero.
    twigs, links, cut, tree, rest : (n, t), (n, l), (n, t, l), (n, 6), (n, 6) arrays
        The normal tree (`Wiring`).
    window : (n, LENGTHS) int array
        The window by the number of halvings; −1: not there yet.
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
    slack: np.ndarray
    storing: np.ndarray
    sources: np.ndarray
    source_checks: np.ndarray
    source_many: np.ndarray
    twigs: np.ndarray
    links: np.ndarray
    cut: np.ndarray
    tree: np.ndarray
    rest: np.ndarray
    window: np.ndarray


class Library:
    """The modes and windows of one run.

    Parameters
    ----------
    supply : Supply
    twigs : int
        Number of branches in a normal tree.
    longest : float
        Length of the run, s.
    decaying : bool
        Whether the waveforms are those of decaying parts.
    whole : (2, m) bool array
        See `circuitsim.time_domain.decays.Decays`.

    Attributes
    ----------
    modes : Modes
    decays : Decays
    pinned : tuple of Pinned
        The modes, and the decays where waveforms are those, for kernels.
    """

    def __init__(self, supply: Supply, twigs: int, longest: float, decaying: bool, whole: np.ndarray) -> None:
        system, q = supply.of.system, supply.of.storing.size
        s = len(system)
        self.supply, self.system, self.decaying, self._supplied = supply, system, decaying, Pinned(supply)
        # A mode has a part for each state that a resistor moves, and one for each state of a source.
        parts = min(q, supply.resistors.size) + s if decaying else 0
        self.shape = _Shape(
            supply.role.size,
            s,
            q,
            supply.diodes.size + supply.on.size,
            twigs,
            parts,
            not decaying,
            len(supply.of.turns),
        )
        self._complete: Modes | None = None
        self.exponent = int(np.frexp(longest)[1])
        self.count, self.windows = 0, 0
        self.of_sources = _speeds(np.linalg.eigvals(system))
        each = sum(own.nbytes for part in self.shape.room(1, 1) for own in part)
        room = max(LEAST_ROOM, min(ROOM, LARGEST // (2 * each)))
        self._hold(*self.shape.room(room, 1))
        self.decays.whole[:] = whole
        # Matrix exponentials at the nodes, (column, node, row); of decaying modes the sources' series (row, column,
        # coefficient), which the compiled loop fills in.
        self.inside = np.zeros((FEW, s, s, POINTS) if decaying else (1, s + q, POINTS, s + q))

    def add(self, conducting: np.ndarray) -> None:
        """Make the mode of a set of conducting diodes and closed switches; its number is the count before.

        Raises
        ------
        ConvergenceError
            More modes than memory should hold.
        """
        at = self.count
        self._grow(0)
        outcome, checks = self._enter(conducting, NOTHING, at, self.pinned[0])
        if outcome != DONE:
            shared = self._shared(conducting)
            while outcome != DONE:
                self._grow(checks)
                outcome, checks = self._enter(conducting, shared, at, self.pinned[0])
        modes = self.modes
        if self.decaying:
            modes.radius[at] = max(self.of_sources[0], self.decays.rate[at, 0])  # the largest rate
            modes.longest[at] = self.of_sources[1]
        else:
            n = len(self.system) + int(modes.size[at])
            modes.radius[at], modes.longest[at] = _speeds(np.linalg.eigvals(modes.system[at, :n, :n]))
        modes.window[at] = -1
        self.count += 1

    def _enter(
        self, conducting: np.ndarray, shared: tuple[np.ndarray, np.ndarray], at: int, modes: Pinned
    ) -> tuple[int, int]:
        """Make a mode as number ``at``: the outcome, and how many checks it has."""
        m, n = self.supply.role.size, len(self.system) + self.supply.of.storing.size
        work = m * (m + WORK * n) + (ROTATIONS * n**3 if self.decaying else 0)
        enter = time_kernel("entered_decays" if self.decaying else "entered", work)
        net = self._tree(conducting)[0] if self.supply.of.turns.size else UNWIRED
        found: tuple[int, int] = enter(
            self._supplied, conducting, net, shared, shared is not NOTHING, at, modes, *self.pinned[1:]
        )
        return found

    def complete(self) -> Modes:
        """All modes with their currents and systems, which derivatives of a run need."""
        if self.shape.complete:
            return self.modes
        if self._complete is None or len(self._complete.size) < self.count:
            modes, _ = self.shape._replace(complete=True).room(self.count, self.modes.source_checks.shape[2])
            pinned = Pinned(modes)
            for at, conducting in enumerate(self.modes.conducting[: self.count]):
                if self._enter(conducting, NOTHING, at, pinned)[0] != DONE:
                    self._enter(conducting, self._shared(conducting), at, pinned)
            for new, old in zip((modes.radius, modes.longest), (self.modes.radius, self.modes.longest)):
                new[:] = old[: self.count]
            self._complete = modes
        return self._complete

    def add_window(self, mode: int, halvings: int) -> None:
        """Compute the matrix exponentials of one window of a mode; where the states decay, make room for more."""
        if self.decaying:
            self.inside = np.concatenate([self.inside, np.zeros_like(self.inside)])
            return
        if self.windows * self.inside[0].nbytes > MEMORY:
            self.modes.window[:], self.windows = -1, 0
        if self.windows == len(self.inside):
            self.inside = np.concatenate([self.inside, np.zeros_like(self.inside)])
        length, matrix = np.ldexp(1.0, self.exponent - halvings), self.modes.system[mode]
        radius = float(self.modes.radius[mode])
        squared = EXPONENTIAL + math.log2(max(radius * length, 1.0))
        find = time_kernel("node_exponentials", int(squared) * POINTS * len(matrix) ** 3)
        find(matrix, radius, length * SHARES, self.inside[self.windows])
        self.modes.window[mode, halvings] = self.windows
        self.windows += 1

    def _shared(self, conducting: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What current sources in the tree and voltage sources outside of it need (`shared_of`)."""
        return shared_of(*self._tree(conducting))

    def _tree(self, conducting: np.ndarray) -> tuple[Wiring, np.ndarray]:
        """The normal tree of a mode, and its roles."""
        supply, d = self.supply, self.supply.diodes.size
        role, value = supply.role.copy(), supply.of.value.copy()
        role[supply.diodes[conducting[:d]]] = Role.CONDUCTING
        value[supply.switched] = np.where(conducting[d:], *supply.ohms)
        parts = Parts(supply.nodes, supply.first, supply.second, role, value, None, supply.of.turns)
        return normal_tree(parts, role), role

    def _grow(self, checks: int) -> None:
        """Room for one more mode with so many checks."""
        room, most = self.modes.radius.size, self.modes.source_checks.shape[2]
        if self.count < room and checks <= most:
            return
        if 2 * sum(own.nbytes for own in (*self.modes, *self.decays)) > LARGEST:
            raise ConvergenceError(
                f"more than {self.count:,} sets of conducting diodes and closed switches do not fit into memory; end "
                "the run earlier, or take --method implicit"
            )
        many = room if self.count < room else 2 * room
        modes, decays = self.shape.room(many, most if checks <= most else 2 * checks)
        for old, new in zip((*self.modes, *self.decays), (*modes, *decays)):
            new[tuple(slice(size) for size in old.shape)] = old
        self._hold(modes, decays)

    def _hold(self, modes: Modes, decays: Decays) -> None:
        self.modes, self.decays = modes, decays
        self.pinned = (Pinned(modes), Pinned(decays)) if self.decaying else (Pinned(modes),)


class _Shape(NamedTuple):
    """Sizes of a mode: elements, states of sources, storing elements, diodes and switches, branches of a tree, most
    decaying parts; whether it has currents and a whole system; ideally coupled windings."""

    elements: int
    s: int
    q: int
    d: int
    twigs: int
    parts: int
    complete: bool
    windings: int

    def room(self, many: int, checks: int) -> tuple[Modes, Decays]:
        """Zeros, and what `entered` fills in as a whole; decays are empty where there are no parts.

        One block: of several, freed after each run, the C library would give memory back to the system each time.
        """
        m, s, q, d, t, c, complete, windings = self
        n, k = s + q, s + c
        square, flows = ((n, n), (n, m)) if complete else ((s, s), (0, 0))
        sizes = (q, m, s, d, k) if c else (0,) * 5
        of_mode = 0 if c else q
        zeros = [(of_mode, of_mode), (of_mode, s), (of_mode,), (), (), (s, d), (s, checks), *self._of_parts(*sizes)]
        whole = [square, (n, m), flows, (n, d), (n, q), (t, m - windings - t)]
        found = _block(np.empty, float, [(many, *shape) for shape in (*zeros, *whole)])
        for own in found[: len(zeros)]:
            own[...] = 0.0
        whole_ones = np.zeros((2, m), bool), np.zeros((many, d if c else 0), bool)
        decays = Decays._make([np.zeros(many, np.int64), *found[7 : len(zeros)], *whole_ones])
        return self._modes(many, found[:7], found[len(zeros) :]), decays

    def _of_parts(self, q: int, m: int, s: int, d: int, k: int) -> list[tuple[int, ...]]:
        """Shapes of `Decays.rate` to `Decays.slack`."""
        c = self.parts
        return [(c,), (c, s + q), (c, m), (m,), (c, s), (k, q), (k, m), (k, m), (k, d)]

    def _modes(self, many: int, zeros: list[np.ndarray], whole: list[np.ndarray]) -> Modes:
        """`Modes` of the arrays of floats in the block: zeros, and what `entered` fills in as a whole."""
        m, _, q, d, t = self[:5]
        links = m - self.windings - t
        onto, onto_sources, conductance, radius, longest, sources, source_checks = zeros
        size, place, source_many, twigs, links_of, tree, rest, window = _block(
            np.zeros,
            np.int64,
            [
                (many, *shape)
                for shape in ((), (q,), (), (t,), (links,), (FIRST_ROLE.size,), (FIRST_ROLE.size,), (LENGTHS,))
            ],
        )
        window[:] = -1
        system, voltage, current, slack, storing, cut = whole
        return Modes(
            np.zeros((many, d), bool),
            size,
            place,
            onto,
            onto_sources,
            conductance,
            system,
            radius,
            longest,
            voltage,
            current,
            slack,
            storing,
            sources,
            source_checks,
            source_many,
            twigs,
            links_of,
            cut,
            tree,
            rest,
            window,
        )


def _block(make: Callable[..., np.ndarray], kind: type, shapes: list[tuple[int, ...]]) -> list[np.ndarray]:
    """Arrays side by side in one block, made by `numpy.zeros` or `numpy.empty`: the system hands out a large one in
    large pages."""
    sizes = [math.prod(shape) for shape in shapes]
    ends = [*accumulate(sizes)]
    block = make(ends[-1], kind)
    return [block[end - size : end].reshape(shape) for size, end, shape in zip(sizes, ends, shapes)]


def products(n: int, steps: np.ndarray) -> int:
    """About the products of two numbers in states of ``n`` at these times, s times largest eigenvalues, of a segment:
    series or, beyond `STEPS`, a matrix exponential each."""
    squared = EXPONENTIAL + np.log2(np.maximum(steps, 1.0))
    return int((n * n * np.where(steps > STEPS, n * squared, TERMS * np.ceil(steps))).sum())


def _speeds(values: np.ndarray) -> tuple[float, float]:
    """Largest absolute eigenvalue, 1/s, and the longest window on which no oscillation is passed over, s."""
    turning = np.abs(values.imag) > OVERDAMPED * np.abs(values)
    fastest = float(np.abs(values.imag[turning]).max(initial=0.0))
    return float(np.abs(values).max(initial=0.0)), TURN / fastest if fastest > 0.0 else np.inf


def ordered(matrix: np.ndarray, k: int, s: int, q: int) -> np.ndarray:
    """Rows over (k states, s states of sources) as rows over the library's state vector (s + q)."""
    found = np.zeros((len(matrix), s + q), matrix.dtype)
    found[:, :s], found[:, s : s + k] = matrix[:, k:], matrix[:, :k]
    return found


def ordered_square(mode: Mode, s: int, q: int) -> np.ndarray:
    """A mode's system over the library's state vector: (s + q, s + q)."""
    k, found = mode.states.size, np.zeros((s + q, s + q), mode.system.dtype)
    found[:s], found[s : s + k] = ordered(mode.system[k:], k, s, q), ordered(mode.system[:k], k, s, q)
    return found
