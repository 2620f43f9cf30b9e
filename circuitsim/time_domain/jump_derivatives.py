"""Derivatives of jumps: charges and fluxes that move in no time are linear in the states before and in the sources.

With the diodes that carry charge (or do not block flux) known, x⁺ = M y + N w where y are the independent voltages (or
currents) and N w what sources add; y minimises ½ (x⁺ − x⁻)ᵀ K (x⁺ − x⁻), so x⁺ = P x⁻ + (1 − P) N w with
P = M (Mᵀ K M)⁻¹ Mᵀ K, K the capacitances (or inductances).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from circuitsim.time_domain.modes import Role, mode_of
from circuitsim.time_domain.problem import Problem
from circuitsim.time_domain.result import Turn


class JumpMap(NamedTuple):
    """x⁺ (q,) = ``by_states`` (q, q) x⁻ + ``by_sources`` (q, s) w."""

    by_states: np.ndarray
    by_sources: np.ndarray


class Constraint(NamedTuple):
    """States after a jump: M y + N w.

    Attributes
    ----------
    free : (q, k) float array
        M; integers.
    given : (q, s) array
        N; complex where the sources are.
    """

    free: np.ndarray
    given: np.ndarray


def no_jump(q: int, s: int) -> JumpMap:
    """The map of states that do not jump."""
    return JumpMap(np.eye(q), np.zeros((q, s)))


def storage(problem: Problem, value: np.ndarray, coupling: np.ndarray | None) -> np.ndarray:
    """K (q, q): capacitances and inductances."""
    found = np.diag(value[problem.storing])
    return found if coupling is None else found + coupling[np.ix_(problem.storing, problem.storing)]


def constraint(problem: Problem, carrying: np.ndarray, open_: np.ndarray, rows: np.ndarray) -> Constraint:
    """How states after a jump depend on each other and on the sources.

    Parameters
    ----------
    problem : Problem
    carrying, open_ : (d,) bool arrays
        See `circuitsim.time_domain.result.Turn`.
    rows : (sources, s) array
        Source values over the sources' states.
    """
    storing, q, s = problem.storing, problem.storing.size, rows.shape[1]
    role, free, given = problem.parts.role, [], np.zeros((q, s), rows.dtype)
    for kind, conducting in ((Role.CAPACITOR, carrying), (Role.INDUCTOR, open_)):
        mode = mode_of(problem.parts, problem.diodes, conducting, problem.sources, problem.system, rows)
        own = role[storing] == kind
        columns = mode.dependent[storing][:, : mode.states.size].real
        free.append(np.where(own[:, None], columns, 0.0)[:, role[mode.states] == kind])
        given[own] = mode.dependent[storing[own]][:, mode.states.size :]
    return Constraint(np.concatenate(free, axis=1), given)


def projection(free: np.ndarray, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """P (q, q), and M (Mᵀ K M)⁻¹ Mᵀ (q, q)."""
    gram = free.T @ k @ free
    # Voltages and currents, farads and henries have scales of their own.
    scale = 1.0 / np.sqrt(np.diag(gram))
    inverse = scale[:, None] * np.linalg.inv(gram * scale * scale[:, None]) * scale
    inner = np.asarray(free @ inverse @ free.T)
    return inner @ k, inner


def jump_maps(problem: Problem, turns: Sequence[Turn]) -> dict[int, JumpMap]:
    """The jumps by the segment that begins with them."""
    q, s = problem.storing.size, problem.system.shape[0]
    k, known = storage(problem, problem.parts.value, problem.parts.coupling), dict[bytes, JumpMap]()
    found: dict[int, JumpMap] = {}
    for turn in turns:
        key = turn.carrying.tobytes() + turn.open.tobytes()
        if key not in known:
            free, given = constraint(problem, turn.carrying, turn.open, problem.rows)
            p = projection(free, k)[0]
            known[key] = JumpMap(p, (np.eye(q) - p) @ given)
        before, own = found.get(turn.segment, no_jump(q, s)), known[key]
        found[turn.segment] = JumpMap(
            own.by_states @ before.by_states, own.by_states @ before.by_sources + own.by_sources
        )
    return found
