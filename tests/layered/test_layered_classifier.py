"""The scikit-learn face of layered networks."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from circuitsim.layered import DRNClassifier

CHECKED = DRNClassifier((8,), input_gain=5.0, learning_rate=0.01, beta=0.01, sweeps=6, epochs=30, random_state=0)


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([CHECKED])
def test_scikit_learn_conventions(estimator, check) -> None:
    check(estimator)


def test_it_learns_digits_in_a_pipeline() -> None:
    X, y = load_digits(return_X_y=True)
    names = np.array([f"digit {k}" for k in range(10)])[y]
    model = make_pipeline(MinMaxScaler(), DRNClassifier((64,), input_gain=20.0, epochs=6, random_state=1))
    assert cross_val_score(model, X[:1200], names[:1200], cv=2).min() > 0.8


def test_same_seed_same_bits() -> None:
    X, y = load_digits(return_X_y=True)
    one, two, other = (
        DRNClassifier((20,), epochs=1, input_gain=20.0, random_state=s).fit(X / 16, y) for s in (3, 3, 4)
    )
    assert (one.decision_function(X / 16) == two.decision_function(X / 16)).all()
    assert (one.decision_function(X / 16) != other.decision_function(X / 16)).any()
