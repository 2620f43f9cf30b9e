"""Multipliers, and the dual method alone, forced from the start, against the exact oracle and plain steps."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from branch_checks import examine
from wide_circuits import Regime, draw

import circuitsim
from circuitsim.bench.families import make
from circuitsim.engine import active_set


@pytest.fixture
def safeguarded(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """The large driver, with the method of multipliers from the start; collects whether that has ended,
    or conductances differ too much for it."""
    solve, ended = importlib.import_module("circuitsim.analysis.convex"), []
    monkeypatch.setattr(solve, "small_circuit_solver", lambda *_: "a test")
    method, steps = active_set.multipliers, active_set.plain
    monkeypatch.setattr(active_set, "PLAIN", -1)
    monkeypatch.setattr(active_set, "REFINED", -1)

    def plain(circuits, conducting, patience, limit):
        step, done = steps(circuits, conducting, patience, limit)
        return step, done and patience > 0

    def watched(*given):
        found, g = method(*given), given[0].net.resistances.conductances
        ended.append(found[1] or g.max() > active_set.WIDE * g.min())
        return found

    monkeypatch.setattr(active_set, "plain", plain)
    monkeypatch.setattr(active_set, "multipliers", watched)
    return ended


@pytest.mark.parametrize("regime", Regime, ids=lambda regime: regime.name)
def test_multipliers_find_every_operating_point(regime: Regime, safeguarded: list[bool]) -> None:
    for seed in range(30):
        assert examine(draw(regime, 8_000 + seed, (2, 30))) == [], f"{regime.name} seed {8_000 + seed}"
    assert len(safeguarded) > 20 and all(safeguarded)


@pytest.mark.parametrize("family", ["grid", "bridges", "drn", "erdos-renyi"])
def test_multipliers_agree_with_plain_steps(family: str, safeguarded: list[bool]) -> None:
    circuit = make(family, 300, 3)
    found = circuitsim.solve(circuit)
    assert safeguarded and all(safeguarded)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(active_set, "PLAIN", 6)
        patch.setattr(active_set, "REFINED", 12)
        expected = circuitsim.solve(circuit)
    np.testing.assert_array_equal(found.currents > 0.0, expected.currents > 0.0)
    np.testing.assert_allclose(found.currents, expected.currents, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("regime", Regime, ids=lambda regime: regime.name)
def test_the_dual_method_alone_finds_every_operating_point(
    regime: Regime, safeguarded: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []

    def counted(*given):
        point, count = solve(*given)
        counts.append(count)
        return point, count

    solve = active_set.solve_dual
    monkeypatch.setattr(active_set, "solve_dual", counted)
    monkeypatch.setattr(active_set.nodal, "suits", lambda net: False)
    monkeypatch.setattr(active_set, "multipliers", lambda voltages, circuits, step, limit: (step, False))
    for seed in range(12):
        assert examine(draw(regime, 7_000 + seed)) == [], f"{regime.name} seed {7_000 + seed}"
    assert max(counts) > 1
