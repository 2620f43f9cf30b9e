"""Estimators: files without pickle, weights of samples, TensorBoard."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.datasets import load_iris

from circuitsim.boltzmann import ContrastiveDivergenceRBM
from circuitsim.cli import main
from circuitsim.errors import UsageError
from circuitsim.ffebm.classifier import ChainClassifier
from circuitsim.layered import DRNClassifier
from circuitsim.learning.scikit import CircuitClassifier, CircuitRegressor
from circuitsim.training import CheckpointError, EarlyStopping, History, TensorBoard

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"], dtype=object)[Y]

ESTIMATORS = [
    (CircuitClassifier(hidden=3, max_iter=2, random_state=0), NAMES, "predict_proba"),
    (CircuitRegressor(hidden=3, max_iter=2, random_state=0), X[:, :2], "predict"),
    (ChainClassifier(hidden=6, max_iter=2, random_state=0), NAMES, "predict_proba"),
    (DRNClassifier((8,), max_iter=1, random_state=0), NAMES, "decision_function"),
    (ContrastiveDivergenceRBM(5, max_iter=2, random_state=0), None, "transform"),
]


@pytest.mark.parametrize(("estimator", "target", "method"), ESTIMATORS, ids=lambda v: type(v).__name__)
def test_a_loaded_estimator_gives_the_same_bits(estimator, target, method, tmp_path) -> None:
    data = X / X.max()
    with pytest.raises(UsageError, match="not fitted"):
        type(estimator)().save(tmp_path / "no.npz")
    estimator.set_params(callbacks=[EarlyStopping("seconds")]).fit(data, target)
    estimator.save(tmp_path / "model.npz")
    again = type(estimator).load(tmp_path / "model.npz")
    np.testing.assert_array_equal(getattr(again, method)(data), getattr(estimator, method)(data))
    assert again.callbacks == () and again.history_.rows == estimator.history_.rows
    assert again.n_iter_ == estimator.n_iter_ and again.random_state == 0
    if target is NAMES:
        assert again.predict(data).tolist() == estimator.predict(data).tolist()
    if method == "transform":
        np.testing.assert_array_equal(again.gibbs(data > 0.3), estimator.gibbs(data > 0.3))
        for both in (again, estimator):
            both.partial_fit(data[:10])
        np.testing.assert_array_equal(again.components_, estimator.components_)
    other = DRNClassifier if not isinstance(estimator, DRNClassifier) else ChainClassifier
    with pytest.raises(CheckpointError, match=f"holds {type(estimator).__name__}, not {other.__name__}"):
        other.load(tmp_path / "model.npz")


STEADY = {
    "hidden": (6,),
    "tol": 0.0,
    "max_iter": 3,
    "batch_size": 200,
    "sweeps": 300,
    "dtype": "float64",
    "learning_rate_init": 0.01,
}
WHOLE = {"hidden": 4, "max_iter": 5, "batch_size": 400, "learning_rate_init": 0.02}


@pytest.mark.parametrize(
    ("kind", "settings", "method"),
    [
        (CircuitClassifier, WHOLE, "predict_proba"),
        (CircuitRegressor, WHOLE, "predict"),
        (ChainClassifier, WHOLE, "predict_proba"),
        *(
            (DRNClassifier, {**STEADY, "hidden": (6,), "method": rule}, "decision_function")
            for rule in ("ep", "bp", "implicit")
        ),
    ],
)
def test_a_weight_of_two_is_a_sample_twice(kind, settings, method) -> None:
    """In steps over the whole set, at steady states, the gradients are the same to rounding."""
    rng, (x, y) = np.random.default_rng(0), (X[::3] / 8.0, Y[::3])
    weight, y = rng.integers(0, 3, len(x)), x[:, 0] if kind is CircuitRegressor else y
    model, repeated, plain = (kind(**settings, random_state=0) for _ in range(3))
    model.fit(x, y, sample_weight=2.0 * weight)
    repeated.fit(x.repeat(weight, axis=0), y.repeat(weight))
    expected = getattr(repeated, method)(x)
    np.testing.assert_allclose(getattr(model, method)(x), expected, rtol=0, atol=1e-8)
    assert np.abs(getattr(plain.fit(x, y), method)(x) - expected).max() > 1e-4
    assert model.history_.column("loss") == pytest.approx(repeated.history_.column("loss"), rel=1e-9)
    with pytest.raises(ValueError, match="weight"):
        plain.partial_fit(x, y, sample_weight=-weight)


@pytest.mark.parametrize("weight", [np.ones(3), -np.ones(150), np.zeros(150), np.full(150, np.inf)])
def test_weights_that_are_none(weight) -> None:
    with pytest.raises(ValueError, match="weight"):
        CircuitClassifier(hidden=2, max_iter=1).fit(X, Y, sample_weight=weight)


def test_models_say_what_they_are() -> None:
    fitted = ChainClassifier(hidden=6, max_iter=1, random_state=0).fit(X, Y)
    lines = repr(fitted.chain_).splitlines()
    assert lines[0] == "Chain of 3, cross-entropy, float64:"
    assert lines[2] == "  1: DeepHopfieldBlock(6 inputs, layers 6-6, 48 parameters, float64)"
    drn = DRNClassifier((8,), max_iter=1, random_state=0).fit(X, Y)
    assert repr(drn.network_) == ("DeepResistiveNetwork(4 inputs with weights, layers 8-3, 99 parameters, float64)")
    machine = ContrastiveDivergenceRBM(5, max_iter=1, random_state=0).fit(X / 8).machine_
    assert repr(machine) == "RestrictedBoltzmannMachine(4 visible, 5 hidden units, float64)"


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


@pytest.mark.parametrize(
    ("estimator", "given", "meant"),
    [
        (DRNClassifier, "learning_rate", "learning_rate_init"),
        (ContrastiveDivergenceRBM, "n_iter", "max_iter"),
        (CircuitClassifier, "batchsize", "batch_size"),
    ],
)
def test_a_parameter_under_another_name_is_named(estimator, given: str, meant: str) -> None:
    with pytest.raises(TypeError, match=f"no parameter '{given}': did you mean '{meant}'"):
        estimator(**{given: 1})
