"""The end of corrections that residuals prove, against further corrections; several right-hand sides."""

from __future__ import annotations

import numpy as np
import pytest

from circuitsim.bench.families import make
from circuitsim.engine import corrections
from circuitsim.engine.network import network
from circuitsim.engine.refinement import solve_linear
from circuitsim.program import analyse
from circuitsim.solvers.linear import DENSE, NodalPattern

NONE = np.zeros(0, dtype=int)


def test_one_correction_is_enough_where_the_bound_proves_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The currents are those of corrections that go on until two agree."""
    circuit = make("grid", 4000, 0)
    net = network(analyse(circuit))
    guess, anchor = np.zeros(net.first.size), np.zeros(net.n_nodes)
    short = solve_linear(net, NONE, guess, anchor)
    monkeypatch.setattr(corrections.Corrections, "proven", lambda self, power: False)
    long = solve_linear(net, NONE, guess, anchor)
    assert short.converged and short.steps < long.steps
    assert (np.abs(short.current - long.current) <= 1e-12 * np.abs(long.current)).all()
    assert (np.abs(short.current - long.current) <= short.correction + long.correction).all()


def test_bounds_hold_for_spoiled_currents() -> None:
    """The bound on every current's error is larger than the error of a guess, however it is spoiled."""
    net = network(analyse(make("grid", 500, 1)))
    guess, anchor = np.zeros(net.first.size), np.zeros(net.n_nodes)
    exact = solve_linear(net, NONE, guess, anchor)
    on = np.zeros(net.first.size, dtype=bool)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        spoiled = exact.current * (1.0 + 1e-13 * rng.standard_normal(guess.size))
        work = corrections.Corrections(net, exact.tree, on, spoiled, anchor)
        work.follow()
        power = work.residuals()
        error = np.abs(work.current - exact.current)
        r = net.ohms > 0.0
        assert (error[r] <= np.sqrt(power / net.ohms[r]) * (1.0 + 1e-9)).all() and error.max() > 0.0


@pytest.mark.parametrize("compiled", [False, True])
def test_several_right_hand_sides_at_once(compiled: bool) -> None:
    """Columns are what one at a time gives, and what numpy's solution of the nodal matrix gives."""
    n = DENSE - 20
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, n + 1, (2, 4 * n))
    a, b = np.append(a, np.arange(n)), np.append(b, np.arange(1, n + 1))
    g, current = np.exp(rng.standard_normal(a.size)), rng.standard_normal((n, 5))
    factored = NodalPattern(n, a, b, a.size, True, compiled).solver(g).factor(NONE)
    matrix = np.zeros((n + 1, n + 1))
    np.add.at(matrix, (a, a), g), np.add.at(matrix, (b, b), g)
    np.add.at(matrix, (a, b), -g), np.add.at(matrix, (b, a), -g)
    x = factored.solve(current)
    np.testing.assert_allclose(x[:n], np.linalg.solve(matrix[:n, :n], current), rtol=1e-10, atol=1e-12)
    for k in range(5):
        np.testing.assert_allclose(x[:, k], factored.solve(current[:, k]), rtol=1e-13, atol=1e-15)
    assert (x[n] == 0.0).all()
