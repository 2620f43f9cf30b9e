"""The compiled engine is a chain of one block step by step; its bits depend on nothing but its arguments."""

import numpy as np
import pytest
from networks import CLASSES, architecture, images, network, parameters

from circuitsim.errors import ConvergenceError
from circuitsim.layered import DeepResistiveNetwork, steps
from circuitsim.layered.learner import LayeredLearner, resistive_chain
from circuitsim.layered.network import WORTH_SHARING, Architecture, published_models

DATA = images()
RATES = {1: [3e-4, 2e-3], 2: [2e-4, 3e-4, 2e-3], 3: [2e-4, 3e-4, 3e-4, 2e-3], 4: [2e-4, 3e-4, 3e-4, 3e-4, 2e-3]}


def order(seed: int, epochs: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.permutation(len(DATA[0]))[:200] for _ in range(epochs)])


def largest(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> float:
    return max(float(np.abs(a[name] - b[name]).max()) for name in a)


def by_name(rates: list[float], bias_rates: list[float]) -> dict[str, float]:
    found = {f"conductances{k}": rate for k, rate in enumerate(rates)}
    return found | {f"bias{k}": rate for k, rate in enumerate(bias_rates, start=1)}


def made(
    network: DeepResistiveNetwork, batch: int = 4, beta: float = 0.05, variant: str = "centred", threads: int = 1
) -> LayeredLearner:
    return LayeredLearner(network, batch, "ep", beta, variant, threads)


def train(learner: LayeredLearner, rows: np.ndarray, rates: list[float], bias_rates: list[float]) -> np.ndarray:
    found = learner.steps(DATA, rows, learner.batch, by_name(rates, bias_rates), np.random.default_rng(0))
    return np.transpose([found[name] for name in ("loss", "error", "residual", "kink_share")])


class Chained:
    """`resistive_chain` with steps of gradient descent."""

    def __init__(self, network: DeepResistiveNetwork, batch: int, variant: str) -> None:
        self.batch, self.chain = batch, resistive_chain(network, batch, "ep", 0.05, variant)

    def train(self, rows: np.ndarray, rates: list[float], bias_rates: list[float]) -> np.ndarray:
        found, rate, (images, labels) = [], by_name(rates, bias_rates), DATA
        for part in rows.reshape(-1, self.batch):
            gradient, metrics = self.chain.gradient((images[part] / 255, labels[part]), np.random.default_rng(0))
            for name, array in self.chain.parameters.items():
                array -= rate[name] * gradient[name]
            self.chain.project()
            found.append([metrics[name] for name in ("loss", "error", "kink_share")])
        return np.array(found)


# One group of blocks and several, one panel of columns and several, layers of all parities.
@pytest.mark.parametrize("hidden", [(40,), (33, 50), (550, 40), (30, 40, 70), (20, 30, 40, 50)], ids=str)
@pytest.mark.parametrize(("batch", "variant"), [(4, "centred"), (10, "centred"), (10, "positive"), (10, "negative")])
def test_same_trajectory_as_the_chain(hidden: tuple[int, ...], batch: int, variant: str) -> None:
    """Hundreds of updates with batches of 4; 10 is no multiple of 4."""
    of, rates = architecture(*hidden), RATES[len(hidden)]
    learner, chained = made(network(of), batch, variant=variant), Chained(network(of), batch, variant)
    start, rows = parameters(of), order(1, 4 if batch == 4 and hidden == (33, 50) else 1)
    for epoch in range(2):
        scaled = [rate * 0.99**epoch for rate in rates]
        ours, theirs = train(learner, rows, scaled, rates), chained.train(rows, scaled, rates)
        np.testing.assert_allclose(ours[:, [0, 1, 3]], theirs, rtol=1e-9, atol=1e-12)
    found = learner.network().parameters
    assert largest(found, start) > 1e-3
    assert largest(found, chained.chain.parameters) < 1e-11
    assert all(w.min() == 0 for name, w in found.items() if name.startswith("conductances"))


def test_threads_share_large_matrices_to_the_same_bits() -> None:
    """Enough conductances in the first layer and in the inner ones that threads are called at all."""
    of = Architecture((400, 420, 300, CLASSES), 20.0)
    x = np.random.default_rng(0).integers(0, 256, (40, 400)).astype(np.uint8)
    x[x < 150] = 0
    labels = np.random.default_rng(1).integers(0, CLASSES, 40)
    found = []
    for threads in (1, 2):
        one = made(network(of, np.float32), threads=threads)
        assert one.memory.tiles.size >= steps.WORTH_THREADS and one.layout.size > WORTH_SHARING
        one.steps((x, labels), np.arange(40), 4, by_name(RATES[2], RATES[2]), np.random.default_rng(0))
        found.append(one.network().parameters)
    assert all((found[0][name] == found[1][name]).all() for name in found[0])


def test_a_tolerance_ends_the_sweeps_and_holds() -> None:
    of = architecture(40, 30, 20)
    tight = network(of, free=500, nudged=500, tolerance=1e-10)
    residuals = train(made(tight), order(5, 1)[:40], RATES[3], RATES[3])[:, 2]
    assert (residuals <= 1e-10).all()
    assert train(made(network(of, free=2)), order(5, 1)[:40], RATES[3], RATES[3])[:, 2].min() > 1e-6


def test_a_unit_without_conductance_stops_the_run_by_name() -> None:
    of = architecture(40)
    start = parameters(of)
    start["conductances0"][:, 7] = 0
    start["conductances1"][7] = 0
    with pytest.raises(ConvergenceError, match="unit 8 of layer 1 has no conductance left"):
        train(made(network(of, start=start)), order(6, 1), RATES[1], RATES[1])


def test_a_nudge_beyond_an_outputs_conductance_is_refused() -> None:
    of = architecture(40)
    with pytest.raises(ConvergenceError, match="makes the energy nonconvex"):
        train(made(network(of), beta=100.0), order(6, 1), RATES[1], RATES[1])


def test_what_is_not_a_number_stays_so() -> None:
    of = architecture(40)
    start = parameters(of, dtype=np.float32)
    start["conductances0"][3, 5] = np.nan
    with pytest.raises(ConvergenceError):
        train(made(network(of, np.float32, start)), order(6, 1), RATES[1], RATES[1])


def test_single_precision_gradients_do_not_cancel() -> None:
    """One step in both precisions; the difference of squares would lose the first layer's gradient altogether."""
    preset = published_models()["drn-2h"]
    of = architecture(60, 50)
    steps = {}
    for dtype in (np.float32, np.float64):
        start = parameters(of, dtype=np.float64)
        for array in start.values():
            array[...] = array.astype(np.float32)
        one = made(network(of, dtype, start, preset.sweeps, preset.sweeps), beta=preset.beta)
        train(one, order(7, 1)[:4], [1.0] * 3, [1.0] * 3)
        found = one.network().parameters
        # Where the step ends at zero it says nothing of the gradient.
        names = ("conductances0", "conductances2")
        steps[dtype] = {name: (found[name] - start[name])[found[name] > 0] for name in names}
    for name in ("conductances0", "conductances2"):
        exact, single = steps[np.float64][name], steps[np.float32][name]
        assert len(exact) == len(single)
        assert np.linalg.norm(single - exact) < 1e-3 * np.linalg.norm(exact)
