"""The scikit-learn face of layered networks."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import check_sample_weight_equivalence_on_dense_data, parametrize_with_checks

from circuitsim.layered import DRNClassifier

CHECKED = DRNClassifier((8,), input_gain=5.0, learning_rate_init=0.01, beta=0.01, sweeps=6, max_iter=30, random_state=0)


# As with all steps of mini-batches; see the next test.
SHUFFLED = {"check_sample_weight_equivalence_on_dense_data": "another order of samples is another descent"}


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([CHECKED, DRNClassifier(max_iter=3)], expected_failed_checks=lambda _: SHUFFLED)
def test_scikit_learn_conventions(estimator, check) -> None:
    check(estimator)


def test_in_steps_over_all_samples_a_weight_of_two_is_a_sample_twice() -> None:
    model = DRNClassifier(
        (8,), input_gain=5.0, beta=0.01, sweeps=200, batch_size=100, max_iter=3, dtype="float64", random_state=0
    )
    check_sample_weight_equivalence_on_dense_data("DRNClassifier", model)


def test_it_learns_digits_in_a_pipeline() -> None:
    X, y = load_digits(return_X_y=True)
    names = np.array([f"digit {k}" for k in range(10)])[y]
    model = make_pipeline(MinMaxScaler(), DRNClassifier((64,), input_gain=20.0, max_iter=6, random_state=1))
    assert cross_val_score(model, X[:1200], names[:1200], cv=2).min() > 0.8


def test_the_defaults_learn_small_tables_as_they_come() -> None:
    """Iris at any rate: with four features one unit in 256 was drawn without conductance. Wine unscaled."""
    X, y = load_iris(return_X_y=True)
    DRNClassifier(random_state=0, learning_rate_init=1e-9, max_iter=1).fit(X, y)
    assert DRNClassifier(random_state=0).fit(X, y).score(X, y) > 0.94
    X, y = load_wine(return_X_y=True)
    model = DRNClassifier(random_state=0).fit(X, y)
    assert model.score(X, y) > 0.97 and 20 < model.n_iter_ < 200
    inputs = model.inputs(X)
    np.testing.assert_allclose([inputs.min(axis=0), inputs.max(axis=0)], [[-1.0] * 13, [1.0] * 13], atol=1e-6)
    with_units = model.decision_function(X)
    again = DRNClassifier(random_state=0).fit(X * 10.0 ** np.arange(-6, 7), y)
    assert np.abs(again.decision_function(X * 10.0 ** np.arange(-6, 7)) - with_units).max() < 1e-2
    images = load_digits().data / 16
    fitted = DRNClassifier(max_iter=1).fit(images, load_digits().target)
    np.testing.assert_array_equal(fitted.inputs(images), np.float32(images))


def test_inputs_beyond_the_range_are_noted():
    rng = np.random.default_rng(0)
    X, y = 16.0 * rng.random((20, 3)), np.arange(20) % 2
    with pytest.warns(UserWarning, match=r"inputs reach from .* the network is made for \[-1, 1\]"):
        DRNClassifier((4,), scale_inputs=False, max_iter=1, beta=0.01, random_state=0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DRNClassifier((4,), max_iter=1, beta=0.01, tol=0, random_state=0).fit(X, y)


def test_a_loss_that_still_falls_is_noted():
    X, y = load_iris(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match="the loss still falls after 12 passes .* raise max_iter or tol"):
        assert DRNClassifier(max_iter=12, random_state=0).fit(X, y).n_iter_ == 12
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        assert DRNClassifier(max_iter=12, tol=0, random_state=0).fit(X, y).n_iter_ == 12
        assert 10 < DRNClassifier(max_iter=100, tol=1e-2, random_state=0).fit(X, y).n_iter_ < 100
        assert DRNClassifier(max_iter=0, random_state=0).fit(X, y).n_iter_ == 0
    small = DRNClassifier((4,), max_iter=1, tol=0, beta=0.01, random_state=0).fit(X, y)
    assert small.network_.architecture.input_gain == 100 * (4 / 784) ** 0.5
