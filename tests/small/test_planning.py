"""Orders of elimination: what a plan's pattern must hold, and when planning gives up."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import circuitsim
from circuitsim.analysis import small_circuit
from circuitsim.analysis.small_circuit import SmallCircuitSolver, small_circuit_solver
from circuitsim.analysis.solve import Prepared, prepared
from circuitsim.bench.families import make
from circuitsim.engine.small import order
from circuitsim.engine.small.kernels import small_kernel

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


def test_nodes_joined_to_thousands_are_no_trap() -> None:
    late = np.zeros(6001, dtype=bool)
    arms = np.arange(1, 6000)
    position, ptr, _ = order.eliminate(6000, np.zeros(5999, dtype=int), arms, late, 6000)
    assert position.size == 6000 and ptr[-1] == 5999
    rails = np.repeat([0, 1], 998), np.tile(np.arange(2, 1000), 2)
    assert order.eliminate(1000, *rails, late, 20_000)[0].size == 1000


def test_whatever_is_sparse_enough_has_a_plan_however_many_nodes_it_has() -> None:
    for family, unknowns in (("ladder", 10_000), ("selectors", 10_000), ("erdos-renyi", 1_000)):
        assert isinstance(small_circuit_solver(make(family, unknowns, 0), 1e-9), SmallCircuitSolver)
    for family, unknowns in (("grid", 10_000), ("erdos-renyi", 4_000), ("drn", 1_000)):
        assert small_circuit_solver(make(family, unknowns, 0), 1e-9) == small_circuit.TOO_DENSE


def test_a_large_sparse_circuit_by_the_kernel_is_what_the_general_solver_finds() -> None:
    circuit = make("ladder", 6_000, 0)
    by_kernel = circuitsim.solve(circuit)
    assert by_kernel.solver["why"] == small_circuit.WHY
    made = prepared(circuit)
    assert isinstance(made, Prepared)
    by_engine = dataclasses.replace(made, small="general solver").solve()
    assert by_engine.solver["linear"] == "sparse factors"
    np.testing.assert_allclose(by_kernel.voltages, by_engine.voltages, rtol=0, atol=1e-12)


def test_both_forms_plan_alike() -> None:
    """Interpreted and compiled, with groups that are eliminated together."""
    kind, first, second, value, n = make("scale-free", 150, 0).arrays()
    columns = kind.copy(), first.copy(), second.copy(), value.copy()
    args = *columns, n, np.zeros(n, dtype=bool), UNLIMITED
    assert np.array_equal(small_kernel.plain("prepare")(*args), small_kernel.compiled("prepare")(*args))
