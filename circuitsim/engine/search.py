"""How an active-set iteration changes its set, in three phases.

    ALL     all violated diodes change (Hintermüller, Ito & Kunisch 2003); then again from other sets: none, all conduct
    PART    a random part of them changes, smaller where violations do not become fewer (Júdice & Pires 1994)
    DUAL    one diode at a time (`circuitsim.engine.active_set`)

The first converges in a few iterations where it converges; the second ends nearly all cycles of the first; the third
cannot cycle. A phase ends where a set returns or the violations stop to become fewer.
"""

from __future__ import annotations

import enum

import numpy as np

PATIENCE = 6
"""Iterations of all changes without fewer violations than ever before, after which they begin from another set: along a
chain, diodes enter one an iteration but leave together."""

ALL = 40
"""Most iterations of all changes from one set."""

STALLED = 0.9
"""An iteration that leaves more than this share of the fewest violations so far is followed by one in which none
leaves."""

IDLE = 4
"""Iterations of a part without fewer violations than ever before, after which the part is halved."""

PARTS = 200
"""Most iterations in which a part changes."""


class Change(enum.Enum):
    """The next change of the active set."""

    ALL = enum.auto()
    ENTER_ONLY = enum.auto()
    NONE_CONDUCTS = enum.auto()
    ALL_CONDUCT = enum.auto()
    PART = enum.auto()
    DUAL = enum.auto()


class Search:
    """The phase, the sets seen in it and the fewest violations among them.

    Parameters
    ----------
    given : bool
        Whether the search begins with conducting diodes: it may begin again with none, then with all.
    parts : int
        Most iterations in which a part changes.
    """

    def __init__(self, given: bool, parts: int = PARTS) -> None:
        self.phase, self.parts = Change.ALL, parts
        self.restarts = [Change.ALL_CONDUCT, Change.NONE_CONDUCTS] if given else [Change.ALL_CONDUCT]
        self.share = 1.0
        self.draw: np.random.Generator | None = None
        self._begin()

    def _begin(self) -> None:
        self.seen: set[bytes] = set()
        self.fewest, self.count, self.idle = float("inf"), 0, 0

    def next(self, key: bytes, violated: int, entering: int) -> Change:
        """The change that follows a set (``key``) with so many violated diodes, of which some are ``entering``."""
        returned, before = key in self.seen, self.fewest
        self.seen.add(key)
        self.count += 1
        self.idle = 0 if violated < before else self.idle + 1
        self.fewest = min(before, violated)
        if self.phase is Change.ALL:
            if not returned and self.idle <= PATIENCE and self.count <= ALL:
                return Change.ENTER_ONLY if violated >= STALLED * before and entering else Change.ALL
            self._begin()
            if self.restarts:
                return self.restarts.pop()
            self.phase = Change.PART
        if self.phase is Change.PART:
            self._resize()
            if self.count <= self.parts:
                return Change.PART
            self.phase = Change.DUAL
        return Change.DUAL

    def _resize(self) -> None:
        """Begin with half of them, double the part where violations become fewer, halve it where they do not."""
        if self.idle == 0:
            self.share = min(0.5, 2.0 * self.share)
        elif self.idle >= IDLE:
            self.share, self.idle = max(0.5 * self.share, 1e-9), 0

    def part(self, violated: np.ndarray) -> np.ndarray:
        """The share of the ``violated`` diodes (mask) that changes."""
        if self.draw is None:  # few searches come to it
            self.draw = np.random.default_rng(0)
        k = np.flatnonzero(violated)
        chosen = np.zeros(violated.size, dtype=bool)
        chosen[self.draw.permutation(k)[: max(1, int(np.ceil(self.share * k.size)))]] = True
        return chosen
