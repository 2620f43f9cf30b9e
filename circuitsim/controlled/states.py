"""Solutions of a complementarity problem: for a small one all, by enumeration of the diode states; for a large one
several."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from circuitsim.controlled.lemke import lemke
from circuitsim.controlled.matrices import EPS, inverted
from circuitsim.controlled.ports import Hybrid, Ports, ports_from_base

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


def tried(ports: Ports) -> Tried:
    """Enumerate all states, with error bounds.

    In a state v = 0 or i = 0 at each diode, P z = −v₀ or Q z = −i₀ there.
    """
    d = ports.v0.size
    conducting = ((np.arange(2**d)[:, None] >> np.arange(d)) & 1).astype(bool)
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
