"""The loop: what it computes, and that stopping it changes no bit."""

import numpy as np
import pytest
from quadratic import NoisyQuadratic

from circuitsim.errors import ConvergenceError, UsageError
from circuitsim.training import (
    SGD,
    Adam,
    CheckpointError,
    Exponential,
    RunDirectory,
    Trainer,
    TrainingPlan,
)

DATA = np.random.default_rng(5).standard_normal((23, 3))


def _plan(**changes):
    return TrainingPlan(**({"epochs": 4, "batch": 5, "seed": 3, "optimizer": SGD(0.1, momentum=0.5)} | changes))


@pytest.fixture
def run(tmp_path):
    made = RunDirectory(tmp_path)
    made.create({})
    return made


def _resumed(run, plan, model=None, *more):
    """A trainer that has read the run's checkpoint."""
    trainer = Trainer(model or NoisyQuadratic(), [DATA], plan, *more, directory=run)
    trainer.resume()
    return trainer


def _evaluate(rng):
    return {"drawn": float(rng.random())}


def _without_time(history):
    return [{name: value for name, value in row.items() if name != "seconds"} for row in history.rows]


def test_plain_descent_is_the_formula():
    model = NoisyQuadratic()
    Trainer(model, [DATA], TrainingPlan(2, 23, 0, SGD(0.1), Exponential(0.5), shuffle=False)).train()
    rng = np.random.default_rng(0)
    point, mean = np.zeros(3), np.zeros(3)
    for factor in (1.0, 0.5):
        mean = 0.9 * mean + 0.1 * DATA.mean(axis=0)
        gradient = point - DATA.mean(axis=0) + 0.1 * rng.standard_normal(3) + 0.01 * mean
        point = np.maximum(point - 0.1 * factor * gradient, -0.5)
    np.testing.assert_allclose(model.parameters["point"], point, rtol=1e-14)
    assert model.projected == 2


def test_history_rows():
    outcome = Trainer(NoisyQuadratic(skip_every=3), [DATA], _plan(epochs=5, evaluate_every=2), _evaluate).train()
    assert outcome.history.column("epoch") == [2, 4, 5]
    assert outcome.updates + outcome.skipped == 25 and outcome.skipped == 8
    assert list(outcome.history.rows[0]) == ["epoch", "updates", "skipped", "rate_factor", "loss", "drawn", "seconds"]


@pytest.mark.parametrize("optimizer", [SGD(0.1), SGD(0.1, momentum=0.9), Adam(0.01)])
def test_stopping_anywhere_and_resuming_changes_no_bit(tmp_path, optimizer):
    """Stopped after every possible number of steps: same parameters, same memory of the model, same history."""
    plan = _plan(epochs=3, optimizer=optimizer, checkpoint_seconds=1e9)
    whole = NoisyQuadratic()
    straight = Trainer(whole, [DATA], plan, _evaluate).train()
    for stop in range(1, 15):
        run = RunDirectory(tmp_path / f"{stop}")
        run.create({})
        first = NoisyQuadratic()
        halted = Trainer(first, [DATA], plan, _evaluate, run, should_stop=lambda: first.calls >= stop).train()  # noqa: B023
        assert halted.interrupted and halted.updates == stop
        second = NoisyQuadratic()
        outcome = _resumed(run, plan, second, _evaluate).train()
        assert not outcome.interrupted and outcome.updates == straight.updates
        for name, array in whole.parameters.items():
            assert array.tobytes() == second.parameters[name].tobytes()
        assert whole.mean.tobytes() == second.mean.tobytes()
        assert _without_time(outcome.history) == _without_time(straight.history)
        assert len((run.path / "history.csv").read_text().splitlines()) == 4


def test_resuming_before_the_first_checkpoint_starts_again(run):
    (run.path / "history.jsonl").write_text('{"epoch": 1}\n')
    assert _resumed(run, _plan()).train().history.column("epoch") == [1, 2, 3, 4]


