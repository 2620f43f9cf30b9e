"""Complementarity problems of the diodes at their ports, and their solutions.

With a resistance ρ in series with each diode's port the circuit is linear, whatever the diodes do: with z = v − ρ i,

    v = v₀ + P z,   ρ i = i₀ + Q z,   P − Q = 1.

A diode satisfies v ≤ 0 ≤ i, v i = 0. Neither all-open nor all-shorted ports need have a solution (an op-amp whose loop
one diode closes has none with it open), so each port is described by its current or by its voltage; the choice is a
*base*. Greedy elimination always finds one, because the pivots of the two choices differ by one, so one of them is at
least ½. In a base the problem is y = q + M z, y ≥ 0, z ≥ 0, y z = 0.

Of a small problem all solutions are found, by enumeration of the diode states; of a large one several, by Lemke's
complementary pivoting with the lexicographic ratio test. A covering vector d makes q + d t ≥ 0 for large t; pivots
lower t to zero along a path of almost complementary bases. The lexicographic rule excludes cycles, so that each path
ends: in a solution, or in a ray, which proves nothing outside special classes of M (Cottle, Pang & Stone 1992, ch. 4).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from circuitsim.controlled.linear import EPS, inverted

ROUNDING = 16.0 * np.finfo(float).eps
"""Bound on the relative error of a sum, relative to its terms."""


class Ports(NamedTuple):
    """Voltages and currents of d ports (times ρ, V) as affine functions of z.

    Attributes
    ----------
    v0, i0 : (d,) float arrays
        V.
    p, q : (d, d) float arrays
    dv, di : (d,) float arrays
        Error bounds of v0 and i0, V.
    dp, dq : (d, d) float arrays
        Error bounds of P and Q.
    """

    v0: np.ndarray
    i0: np.ndarray
    p: np.ndarray
    q: np.ndarray
    dv: np.ndarray
    di: np.ndarray
    dp: np.ndarray
    dq: np.ndarray


class Hybrid(NamedTuple):
    """A linear complementarity problem y = constant + matrix · z in a base.

    Attributes
    ----------
    base : (d,) bool array
        Ports described by −v (y is ρ i); the others by ρ i (y is −v).
    constant : (d,) float array
        V; zero where its sign is lost to rounding.
    matrix : (d, d) float array
        Dimensionless.
    inverse : (d, d) float array
        z of the ports from z of the base.
    """

    base: np.ndarray
    constant: np.ndarray
    matrix: np.ndarray
    inverse: np.ndarray

    def conducting(self, basic: np.ndarray) -> np.ndarray:
        """Diodes that conduct where these z are basic (d,)."""
        return np.asarray(basic != self.base)

    def basic(self, conducting: np.ndarray) -> np.ndarray:
        """The inverse of `conducting`."""
        return np.asarray(conducting != self.base)


def base_of(p: np.ndarray) -> np.ndarray:
    """A base with pivots of at least ½ in magnitude."""
    work, d = p.copy(), len(p)
    base = np.zeros(d, dtype=bool)
    for k in range(d):
        base[k] = abs(work[k, k]) >= 0.5
        if not base[k]:
            work[k, k] -= 1.0
        work[k + 1 :, k + 1 :] -= np.outer(work[k + 1 :, k] / work[k, k], work[k, k + 1 :])
    return base


def hybrid(p: np.ndarray, q: np.ndarray) -> Hybrid:
    """The complementarity problem of ports in a base chosen here; its constant is zero."""
    base, zero = base_of(p), np.zeros(len(p))
    taken, sign = base[:, None], np.where(base, -1.0, 1.0)
    inverse = np.linalg.inv(np.where(taken, p, q))
    # z of the base is sign (near0 + near z); y is −sign (far0 + far z).
    return Hybrid(base, zero, -sign[:, None] * (np.where(taken, q, p) @ inverse) * sign, inverse)


def with_constant(found: Hybrid, ports: Ports) -> Hybrid:
    """The problem for these v₀ and i₀."""
    base, sign = found.base, np.where(found.base, -1.0, 1.0)
    near0, far0 = np.where(base, ports.v0, ports.i0), np.where(base, ports.i0, ports.v0)
    far = np.where(base[:, None], ports.q, ports.p)
    constant = -sign * (far0 - far @ (found.inverse @ near0))
    near_rounding, far_rounding = np.where(base, ports.dv, ports.di), np.where(base, ports.di, ports.dv)
    rounding = far_rounding + np.abs(far) @ (np.abs(found.inverse) @ near_rounding)
    hidden = (np.abs(constant) <= rounding) & (rounding > 0.0)
    return found._replace(constant=np.where(hidden, 0.0, constant))


def ports_from_base(found: Hybrid, ports: Ports, basic: np.ndarray) -> np.ndarray | None:
    """z of the ports where these z of the base are basic (the others are zero); None where the basis is singular."""
    z = np.zeros(basic.size)
    if basic.any():
        try:
            z[basic] = np.linalg.solve(found.matrix[np.ix_(basic, basic)], -found.constant[basic])
        except np.linalg.LinAlgError:
            return None
    near0 = np.where(found.base, ports.v0, ports.i0)
    return np.asarray(found.inverse @ (np.where(found.base, -z, z) - near0))


ZERO = 1e-11
"""Pivots below this fraction of their column count as zero."""


def lemke(q: np.ndarray, m: np.ndarray, cover: np.ndarray | None = None) -> np.ndarray | None:
    """Which z are basic (d,) at a solution; None where the path ends in a ray.

    Parameters
    ----------
    q : (d,) float array
    m : (d, d) float array
    cover : (d,) float array, optional
        Positive; ones if not given.
    """
    d = q.size
    cover = np.ones(d) if cover is None else cover
    if (q >= 0.0).all():
        return np.zeros(d, dtype=bool)
    # Columns: y (d), z (d), the artificial t, then q. The block of y is the inverse basis: it orders ties.
    table = np.hstack([np.eye(d), -m, -cover[:, None], q[:, None]])
    basis = np.arange(d)
    entering = 2 * d
    row = _least(table, np.arange(d), cover, d)
    for _ in range(50 * d + 1000):
        leaving = int(basis[row])
        table[row] /= table[row, entering]
        column = table[:, entering].copy()
        column[row] = 0.0
        table -= column[:, None] * table[row]
        basis[row] = entering
        if leaving == 2 * d:
            return _basic(basis, d)
        entering = leaving + d if leaving < d else leaving - d
        column = table[:, entering]
        up = np.flatnonzero(column > ZERO * np.abs(column).max())
        if not up.size:
            return None
        row = _least(table, up, column, d)
        # t leaves whenever it may: the path ends there.
        at = np.flatnonzero(basis == 2 * d)[0]
        if column[at] > ZERO * np.abs(column).max() and _tied(table, at, row, column):
            row = int(at)
    return None


def _tied(table: np.ndarray, at: int, row: int, column: np.ndarray) -> bool:
    mine, best = table[at, -1] / column[at], table[row, -1] / column[row]
    return bool(mine <= best + 1e-13 * abs(best))


def _basic(basis: np.ndarray, d: int) -> np.ndarray:
    found = np.zeros(d, dtype=bool)
    found[basis[(basis >= d) & (basis < 2 * d)] - d] = True
    return found


def _least(table: np.ndarray, rows: np.ndarray, column: np.ndarray, d: int) -> int:
    """The row with the lexicographically smallest (q, inverse basis) / column, for the first pivot too."""
    ratio = table[rows, -1] / column[rows]
    rows = rows[ratio <= ratio.min() + 1e-13 * np.abs(ratio.min())]
    for k in range(d):
        if rows.size == 1:
            break
        ratio = table[rows, k] / column[rows]
        rows = rows[ratio <= ratio.min() + 1e-13 * np.abs(ratio).max(initial=0.0)]
    return int(rows[0])


ALL = 12
"""Maximum number of diodes whose states are enumerated."""

CLEAR = 1e-9
"""A variable above this fraction of its terms has a definite sign."""

STARTS = 12
"""Numbers of covering vectors, and of sets of states, in the search of a large problem."""


class Tried(NamedTuple):
    """All states of d diodes.

    Attributes
    ----------
    conducting : (2^d, d) bool array
    z : (2^d, d) float array
        v − ρ i of the ports, V; a state is a solution if none is positive; nan in a singular one.
    possible : (2^d,) bool array
        Which states may be solutions.
    """

    conducting: np.ndarray
    z: np.ndarray
    possible: np.ndarray


def states(d: int) -> np.ndarray:
    """All states of d diodes (2^d, d): which conduct."""
    return ((np.arange(2**d)[:, None] >> np.arange(d)) & 1).astype(bool)


@np.errstate(invalid="ignore", over="ignore")
def p_matrix(p: np.ndarray, q: np.ndarray, dp: np.ndarray, dq: np.ndarray) -> bool:
    """Whether the problem is proven to have a P-matrix, in any base.

    It has one iff all determinants of a row of P or −Q for each diode have one sign (`RationalBlock.one_of_curves`).
    If one diode changes its state, the ratio of both determinants is the product of its new row with the column of the
    inverse that belongs to its old one.
    """
    rows = states(len(p))[:, :, None]
    inverse, error = inverted(np.where(rows, p, -q), np.where(rows, dp, dq))
    new, off, column, d_column = (
        np.where(rows, -q, p),
        np.where(rows, dq, dp),
        *(x.swapaxes(1, 2) for x in (inverse, error)),
    )
    size = np.abs(new) * np.abs(column)
    bound = np.abs(new) * d_column + off * (np.abs(column) + d_column) + (len(p) + 3) * EPS * size
    return bool(((new * column).sum(axis=2) > 2.0 * bound.sum(axis=2)).all())


def tried(ports: Ports) -> Tried:
    """Enumerate all states, with error bounds.

    In a state v = 0 or i = 0 at each diode, P z = −v₀ or Q z = −i₀ there.
    """
    d = ports.v0.size
    conducting = states(d)
    rows = conducting[:, :, None]
    inverse, error = inverted(np.where(rows, ports.p, ports.q), np.where(rows, ports.dp, ports.dq))
    given, off = (
        np.where(conducting, ports.v0, ports.i0)[..., None],
        np.where(conducting, ports.dv, ports.di)[..., None],
    )
    size = np.abs(inverse)
    z = -(inverse @ given)[..., 0]
    with np.errstate(invalid="ignore"):
        bound = (size @ off + error @ (np.abs(given) + off) + (d + 3) * EPS * (size @ np.abs(given)))[..., 0]
    bound = np.where(np.isnan(bound), np.inf, bound * (1.0 + 2 * d * EPS))
    z[~inverse.any(axis=(1, 2))] = np.nan
    return Tried(conducting, z, np.asarray(~(z - bound > 0.0).any(axis=1)))


def values(q: np.ndarray, m: np.ndarray, basic: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """The basic variables (y where z is not basic), and the sizes of their terms; None for a singular basis."""
    try:
        found = np.linalg.solve(np.where(basic, -m, np.eye(q.size)), q)
    except np.linalg.LinAlgError:
        return None
    return (found, sizes(q, m, basic, found)) if np.isfinite(found).all() else None


def sizes(q: np.ndarray, m: np.ndarray, basic: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Scales of the values: the terms of their rows."""
    z = np.where(basic, np.abs(found), 0.0)
    terms = np.abs(q) + np.abs(m) @ z
    return np.where(basic, np.maximum(np.abs(found), terms / np.maximum(np.abs(m.diagonal()), 1e-300)), terms)


def holds(q: np.ndarray, m: np.ndarray, basic: np.ndarray) -> bool:
    """Whether these states are a solution to rounding."""
    found = values(q, m, basic)
    return found is not None and bool((found[0] >= -CLEAR * found[1]).all())


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two vectors are equal up to rounding."""
    return bool((np.abs(a - b) <= 1e-7 * max(np.abs(a).max(initial=0.0), np.abs(b).max(initial=0.0))).all())


def searched(problem: Hybrid, ports: Ports) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """States of the diodes and z of solutions on Lemke's paths from several covering vectors, for any size."""
    random, q, m = np.random.default_rng(0), problem.constant, problem.matrix
    for _ in range(STARTS):
        basic = lemke(q, m, np.exp(2.0 * random.standard_normal(q.size)))
        z = None if basic is None or not holds(q, m, basic) else ports_from_base(problem, ports, basic)
        if basic is not None and z is not None:
            yield problem.conducting(basic), z
