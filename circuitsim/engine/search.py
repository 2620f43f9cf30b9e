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
        self.fewest, self.count = float("inf"), 0
        self.restarts = [Change.ALL_CONDUCT, Change.NONE_CONDUCTS] if given else [Change.ALL_CONDUCT]
        self.dual = False

    def next(self, key: bytes, violated: int, entering: int) -> Change:
        """The change that follows a set (``key``) with so many violated diodes, of which some are ``entering``."""
        self.count += 1
        if self.dual:
            return Change.DUAL
        if key in self.seen or self.count > PATIENCE:
            self.seen.clear()
            self.fewest, self.count = float("inf"), 0
            if self.restarts:
                return self.restarts.pop()
            self.dual = True
            return Change.DUAL
        self.seen.add(key)
        stalled = violated >= STALLED * self.fewest and entering > 0
        self.fewest = min(self.fewest, violated)
        return Change.ENTER_ONLY if stalled else Change.ALL
