"""How an active-set iteration changes its set: all violated diodes at once, and what follows where that cycles.

Changes of all violated diodes converge in a few iterations where they converge. Where a set returns, a part of the
violated diodes changes, half as many at each further return (block pivoting, Júdice & Pires 1994), drawn at random
with a fixed seed; then the search begins again; last comes the dual method (`circuitsim.engine.dual`).
"""

from __future__ import annotations

import enum

import numpy as np

PATIENCE = 40
"""Iterations before the search begins again with all diodes conducting: along a chain, diodes enter one an iteration
but leave together."""

STALLED = 0.9
"""An iteration that leaves more than this share of the fewest violations so far is followed by one in which none
leaves."""

PARTS = 5
"""Iterations in which a part changes: so many times `PATIENCE`."""

FEWER = 5
"""Iterations in which a part changes without fewer violations than ever before, after which the part is halved."""

NEAR = 32
"""Violations from which the dual method, one diode at a time, is shorter than another beginning."""


class Change(enum.Enum):
    """The next change of the active set."""

    ALL = enum.auto()
    ENTER_ONLY = enum.auto()
    PART = enum.auto()
    NONE_CONDUCTS = enum.auto()
    ALL_CONDUCT = enum.auto()
    DUAL = enum.auto()


class Search:
    """The sets seen so far and the fewest violations among them.

    Parameters
    ----------
    given : bool
        Whether the search begins with conducting diodes: should it fail, it begins again with none first.
    """

    def __init__(self, given: bool) -> None:
        self.seen: set[bytes] = set()
        self.fewest, self.count, self.idle = float("inf"), 0, 0
        self.restarts = [Change.ALL_CONDUCT, Change.NONE_CONDUCTS] if given else [Change.ALL_CONDUCT]
        self.share = 1.0
        self.dual = False
        self.draw = np.random.default_rng(0)

    def next(self, key: bytes, violated: int, entering: int) -> Change:
        """The change that follows a set (``key``) with so many violated diodes, of which some are ``entering``."""
        self.count += 1
        if self.dual:
            return Change.DUAL
        returned = key in self.seen
        self.seen.add(key)
        fewer = violated < self.fewest
        self.idle = 0 if fewer else self.idle + 1
        if self.share < 1.0 and self.count <= PARTS * PATIENCE:
            if self.idle >= FEWER:
                self.share, self.idle = max(0.5 * self.share, 1e-9), 0
            self.fewest = min(self.fewest, violated)
            return Change.PART
        long = self.count > PATIENCE
        if self.share == 1.0 and (returned or (long and not self.restarts)):
            self.share, self.count, self.idle = 0.5, 0, 0
            self.fewest = min(self.fewest, violated)
            return Change.PART
        if self.share < 1.0 or long:
            near = self.share < 1.0 and self.fewest <= NEAR
            self.seen.clear()
            self.fewest, self.count, self.share = float("inf"), 0, 1.0
            if self.restarts and not near:
                return self.restarts.pop()
            self.dual = True
            return Change.DUAL
        stalled = violated >= STALLED * self.fewest and entering > 0
        self.fewest = min(self.fewest, violated)
        return Change.ENTER_ONLY if stalled else Change.ALL

    def part(self, violated: np.ndarray) -> np.ndarray:
        """The share of the ``violated`` diodes (mask) that changes."""
        k = np.flatnonzero(violated)
        chosen = np.zeros(violated.size, dtype=bool)
        chosen[self.draw.permutation(k)[: max(1, int(self.share * k.size))]] = True
        return chosen

