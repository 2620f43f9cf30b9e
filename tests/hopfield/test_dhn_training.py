"""Deep Hopfield networks: against the plain twin, gradients against independent ones, files, resumption."""

import numpy as np
import pytest
from plain_hopfield import phase, train_step

from circuitsim.blocks import Nudge
from circuitsim.blocks.hopfield import DeepHopfieldBlock, Sweeps
from circuitsim.errors import CircuitError, UsageError
from circuitsim.hopfield import HopfieldLearning, network, published_models
from circuitsim.hopfield.preset import rates_by_name
from circuitsim.training import SGD, Exponential, Trainer, TrainingPlan

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


# Energies of many layers have many minima: at the rates of the others the third is chaotic after 60 updates.
@pytest.mark.parametrize(
    "hidden, rate, epochs", [((20,), 0.3, 25), ((16, 12), 0.3, 25), ((10, 12, 9), 0.09, 20)], ids=["1h", "2h", "3h"]
)
def test_the_trajectory_of_the_plain_twin(hidden, rate, epochs):
    """Hundreds of updates in float64, warm starts and the last, smaller batch of each epoch included."""
    sweeps, nudged, beta, batch = 12, 7, 0.2, 8
    pixels, labels = images(92, 30, 4)
    rates = tuple(np.linspace(rate, rate / 6, len(hidden) + 1))
    units = (30, *hidden, 4)
    learning = HopfieldLearning(beta, allow_nonconvex=True)  # as published: all samples count
    net = network(units, Sweeps(sweeps, nudged, None, False), learning, batch, rng=5, dtype=np.float64)
    weights, biases = parts(net)
    plan = TrainingPlan(epochs, batch, 3, SGD(rates_by_name(rates)), Exponential(0.99))
    outcome = Trainer(net, (pixels, labels), plan).train()
    assert outcome.updates == epochs * 12

    states = [np.zeros((batch, n)) for n in units[1:]]
    errors = []
    for epoch in range(epochs):
        order, wrong = plan.order(epoch, len(pixels)), []
        for at in range(0, len(pixels), batch):
            rows = order[at : at + batch]
            start = [state[: len(rows)] for state in states]
            x, y = pixels[rows] / 255, np.eye(4)[labels[rows]]
            now = [rate * 0.99**epoch for rate in rates]
            free, last = train_step(weights, biases, x, y, start, sweeps, nudged, beta, now)
            wrong.append((free[-1].argmax(axis=1) != labels[rows]).mean())
            for state, new in zip(states, last):
                state[: len(rows)] = new
        errors.append(np.mean(wrong))
    found_weights, found_biases = parts(net)
    for found, expected in zip([*found_weights, *found_biases], [*weights, *biases]):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11)
    np.testing.assert_allclose([row["error"] for row in outcome.history.rows], errors, atol=1e-12)
    assert errors[-1] < 0.6 * errors[0]  # it learns, so the comparison is of something
    free = phase(weights, biases, pixels / 255, [np.zeros((len(pixels), n)) for n in units[1:]], sweeps)
    for found, expected in zip(net.relax(pixels).layers, free):
        np.testing.assert_allclose(found, expected, atol=1e-10)
    assert (net.predict(pixels).argmax(axis=1) == free[-1].argmax(axis=1)).all()


def cost(net, pixels, labels):
    """Mean cost at the free state, to the last digit."""
    distance = net.relax(pixels).output - np.eye(3)[labels]
    return 0.5 * (distance**2).sum() / len(labels)


def converged(hidden=(9, 8), seed=2, **learning):
    """A network in float64 with exact states; weights larger than at the start, so that some units are at bounds."""
    units = (12, *hidden, 3)
    rule = HopfieldLearning(**{"beta": 0.01, **learning})
    net = network(units, EXACT, rule, 6, seed, np.float64, spread=1.1, warm=False)
    rng = np.random.default_rng(4)
    for name, array in net.parameters.items():
        if name.startswith("bias"):
            array[...] = rng.uniform(-0.2, 0.5, array.shape)
    return net, *images(6, 12, 3, seed=1)


@pytest.mark.parametrize("hidden", [(9,), (9, 8), (7, 8, 6)], ids=["1h", "2h", "3h"])
def test_implicit_and_long_backpropagation_are_the_finite_difference_of_the_cost(hidden):
    net, pixels, labels = converged(hidden, method="implicit")
    at_bound = [(layer <= 0) | (layer >= 1) for layer in net.relax(pixels).layers[:-1]]
    assert any(mask.any() for mask in at_bound) and not all(mask.all() for mask in at_bound)
    found, _ = net.gradient((pixels, labels), np.random.default_rng(0))
    net.rule = HopfieldLearning(0.01, "bp")
    unrolled, _ = net.gradient((pixels, labels), np.random.default_rng(0))
    rng = np.random.default_rng(9)
    for name, array in net.parameters.items():
        np.testing.assert_allclose(unrolled[name], found[name], atol=1e-10)
        for _ in range(4):
            place = tuple(rng.integers(n) for n in array.shape)
            value, step = array[place], 1e-6
            array[place] = value + step
            above = cost(net, pixels, labels)
            array[place] = value - step
            below = cost(net, pixels, labels)
            array[place] = value
            assert found[name][place] == pytest.approx((above - below) / (2 * step), abs=1e-8), name


