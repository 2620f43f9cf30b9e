"""All solutions of a small complementarity problem, by trying all states of its diodes; several of a large one."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from circuitsim.controlled.lemke import lemke
from circuitsim.controlled.matrices import ROUNDING, is_p_matrix

ALL = 12
"""Most diodes whose states are tried one by one."""

CLEAR = 1e-9
"""A variable above this share of its terms has a sign that rounding cannot change."""

SINGULAR = 64
"""Most singular states that are decided one by one."""

STARTS = 12
"""Covering vectors, and sets of states, with which a large problem is searched."""


class Found(NamedTuple):
    """Solutions of one problem.

    Attributes
    ----------
    basic : list of (d,) bool arrays
        Basic z of each solution, all different.
    complete : bool
        Whether it is proven that there are no others.
    """

    basic: list[np.ndarray]
    complete: bool


def values(q: np.ndarray, m: np.ndarray, basic: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """The basic variables (y where z is not basic), and the sizes of their terms; None for a singular basis."""
    table = np.where(basic, -m, np.eye(q.size))
    if _singular(np.linalg.svd(table, compute_uv=False)):
        return None
    found = np.linalg.solve(table, q)
    return found, sizes(q, m, basic, found)


def _singular(singular_values: np.ndarray) -> np.ndarray:
    """Whether matrices (…, d, d) with these singular values (…, d) are singular to rounding.

    A single port has a condition of one whatever its entry is: entries are held against their rounding, too.
    """
    if not singular_values.shape[-1]:
        return np.zeros(singular_values.shape[:-1], dtype=bool)
    largest, least = singular_values[..., 0], singular_values[..., -1]
    return np.asarray(~((least > CLEAR * largest) & (least > ROUNDING)))


def sizes(q: np.ndarray, m: np.ndarray, basic: np.ndarray, found: np.ndarray) -> np.ndarray:
    """What the values are small or large against: the terms of their rows."""
    z = np.where(basic, np.abs(found), 0.0)
    terms = np.abs(q) + np.abs(m) @ z
    return np.where(basic, np.maximum(np.abs(found), terms / np.maximum(np.abs(m.diagonal()), 1e-300)), terms)


def holds(q: np.ndarray, m: np.ndarray, basic: np.ndarray) -> bool:
    """Whether these states are a solution, to rounding."""
    found = values(q, m, basic)
    return found is not None and bool((found[0] >= -CLEAR * found[1]).all())


def enumerated(q: np.ndarray, m: np.ndarray, only_points: Callable[[np.ndarray], list[np.ndarray] | None]) -> Found:
    """All solutions of a problem with up to `ALL` diodes.

    ``only_points(basic)`` gives the z (d,) of all solutions in a basis that is singular to rounding, if it is proven
    that there is one at most.
    """
    d = q.size
    basic = ((np.arange(2**d)[:, None] >> np.arange(d)) & 1).astype(bool)
    tables = np.where(basic[:, None, :], -m, np.eye(d))
    spectrum = np.linalg.svd(tables, compute_uv=False)
    singular = _singular(spectrum)
    found: list[np.ndarray] = []
    regular = np.flatnonzero(~singular)
    solved = np.linalg.solve(tables[regular], np.broadcast_to(q, (regular.size, d))[..., None])[..., 0]
    z = np.where(basic[regular], np.abs(solved), 0.0)
    scale = np.abs(q) + z @ np.abs(m).T
    largest = np.abs(solved).max(axis=1, initial=0.0)
    scale = np.where(basic[regular], largest[:, None], scale)
    condition = spectrum[regular, 0] / spectrum[regular, -1] if d else np.ones(1)
    rounding = 1e-15 * condition * largest
    good = (solved >= -CLEAR * scale - rounding[:, None]).all(axis=1)
    points: list[np.ndarray] = []
    for k in np.flatnonzero(good).tolist():
        point = np.where(basic[regular[k]], np.maximum(solved[k], 0.0), 0.0)
        if not any(same(point, other) for other in points):
            points.append(point)
            found.append(basic[regular[k]])
    if np.count_nonzero(singular) > SINGULAR:
        return Found(found, False)
    for k in np.flatnonzero(singular).tolist():
        here = only_points(basic[k])
        if here is None or not all(any(same(point, other) for other in points) for point in here):
            return Found(found, False)
    return Found(found, True)


def strongly_regular(q: np.ndarray, m: np.ndarray, basic: np.ndarray) -> bool:
    """Whether every small change of the constant leaves one solution near this one (Robinson 1980): with the rows that
    are clearly positive held, and their z eliminated, the matrix of the rows at a kink is a P-matrix."""
    found = values(q, m, basic)
    if found is None:
        return False
    kink = np.abs(found[0]) <= CLEAR * found[1]
    if not kink.any():
        return True
    held = basic & ~kink
    left = np.linalg.solve(m[np.ix_(held, held)], m[np.ix_(held, kink)])
    return is_p_matrix(m[np.ix_(kink, kink)] - m[np.ix_(kink, held)] @ left)


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two vectors are one but for rounding."""
    return bool((np.abs(a - b) <= 1e-7 * max(np.abs(a).max(initial=0.0), np.abs(b).max(initial=0.0))).all())


def searched(q: np.ndarray, m: np.ndarray) -> Found:
    """Solutions of a problem of any size that paths from several covering vectors reach; never complete."""
    random = np.random.default_rng(0)
    found: list[np.ndarray] = []
    points: list[np.ndarray] = []
    for turn in range(STARTS):
        cover = np.ones(q.size) if turn == 0 else np.exp(2.0 * random.standard_normal(q.size))
        basic = lemke(q, m, cover)
        solved = None if basic is None else values(q, m, basic)
        if basic is None or solved is None:
            continue
        point = np.where(basic, solved[0], 0.0)
        if (solved[0] >= -CLEAR * solved[1]).all() and not any(same(point, other) for other in points):
            found.append(basic)
            points.append(point)
    return Found(found, False)
