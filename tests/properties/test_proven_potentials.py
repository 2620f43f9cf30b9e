"""Currents of the large driver that potentials prove after one correction: against the exact oracle and refinement."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
from branch_checks import examine
from circuits import examples
from wide_circuits import SMALL, Regime, draw

import circuitsim
from circuitsim.analysis.solve import prepared
from circuitsim.bench.families import make
from circuitsim.engine import potentials, steady_state
from circuitsim.engine.active_set import on_potentials
from circuitsim.engine.kernels import kernel
from circuitsim.solvers import linear


class Watched:
    """The large driver's proof: whether it has proven each circuit."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.proven: list[bool] = []
        self._proof = steady_state._proven
        monkeypatch.setattr(steady_state, "_proven", self)

    def __call__(self, *given: Any) -> steady_state.SteadyState | None:
        found = self._proof(*given)
        self.proven.append(found is not None)
        return found


@pytest.fixture
def large_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """The large driver with sparse factors, also for small circuits."""
    solve = importlib.import_module("circuitsim.analysis.convex")
    monkeypatch.setattr(solve, "small_circuit_solver", lambda circuit, tolerance: "a test")
    monkeypatch.setattr(linear, "DENSE", -1)


@pytest.mark.usefixtures("large_driver")
@pytest.mark.parametrize("regime", Regime, ids=lambda regime: regime.name)
def test_every_branch(regime: Regime, monkeypatch: pytest.MonkeyPatch) -> None:
    watched, wrong = Watched(monkeypatch), {}
    for seed in range(examples(60)):
        found = examine(draw(regime, seed, SMALL))
        if found:
            wrong[seed] = found
    assert wrong == {}
    # Sources in parallel, floating parts: none suits, or few.
    assert any(watched.proven) or regime in (Regime.SHORTS, Regime.ISLANDS)


@pytest.mark.parametrize("seed", range(3))
def test_currents_are_those_of_refinement(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    circuit, watched = make("grid", 5000, seed), Watched(monkeypatch)
    found = circuitsim.solve(circuit)
    monkeypatch.setattr(steady_state, "_proven", lambda net, start: None)
    refined = circuitsim.solve(circuit)
    assert watched.proven == [True]
    assert (np.abs(found.currents - refined.currents) <= 1e-13 * np.abs(refined.currents)).all()
    assert (np.abs(found.voltages - refined.voltages) <= 1e-13 * np.abs(refined.voltages)).all()
    assert np.array_equal(found.unique, refined.unique)
    assert np.array_equal(found.currents > 0.0, refined.currents > 0.0)
    assert found.certificate.certified


class Spoiled:
    """A factor whose solutions are wrong by ``share`` of themselves."""

    def __init__(self, factored: linear.Factored, share: float) -> None:
        self._factored, self._share = factored, share

    def solve(self, current: np.ndarray) -> np.ndarray:
        """Solutions, each entry wrong by its own random share."""
        x = self._factored.solve(current)
        return x * (1.0 + self._share * np.random.default_rng(0).normal(size=x.size))


def copied(argument: Any) -> Any:
    """An argument of a kernel, in memory of its own."""
    if isinstance(argument, potentials.Pairs):
        return potentials.Pairs(*(part.copy() for part in argument))
    return argument.copy() if isinstance(argument, np.ndarray) else argument


def test_both_forms_have_equal_bits_and_bounds_hold_however_wrong_corrections_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = []

    def both(function: Any, size: int) -> Any:
        if function not in (potentials.leave_over, potentials.correct):
            return kernel(function, size)

        def compared(*given: Any) -> float:
            own = [copied(argument) for argument in given]
            total: float = kernel(function, size)(*given)
            assert function(*own) == total
            for one, other in zip(given, own):
                if isinstance(one, potentials.Pairs):
                    assert all(np.array_equal(a, b) for a, b in zip(one, other))
                    found.append((copied(one), total))
                elif isinstance(one, np.ndarray):
                    assert np.array_equal(one, other)
            return total

        return compared

    monkeypatch.setattr(steady_state, "kernel", both)
    ready = prepared(make("grid", 3500, 0), "active-set")
    net = ready.resistances.network(ready.structure)
    start = on_potentials(net, net.diodes[:0], 50)
    assert start is not None
    for share in (0.0, 1e-6, 1e-3):
        assert steady_state._proven(net, start._replace(factored=Spoiled(start.factored, share))) is not None
    (exact, least), *others = found[1::2]
    for pairs, total in others:
        error = np.abs((pairs.current - exact.current) + (pairs.current_low - exact.current_low))
        assert 0.0 < error.max() <= total + least
        apart = np.abs((pairs.v - exact.v) + (pairs.v_low - exact.v_low))
        assert 0.0 < apart.max() <= (total + least) * net.ohms.sum()
    assert others[1][1] > 100.0 * others[0][1] > 100.0 * least
