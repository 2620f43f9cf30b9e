"""Classification in passes over the data, with scikit-learn's conventions: what all classifiers share."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from circuitsim._scikit import BaseEstimator, ClassifierMixin, check_classification_targets, validate_data
from circuitsim.training.samples import ONE_CLASS, class_codes, weighted_samples
from circuitsim.training.saved_estimator import SavedEstimator


class TrainedClassifier(SavedEstimator, ClassifierMixin, BaseEstimator):
    """A model with one output for each class, trained in passes over the data.

    A subclass names the attribute of its model in ``_model`` and the types of numbers that it takes in ``_dtype``,
    trains in ``_train(X, labels, weight, continues, made)`` (all passes of `fit` where ``made`` is None, else the pass
    after so many of `partial_fit`), and gives the outputs (samples, classes) by ``_outputs(X)``.
    """

    classes_: np.ndarray
    n_iter_: int
    _model = ""
    _dtype: Any = np.float64

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from samples and their classes, from a fresh start (but with ``warm_start``).

        Parameters
        ----------
        X : (samples, features) array
        y : (samples,) array
            Classes, at least two.
        sample_weight : (samples,) array, optional
            Factor on each sample's loss; samples of weight zero are left out.

        Returns
        -------
        estimator
            This estimator.

        Raises
        ------
        ValueError
            Parameters or data with which no fit can begin, one class alone, or with ``warm_start`` other classes,
            features or layers.
        """
        X, y, weight = self._samples(X, y, sample_weight, reset=True)
        classes, labels = np.unique(y, return_inverse=True)
        if classes.size < 2:
            raise ValueError(ONE_CLASS)
        continues = self.warm_start and hasattr(self, self._model)
        if continues and not np.array_equal(self.classes_, classes):
            raise ValueError("warm_start continues the last fit: its classes were others")
        self.classes_ = classes
        self._train(X, labels.astype(np.int64), weight, continues, None)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Continue with one pass over a part of the data, at a constant learning rate.

        What scales features is measured in the first part.

        Parameters
        ----------
        X : (samples, features) array
        y : (samples,) array
        classes : array, optional
            All classes, at least two; needed in the first call.
        sample_weight : (samples,) array, optional
            Factor on each sample's loss.

        Returns
        -------
        estimator
            This estimator.

        Raises
        ------
        ValueError
            Unknown or missing classes, or another number of features than before.
        """
        first = not hasattr(self, self._model)
        X, y, weight = self._samples(X, y, sample_weight, reset=first)
        labels = class_codes(self, y, classes)
        made = 0 if first else self.n_iter_
        self._train(X, labels, weight, not first, made)
        self.n_iter_ = made + 1
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The class of the highest output for each sample."""
        outputs = self._outputs(X)  # an error where nothing is fitted
        return self.classes_[outputs[:, : self.classes_.size].argmax(axis=1)]

    def _samples(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> tuple[Any, Any, np.ndarray | None]:
        """Checked samples, their classes and weights."""
        self._check_parameters()
        X, y = validate_data(self, X, y, dtype=self._dtype, reset=reset)
        check_classification_targets(y)
        weight, (X, y) = weighted_samples(sample_weight, X, np.asarray(y))
        return X, y, weight

    def _decision(self, scores: np.ndarray) -> np.ndarray:
        """Scores (samples, classes) as scikit-learn has them: for two classes the second less the first."""
        return scores[:, 1] - scores[:, 0] if self.classes_.size == 2 else scores[:, : self.classes_.size]


def softmax(scores: np.ndarray) -> np.ndarray:
    """The softmax of each row."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)
