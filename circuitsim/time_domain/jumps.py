"""Jumps of states: impulses of charge and flux.

Capacitor voltages that contradict a loop of sources and diodes, and inductor currents that contradict a cut, jump to
x⁺, which minimises ½ (x⁺ − x⁻)ᵀ K (x⁺ − x⁻), K the capacitances and inductances (Frasca, Çamlibel, Goknar & Vasca
2010), subject to nonpositive diode voltages for charges and nonnegative diode currents for fluxes: a convex quadratic
program. Its multipliers, by complementary pivoting (Cottle, Pang & Stone 1992, ch. 4), show which diodes carry charge
or block flux; x⁺ is the projection for these, linear in the states before and in the sources: x⁺ = M y + N w where y
are the independent voltages (or currents) and N w the sources' contribution, so x⁺ = P x⁻ + (1 − P) N w with
P = M (Mᵀ K M)⁻¹ Mᵀ K.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.controlled.states import lemke
from circuitsim.errors import InfeasibleError, UnboundedError
from circuitsim.time_domain.mode_kernels import FIXED, FREE, C, L, Parts, R
from circuitsim.time_domain.mode_rows import Supply
from circuitsim.time_domain.modes import Role, mode_of, normal_tree
from circuitsim.time_domain.problem import Problem


class Constraint(NamedTuple):
    """States after a jump: M y + N w.

    Attributes
    ----------
    free : (q, k) float array
        M; integers.
    given : (q, s) array
        N, complex; the imaginary part is a derivative where the sources have one.
    """

    free: np.ndarray
    given: np.ndarray


def constraint(of: Supply, carrying: np.ndarray, open_: np.ndarray) -> Constraint:
    """The dependence of states after a jump on each other and on the sources.

    Parameters
    ----------
    of : Supply
    carrying, open_ : (d,) bool arrays
        See `circuitsim.time_domain.result.Jump`.
    """
    q, s, role, free = of.storing.size, of.rows.shape[1], of.parts.role, []
    given = np.zeros((q, s), complex)
    for kind, conducting in ((Role.CAPACITOR, carrying), (Role.INDUCTOR, open_)):
        mode = mode_of(of, np.pad(conducting, (0, of.switched.size)))
        own = role[of.storing] == kind
        free.append(np.where(own[:, None], mode.storing[:, s:].real, 0.0)[:, role[mode.states] == kind])
        given[own] = mode.storing[own, :s]
    return Constraint(np.concatenate(free, axis=1), given)


def projection(free: np.ndarray, k: np.ndarray) -> np.ndarray:
    """P (q, q)."""
    gram = free.T @ k @ free
    # Voltages and currents, farads and henries are scaled separately.
    scale = 1.0 / np.sqrt(np.diag(gram))
    inverse = scale[:, None] * np.linalg.inv(gram * scale * scale[:, None]) * scale
    return np.asarray(free @ inverse @ free.T @ k)


ROUNDING = 1e-12
"""Relative magnitude below which a sum is zero; fraction of the largest multiplier below which one is."""
ORDERS = {
    Role.CAPACITOR: {
        Role.VOLTAGE: Role.VOLTAGE,
        Role.CAPACITOR: Role.CAPACITOR,
        Role.BLOCKING: Role.RESISTOR,
        Role.RESISTOR: Role.CURRENT,
        Role.INDUCTOR: Role.CURRENT,
        Role.CURRENT: Role.CURRENT,
    },
    Role.INDUCTOR: {
        Role.VOLTAGE: Role.VOLTAGE,
        Role.CAPACITOR: Role.VOLTAGE,
        Role.RESISTOR: Role.VOLTAGE,
        Role.BLOCKING: Role.CAPACITOR,
        Role.INDUCTOR: Role.INDUCTOR,
        Role.CURRENT: Role.CURRENT,
    },
}
"""The roles in the tree for a jump of capacitor voltages, and of inductor currents."""


class _Space(NamedTuple):
    """Voltages or currents (m,) that satisfy Kirchhoff's laws: ``stored`` y + ``loose`` e + the sum of ``terms``; e are
    those of the diodes ``own``, each term that of one of ``sources``."""

    stored: np.ndarray
    loose: np.ndarray
    terms: np.ndarray
    own: np.ndarray
    sources: np.ndarray


def jump(problem: Problem, x: np.ndarray, w: np.ndarray, now: str) -> tuple[np.ndarray, float, list[np.ndarray]]:
    """States after a jump.

    Parameters
    ----------
    problem : Problem
    x : (q,) float array
        Capacitor voltages, V, and inductor currents, A, before it.
    w : (s,) float array
        States of the sources.
    now : str
        The time, for errors.

    Returns
    -------
    states : (q,) float array
    delivered : float
        By the sources, J.
    sets : list of two (d,) bool arrays
        Diodes that carry charge, and that do not block flux.

    Raises
    ------
    InfeasibleError, UnboundedError
        Sources contradict each other through diodes.
    """
    k, sources = problem.kept, problem.rows @ w
    carrying, blocking = (_limiting(problem, role, x, sources, k, now) for role in (Role.CAPACITOR, Role.INDUCTOR))
    free, given = constraint(problem.supply, carrying, ~blocking)
    p = projection(free, k)
    after = p @ x + (np.eye(x.size) - p) @ (given.real @ w)
    return after, float(after @ k @ (after - x)), [carrying, ~blocking]


def _limiting(problem: Problem, role: Role, x: np.ndarray, sources: np.ndarray, k: np.ndarray, now: str) -> np.ndarray:
    """Diodes (d,) that carry charge, or that block flux."""
    from scipy.linalg import solve_triangular

    own = np.flatnonzero(problem.parts.role[problem.storing] == role)
    if not own.size or not problem.diodes.size:
        return np.zeros(problem.diodes.size, dtype=bool)
    values = np.zeros(problem.parts.role.size)
    values[problem.sources] = sources
    space = _space(problem.parts, role, values)
    at, sign = problem.storing[own], -1.0 if role == Role.CAPACITOR else 1.0
    k = k[np.ix_(own, own)]
    moved = space.stored[at].T @ k
    gram = moved @ space.stored[at]
    scale = 1.0 / np.sqrt(gram.diagonal())
    lower = np.linalg.cholesky(gram * scale * scale[:, None])
    # y = scale L⁻ᵀ z: the energy is ½ |z − z⁻|².
    before = solve_triangular(lower, scale * (moved @ (x[own] - space.terms[at].sum(axis=1))), lower=True)
    links = np.setdiff1d(problem.diodes, space.own)
    by_z = sign * solve_triangular(lower, (space.stored[links] * scale).T, lower=True).T
    # Two diodes across the same voltage contradict each other by its rounding.
    terms = space.terms[links]
    gap = sign * terms.sum(axis=1) + by_z @ before
    gap += ROUNDING * (np.abs(terms).sum(axis=1) + np.abs(by_z) @ np.abs(before))
    found = _multipliers(by_z, space.loose[links], gap)
    if found is None:
        weights = _contradicting(by_z, space.loose[links], gap)
        wrong = [*space.sources[np.abs(weights @ terms) > 0.0].tolist(), *links[weights > 0.0].tolist()]
        raise contradiction([problem.circuit.names[k] for k in wrong], role, now)
    limits = np.zeros(problem.parts.role.size, dtype=bool)
    limits[np.concatenate([links, space.own])] = found > ROUNDING * found.max(initial=0.0)
    return limits[problem.diodes]


def _contradicting(by_z: np.ndarray, by_own: np.ndarray, gap: np.ndarray) -> np.ndarray:
    """Weights with which constraints of `_multipliers` add up to a contradiction (Farkas)."""
    from scipy.optimize import linprog

    none = np.zeros(by_z.shape[1]), np.zeros(by_own.shape[1])
    weights = linprog(gap, A_eq=by_z.T, b_eq=none[0], A_ub=by_own.T, b_ub=none[1], bounds=(0.0, 1.0)).x
    return np.where(weights > ROUNDING, weights, 0.0)


def contradiction(names: list[str], role: Role, now: str) -> InfeasibleError | UnboundedError:
    """The error of sources that contradict each other in a loop, or, for inductors, in a cut."""
    if role == Role.CAPACITOR:
        return InfeasibleError(
            f"after {now} {', '.join(names)} form a loop whose voltages do not sum to zero: a resistance in series is "
            "missing",
            names,
        )
    return UnboundedError(
        f"after {now} {', '.join(names)} drive a net current that has no path: a resistance in parallel is missing",
        names,
    )


def _multipliers(by_z: np.ndarray, by_own: np.ndarray, gap: np.ndarray) -> np.ndarray | None:
    """Multipliers of by_z z + by_own e + gap ≥ 0 and of e ≥ 0 at the minimum of ½ |z|²; None if infeasible.

    With λ those of the former, z = by_zᵀ λ and those of the latter are −by_ownᵀ λ. The matrix of the complementarity
    problem is positive semidefinite, so pivoting ends in a ray only if there is no solution.
    """
    size = np.sqrt((by_z**2).sum(axis=1))
    size[size == 0.0] = size.max(initial=0.0) or 1.0
    by_z, by_own, many = by_z / size[:, None], by_own / size[:, None], by_own.shape[1]
    matrix = np.block([[by_z @ by_z.T, by_own], [-by_own.T, np.zeros((many, many))]])
    right = np.concatenate([gap / size, np.zeros(many)])
    basic = lemke(right, matrix)
    if basic is None:
        return None
    found = np.zeros(right.size)
    found[basic] = np.linalg.solve(matrix[np.ix_(basic, basic)], -right[basic])
    of = found[: gap.size] / size
    own = -(by_own * size[:, None]).T @ of
    own[own <= ROUNDING * (np.abs(by_own * size[:, None]).T @ np.abs(of))] = 0.0
    return np.concatenate([of, own])


def _space(parts: Parts, role: Role, sources: np.ndarray) -> _Space:
    """All voltages, or all currents, that satisfy Kirchhoff's laws and the sources."""
    made = np.full(parts.role.size, int(Role.WINDING))
    for own, other in ORDERS[role].items():
        made[parts.role == own] = other
    net = normal_tree(parts, made)
    m = made.size
    if role == Role.CAPACITOR:
        over = _identity(m, net.twigs)
        over[net.links] = net.cut.T
        stored, loose, given = (net.tree[[kind, kind + 1]] for kind in (C, R, FIXED))
        branches = net.twigs
    else:
        over = _identity(m, net.links)
        over[net.twigs] = -net.cut
        stored, loose, given = (net.rest[[kind, kind + 1]] for kind in (L, C, FREE))
        branches = net.links
    free = [over[:, slice(*ends)] for ends in (stored, loose, given)]
    known = branches[slice(*given)]
    return _Space(free[0], free[1], free[2] * sources[known], branches[slice(*loose)], known)


def _identity(m: int, elements: np.ndarray) -> np.ndarray:
    """Columns of the identity for ``elements``: (m, elements)."""
    found = np.zeros((m, elements.size))
    found[elements, np.arange(elements.size)] = 1.0
    return found
