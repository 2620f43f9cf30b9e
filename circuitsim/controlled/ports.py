"""Ports of the diodes: a mixed linear complementarity problem in hybrid port variables.

With a resistance ρ in series with each diode's port the circuit is linear, whatever the diodes do: with z = v − ρ i,

    v = v₀ + P z,   ρ i = i₀ + Q z,   P − Q = 1.

A diode satisfies v ≤ 0 ≤ i, v i = 0. Neither all-open nor all-shorted ports need have a solution (an op-amp whose loop
one diode closes has none with it open), so each port is described by its current or by its voltage; the choice is a
*base*. Greedy elimination always finds one, because the pivots of the two choices differ by one, so one of them is at
least ½. In a base the problem is y = q + M z, y ≥ 0, z ≥ 0, y z = 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.controlled.matrices import EPS, inverted

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


@np.errstate(invalid="ignore", over="ignore")
def matrix_of(
    base: np.ndarray, p: np.ndarray, q: np.ndarray, dp: np.ndarray, dq: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The matrix of the problem in a base, and its error bounds, given those of P and Q, ``dp`` and ``dq``."""
    taken, sign = base[:, None], np.where(base, -1.0, 1.0)
    far, d_far = np.where(taken, q, p), np.where(taken, dq, dp)
    inverse, off = inverted(np.where(taken, p, q), np.where(taken, dp, dq))
    error = np.abs(far) @ off + d_far @ (np.abs(inverse) + off)
    error += (base.size + 3) * EPS * (np.abs(far) @ np.abs(inverse))
    return -sign[:, None] * (far @ inverse) * sign, error * (1.0 + 2 * base.size * EPS)


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
