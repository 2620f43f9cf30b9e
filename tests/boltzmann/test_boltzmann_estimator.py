"""The scikit-learn transformer: scikit-learn's own checks, and agreement with BernoulliRBM where both do the same."""

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import BernoulliRBM
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from circuitsim.boltzmann import ContrastiveDivergenceRBM


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [
        ContrastiveDivergenceRBM(n_components=4, max_iter=2),
        ContrastiveDivergenceRBM(n_components=3, max_iter=1, k=2, k_max=4),
    ],
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def _pair():
    """A fitted transformer and a BernoulliRBM with the same parameters."""
    X = (load_digits().data[:200] > 7).astype(np.float64)
    ours = ContrastiveDivergenceRBM(12, max_iter=3, random_state=0).fit(X)
    theirs = BernoulliRBM(12, n_iter=1, random_state=0).fit(X)
    theirs.components_ = np.ascontiguousarray(ours.components_)
    theirs.intercept_hidden_, theirs.intercept_visible_ = ours.intercept_hidden_, ours.intercept_visible_
    return X, ours, theirs


def test_transform_and_free_energy_are_those_of_bernoulli_rbm():
    X, ours, theirs = _pair()
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), rtol=1e-12)
    np.testing.assert_allclose(ours.free_energy(X), theirs._free_energy(X), rtol=1e-12)


def test_score_samples_is_the_sum_of_conditional_probabilities():
    """log p(v_j | rest) = log p(v) − log(p(v) + p(v with j flipped)), with probabilities by enumeration."""
    rng = np.random.default_rng(3)
    X = (rng.uniform(size=(40, 6)) > 0.4).astype(np.float64)
    model = ContrastiveDivergenceRBM(5, max_iter=30, learning_rate_init=0.5, random_state=0).fit(X)
    expected = np.zeros(len(X))
    here = model.log_likelihood(X)
    for j in range(X.shape[1]):
        flipped = X.copy()
        flipped[:, j] = 1 - flipped[:, j]
        expected += here - np.logaddexp(here, model.log_likelihood(flipped))
    np.testing.assert_allclose(model.score_samples(X), expected, rtol=1e-10)
    np.testing.assert_array_equal(model.score_samples(X), model.score_samples(X))


def test_gibbs_moves_as_bernoulli_rbm_does():
    X, ours, theirs = _pair()
    start = np.repeat(X[:1], 20_000, axis=0)
    mine, other = ours.gibbs(start), theirs.gibbs(start)
    assert mine.dtype == other.dtype == bool and mine.shape == other.shape
    error = np.sqrt(0.5 / len(start))
    assert np.abs(mine.mean(axis=0) - other.mean(axis=0)).max() < 5 * error


def test_partial_fit_learns_and_continues():
    X = (load_digits().data[:300] > 7).astype(np.float64)
    model = ContrastiveDivergenceRBM(16, learning_rate_init=0.1, momentum=0.5, random_state=0)
    model.partial_fit(X[:10])
    before = model.score_samples(X).mean()
    for _ in range(10):
        for start in range(0, 300, 10):
            model.partial_fit(X[start : start + 10])
    assert model.n_iter_ == 301 and model.score_samples(X).mean() > before + 5
    # And from where fit left it.
    fitted = ContrastiveDivergenceRBM(16, max_iter=1, random_state=0).fit(X)
    kept = fitted.components_.copy()
    fitted.partial_fit(X[:10])
    assert 0 < np.abs(fitted.components_ - kept).max() < 0.1


def test_learns_as_well_as_bernoulli_rbm():
    """Same method and settings: pseudo-likelihood over three seeds no worse, features as good to a classifier."""
    X, y = load_digits(return_X_y=True)
    X = X / 16
    settings = {
        BernoulliRBM: {"learning_rate": 0.06, "n_iter": 8},
        ContrastiveDivergenceRBM: {"learning_rate_init": 0.06, "max_iter": 8},
    }
    scores, accuracies = [], []
    classifier = LogisticRegression(C=10, max_iter=300)
    # Threads of BLAS only wait for each other at this size.
    with threadpool_limits(1):
        for kind in (BernoulliRBM, ContrastiveDivergenceRBM):
            models = [kind(60, **settings[kind], random_state=seed).fit(X) for seed in range(3)]
            scores.append(np.mean([model.score_samples(X).mean() for model in models]))
            features = models[0].transform(X)
            accuracies.append(classifier.fit(features[:1200], y[:1200]).score(features[1200:], y[1200:]))
    assert scores[1] > scores[0] - 0.5
    assert accuracies[1] > accuracies[0] - 0.03


def test_a_name_that_is_none():
    with pytest.raises(AttributeError, match=r"^module 'circuitsim.boltzmann' has no attribute 'Nonsense'$"):
        from circuitsim import boltzmann

        boltzmann.Nonsense
