"""The compiled engine is a chain of one block step by step; its bits depend on nothing but its arguments."""

from __future__ import annotations

import numpy as np
import pytest
from networks import CLASSES, architecture, images, learning, parameters

from circuitsim.errors import ConvergenceError
from circuitsim.layered import steps
from circuitsim.layered.architecture import Architecture, ResistiveLearning, published_models
from circuitsim.layered.engine import Engine
from circuitsim.layered.learner import resistive_chain
from circuitsim.layered.network import DeepResistiveNetwork

DATA = images()
RATES = {1: [3e-4, 2e-3], 2: [2e-4, 3e-4, 2e-3], 3: [2e-4, 3e-4, 3e-4, 2e-3], 4: [2e-4, 3e-4, 3e-4, 3e-4, 2e-3]}


def order(seed: int, epochs: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.permutation(len(DATA[0]))[:200] for _ in range(epochs)])


def largest(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> float:
    return max(float(np.abs(a[name] - b[name]).max()) for name in a)


class Chained:
    """`resistive_chain` with the members of `Engine` and steps of gradient descent."""

    def __init__(self, of: Architecture, rule: ResistiveLearning, batch: int) -> None:
        self.of, self.rule, self.batch = of, rule, batch

    def set(self, start: dict[str, np.ndarray]) -> None:
        self.chain = resistive_chain(self.of, self.rule, self.batch, np.random.default_rng(0), None, np.float64, start)

    def get(self) -> dict[str, np.ndarray]:
        return self.chain.parameters

    def train(self, images, labels, rows, rates, bias_rates) -> np.ndarray:
        found, depth = [], self.of.depth
        by_name = {f"conductances{k}": rates[k] for k in range(depth)}
        by_name |= {f"bias{k + 1}": bias_rates[k] for k in range(depth)}
        for part in rows.reshape(-1, self.batch):
            gradient, metrics = self.chain.gradient((images[part] / 255, labels[part]), np.random.default_rng(0))
            for name, array in self.chain.parameters.items():
                array -= by_name[name] * gradient[name]
            self.chain.project()
            found.append([metrics[name] for name in ("loss", "error", "kink_share")])
        return np.array(found)


# One group of blocks and several, one panel of columns and several, layers of all parities.
@pytest.mark.parametrize("hidden", [(40,), (33, 50), (550, 40), (30, 40, 70), (20, 30, 40, 50)], ids=str)
@pytest.mark.parametrize("batch", [4, 10])
def test_same_trajectory_as_the_chain(hidden: tuple[int, ...], batch: int) -> None:
    """Hundreds of updates with batches of 4; 10 is no multiple of 4."""
    of, rates = architecture(*hidden), RATES[len(hidden)]
    start = parameters(of)
    engine, chained = Engine(of, learning(), batch, np.float64), Chained(of, learning(), batch)
    rows = order(1, 4 if batch == 4 and len(hidden) < 3 else 1)
    engine.set(start)
    chained.set(start)
    for epoch in range(2):
        factor = 0.99**epoch
        scaled = [rate * factor for rate in rates]
        ours = engine.train(*DATA, rows, scaled, rates)
        theirs = chained.train(*DATA, rows, scaled, rates)
        np.testing.assert_allclose(ours[:, [0, 1, 3]], theirs, rtol=1e-9, atol=1e-12)
    found = engine.get()
    assert largest(found, start) > 1e-3
    assert largest(found, chained.get()) < 1e-11
    assert all(w.min() == 0 for name, w in found.items() if name.startswith("weights"))


@pytest.mark.parametrize("variant", ["positive", "negative"])
def test_one_sided_nudges_follow_the_chain(variant: str) -> None:
    of, rates = architecture(40, 30), RATES[2]
    engine, chained = Engine(of, learning(variant=variant), 4, np.float64), Chained(of, learning(variant=variant), 4)
    for one in (engine, chained):
        one.set(parameters(of))
        one.train(*DATA, order(2, 1), rates, rates)
    assert largest(engine.get(), chained.get()) < 1e-12


def test_threads_share_large_matrices_to_the_same_bits() -> None:
    """Enough conductances in the first layer and in the inner ones that threads are called at all."""
    of = Architecture((400, 420, 300, CLASSES), 20.0)
    x = np.random.default_rng(0).integers(0, 256, (40, 400)).astype(np.uint8)
    x[x < 150] = 0
    labels = np.random.default_rng(1).integers(0, CLASSES, 40)
    found = []
    for threads in (1, 2):
        engine = Engine(of, learning(), 4, np.float32, threads)
        assert engine.memory.tiles.size >= steps.WORTH_THREADS and engine.layout.update_parts.size > 2
        engine.initialise(np.random.default_rng(2))
        engine.train(x, labels, np.arange(40), RATES[2], RATES[2])
        found.append(engine.get())
    assert all((found[0][name] == found[1][name]).all() for name in found[0])


def test_a_tolerance_ends_the_sweeps_and_holds() -> None:
    of = architecture(40, 30, 20)
    engine = Engine(of, learning(sweeps=500, nudged_sweeps=500, tolerance=1e-10), 4, np.float64)
    engine.set(parameters(of))
    metrics = engine.train(*DATA, order(5, 1)[:40], RATES[3], RATES[3])
    assert (metrics[:, 2] <= 1e-10).all()
    few = Engine(of, learning(sweeps=2), 4, np.float64)
    few.set(parameters(of))
    assert few.train(*DATA, order(5, 1)[:40], RATES[3], RATES[3])[:, 2].min() > 1e-6


def test_drawing_conductances_in_pieces_gives_those_drawn_at_once() -> None:
    """900 units are more than go into one piece of rows."""
    of = Architecture((400, 900, 40, CLASSES), 20.0)
    whole = DeepResistiveNetwork(of, rng=3, dtype=np.float32).parameters
    engine = Engine(of, learning(), 4, np.float32)
    engine.initialise(np.random.default_rng(3))
    for name, array in engine.get().items():
        assert np.array_equal(array, whole[name])
    bound = 800**-0.5
    at_once = np.maximum(0, np.random.default_rng(3).uniform(-bound, bound, (800, 900))).astype(np.float32)
    assert np.array_equal(whole["conductances0"], at_once)


def test_a_unit_without_conductance_stops_the_run_by_name() -> None:
    of = architecture(40)
    start = parameters(of)
    start["conductances0"][:, 7] = 0
    start["conductances1"][7] = 0
    engine = Engine(of, learning(), 4, np.float64)
    engine.set(start)
    with pytest.raises(ConvergenceError, match="unit 8 of layer 1 has no conductance left"):
        engine.train(*DATA, order(6, 1), RATES[1], RATES[1])


def test_a_nudge_beyond_an_outputs_conductance_is_refused() -> None:
    of = architecture(40)
    engine = Engine(of, learning(beta=100.0), 4, np.float64)
    engine.set(parameters(of))
    with pytest.raises(ConvergenceError, match="output 1 has less conductance"):
        engine.train(*DATA, order(6, 1), RATES[1], RATES[1])


def test_what_is_not_a_number_stays_so() -> None:
    of = architecture(40)
    start = parameters(of, dtype=np.float32)
    start["conductances0"][3, 5] = np.nan
    engine = Engine(of, learning(), 4)
    engine.set(start)
    with pytest.raises(ConvergenceError):
        engine.train(*DATA, order(6, 1), RATES[1], RATES[1])


def test_single_precision_gradients_do_not_cancel() -> None:
    """One step in both precisions; the difference of squares would lose the first layer's gradient altogether."""
    preset = published_models()["drn-2h"]
    of = architecture(60, 50)
    steps = {}
    for dtype in (np.float32, np.float64):
        start = parameters(of, dtype=np.float64)
        for array in start.values():
            array[...] = array.astype(np.float32)
        engine = Engine(of, preset.learning, 4, dtype)
        engine.set({name: array.astype(dtype) for name, array in start.items()})
        engine.train(*DATA, order(7, 1)[:4], [1.0] * 3, [1.0] * 3)
        found = engine.get()
        # Where the step ends at zero it says nothing of the gradient.
        names = ("conductances0", "conductances2")
        steps[dtype] = {name: (found[name] - start[name])[found[name] > 0] for name in names}
    for name in ("conductances0", "conductances2"):
        exact, single = steps[np.float64][name], steps[np.float32][name]
        assert len(exact) == len(single)
        assert np.linalg.norm(single - exact) < 1e-3 * np.linalg.norm(exact)
