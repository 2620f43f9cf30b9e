"""The modes and windows that a run has met, in arrays that the compiled loop reads.

A mode's state vector is ordered (states of the sources, capacitor voltages and inductor currents, zeros): the sources
keep their places in all modes. A window holds the matrix exponentials at its Chebyshev nodes; windows of one mode and
length share them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from circuitsim.errors import ConvergenceError
from circuitsim.time_domain.decays import Decays, series_of_sources
from circuitsim.time_domain.exponentials import PRODUCTS as EXPONENTIAL
from circuitsim.time_domain.kernels import time_kernel
from circuitsim.time_domain.mode_parts import Parting
from circuitsim.time_domain.modes import Mode
from circuitsim.time_domain.roots import POINTS, SHARES
from circuitsim.time_domain.windows import LENGTHS

TURN = 8.0
"""Longest window times the largest imaginary part of an eigenvalue: an oscillation is not passed over."""
OVERDAMPED = 0.05
"""Imaginary parts below this share of the eigenvalue are rounding, or die out within a window."""
ROOM = 8
"""Room for modes at first."""
MEMORY = 256_000_000
"""Most bytes of matrix exponentials; beyond it they are computed anew."""

LARGEST = 2_000_000_000
"""Most bytes of all modes: they stay, since the waveforms of a result are computed from them."""


class Modes(NamedTuple):
    """All modes, by number. ``s`` states of sources, ``q`` storing elements, ``d`` diodes and switches, ``N = s + q``.

    Attributes
    ----------
    conducting : (n, d) bool array
    size : (n,) int array
        Number of states.
    place : (n, q) int array
        The states among the storing elements.
    system : (n, N, N) float array
    radius, longest : (n,) float arrays
        Largest absolute eigenvalue, 1/s; longest window, s.
    voltage, current : (n, m, N) float arrays
    slack : (n, d, N) float array
        Not negative in this mode: currents of conducting diodes, minus voltages of blocking ones; for switches the
        distance of the control from its threshold.
    storing : (n, q, N) float array
        Capacitor voltages and inductor currents.
    infinite : (n, d, N) float array
        Over (w, x): infinite currents of conducting diodes, minus infinite voltages of blocking ones.
    sources : (n, d, s) float array
        The same of loops and cuts of sources and diodes alone.
    checks, source_checks : (n, c, N), (n, c, s) float arrays
        All that must be zero (`Mode.loops`, `Mode.cuts`; without states), rows that are not zero first.
    many, source_many : (n,) int arrays
        How many of them are not zero.
    window : (n, LENGTHS) int array
        The window by the number of halvings; −1: not there yet.
    """

    conducting: np.ndarray
    size: np.ndarray
    place: np.ndarray
    system: np.ndarray
    radius: np.ndarray
    longest: np.ndarray
    voltage: np.ndarray
    current: np.ndarray
    slack: np.ndarray
    storing: np.ndarray
    infinite: np.ndarray
    sources: np.ndarray
    checks: np.ndarray
    source_checks: np.ndarray
    many: np.ndarray
    source_many: np.ndarray
    window: np.ndarray


class Rows(NamedTuple):
    """What `Library.add` needs beside a `Mode`.

    Attributes
    ----------
    diodes : (d₀,) int array
    storing : (q,) int array
        Capacitors and inductors.
    resistors : (r,) int array
    control : (switches, 2) int array
        Element whose voltage (0) or current (1) controls, and which.
    on, off : (switches,) float arrays
        Thresholds of the control, V or A: a switch turns on above one and off below the other.
    one : int
        Place of the constant 1 among the sources' states.
    """

    diodes: np.ndarray
    storing: np.ndarray
    resistors: np.ndarray
    control: np.ndarray
    on: np.ndarray
    off: np.ndarray
    one: int


class Library:
    """The modes and windows of one run."""

    def __init__(
        self, rows: Rows, s: int, elements: int, longest: float, system: np.ndarray, decaying: bool, whole: np.ndarray
    ) -> None:
        self.rows, self.s, self.elements = rows, s, elements
        self.exponent = int(np.frexp(longest)[1])
        self.count, self.windows = 0, 0
        self.decaying, self.system = decaying, system
        self.of_sources = _speeds(np.linalg.eigvals(system))
        n = s + rows.storing.size
        self.modes = _Room(ROOM).arrays(n, s, rows, elements, 1)
        self.decays = _Room(ROOM).decays(n if decaying else 0, s if decaying else 0, rows, elements)
        self.decays.whole[:] = whole
        # Matrix exponentials at the nodes, (column, node, row); of decaying modes the sources' series.
        self.inside = np.zeros((1, s, s, POINTS) if decaying else (1, n, POINTS, n))

    def add(self, mode: Mode, parting: Parting | None) -> None:
        """Take a mode, and its decaying parts where it has such; its number is the count before.

        Raises
        ------
        ConvergenceError
            More modes than memory should hold.
        """
        keep, own = np.empty((2, 2 * self.elements), dtype=bool)
        work = mode.voltage.size + mode.loops.size
        nonzero, checked = time_kernel("nonzero", work), time_kernel("checked", work)
        many = nonzero(mode.loops, mode.cuts, keep), nonzero(mode.source_loops, mode.source_cuts, own)
        self._grow(max(many))
        at, modes = self.count, self.modes
        time_kernel("taken", 3 * work)(mode, self.rows, modes, at, self.s)
        checked(mode.loops, mode.cuts, keep, self.rows.storing.size, modes.checks[at])
        checked(mode.source_loops, mode.source_cuts, own, 0, modes.source_checks[at])
        modes.many[at], modes.source_many[at] = many
        if parting is None:
            modes.radius[at], modes.longest[at] = _speeds(np.linalg.eigvals(mode.system))
        else:
            radius, modes.longest[at] = self.of_sources
            modes.radius[at] = max(radius, float(parting.rate.max(initial=0.0)))
        modes.window[at] = -1
        if parting is not None:
            time_kernel("parted", 2 * work)(mode, self.rows, parting, modes, self.decays, at, self.s)
        self.count += 1

    def add_window(self, mode: int, halvings: int) -> None:
        """Compute the matrix exponentials of one window of a mode; the sources' series where the states decay."""
        if self.windows * self.inside[0].nbytes > MEMORY:
            self.modes.window[:], self.windows = -1, 0
        if self.windows == len(self.inside):
            self.inside = np.concatenate([self.inside, np.zeros_like(self.inside)])
        length = np.ldexp(1.0, self.exponent - halvings)
        matrix = self.system if self.decaying else self.modes.system[mode]
        found = np.empty((len(matrix), POINTS, len(matrix)))
        find = time_kernel("node_exponentials", EXPONENTIAL * POINTS * len(matrix) ** 3)
        find(matrix, self.modes.radius[mode], length * SHARES, found)
        self.inside[self.windows] = series_of_sources(found) if self.decaying else found
        self.modes.window[0 if self.decaying else mode, halvings] = self.windows
        self.windows += 1

    def _grow(self, checks: int) -> None:
        """Room for one more mode with so many checks."""
        room, most = self.modes.radius.size, self.modes.checks.shape[1]
        if self.count < room and checks <= most:
            return
        if 2 * sum(own.nbytes for own in (*self.modes, *self.decays)) > LARGEST:
            raise ConvergenceError(
                f"more than {self.count:,} sets of conducting diodes and closed switches do not fit into memory; end "
                "the run earlier, or take --method implicit"
            )
        n, larger = self.s + self.rows.storing.size, _Room(room if self.count < room else 2 * room)
        modes = larger.arrays(n, self.s, self.rows, self.elements, most if checks <= most else 2 * checks)
        decays = larger.decays(*((n, self.s) if self.decaying else (0, 0)), self.rows, self.elements)
        for old, new in zip((*self.modes, *self.decays), (*modes, *decays)):
            new[tuple(slice(size) for size in old.shape)] = old
        self.modes, self.decays = modes, decays


