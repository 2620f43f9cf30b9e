"""Currents in loops: two ways to the choice of least norm, and a convex program as a third."""

from __future__ import annotations

import numpy as np
import pytest

from circuitsim.analysis import loops
from circuitsim.analysis.loops import _by_kernel, _by_solver, least_norm_currents
from circuitsim.program.components import component_labels


def tangle(seed: int) -> tuple[np.ndarray, ...]:
    """Connected parts with loops, and needs that some currents ≥ 0 (where one-way) carry away."""
    rng = np.random.default_rng(seed)
    n, m = 24, 40
    first, second = rng.integers(0, n, (2, m))
    proper = first != second
    nodes, ends = np.unique(np.concatenate([first[proper], second[proper]]), return_inverse=True)
    a, b = np.split(ends, 2)
    one_way = rng.random(a.size) < 0.7
    flow = np.where(one_way, np.maximum(rng.normal(size=a.size), 0.0), rng.normal(size=a.size))
    need = np.bincount(a, flow, nodes.size) - np.bincount(b, flow, nodes.size)
    _, part = np.unique(component_labels(nodes.size, a, b), return_inverse=True)
    roots = np.array([int(np.flatnonzero(part == k)[-1]) for k in range(part.max() + 1)])
    return a, b, one_way, need, part, roots


@pytest.mark.parametrize("seed", range(12))
def test_kernel_and_solver_find_the_currents_of_least_norm(seed: int) -> None:
    a, b, one_way, need, part, roots = tangle(seed)
    found = least_norm_currents(a, b, one_way, need, part, roots)
    size = np.abs(need).max()
    assert np.abs(found - _by_solver(a, b, one_way, need, roots)).max() <= 1e-11 * size
    left = need - (np.bincount(a, found, need.size) - np.bincount(b, found, need.size))
    assert np.abs(left).max() <= 1e-12 * size and (found[one_way] >= 0.0).all()
    # Least norm: in the span of the potentials' differences but for edges at zero, where these point backwards.
    runs = ~one_way | (found > 0.0)
    incidence = np.zeros((a.size, need.size))
    incidence[np.arange(a.size), a], incidence[np.arange(a.size), b] = 1.0, -1.0
    u = np.linalg.lstsq(incidence[runs], found[runs], rcond=None)[0]
    assert np.abs(incidence[runs] @ u - found[runs]).max() <= 1e-11 * size


def test_the_kernel_answers_but_for_the_few_tangles_where_its_rounds_go_in_circles() -> None:
    tangles = [tangle(seed) for seed in range(12)]
    answers = [_by_kernel(a, b, one_way, need, roots) for a, b, one_way, need, _, roots in tangles]
    assert sum(answer is None for answer in answers) <= 2


def test_parts_are_solved_together_or_apart_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, one_way, need, part, roots = tangle(3)
    many = 4
    copies = np.arange(many)[:, None]
    wide = (a + need.size * copies).ravel(), (b + need.size * copies).ravel(), np.tile(one_way, many)
    parts = (part + roots.size * copies).ravel(), (roots + need.size * copies).ravel()
    together = least_norm_currents(*wide, np.tile(need, many), *parts)
    monkeypatch.setattr(loops, "TOGETHER", 10)
    apart = least_norm_currents(*wide, np.tile(need, many), *parts)
    assert np.abs(together - apart).max() <= 1e-13 * np.abs(need).max()
    monkeypatch.setattr(loops, "LARGEST", 0)
    general = least_norm_currents(*wide, np.tile(need, many), *parts)
    assert np.abs(together - general).max() <= 1e-11 * np.abs(need).max()
