"""Nudges that leave no convex energy: eigenvalues of dense Hessians, gradients by the adjoint, certified circuits."""

from __future__ import annotations

import numpy as np
import pytest

from circuitsim.blocks.hopfield import DeepHopfieldBlock, Sweeps
from circuitsim.blocks.layered import convex_between, least_curvature
from circuitsim.blocks.propagation import DivergedError
from circuitsim.blocks.protocol import Nudge
from circuitsim.blocks.resistive import ResistiveBlock
from circuitsim.ffebm import Chain, Chaining, Linear, Readout
from circuitsim.layered import DeepResistiveNetwork
from circuitsim.learning import EquilibriumPropagation, GradientProblem, ResistorNudge, SquaredError


def dense_hessian(block, state, extra: np.ndarray) -> np.ndarray:
    """Slopes less couplings plus ``extra`` at the outputs, on the units of one sample that are not at a bound."""
    energy = block._layered_energy()
    sizes = [layer.shape[1] for layer in state.layers]
    at = np.concatenate([[0], np.cumsum(sizes)])
    slopes = [np.broadcast_to(layer.slope, size) for layer, size in zip(energy.layers, sizes)]
    hessian = np.diag(np.concatenate(slopes).astype(float))
    for k in range(1, len(sizes)):
        weights = block.parameters[f"{block.weight_name}{k}"]
        hessian[at[k - 1] : at[k], at[k] : at[k + 1]] = -weights
        hessian[at[k] : at[k + 1], at[k - 1] : at[k]] = -weights.T
    hessian[at[-2] :, at[-2] :] += extra
    free = np.concatenate([gain[0] > 0 for gain in energy.gains(state.layers)])
    return hessian[np.ix_(free, free)]


@pytest.mark.parametrize("seed", range(6))
def test_least_curvature_is_the_least_eigenvalue(seed: int) -> None:
    rng = np.random.default_rng(seed)
    block = DeepHopfieldBlock([4, 3, 4], clamped=False, inputs=3, spread=1.5, sweeps=Sweeps(400, 5), rng=seed)
    x = rng.normal(size=(1, 3))
    free = block.relax(x)
    matrix = rng.normal(size=(4, 4))
    matrix = 0.4 * (matrix + matrix.T)
    for nudge, extra in (
        (Nudge(np.zeros((1, 4)), -0.3), -0.3 * np.eye(4)),
        (Nudge(np.zeros((1, 4)), follow=lambda output: output @ matrix), matrix),
    ):
        expected = np.linalg.eigvalsh(dense_hessian(block, free, extra))[0]
        found = least_curvature(block._layered_energy(), free.relaxed, nudge)
        assert found[0] == pytest.approx(expected, rel=1e-6, abs=1e-7)


