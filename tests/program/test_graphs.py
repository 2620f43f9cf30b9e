"""Graph primitives against their definitions."""

import networkx
import numpy as np

from circuitsim._graphs import least_at_nodes
from circuitsim.program.components import on_cycles


def test_the_least_weight_of_the_other_edges_at_a_node() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        n, m = rng.integers(1, (6, 9))
        first, second = rng.integers(0, n, (2, m))
        weight = rng.integers(-3, 4, m).astype(float)
        least, holder = np.empty((2, n)), np.empty(n, int)
        least_at_nodes(first, second, weight, least, holder)
        for e in range(m):
            for k in (first[e], second[e]):
                others = [abs(w) for j, w in enumerate(weight) if j != e and k in (first[j], second[j])]
                assert least[int(holder[k] == e), k] == min(others, default=np.inf)


def test_edges_on_cycles_are_those_that_are_no_bridges() -> None:
    rng = np.random.default_rng(1)
    for _ in range(100):
        n, m = rng.integers(1, (40, 120))  # dense and sparse
        a, b = rng.integers(0, n, (2, m))
        graph = networkx.MultiGraph(zip(a.tolist(), b.tolist(), strict=True))
        bridges = {frozenset(edge) for edge in networkx.bridges(graph)}
        expected = [u != v and frozenset((u, v)) not in bridges for u, v in zip(a.tolist(), b.tolist(), strict=True)]
        assert on_cycles(int(n), a, b).tolist() == expected
