"""The machine as a scikit-learn transformer, after the conventions of ``sklearn.neural_network.BernoulliRBM``."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY
from typing import Any, ClassVar, Self

import numpy as np

from circuitsim._scikit import (
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    check_is_fitted,
    validate_data,
)
from circuitsim.boltzmann.contrastive import AdaptiveSteps, ContrastiveDivergence
from circuitsim.boltzmann.exact import PartitionEstimate, estimate_log_partition, log_likelihood
from circuitsim.boltzmann.machine import RestrictedBoltzmannMachine
from circuitsim.training import SGD
from circuitsim.training.checkpoint import Arrays, pack, unpack
from circuitsim.training.estimator import Fit, TrainedEstimator, estimator


@estimator
class ContrastiveDivergenceRBM(ClassNamePrefixFeaturesOutMixin, TransformerMixin, TrainedEstimator):
    """Restricted Boltzmann machine with CD-k, adaptive k or persistent CD.

    Parameters
    ----------
    n_components : int
        Hidden units.
    learning_rate_init : float
        Step on the gradient of the mean log-likelihood of a batch.
    batch_size : int
        Samples in a step.
    max_iter : int
        Passes over the data.
    k : int
        Gibbs steps for each update.
    k_max : int, optional
        Given, k is raised with the weights up to this many steps (`circuitsim.boltzmann.AdaptiveSteps`).
    nats_per_step : float
        How fast adaptive k rises.
    persistent : bool
        Keep one chain for each sample of a batch from update to update, as BernoulliRBM does.
    momentum, weight_decay : float
        Of the optimiser; weight decay acts on the weights, not on the biases.
    shuffle : bool
        Take the samples in a new random order on each pass.
    random_state : int, RandomState or None
        Source of all chance.
    warm_start : bool
        Whether `fit` continues from the last one, with the same features, in place of a fresh start.
    callbacks : sequence of callable
        Called with the history after each pass; one that returns True ends the training
        (`circuitsim.training.EarlyStopping`).

    Attributes
    ----------
    components_ : (n_components, n_features) ndarray
        Weights.
    intercept_hidden_, intercept_visible_ : ndarray
        Biases.
    n_features_in_ : int
        Features seen in fit.
    n_iter_ : int
        Passes made.
    history_ : History
        One row per pass of the last `fit`; ``history_.to_dataframe()`` is a pandas frame.
    """

    n_components: int = 256
    _: KW_ONLY
    learning_rate_init: float = 0.1
    k: int = 1
    k_max: int | None = None
    nats_per_step: float = 0.5
    persistent: bool = True
    momentum: float = 0.0
    weight_decay: float = 0.0
    shuffle: bool = False
    _model = "machine_"
    _reading: ClassVar[dict[str, Any]] = {"accept_sparse": "csr", "dtype": (np.float64, np.float32)}

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from ``X``, (samples, features) with values in [0, 1], from a fresh start (but with ``warm_start``).

        Parameters
        ----------
        X : (samples, features) array or sparse matrix
            Values in [0, 1].
        y : None
            Not used; scikit-learn's pipelines pass it.

        Returns
        -------
        ContrastiveDivergenceRBM
            This estimator.

        Warns
        -----
        UserWarning
            Values outside [0, 1].

        Raises
        ------
        ValueError
            ``X`` is no such array, or with ``warm_start`` has another number of features than before.
        """
        return self._fit(X, None, None)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Take one update with ``X`` as the batch.

        Parameters
        ----------
        X : (samples, features) array or sparse matrix
            Values in [0, 1].
        y : None
            Not used; scikit-learn's pipelines pass it.

        Returns
        -------
        ContrastiveDivergenceRBM
            This estimator.

        Raises
        ------
        ValueError
            ``X`` is no such array, or has another number of features than before.
        """
        return self._fit(X, None, None, True)

    def _train(self, fit: Fit) -> None:
        if not fit.continues:
            self._seeds = np.random.default_rng(fit.seed)
            self.machine_ = RestrictedBoltzmannMachine.random(
                fit.x.shape[1], self.n_components, self._seeds, dtype=fit.x.dtype
            )
            self._set_learner()
        optimizer = SGD(self.learning_rate_init, {"weights": self.weight_decay}, self.momentum)
        if fit.passes is None:
            seed = int(self._seeds.integers(2**31))
            self._passes(self._learner, fit, fit.x, seed, optimizer, shuffle=self.shuffle)
            return
        if not fit.passes or self._memory is None:
            self._memory = optimizer.start(self.machine_.parameters)
        gradients, _ = self._learner.gradient((fit.x,), self._seeds)
        optimizer.step(self.machine_.parameters, gradients, self._memory, 1.0)

    def transform(self, X: Any) -> np.ndarray:
        """p(h = 1 | v) of each sample, (samples, n_components)."""
        data = self._read(X)
        return self.machine_.hidden_probability(data)

    def gibbs(self, v: Any) -> np.ndarray:
        """One Gibbs step from visible states; (samples, features) booleans."""
        data = self._read(v)
        return self.machine_.gibbs(data, self._seeds).astype(bool)

    def score_samples(self, X: Any) -> np.ndarray:
        """Pseudo-log-likelihood of each sample, Σ_j log p(v_j | all other v); (samples,).

        All features are computed. ``BernoulliRBM`` draws one of them at random, and these values are its means.
        """
        data = self._read(X)
        return self.machine_.pseudo_log_likelihood(data)

    def free_energy(self, X: Any) -> np.ndarray:
        """F(v) of each sample; p(v) = exp(−F(v)) / Z."""
        data = self._read(X)
        return self.machine_.free_energy(data)

    def log_likelihood(self, X: Any) -> np.ndarray:
        """Exact log p(v) of each sample; needs a layer of at most 24 units."""
        data = self._read(X)
        return log_likelihood(self.machine_, data)

    def log_partition(self, temperatures: int = 1000, chains: int = 100) -> PartitionEstimate:
        """log Z by annealed importance sampling, with error bars.

        Parameters
        ----------
        temperatures : int
            Intermediate distributions; the error falls with their number.
        chains : int
            Independent chains, at least 2, from whose scatter the error is estimated.

        Returns
        -------
        PartitionEstimate
            log Z, and an interval of three standard errors.
        """
        check_is_fitted(self)
        return estimate_log_partition(self.machine_, self._seeds, temperatures, chains)

    @property
    def components_(self) -> np.ndarray:
        """Weights, (n_components, n_features)."""
        return self.machine_.weights

    @property
    def intercept_hidden_(self) -> np.ndarray:
        """Biases of the hidden units."""
        return self.machine_.hidden_bias

    @property
    def intercept_visible_(self) -> np.ndarray:
        """Biases of the visible units."""
        return self.machine_.visible_bias

    @property
    def _n_features_out(self) -> int:
        return self.machine_.hidden

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _model_state(self) -> tuple[Arrays, Any]:
        arrays = pack(machine=self.machine_.parameters, chains=self._learner.state_arrays(), memory=self._memory or {})
        return arrays, {"generator": self._seeds.bit_generator.state}

    def _set_model(self, arrays: Arrays, facts: Any) -> None:
        self.machine_ = RestrictedBoltzmannMachine(**unpack(arrays, "machine"))
        self._seeds = np.random.default_rng(0)
        self._seeds.bit_generator.state = facts["generator"]
        self._set_learner()
        self._learner.load_state_arrays(unpack(arrays, "chains"))
        self._memory = unpack(arrays, "memory") or None

    def _set_learner(self) -> None:
        rule = AdaptiveSteps(self.k, self.k if self.k_max is None else self.k_max, self.nats_per_step)
        self._learner = ContrastiveDivergence(self.machine_, rule, self.batch_size if self.persistent else 0)

    def _samples(self, x: Any, y: Any, sample_weight: Any, reset: bool) -> tuple[np.ndarray, None, None]:
        data = _dense(validate_data(self, x, reset=reset, **self._reading))
        low, high = float(data.min()), float(data.max())
        if low < 0.0 or high > 1.0:
            warnings.warn(
                f"values from {low:.4g} to {high:.4g}: a restricted Boltzmann machine learns values from 0 to 1; "
                "scale them first, for instance with sklearn.preprocessing.MinMaxScaler",
                stacklevel=4,
            )
        return data, None, None

    def _read(self, X: Any) -> np.ndarray:
        return _dense(super()._read(X))


def _dense(data: Any) -> np.ndarray:
    return data.toarray() if hasattr(data, "toarray") else data
