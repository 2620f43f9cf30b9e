"""Circuits as scikit-learn estimators: fit, predict, score, in pipelines and searches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from circuitsim._scikit import (
    ClassifierMixin,
    RegressorMixin,
    check_classification_targets,
    validate_data,
)
from circuitsim.circuit import Circuit
from circuitsim.learning.circuit_estimator import CircuitEstimator, moments
from circuitsim.learning.estimate import Estimator
from circuitsim.learning.losses import CrossEntropy
from circuitsim.learning.start import output_spread
from circuitsim.netlist.roles import Roles
from circuitsim.training import Callback
from circuitsim.training.class_codes import ONE_CLASS, class_codes
from circuitsim.training.sample_weight import weighted_samples


class CircuitRegressor(RegressorMixin, CircuitEstimator):
    """Regression by a circuit: standardised targets times `swing` volts at its outputs.

    Parameters
    ----------
    circuit : Circuit, optional
        The circuit that learns; a network of rectifiers (`rectifier_network`) with ``hidden`` units if not given.
    roles : Roles, optional
        Its inputs (one a feature, or two with the negatives after all values), outputs (one a target) and what may
        change; given with ``circuit``.
    hidden : int
        Rectifiers of the network that is made.
    gain : float
        Volts at the inputs for one standard deviation of a feature.
    estimator : Estimator, optional
        Of gradients; centred equilibrium propagation with constant currents if not given.
    learning_rate_init : float, optional
        Of Adam, S; 2 % of the median conductance if not given. It falls along a cosine.
    max_iter, batch_size : int
        Passes over the data; samples in a step.
    random_state : int, RandomState or None
        Source of all chance.
    warm_start : bool
        Whether `fit` goes on from the last one, with the same features and classes, in place of a fresh start.
    callbacks : sequence of callable
        Called with the history after each pass; one that returns True ends the training
        (`circuitsim.training.EarlyStopping`).
    swing : float
        Output volts for one standard deviation of a target.

    Attributes
    ----------
    trained_ : Circuit
        The circuit with its learned values.
    block_ : CircuitBlock
    history_ : History
        One row a pass of the last `fit`; ``history_.to_dataframe()`` is a pandas frame.
    n_features_in_, n_iter_ : int
    """

    def __init__(
        self,
        circuit: Circuit | None = None,
        roles: Roles | None = None,
        *,
        hidden: int = 8,
        gain: float = 4.0,
        estimator: Estimator | None = None,
        learning_rate_init: float | None = None,
        max_iter: int = 60,
        batch_size: int = 16,
        random_state: Any = None,
        warm_start: bool = False,
        callbacks: Sequence[Callback] = (),
        swing: float = 0.3,
    ) -> None:
        super().__init__(
            circuit,
            roles,
            hidden=hidden,
            gain=gain,
            estimator=estimator,
            learning_rate_init=learning_rate_init,
            max_iter=max_iter,
            batch_size=batch_size,
            random_state=random_state,
            warm_start=warm_start,
            callbacks=callbacks,
        )
        self.swing = swing

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> CircuitRegressor:
        """Learn from samples and their targets, from a fresh start (but with ``warm_start``).

        Parameters
        ----------
        X : (samples, features) array
        y : (samples,) or (samples, targets) array
        sample_weight : (samples,) array, optional
            Share of each sample in means, losses and gradients.

        Returns
        -------
        CircuitRegressor
            This estimator.

        Raises
        ------
        ValueError
            Parameters or data with which no fit can begin, or with ``warm_start`` other features or targets.
        """
        self._check_parameters()
        X, y = validate_data(self, X, y, multi_output=True, y_numeric=True, dtype=np.float64)
        weight, (X, y) = weighted_samples(sample_weight, X, np.asarray(y, dtype=np.float64))
        self._single = y.ndim == 1
        y = y.reshape(len(y), -1)
        if not self._continues(y.shape[1]):
            self._measure_targets(y, weight)
        self._train(X, (y - self.target_mean_) / self.target_scale_, y.shape[1], weight)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> CircuitRegressor:
        """Go on with one pass over a part of the data, at ``learning_rate_init``; Adam's moments stay.

        Features and targets are scaled by the moments of the first part.

        Parameters
        ----------
        X : (samples, features) array
        y : (samples,) or (samples, targets) array
        sample_weight : (samples,) array, optional
            Share of each sample in means, losses and gradients.

        Returns
        -------
        CircuitRegressor
            This estimator.

        Raises
        ------
        ValueError
            Another number of features or targets than before.
        """
        self._check_parameters()
        first = not hasattr(self, "block_")
        X, y = validate_data(self, X, y, multi_output=True, y_numeric=True, dtype=np.float64, reset=first)
        weight, (X, y) = weighted_samples(sample_weight, X, np.asarray(y, dtype=np.float64))
        if first:
            self._single = y.ndim == 1
        y = y.reshape(len(y), -1)
        if first:
            self._measure_targets(y, weight)
        elif y.shape[1] != self.block_.n_outputs:
            raise ValueError(f"y has {y.shape[1]} targets, in earlier calls {self.block_.n_outputs}")
        self._train_part(X, (y - self.target_mean_) / self.target_scale_, y.shape[1], weight, first)
        return self

    def _measure_targets(self, y: np.ndarray, weight: np.ndarray | None) -> None:
        self.target_mean_, spread = moments(y, weight)
        self.target_scale_ = np.where(spread > 0.0, spread, 1.0) / self.swing

    def predict(self, X: Any) -> np.ndarray:
        """Targets of samples."""
        found = self._outputs(X) * self.target_scale_ + self.target_mean_
        return found[:, 0] if self._single else found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = False
        tags.target_tags.multi_output = True
        return tags


class CircuitClassifier(ClassifierMixin, CircuitEstimator):
    """Classification by a circuit: one output a class, the highest voltage is the answer; cross-entropy is its loss.

    The parameters are those of `CircuitRegressor`, but for ``swing``.

    Attributes
    ----------
    classes_ : ndarray
        In the order of the outputs.
    trained_ : Circuit
        The circuit with its learned values.
    block_ : CircuitBlock
    history_ : History
        One row a pass of the last `fit`; ``history_.to_dataframe()`` is a pandas frame.
    n_features_in_, n_iter_ : int
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> CircuitClassifier:
        """Learn from samples and their classes, from a fresh start (but with ``warm_start``).

        Parameters
        ----------
        X : (samples, features) array
        y : (samples,) array
        sample_weight : (samples,) array, optional
            Share of each sample in means, losses and gradients.

        Returns
        -------
        CircuitClassifier
            This estimator.

        Raises
        ------
        ValueError
            Parameters or data with which no fit can begin, or with ``warm_start`` other features or outputs.
        """
        self._check_parameters()
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        weight, (X, y) = weighted_samples(sample_weight, X, np.asarray(y))
        self.classes_, codes = np.unique(y, return_inverse=True)
        if self.classes_.size < 2:
            raise ValueError(ONE_CLASS)
        self._train(X, codes.astype(np.int64), self.classes_.size, weight)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> CircuitClassifier:
        """Go on with one pass over a part of the data, at ``learning_rate_init``; Adam's moments stay.

        Features are scaled by the moments of the first part.

        Parameters
        ----------
        X : (samples, features) array
        y : (samples,) array
        classes : array, optional
            All classes; needed in the first call.
        sample_weight : (samples,) array, optional
            Share of each sample in means, losses and gradients.

        Returns
        -------
        CircuitClassifier
            This estimator.

        Raises
        ------
        ValueError
            Unknown or missing classes, or another number of features than before.
        """
        self._check_parameters()
        first = not hasattr(self, "block_")
        X, y = validate_data(self, X, y, dtype=np.float64, reset=first)
        check_classification_targets(y)
        weight, (X, y) = weighted_samples(sample_weight, X, np.asarray(y))
        codes = class_codes(self, y, classes)
        self._train_part(X, codes, self.classes_.size, weight, first)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Output voltages over the temperature of the loss; for two classes the second less the first."""
        scores = self._outputs(X) / self.temperature_
        return scores[:, 1] - scores[:, 0] if self.classes_.size == 2 else scores[:, : self.classes_.size]

    def predict_proba(self, X: Any) -> np.ndarray:
        """(samples, classes) softmax of the outputs."""
        scores = self._outputs(X)[:, : self.classes_.size] / self.temperature_
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        return shares / shares.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> np.ndarray:
        """The class of each sample."""
        outputs = self._outputs(X)
        return self.classes_[outputs[:, : self.classes_.size].argmax(axis=1)]

    def _loss(self, x: np.ndarray, weight: np.ndarray | None, continues: bool) -> CrossEntropy:
        if not continues:
            self.temperature_ = output_spread(self.block_, x, weight)
        return self._fitted_loss()

    def _fitted_loss(self) -> CrossEntropy:
        return CrossEntropy(self.temperature_)
