"""Deep Hopfield networks: against their formulas written out, gradients against independent ones, files, resumption."""

import numpy as np
import pytest

from circuitsim.blocks.hopfield import DeepHopfieldBlock, Sweeps
from circuitsim.errors import CircuitError, UsageError
from circuitsim.hopfield import HopfieldLearning, network, published_models
from circuitsim.training import SGD, Exponential, Trainer, TrainingPlan
from circuitsim.training.presets import rates_by_name

EXACT = Sweeps(4000, 4000, 1e-15, reverse_nudged=False)


def images(samples, pixels, classes, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, samples)
    prototypes = rng.integers(0, 256, (classes, pixels))
    noise = rng.normal(0, 40, (samples, pixels))
    return np.clip(prototypes[labels] + noise, 0, 255).astype(np.uint8), labels


def parts(net):
    """Weights and biases by layer, copied."""
    depth = len(net.block.options["layers"])
    weights = [net.parameters[f"weights{k}"].copy() for k in range(depth)]
    return weights, [net.parameters[f"bias{k}"].copy() for k in range(1, depth + 1)]


def phase(weights, biases, x, start, sweeps, beta=0.0, target=None):
    """States by the paper: layers 1, 3, 5 … together, then 2, 4 …; hidden units in [0, 1], outputs linear.

    s ← clip(Wᵀ s_below + W_above s_above + b, 0, 1);  o ← (Wᵀ s_below + b + β y)/(1 + β)   (Scellier 2024, App. E)
    """
    states, last = [x, *start], len(start)
    for layer in sweeps * [*range(1, last + 1, 2), *range(2, last + 1, 2)]:
        pull = states[layer - 1] @ weights[layer - 1] + biases[layer - 1]
        if layer < last:
            pull = np.clip(pull + states[layer + 1] @ weights[layer].T, 0.0, 1.0)
        elif target is not None:
            pull = (pull + beta * target) / (1.0 + beta)
        states[layer] = pull
    return states[1:]


# Energies of many layers have many minima: at the rates of the others the third is chaotic after 60 updates.
@pytest.mark.parametrize(
    "hidden, rate, epochs", [((20,), 0.3, 10), ((16, 12), 0.3, 12), ((10, 12, 9), 0.09, 20)], ids=["1h", "2h", "3h"]
)
def test_the_trajectory_is_that_of_the_formulas(hidden, rate, epochs):
    """Hundreds of updates in float64, warm starts and the last, smaller batch of each epoch included."""
    sweeps, nudged, beta, batch, units = 12, 7, 0.2, 8, (30, *hidden, 4)
    pixels, labels = images(92, 30, 4)
    rates = np.linspace(rate, rate / 6, len(hidden) + 1)
    learning = HopfieldLearning(beta, allow_nonconvex=True)  # as published: all samples count
    net = network(units, Sweeps(sweeps, nudged, None, False), learning, batch, rng=5, dtype=np.float64)
    weights, biases = parts(net)
    plan = TrainingPlan(epochs, batch, 3, SGD(rates_by_name(rates, rates, "weights")), Exponential(0.99))
    outcome = Trainer(net, (pixels, labels), plan).train()
    assert outcome.updates == epochs * 12

    zeros = [np.zeros((len(pixels), n)) for n in units[1:]]
    states, errors = [layer[:batch].copy() for layer in zeros], []
    for epoch in range(epochs):
        wrong = []
        for rows in np.split(plan.order(epoch, len(pixels)), range(batch, len(pixels), batch)):
            x, y = pixels[rows] / 255, np.eye(4)[labels[rows]]
            free = phase(weights, biases, x, [state[: len(rows)] for state in states], sweeps)
            minus, plus = (phase(weights, biases, x, free, nudged, nudge, y) for nudge in (-beta, beta))
            for layer, (high, low, step) in enumerate(zip(plus, minus, rates * 0.99**epoch / (2 * beta * len(rows)))):
                above, below = (x, x) if layer == 0 else (plus[layer - 1], minus[layer - 1])
                weights[layer] += step * (above.T @ high - below.T @ low)
                biases[layer] += step * (high - low).sum(axis=0)
                states[layer][: len(rows)] = high
            wrong.append((free[-1].argmax(axis=1) != labels[rows]).mean())
        errors.append(np.mean(wrong))
    for found, expected in zip(parts(net), (weights, biases)):
        for one, other in zip(found, expected):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-11)
    np.testing.assert_allclose(outcome.history.column("error"), errors, atol=1e-12)
    assert errors[-1] < 0.6 * errors[0]  # it learns, so the comparison is of something
    free = phase(weights, biases, pixels / 255, zeros, sweeps)
    for found, expected in zip(net.relax(pixels).layers, free):
        np.testing.assert_allclose(found, expected, atol=1e-10)
    assert (net.predict(pixels).argmax(axis=1) == free[-1].argmax(axis=1)).all()


def test_the_published_models():
    models = published_models()
    found = {
        name: (r.hidden, r.sweeps, r.nudged_sweeps, r.weight_rates, r.published["ep"]["error"])
        for name, r in models.items()
    }
    assert found == {
        "dhn-1h": ([1024], 15, 15, [0.05, 0.05], 1.79),
        "dhn-2h": ([1024, 1024], 50, 20, [0.2, 0.05, 0.01], 1.65),
        "dhn-3h": ([1024, 1024, 1024], 100, 10, [0.2, 0.05, 0.01, 0.002], 1.65),
    }
    assert all(r.beta == 0.2 and r.epochs == 100 for r in models.values())


def test_refusals(tmp_path):
    with pytest.raises(UsageError, match="at least one hidden layer"):
        network((5, 3), EXACT, HopfieldLearning(), 4)
    (tmp_path / "model.npz").write_bytes(b"nothing")
    with pytest.raises(CircuitError, match="damaged"):
        DeepHopfieldBlock.load(tmp_path / "model.npz")


def test_a_step_without_a_certified_sample_is_left_out() -> None:
    net = network((4, 6, 3), Sweeps(50, 50), HopfieldLearning(0.5), 4, 0, np.float64)
    net.parameters["weights1"][...] = 0.9 * np.linalg.qr(np.random.default_rng(0).normal(size=(6, 3)))[0]
    net.parameters["weights0"][...] = 0.0
    net.parameters["bias1"][...] = 0.5
    gradients, metrics = net.gradient((np.zeros((4, 4), np.uint8), np.zeros(4, np.int64)), np.random.default_rng(0))
    assert gradients is None and metrics["uncertified_fraction"] == 1.0