def test_resuming_a_finished_run_for_more_epochs_is_the_longer_run(run):
    Trainer(NoisyQuadratic(), [DATA], _plan(epochs=2), directory=run).train()
    longer, straight = NoisyQuadratic(), NoisyQuadratic()
    _resumed(run, _plan(), longer).train()
    Trainer(straight, [DATA], _plan()).train()
    assert longer.parameters["point"].tobytes() == straight.parameters["point"].tobytes()


def test_a_checkpoint_of_another_run_is_refused(run):
    Trainer(NoisyQuadratic(), [DATA], _plan(), directory=run).train()
    for model, data, plan, message in [
        (NoisyQuadratic(), DATA[:20], _plan(), "holds the samples 23, not 20"),
        (NoisyQuadratic(), DATA, _plan(batch=4), "holds the batch 5, not 4"),
        (NoisyQuadratic(), DATA, _plan(seed=4), "holds the seed 3, not 4"),
        (NoisyQuadratic(), DATA, _plan(epochs=3), "already in epoch 4, beyond the requested 3"),
        (
            NoisyQuadratic(4),
            DATA,
            _plan(),
            r"parameters are .'point': 'float64 .3,.*, the model's are .*float64 .4,",
        ),
        (NoisyQuadratic(), DATA, _plan(optimizer=SGD(0.1)), "optimiser memory are"),
    ]:
        with pytest.raises(CheckpointError, match=message):
            Trainer(model, [data], plan, directory=run).resume()


def test_divergence_stops_and_keeps_the_last_good_checkpoint(run):
    plan = _plan(checkpoint_seconds=0.0)
    with pytest.raises(ConvergenceError, match=r"loss is nan at epoch 2, update 8; .*last good state is in .*npz\)"):
        Trainer(NoisyQuadratic(break_at=8), [DATA], plan, directory=run).train()
    assert _resumed(run, plan).train().updates == 20


def test_parameters_that_are_not_finite_are_never_saved(run):
    model = NoisyQuadratic()
    model.parameters["point"][:] = np.inf
    with pytest.raises(ConvergenceError, match="point is not finite after 0 updates"):
        Trainer(model, [DATA], _plan(), directory=run).save()
    assert not run.checkpoint.exists()


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: TrainingPlan(1, 1, seed=-1), "seed must be at least 0, not -1"),
        (lambda: TrainingPlan(1, 1, evaluate_every=0), "evaluate_every must be at least 1, not 0"),
        (lambda: Trainer(NoisyQuadratic(), [DATA, DATA[:3]], _plan()), r"one length, at least 1; theirs are \[3, 23\]"),
        (lambda: Trainer(NoisyQuadratic(), [DATA[:0]], _plan()), r"one length, at least 1; theirs are \[0\]"),
        (
            lambda: Trainer(NoisyQuadratic(), [DATA], _plan()).resume(),
            "this trainer has no directory",
        ),
    ],
)
def test_refusals(make, message):
    with pytest.raises(UsageError, match=message):
        make()


@pytest.mark.parametrize(("samples", "batch"), [(4, 16), (23, 5), (10, 5)])
def test_progress_counts_samples_not_batches(samples, batch):
    """A batch larger than the data is one epoch, not several."""
    shown = []

    class Recorder:
        def due(self):
            return True

        def update(self, fraction, note):
            shown.append((fraction, note.split("  ")[0]))

        def close(self):
            pass

    Trainer(NoisyQuadratic(), [DATA[:samples]], _plan(batch=batch), progress=Recorder()).train()
    steps = -(-samples // batch)
    fractions, notes = zip(*shown)
    expected = [(e + min((k + 1) * batch, samples) / samples) / 4 for e in range(4) for k in range(steps)]
    assert fractions == pytest.approx([*expected, 1.0])
    assert [*notes[:-1]] == [f"epoch {e + 1}/4" for e in range(4) for _ in range(steps)]