class _Room(NamedTuple):
    """Arrays for so many modes."""

    modes: int

    def arrays(self, n: int, s: int, rows: Rows, elements: int, checks: int) -> Modes:
        """Zeros."""
        d, q = rows.diodes.size + rows.on.size, rows.storing.size

        def new(*shape: int, kind: Any = float) -> np.ndarray:
            return np.zeros((self.modes, *shape), kind)

        return Modes(
            new(d, kind=bool), new(kind=np.int64), new(q, kind=np.int64), new(n, n), new(), new(), new(elements, n),
            new(elements, n), new(d, n), new(q, n), new(d, n), new(d, s), new(checks, n), new(checks, s),
            new(kind=np.int64), new(kind=np.int64), new(LENGTHS, kind=np.int64) - 1,
        )  # fmt: skip

    def decays(self, n: int, s: int, rows: Rows, elements: int) -> Decays:
        """Zeros; empty where ``n`` is 0. A mode has at most a part for each state and each state of a source."""
        d, q = (rows.diodes.size + rows.on.size if n else 0), n - s

        def new(*shape: int, kind: Any = float) -> np.ndarray:
            return np.zeros((self.modes, *shape), kind)

        wide = s + n if n else 0
        return Decays(
            new(kind=np.int64), new(n), new(n, n), new(n, elements if n else 0), new(elements), new(n, s), new(q, n),
            new(q, s), new(elements, wide), new(elements, wide), new(d, wide), np.zeros((2, elements), bool),
            new(d, kind=bool),
        )  # fmt: skip


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