def test_equilibrium_propagation_tends_to_the_implicit_gradient():
    """Centred: the error falls with β², one-sided with β; halving β shows it."""
    net, pixels, labels = converged(method="implicit")
    exact, _ = net.gradient((pixels, labels), np.random.default_rng(0))

    def off(scheme, beta):
        net.rule = HopfieldLearning(beta, "ep", scheme)
        found, metrics = net.gradient((pixels, labels), np.random.default_rng(0))
        assert metrics["nudged_residual"] < 1e-13
        return np.sqrt(sum(((found[name] - exact[name]) ** 2).sum() for name in exact))

    assert off("centred", 1e-3) < 1e-5
    assert off("centred", 0.002) / off("centred", 0.001) == pytest.approx(4, rel=0.1)
    for scheme in ("positive", "negative"):
        assert off(scheme, 0.002) / off(scheme, 0.001) == pytest.approx(2, rel=0.1)


def test_single_precision_gradients_do_not_cancel():
    pixels, labels = images(16, 64, 5)
    found = {}
    for dtype in (np.float32, np.float64):
        net = network((64, 40, 30, 5), Sweeps(60, 30, None, False), HopfieldLearning(0.2), 16, rng=1, dtype=dtype)
        found[dtype], metrics = net.gradient((pixels, labels), np.random.default_rng(0))
        assert metrics["residual"] < (1e-6 if dtype is np.float32 else 1e-9)
    for name, exact in found[np.float64].items():
        assert np.abs(found[np.float32][name] - exact).max() < 2e-5 * np.abs(exact).max(), name


def test_a_tolerance_ends_phases_early_at_the_same_state():
    pixels, labels = images(16, 64, 5)
    results = []
    for sweeps in (Sweeps(200, 200, None, False), Sweeps(200, 200, 1e-12, False)):
        net = network((64, 40, 5), sweeps, HopfieldLearning(0.2), 16, rng=1, dtype=np.float64)
        results.append(net.gradient((pixels, labels), np.random.default_rng(0)))
    (long, all_sweeps), (short, fewer) = results
    assert fewer["sweeps"] < 100 and all_sweeps["sweeps"] == 200
    for name in long:
        np.testing.assert_allclose(short[name], long[name], atol=1e-10)


def test_the_published_models():
    found = {name: (r.hidden, r.sweeps, r.nudged_sweeps, r.rates, r.error) for name, r in published_models().items()}
    assert found == {
        "dhn-1h": ((1024,), 15, 15, (0.05, 0.05), 1.79),
        "dhn-2h": ((1024, 1024), 50, 20, (0.2, 0.05, 0.01), 1.65),
        "dhn-3h": ((1024, 1024, 1024), 100, 10, (0.2, 0.05, 0.01, 0.002), 1.65),
    }
    assert all(r.beta == 0.2 and r.epochs == 100 for r in published_models().values())


def test_refusals(tmp_path):
    with pytest.raises(UsageError, match="at least one hidden layer"):
        network((5, 3), EXACT, HopfieldLearning(), 4)
    (tmp_path / "model.npz").write_bytes(b"nothing")
    with pytest.raises(CircuitError, match="damaged"):
        DeepHopfieldBlock.load(tmp_path / "model.npz")


def test_samples_whose_nudged_energy_is_not_convex_are_left_out_and_counted() -> None:
    """Convex without the nudge, not convex at −β where all hidden units are free: by the eigenvalues of its Hessian."""
    beta, rng = 0.2, np.random.default_rng(5)
    w = np.linalg.qr(rng.normal(size=(6, 3)))[0] * np.sqrt(0.9)
    found = {}
    for allowed in (False, True):
        learning = HopfieldLearning(beta, allow_nonconvex=allowed)
        net = network((8, 6, 3), Sweeps(400, 400, None, reverse_nudged=False), learning, 16, 0, np.float64)
        net.parameters["weights1"][...] = w
        net.parameters["weights0"][...] = 0.25 * rng.normal(size=(8, 6)) if allowed is False else found["weights0"]
        net.parameters["bias1"][...] = 0.5
        found["weights0"] = net.parameters["weights0"].copy()
        pixels = np.random.default_rng(6).integers(0, 256, (16, 8), dtype=np.uint8)
        found[allowed] = net.gradient((pixels, np.arange(16) % 3), rng)
        free = net.block.relax(pixels / 255)
        target = np.eye(3)[np.arange(16) % 3]
        low = net.block.relax(pixels / 255, Nudge(beta * target, -beta), free)
    inside = [layer.layers[0] for layer in (free, low)]
    inside = ((inside[0] > 0.0) & (inside[0] < 1.0)) | ((inside[1] > 0.0) & (inside[1] < 1.0))
    least = [
        np.linalg.eigvalsh(np.block([[np.eye(n.sum()), -w[n]], [-w[n].T, (1.0 - beta) * np.eye(3)]]))[0] for n in inside
    ]
    share = np.mean(np.array(least) <= 0.0)
    assert 0.0 < share < 1.0
    assert found[False][1]["uncertified_fraction"] == pytest.approx(share, abs=1.5 / 16.0)
    assert found[False][1]["uncertified_fraction"] == found[True][1]["uncertified_fraction"] < 1.0
    gradients = [found[allowed][0]["weights1"] for allowed in (False, True)]
    assert np.abs(gradients[0] - gradients[1]).max() > 1e-3 * np.abs(gradients[0]).max()
    assert np.isfinite(gradients[0]).all()


def test_a_step_without_a_certified_sample_is_left_out() -> None:
    net = network((4, 6, 3), Sweeps(50, 50), HopfieldLearning(0.5), 4, 0, np.float64)
    net.parameters["weights1"][...] = 0.9 * np.linalg.qr(np.random.default_rng(0).normal(size=(6, 3)))[0]
    net.parameters["weights0"][...] = 0.0
    net.parameters["bias1"][...] = 0.5
    gradients, metrics = net.gradient((np.zeros((4, 4), np.uint8), np.zeros(4, np.int64)), np.random.default_rng(0))
    assert gradients is None and metrics["uncertified_fraction"] == 1.0
