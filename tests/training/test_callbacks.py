"""Callbacks of the trainer, early stopping, TensorBoard, histories as frames."""

import sys

import numpy as np
import pytest
from quadratic import NoisyQuadratic

from circuitsim.cli import main
from circuitsim.errors import UsageError
from circuitsim.training import SGD, EarlyStopping, History, TensorBoard, Trainer, TrainingPlan


def _history(values: list[float]) -> History:
    history = History()
    for epoch, value in enumerate(values, start=1):
        history.append({"epoch": epoch, "loss": value})
    return history


@pytest.mark.parametrize(
    ("values", "patience", "least", "ends"),
    [
        ([3.0, 2.0, 1.0], 1, 0.0, False),
        ([3.0, 2.0, 2.0], 1, 0.0, True),
        ([3.0, 2.0, 2.5, 2.5], 3, 0.0, False),
        ([3.0, 2.0, 2.5, 2.5, 2.0], 3, 0.0, True),
        ([3.0, 2.95, 2.9], 2, 0.2, True),
        ([3.0, float("nan"), float("nan")], 2, 0.0, True),
    ],
)
def test_early_stopping(values: list[float], patience: int, least: float, ends: bool) -> None:
    assert EarlyStopping("loss", patience, least)(_history(values)) is ends


def test_misuse_is_refused() -> None:
    with pytest.raises(UsageError, match="no column 'cost'; it has epoch, loss"):
        EarlyStopping("cost")(_history([1.0]))
    with pytest.raises(UsageError, match="patience must be at least 1"):
        EarlyStopping("loss", 0)


def test_every_callback_is_called_after_each_row_and_may_end_the_training() -> None:
    seen: list[int] = []
    data = np.random.default_rng(0).standard_normal((10, 3))
    plan = TrainingPlan(6, 5, 0, SGD(0.1), evaluate_every=2)
    callbacks = [lambda history: len(history.rows) == 2, lambda history: seen.append(int(history.rows[-1]["epoch"]))]
    outcome = Trainer(NoisyQuadratic(), (data,), plan, callbacks=callbacks).train()
    assert seen == [2, 4] and not outcome.interrupted
    assert outcome.history.column("epoch") == [2, 4]


def test_a_history_is_a_frame() -> None:
    pytest.importorskip("pandas")
    frame = _history([2.0, 1.0]).to_dataframe()
    assert frame.columns.tolist() == ["epoch", "loss"] and frame["loss"].tolist() == [2.0, 1.0]


def test_tensorboard(tmp_path, monkeypatch, capsys) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "tensorboard.summary.writer.event_file_writer", None)
        patch.setitem(sys.modules, "tensorboard", None)
        with pytest.raises(UsageError, match=r"pip install 'circuitsim-exact\[tensorboard\]'"):
            TensorBoard(tmp_path)
        words = ["train", "rbm", "--dataset", "diag", "--hidden", "4", "--epochs", "2", "--tensorboard"]
        assert main([*words, str(tmp_path / "logs")]) == 2
        assert "the package tensorboard is missing: pip install" in capsys.readouterr().err
        assert main([*words, str(tmp_path / "log"), "--out", str(tmp_path / "run")]) == 2
        assert not (tmp_path / "run").exists()  # the same command works once the package is there
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    history, writer = History(), TensorBoard(tmp_path / "run")
    for epoch in (1, 2):
        history.append({"epoch": epoch, "loss": 1.0 / epoch, "error": 0.5})
        writer(history)
    writer.close()
    (file,) = (tmp_path / "run").iterdir()
    events = [event for event in EventFileLoader(str(file)).Load() if event.HasField("summary")]
    assert [event.step for event in events] == [1, 2]
    assert [value.tag for value in events[0].summary.value] == ["loss", "error"]
    history.append({"epoch": 3, "loss": 0.1, "error": 0.5})
    again = TensorBoard(tmp_path / "run")  # of a continued run: the first two rows are there already
    again(history)
    again.close()
    (later,) = set((tmp_path / "run").iterdir()) - {file}
    assert [e.step for e in EventFileLoader(str(later)).Load() if e.HasField("summary")] == [3]
    assert main([*words, str(tmp_path / "logs")]) == 0
    assert len(list((tmp_path / "logs").iterdir())) == 1


def test_bounds_that_are_rounding_leave_the_axis_of_the_loss_logarithmic() -> None:
    history = History()
    for loss, upper in ((1.0, 1.1), (1e-8, 1.1e-8), (1e-15, -1e-15)):
        history.append({"loss": loss, "lower": 0.9 * loss, "upper": upper})
    assert history.plot().axes[0].get_yscale() == "log"
