"""Training layered networks: runs continued, other steps refused, divergence, nudges too strong."""

import numpy as np
import pytest
from networks import architecture, images, network

from circuitsim.errors import ConvergenceError, UsageError
from circuitsim.layered import Architecture, LayeredLearner
from circuitsim.training import SGD, Adam, Exponential, FusedTrainable, RunDirectory, Trainer, TrainingPlan

DATA = images()


def learner(method: str = "ep", dtype: type = np.float32, hidden: tuple[int, ...] = (40, 30)) -> LayeredLearner:
    return LayeredLearner(network(architecture(*hidden), dtype), 4, method, 0.05)


def plan(epochs: int = 2, rate: float = 1e-3) -> TrainingPlan:
    return TrainingPlan(epochs, 4, 5, SGD(rate), Exponential(0.9))


def bits(one: LayeredLearner) -> dict[str, np.ndarray]:
    return one.network().parameters


@pytest.mark.parametrize("method", ["ep", "bp"])
def test_a_run_that_was_stopped_continues_bit_for_bit(tmp_path, method: str) -> None:
    whole = learner(method)
    assert isinstance(whole, FusedTrainable)
    history = Trainer(whole, DATA, plan()).train().history
    calls = 0

    def stop() -> bool:
        nonlocal calls
        calls += 1
        return calls == 3

    first = learner(method)
    outcome = Trainer(first, DATA, plan(), directory=_directory(tmp_path), should_stop=stop).train()
    assert outcome.interrupted and 0 < outcome.updates < 106
    second = learner(method)
    trainer = Trainer(second, DATA, plan(), directory=RunDirectory(tmp_path / "run"))
    trainer.resume()
    again = trainer.train().history
    assert all((bits(whole)[name] == array).all() for name, array in bits(second).items())
    for a, b in zip(history.rows, again.rows):
        assert all(a[name] == b[name] for name in ("loss", "error", "residual", "updates"))


def _directory(tmp_path) -> RunDirectory:
    directory = RunDirectory(tmp_path / "run")
    directory.create({})
    return directory


def test_other_optimisers_and_batches_are_refused() -> None:
    with pytest.raises(UsageError, match="makes its own steps"):
        Trainer(learner(), DATA, TrainingPlan(1, 4, 0, Adam(1e-3))).train()
    with pytest.raises(UsageError, match="neither momentum nor weight decay"):
        Trainer(learner(), DATA, TrainingPlan(1, 4, 0, SGD(1e-3, 0.1))).train()
    with pytest.raises(UsageError, match="mini-batches of 4, not 5"):
        Trainer(learner(), DATA, TrainingPlan(1, 5, 0, SGD(1e-3))).train()


@pytest.mark.parametrize("method", ["ep", "bp"])
def test_divergence_stops_with_the_last_good_checkpoint(tmp_path, method: str) -> None:
    one = learner(method)
    directory = _directory(tmp_path)
    Trainer(one, DATA, plan(1), directory=directory).train()
    good = directory.checkpoint.read_bytes()
    wild = learner(method)
    trainer = Trainer(wild, DATA, plan(50, 1e39), directory=directory)
    trainer.resume()
    with pytest.raises(ConvergenceError, match="the last good state is in"):
        trainer.train()
    assert directory.checkpoint.read_bytes() == good


def test_a_nudge_that_leaves_no_convex_energy_is_refused_before_an_output_is_empty() -> None:
    """β between the least conductance seen at the outputs, through free hidden units, and each output's own."""
    of = Architecture((2, 6, 2))
    weights = [np.full((4, 6), 0.01), np.full((6, 2), 1.0)]
    # Both outputs at 1 V: each hidden unit lies between 0.04 S to 0 V and 2 S to 1 V.
    together = 6 * (1.0 - 2.0 / 2.04)
    own = 6.0
    hessian = np.diag([2.04] * 6 + [6.0] * 2)
    hessian[:6, 6:], hessian[6:, :6] = -weights[1], -weights[1].T
    x, y = np.random.default_rng(0).uniform(size=(8, 2)), np.array([0, 1] * 4)
    for beta, refused in ((0.9 * together, False), (1.1 * together, True), (0.9 * own, True)):
        assert (np.linalg.eigvalsh(hessian - beta * np.diag([0.0] * 6 + [1.0] * 2))[0] <= 0) is np.bool_(refused)
        for variant in ("centred", "negative", "positive"):
            start = {
                "conductances0": weights[0],
                "conductances1": weights[1],
                "bias1": np.zeros(6),
                "bias2": np.zeros(2),
            }
            made = LayeredLearner(network(of, np.float32, start, 4, 4), 4, "ep", beta, variant)
            rates = dict.fromkeys(made.parameters, 0.0)
            if refused and variant != "positive":
                with pytest.raises(ConvergenceError, match=r"nonconvex: the outputs have only 0\.118 S"):
                    made.steps((x, y), np.arange(8), 4, rates, np.random.default_rng(0))
            else:
                made.steps((x, y), np.arange(8), 4, rates, np.random.default_rng(0))