def gradient_of(spread: float, loss: str, rule: Chaining):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(16, 10)), rng.integers(4, size=16)
    block = DeepHopfieldBlock([12, 8], clamped=False, sweeps=Sweeps(300, 40))
    chain = Chain([Linear(10, 12), block, Readout(8, 4, spread=spread)], loss, rule, seed=1, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        found, metrics = chain.gradient((x, y), rng)
    return None if found is None else np.concatenate([g.ravel() for g in found.values()]), metrics


@pytest.mark.parametrize("loss", ["cross-entropy", "mse"])
def test_an_elastic_nudge_is_right_or_counted(loss: str) -> None:
    """Unscaled errors on an unclamped block: what counts as certified has the adjoint's gradient."""
    right = refused = 0
    for spread in (0.5, 2.0, 5.0, 10.0, 20.0, 60.0):
        exact, _ = gradient_of(spread, loss, Chaining("implicit"))
        for beta in (0.02, 0.1, 0.2):
            rule = Chaining(beta=beta, last="elastic", scale_errors=False)
            found, metrics = gradient_of(spread, loss, rule)
            if metrics["uncertified_fraction"] == 0.0:
                error = np.linalg.norm(found - exact) / np.linalg.norm(exact)
                assert error < (0.06 if beta == 0.02 else 0.5), (spread, beta)
                right += 1
            else:
                refused += 1
    assert right >= 4 and refused >= 4


def test_what_diverges_is_computed_only_when_asked_and_never_certified() -> None:
    rule = {"beta": 0.2, "last": "elastic", "scale_errors": False}
    found, metrics = gradient_of(10.0, "mse", Chaining(**rule))
    assert found is None and metrics["uncertified_fraction"] == 1.0
    exact, _ = gradient_of(10.0, "mse", Chaining("implicit"))
    found, metrics = gradient_of(10.0, "mse", Chaining(**rule, allow_nonconvex=True))
    assert metrics["uncertified_fraction"] == 1.0
    assert not np.linalg.norm(found - exact) < np.linalg.norm(exact)


def test_a_batch_that_diverges_as_a_whole_is_an_error() -> None:
    """Not a gradient of zero, with which a run would go on."""
    with pytest.raises(DivergedError, match="smaller beta"):
        gradient_of(1e6, "mse", Chaining(beta=0.5, last="elastic", scale_errors=False, allow_nonconvex=True))


def test_scaled_errors_are_not_refused() -> None:
    found, metrics = gradient_of(2.0, "cross-entropy", Chaining(beta=0.02, last="elastic"))
    assert found is not None and metrics["uncertified_fraction"] == 0.0


def output_conductances(block: ResistiveBlock, state) -> np.ndarray:
    """Least eigenvalue of the conductance matrix seen at the outputs, S, by a dense Schur complement."""
    hessian = dense_hessian(block, state, np.zeros((2, 2)))
    n = len(hessian) - 2
    inner, between, own = hessian[:n, :n], hessian[:n, n:], hessian[n:, n:]
    return np.linalg.eigvalsh(own - between.T @ np.linalg.solve(inner, between))[0]


@pytest.mark.parametrize("share", [0.97, 1.03])
def test_a_resistive_block_keeps_what_its_outputs_have(share: float) -> None:
    """−β below or above the least output conductance, which is less than each output's own total conductance."""
    block = ResistiveBlock([8, 8, 2], inputs=3, sweeps=Sweeps(5000, 50), rng=3)
    x = np.array([[0.3, -0.2, 0.5]])
    free = block.relax(x)
    limit = output_conductances(block, free)
    assert 1.03 * limit < float(min(block._conductance_sums()[-1]))
    nudged = block.relax(x, Nudge(np.zeros((1, 2)), -share * limit), free)
    changed = [not np.array_equal(a == 0, b == 0) for a, b in zip(free.layers, nudged.layers)]
    assert any(changed) or nudged.certified[0] == (share < 1.0)
    assert block.relax(x, Nudge(np.ones((1, 2)), 5.0 * limit), free).certified[0]


@pytest.mark.parametrize("share", [0.9, 1.1])
def test_a_deep_resistive_network_too(share: float) -> None:
    network = DeepResistiveNetwork((3, 8, 8, 2), rng=1, sweeps=40, tolerance=0.0)
    x = np.array([[0.3, -0.2, 0.5], [0.1, 0.4, -0.6]])
    weights = [network.parameters[f"conductances{k}"] for k in (0, 1, 2)]
    sums = [w.sum(axis=0) for w in weights]
    sums = [sums[0] + weights[1].sum(axis=1), sums[1] + weights[2].sum(axis=1), sums[2]]
    free = network.relax(x)

    def limit(sample: int) -> float:
        u = [layer[sample] != 0 for layer in free.layers[:2]]
        first = np.diag(sums[0])[np.ix_(u[0], u[0])]
        w2, w3 = weights[1][np.ix_(u[0], u[1])], weights[2][u[1]]
        second = np.diag(sums[1])[np.ix_(u[1], u[1])] - w2.T @ np.linalg.solve(first, w2)
        return float(np.linalg.eigvalsh(np.diag(sums[2]) - w3.T @ np.linalg.solve(second, w3))[0])

    limits = np.array([limit(sample) for sample in range(2)])
    beta = share * (limits.max() if share > 1.0 else limits.min())
    nudge = Nudge(np.zeros((2, 2)), -beta)
    strict = convex_between(network._layered_energy(), free.relaxed, free.relaxed, nudge)
    assert strict.tolist() == [share < 1.0] * 2
    if beta < sums[2].min():
        state = network.relax(x, nudge, free)
        same = all(np.array_equal(a == 0, b == 0) for a, b in zip(free.layers, state.layers))
        assert not same or state.certified.tolist() == [share < 1.0] * 2
    problem = GradientProblem(network, x, np.zeros((2, 2)), SquaredError(), free, np.full(2, 0.5))
    small = EquilibriumPropagation(0.01 * limits.min(), nudging=ResistorNudge()).estimate(problem)
    assert small.certified.all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_order_of_memory_changes_nothing_but_rounding(dtype: type) -> None:
    rng = np.random.default_rng(0)
    block = DeepHopfieldBlock([30, 20, 5], clamped=False, inputs=6, sweeps=Sweeps(50, 5), rng=0, dtype=dtype)
    x = rng.normal(size=(7, 6)).astype(dtype)
    state = block.relax(x)
    w1, w2 = block.parameters["weights1"].astype(float), block.parameters["weights2"].astype(float)
    pull = x.astype(float) @ block.parameters["weights0"].astype(float)
    first, second, third = (np.zeros((7, n)) for n in (30, 20, 5))
    for _ in range(50):
        first, third = np.clip(pull + second @ w1.T, 0, 1), second @ w2
        second = np.clip(first @ w1 + third @ w2.T, 0, 1)
    eps = np.finfo(dtype).eps
    for layer, expected in zip(state.layers, (first, second, third), strict=True):
        assert np.abs(layer - expected).max() <= 100 * eps * max(1.0, np.abs(expected).max())
