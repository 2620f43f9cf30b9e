"""The dual active-set method against the exact oracle: forced from the start, and where all changes at once cycle."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from branch_checks import examine
from wide_circuits import Regime, draw

import circuitsim
from circuitsim.bench.families import make
from circuitsim.engine import active_set, nodal
from circuitsim.engine.search import Change, Search
from circuitsim.errors import ConvergenceError

CYCLES = [(Regime.ISLANDS, 2674, (2, 20)), (Regime.SPREAD, 370, (21, 60))]
"""Circuits on which changing all violated diodes at once returns to an earlier set (found among 3,500)."""


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The engine alone, without node potentials in doubles; collects the linear circuits of each dual search."""
    solve = importlib.import_module("circuitsim.analysis.solve")
    monkeypatch.setattr(solve, "small_circuit_solver", lambda *_: "a test")
    monkeypatch.setattr(nodal, "suits", lambda net: False)
    counts: list[int] = []

    def counted(*arguments):
        point, count = solve_dual(*arguments)
        counts.append(count)
        return point, count

    solve_dual = active_set.solve_dual
    monkeypatch.setattr(active_set, "solve_dual", counted)
    return counts


@pytest.mark.parametrize("regime", Regime, ids=lambda regime: regime.name)
def test_dual_method_from_the_first_set(regime: Regime, used: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Search, "next", lambda *_: Change.DUAL)
    for seed in range(12):
        assert examine(draw(regime, 7_000 + seed)) == [], f"{regime.name} seed {7_000 + seed}"
    assert used and max(used) > 1


@pytest.mark.parametrize(("regime", "seed", "nodes"), CYCLES)
def test_circuits_on_which_all_changes_at_once_cycle(
    regime: Regime, seed: int, nodes: tuple[int, int], used: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    returned: list[bytes] = []

    def at_once(search: Search, key: bytes, violated: int, entering: int) -> Change:
        if key in search.seen:
            returned.append(key)
            return Change.DUAL
        search.seen.add(key)
        return Change.ALL

    monkeypatch.setattr(Search, "next", at_once)
    assert examine(draw(regime, seed, nodes)) == []
    assert returned and used


@pytest.mark.parametrize("family", ["grid", "grid-scaled", "bridges", "drn"])
def test_dual_method_agrees_with_the_primal_one(family: str, used: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    circuit = make(family, 60, 3)
    expected = circuitsim.solve(circuit)
    assert not used
    monkeypatch.setattr(Search, "next", lambda *_: Change.DUAL)
    found = circuitsim.solve(circuit)
    assert used
    np.testing.assert_array_equal(found.currents > 0.0, expected.currents > 0.0)
    np.testing.assert_allclose(found.currents, expected.currents, rtol=1e-9, atol=1e-15)


def test_its_limit_is_an_error(used: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Search, "next", lambda *_: Change.DUAL)
    monkeypatch.setattr("circuitsim.engine.active_set.CIRCUITS", 0)
    monkeypatch.setattr(importlib.import_module("circuitsim.analysis.solve"), "ITERATIONS", 2)
    with pytest.raises(ConvergenceError, match="within 2 linear circuits"):
        circuitsim.solve(make("grid", 60, 3))
