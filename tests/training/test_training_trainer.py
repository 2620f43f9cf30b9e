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
    Momentum,
    RunDirectory,
    Trainer,
    TrainingPlan,
)

DATA = np.random.default_rng(5).standard_normal((23, 3))


def _plan(**changes):
    return TrainingPlan(**({"epochs": 4, "batch": 5, "seed": 3, "optimizer": Momentum(0.1, 0.5)} | changes))


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


@pytest.mark.parametrize("optimizer", [SGD(0.1), Momentum(0.1, 0.9), Adam(0.01)])
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
        trainer = Trainer(second, [DATA], plan, _evaluate, run)
        trainer.resume()
        outcome = trainer.train()
        assert not outcome.interrupted and outcome.updates == straight.updates
        for name, array in whole.parameters.items():
            assert array.tobytes() == second.parameters[name].tobytes()
        assert whole.mean.tobytes() == second.mean.tobytes()
        assert _without_time(outcome.history) == _without_time(straight.history)
        assert len((run.path / "history.csv").read_text().splitlines()) == 4


def test_resuming_before_the_first_checkpoint_starts_again(tmp_path):
    run = RunDirectory(tmp_path)
    run.create({})
    (tmp_path / "history.jsonl").write_text('{"epoch": 1}\n')
    trainer = Trainer(NoisyQuadratic(), [DATA], _plan(), directory=run)
    trainer.resume()
    assert trainer.train().history.column("epoch") == [1, 2, 3, 4]


def test_resuming_a_finished_run_for_more_epochs_is_the_longer_run(tmp_path):
    run = RunDirectory(tmp_path)
    run.create({})
    Trainer(NoisyQuadratic(), [DATA], _plan(epochs=2), directory=run).train()
    longer = NoisyQuadratic()
    trainer = Trainer(longer, [DATA], _plan(epochs=4), directory=run)
    trainer.resume()
    trainer.train()
    straight = NoisyQuadratic()
    Trainer(straight, [DATA], _plan(epochs=4)).train()
    assert longer.parameters["point"].tobytes() == straight.parameters["point"].tobytes()


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    run = RunDirectory(tmp_path)
    run.create({})
    Trainer(NoisyQuadratic(), [DATA], _plan(), directory=run).train()
    for model, data, plan, message in [
        (NoisyQuadratic(), DATA[:20], _plan(), "the checkpoint was written with samples 23, this run has 20"),
        (NoisyQuadratic(), DATA, _plan(batch=4), "the checkpoint was written with batch 5, this run has 4"),
        (NoisyQuadratic(), DATA, _plan(seed=4), "the checkpoint was written with seed 3, this run has 4"),
        (NoisyQuadratic(), DATA, _plan(epochs=3), "the run is already in epoch 4, beyond the 3 asked for"),
        (NoisyQuadratic(4), DATA, _plan(), "the checkpoint's parameters 'point' is float64 (3,), the model's is"),
        (NoisyQuadratic(), DATA, _plan(optimizer=SGD(0.1)), "the checkpoint's optimiser memory are ["),
    ]:
        with pytest.raises(CheckpointError) as caught:
            Trainer(model, [data], plan, directory=run).resume()
        assert str(caught.value).startswith(message)


def test_divergence_stops_and_keeps_the_last_good_checkpoint(tmp_path):
    run = RunDirectory(tmp_path)
    run.create({})
    plan = _plan(checkpoint_seconds=0.0)
    with pytest.raises(ConvergenceError) as caught:
        Trainer(NoisyQuadratic(break_at=8), [DATA], plan, directory=run).train()
    assert str(caught.value) == (
        "training diverged: loss is nan at epoch 2, update 8; try a lower learning rate "
        f"(the last good state is in {run.checkpoint})"
    )
    trainer = Trainer(NoisyQuadratic(), [DATA], plan, directory=run)
    trainer.resume()
    assert trainer.train().updates == 20


def test_parameters_that_are_not_finite_are_never_saved(tmp_path):
    run = RunDirectory(tmp_path)
    run.create({})
    model = NoisyQuadratic()
    model.parameters["point"][:] = np.inf
    message = r"^training diverged: point is no longer finite after 0 updates; try a lower learning rate$"
    with pytest.raises(ConvergenceError, match=message):
        Trainer(model, [DATA], _plan(), directory=run).save()
    assert not run.checkpoint.exists()


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: TrainingPlan(-1, 1), "epochs must be at least 0, not -1"),
        (lambda: TrainingPlan(1, 0), "batch must be at least 1, not 0"),
        (lambda: TrainingPlan(1, 1, seed=-1), "seed must be at least 0, not -1"),
        (lambda: TrainingPlan(1, 1, evaluate_every=0), "evaluate_every must be at least 1, not 0"),
        (
            lambda: Trainer(NoisyQuadratic(), [DATA, DATA[:3]], _plan()),
            "the data arrays must have one length, at least 1; theirs are [3, 23]",
        ),
        (
            lambda: Trainer(NoisyQuadratic(), [DATA[:0]], _plan()),
            "the data arrays must have one length, at least 1; theirs are [0]",
        ),
        (
            lambda: Trainer(NoisyQuadratic(), [DATA], _plan()).resume(),
            "there is nothing to resume: this trainer has no directory",
        ),
    ],
)
def test_refusals(make, message):
    with pytest.raises(UsageError) as caught:
        make()
    assert str(caught.value) == message


@pytest.mark.parametrize(("samples", "batch"), [(4, 16), (23, 5), (10, 5)])
def test_progress_counts_samples_not_batches(samples, batch):
    """A batch larger than the data is one epoch, not several."""

    class Recorder:
        shown: list[tuple[float, str]] = []

        def due(self):
            return True

        def update(self, fraction, note):
            self.shown.append((fraction, note.split("  ")[0]))

        def close(self):
            pass

    recorder = Recorder()
    recorder.shown = []
    Trainer(NoisyQuadratic(), [DATA[:samples]], _plan(batch=batch), progress=recorder).train()
    steps = -(-samples // batch)
    fractions = [fraction for fraction, _ in recorder.shown]
    expected = [(e + min((k + 1) * batch, samples) / samples) / 4 for e in range(4) for k in range(steps)]
    assert fractions == pytest.approx([*expected, 1.0])
    assert [note for _, note in recorder.shown[:-1]] == [f"epoch {e + 1}/4" for e in range(4) for _ in range(steps)]
