"""How an active-set iteration changes its set: all violated diodes at once, and what follows where that cycles."""

from __future__ import annotations

import enum

PATIENCE = 40
"""Iterations before the search begins again with all diodes conducting: along a chain, diodes enter one an iteration
but leave together."""

STALLED = 0.9
"""An iteration that leaves more than this share of the fewest violations so far is followed by one in which none
leaves."""


class Change(enum.Enum):
    """The next change of the active set."""

    ALL = enum.auto()
    ENTER_ONLY = enum.auto()
    RESTART = enum.auto()
    SINGLE = enum.auto()


class Search:
    """The sets seen so far and the fewest violations among them."""

    def __init__(self) -> None:
        self.seen: set[bytes] = set()
        self.fewest, self.count = float("inf"), 0
        self.restarted = self.single = False

    def next(self, key: bytes, violated: int, entering: int) -> Change:
        """The change that follows a set (``key``) with so many violated diodes, of which some are ``entering``."""
        self.count += 1
        if self.single:
            return Change.SINGLE
        if key in self.seen or self.count > PATIENCE:
            self.seen.clear()
            self.fewest, self.count = float("inf"), 0
            if self.restarted:
                self.single = True
                return Change.SINGLE
            self.restarted = True
            return Change.RESTART
        self.seen.add(key)
        stalled = violated >= STALLED * self.fewest and entering > 0
        self.fewest = min(self.fewest, violated)
        return Change.ENTER_ONLY if stalled else Change.ALL
