"""Callbacks of the trainer, early stopping, histories as frames; the same in every scikit-learn estimator."""

from __future__ import annotations

import numpy as np
import pytest
from quadratic import NoisyQuadratic

from circuitsim.errors import UsageError
from circuitsim.training import SGD, EarlyStopping, History, Trainer, TrainingPlan


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
    with pytest.raises(UsageError, match="patience is at least 1"):
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


def _estimators() -> list[object]:
    pytest.importorskip("sklearn")
    from circuitsim.boltzmann import ContrastiveDivergenceRBM
    from circuitsim.ffebm import ChainClassifier
    from circuitsim.layered import DRNClassifier
    from circuitsim.learning import CircuitClassifier, CircuitRegressor

    return [
        DRNClassifier((12,), input_gain=5.0, max_iter=3, batch_size=4, learning_rate_init=0.01, random_state=0),
        CircuitClassifier(hidden=3, max_iter=3, batch_size=16, learning_rate_init=None, random_state=0),
        CircuitRegressor(hidden=3, max_iter=3, batch_size=16, learning_rate_init=None, random_state=0),
        ChainClassifier(hidden=8, max_iter=3, batch_size=16, learning_rate_init=5e-3, random_state=0),
        ContrastiveDivergenceRBM(4, max_iter=3, batch_size=16, learning_rate_init=0.1, random_state=0),
    ]


@pytest.mark.parametrize("which", range(5))
def test_estimators_share_names_history_callbacks_and_warm_start(which: int) -> None:
    model = _estimators()[which]
    rng = np.random.default_rng(0)
    y = np.arange(48) % 2
    X = np.clip(rng.normal(size=(48, 3)) * 0.1 + 0.25 + 0.5 * y[:, None], 0.0, 1.0)
    assert model.fit(X, y) is model and model.n_iter_ == len(model.history_.rows) == 3
    before = _parameters(model)
    assert max(np.abs(a - b).max() for a, b in zip(before, _parameters(model.fit(X, y)))) == 0.0
    model.set_params(max_iter=2, warm_start=True)
    after = _parameters(model.fit(X, y))
    assert model.n_iter_ == 2
    moved = max(float(np.abs(a - b).max()) for a, b in zip(before, after))
    assert moved > 0.0
    fresh = _parameters(model.set_params(warm_start=False).fit(X, y))
    assert any(np.abs(a - b).max() > 0.0 for a, b in zip(after, fresh))
    model.set_params(max_iter=5, callbacks=[lambda history: len(history.rows) == 1]).fit(X, y)
    assert model.n_iter_ == 1


@pytest.mark.parametrize("which", range(4))
def test_data_in_parts(which: int) -> None:
    """A first part of one class, then two parts in turns, which are learned."""
    model, regressor = _estimators()[which], which == 2
    rng, y = np.random.default_rng(0), np.repeat([0, 1], 30)
    X = np.clip(rng.normal(size=(60, 3)) * 0.1 + 0.25 + 0.5 * y[:, None], 0.0, 1.0)
    if which == 0:
        model.set_params(learning_rate_init=0.05)
    if not regressor:
        with pytest.raises(ValueError, match="classes must be passed on the first call"):
            model.partial_fit(X, y)
        assert model.partial_fit(X[:8], y[:8], classes=[0, 1]) is model
    for _ in range(15):
        for part in (np.r_[0:20, 30:40], np.r_[20:30, 40:60]):
            model.partial_fit(X[part], y[part])
    assert model.n_iter_ == 30 + (not regressor) and len(model.history_.rows) == 1
    assert model.score(X, y) > 0.85
    if not regressor:
        with pytest.raises(ValueError, match="not among"):
            model.partial_fit(X, y + 1)
        with pytest.raises(ValueError, match="not those of earlier calls"):
            model.partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :2], y)


def _parameters(model: object) -> list[np.ndarray]:
    for name in ("network_", "block_", "chain_", "machine_"):
        if hasattr(model, name):
            return [np.array(array) for array in getattr(model, name).parameters.values()]
    raise AssertionError("the estimator has no model")


@pytest.mark.parametrize("which", [0, 1, 3])
def test_a_warm_start_with_other_data_is_refused(which: int) -> None:
    model = _estimators()[which].set_params(warm_start=True, max_iter=1)
    X = np.random.default_rng(0).uniform(size=(30, 3))
    model.fit(X, np.arange(30) % 2)
    with pytest.raises(ValueError, match="warm_start continues the last fit: its classes were others"):
        model.fit(X, np.arange(30) % 3)


EVERY = [
    ({"max_iter": -1}, "max_iter must be a whole number of at least 0, not -1"),
    ({"batch_size": 2.5}, "batch_size must be a whole number of at least 1, not 2.5"),
    ({"callbacks": len}, r"callbacks is a list of functions of the history, such as \[callback\]"),
]


@pytest.mark.parametrize(
    ("which", "wrong", "words"),
    [
        *((which, *row) for row in EVERY for which in range(5)),
        (0, {"hidden": 0}, r"the units of each hidden layer, each at least 2, such as \(100,\), not 0"),
        (0, {"hidden": (8, 0)}, r"the units of each hidden layer, each at least 2, such as \(100,\), not \(8, 0\)"),
        (0, {"dtype": "int32"}, "dtype must be float32 or float64, not 'int32'"),
        (0, {"learning_rate_init": "fast"}, "learning_rate_init must be a number, not 'fast'"),
        (0, {"tol": -1.0}, "tol must be a finite number of at least zero, not -1.0"),
        (0, {"n_iter_no_change": 0}, "n_iter_no_change must be a whole number of at least 1, not 0"),
        (0, {"input_gain": "auto"}, "input_gain must be a finite number above zero or None, not 'auto'"),
        (1, {"hidden": 2.5}, "hidden must be a whole number of at least 0, not 2.5"),
        (2, {"estimator": "ep"}, "estimator must be a rule such as EquilibriumPropagation"),
        (2, {"swing": 0}, "swing must be a finite number above zero, not 0"),
        (2, {"hidden": -1}, "hidden must be a whole number of at least 0, not -1"),
        (3, {"hidden": 0}, "hidden must be a whole number of at least 1, not 0"),
        (3, {"beta": 0}, "beta must be a finite number above zero, not 0"),
        (4, {"n_components": 0}, "n_components must be a whole number of at least 1, not 0"),
        (4, {"k": 0}, "k must be a whole number of at least 1, not 0"),
    ],
)
def test_wrong_parameters_say_what_is_right(which: int, wrong: dict, words: str) -> None:
    X, y = np.linspace(0.0, 1.0, 24).reshape(8, 3), np.arange(8) % 2
    with pytest.raises(ValueError, match=words):
        _estimators()[which].set_params(**wrong).fit(X, y)


def test_features_without_a_variance_are_refused() -> None:
    with pytest.raises(ValueError, match=r"values up to 1e\+300 are too large for a variance"):
        _estimators()[2].fit(np.linspace(0.0, 1e300, 24).reshape(8, 3), np.arange(8.0))


def test_boltzmann_machines_warn_of_values_that_are_no_probabilities() -> None:
    machine = _estimators()[4]
    with pytest.warns(UserWarning, match="values from 0 to 16: a restricted Boltzmann machine learns values from 0"):
        machine.fit(np.arange(0.0, 17.0).reshape(-1, 1))
