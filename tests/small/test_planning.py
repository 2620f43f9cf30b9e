"""Orders of elimination: what a plan's pattern must hold, and when planning gives up."""

from __future__ import annotations

import numpy as np
import pytest

from circuitsim.engine.small import order

UNLIMITED = 2**62


def graph(seed: int) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:
    """Coordinates 0 … n − 1 and ground, with edges of all kinds: parallel ones, to ground, from a node to itself."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    m = int(rng.integers(0, 4 * n))
    late = np.append(rng.random(n) < (0.2 if seed % 3 == 0 else 0.0), False)
    return n, rng.integers(0, n + 1, m), rng.integers(0, n + 1, m), late


@pytest.mark.parametrize("seed", range(40))
def test_an_order_with_the_pattern_that_elimination_makes(seed: int) -> None:
    n, a, b, late = graph(seed)
    position, ptr, members = order.eliminate(n, a, b, late, UNLIMITED)
    assert sorted(position.tolist()) == list(range(n))
    joined: list[set[int]] = [set() for _ in range(n)]
    for i, j in zip(a.tolist(), b.tolist()):
        if i != j and n not in (i, j):
            joined[i].add(j)
            joined[j].add(i)
    left = set(range(n))
    for step, k in enumerate(np.argsort(position).tolist()):
        others = joined[k]
        assert set(members[ptr[step] : ptr[step + 1]].tolist()) == others
        assert ptr[step + 1] - ptr[step] == len(others)
        early = [i for i in left if not late[i]]
        assert k in (early or left)
        for i in others:
            joined[i] |= others
            joined[i] -= {i, k}
        left.remove(k)
    assert ptr[n] == members.size


def test_it_gives_up_where_there_is_too_much_to_do() -> None:
    """A clique of 40 and leaves."""
    first, second = np.triu_indices(40, 1)
    a, b = np.append(first, np.arange(40)), np.append(second, np.arange(40, 80))
    late = np.zeros(81, dtype=bool)
    updates = sum(k * k for k in range(40)) + 40
    for limit, done in ((updates, True), (updates // 6, False)):
        assert (order.eliminate(80, a, b, late, limit)[0].size == 80) is done
