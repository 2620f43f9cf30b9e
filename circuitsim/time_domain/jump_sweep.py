"""A run backwards through its jumps: what capacitances, inductances and sources contribute there."""

from __future__ import annotations

import numpy as np

from circuitsim.errors import UsageError
from circuitsim.time_domain.jump_derivatives import JumpMap, constraint, jump_maps, no_jump, projection, storage
from circuitsim.time_domain.numbers import Stepped
from circuitsim.time_domain.result import Origin, Turn

SAME = 1e-7
"""Largest difference between the states after a jump and those of its linear map, against the largest state."""


class JumpSweep:
    """The jumps of a run, and what has been collected from them.

    Attributes
    ----------
    maps : dict of int to JumpMap
        By the segment that begins with them.
    """

    def __init__(self, origin: Origin) -> None:
        self.problem, self.turns = origin.problem, origin.turns
        self.q, self.s = self.problem.storing.size, self.problem.system.shape[0]
        self.maps = jump_maps(self.problem, self.turns)
        self.before: dict[int, list[Turn]] = {}
        self.sets: dict[bytes, tuple[Turn, np.ndarray, np.ndarray, np.ndarray]] = {}
        k = storage(self.problem, self.problem.parts.value, self.problem.parts.coupling)
        for turn in self.turns:
            self.before.setdefault(turn.segment, []).append(turn)
            if (key := _key(turn)) not in self.sets:
                free, given = constraint(self.problem, turn.carrying, turn.open, self.problem.rows)
                self.sets[key] = turn, given, *projection(free, k)
            _, given, p, _ = self.sets[key]
            gap = p @ turn.before + (np.eye(self.q) - p) @ (given @ turn.w) - turn.after
            if np.abs(gap).max(initial=0.0) > SAME * np.abs([turn.before, turn.after]).max():
                raise UsageError("states jump between two sets of conducting diodes: there is no gradient")
        self.clear()

    def clear(self) -> None:
        """Forget all contributions."""
        self.by_storage = np.zeros((self.q, self.q))
        self.by_given = {key: np.zeros((self.q, self.s)) for key in self.sets}

    def at(self, segment: int) -> JumpMap:
        """All jumps before a segment."""
        return self.maps.get(segment) or no_jump(self.q, self.s)

    def back(self, segment: int, by_x: np.ndarray) -> np.ndarray:
        """From the derivative by the states after the jumps before a segment to that by the states before them (q,)."""
        for turn in reversed(self.before.get(segment, [])):
            _, _, p, inner = self.sets[key := _key(turn)]
            self.by_given[key] += np.outer(by_x - p.T @ by_x, turn.w)
            self.by_storage += np.outer(inner @ by_x, turn.before - turn.after)
            by_x = p.T @ by_x
        return by_x

    def product(self, of: Stepped) -> float:
        """What a change of numbers makes of the functional in the jumps."""
        if not self.turns:
            return 0.0
        found = float((self.by_storage * storage(self.problem, of.value, of.coupling).imag).sum())
        if of.rows.imag.any():
            for key, (turn, *_) in self.sets.items():
                given = constraint(self.problem, turn.carrying, turn.open, of.rows).given
                found += float((self.by_given[key] * given.imag).sum())
        return found / of.step


def _key(turn: Turn) -> bytes:
    return turn.carrying.tobytes() + turn.open.tobytes()
