"""A chain as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from circuitsim._arrays import to_numpy
from circuitsim._scikit import (
    BaseEstimator,
    ClassifierMixin,
    check_classification_targets,
    check_is_fitted,
    check_random_state,
    validate_data,
)
from circuitsim.ffebm.chain import Chain, build, chain_arrays, describe_chain, restored_chain
from circuitsim.ffebm.chaining import Chaining
from circuitsim.training import Adam, Callback, Constant, Cosine, Schedule, Trainer, TrainingPlan
from circuitsim.training.samples import ONE_CLASS, class_codes, weighted_samples
from circuitsim.training.saved_estimator import SavedEstimator
from circuitsim.training.trainable import Arrays

Elements = Sequence[Mapping[str, Any]] | Callable[[int, int], Sequence[Any]] | None


class ChainClassifier(SavedEstimator, ClassifierMixin, BaseEstimator):
    """Digital stages and energy-based blocks, trained end to end.

    Parameters
    ----------
    elements : callable, sequence of dict, or None
        ``elements(n_features, n_classes)`` gives the chain's stages and blocks; or their descriptions, as TOML files
        state them. None: a linear stage, a deep Hopfield block of two layers of `hidden` units, a readout.
    hidden : int
        Units of each layer where `elements` is None.
    method : {"ep", "bp", "implicit"}
        How gradients are computed (`circuitsim.ffebm.Chaining`).
    beta : float
        Strength of the nudge.
    max_iter, batch_size : int
        Passes over the data, samples in a step.
    learning_rate_init : float
        Adam's, falling to zero along a cosine.
    weight_decay : float
        L2 penalty on all parameters.
    random_state : int, RandomState or None
        Source of all chance.
    warm_start : bool
        Whether `fit` goes on from the last one, with the same features and classes, in place of a fresh start.
    callbacks : sequence of callable
        Called with the history after each pass; one that returns True ends the training
        (`circuitsim.training.EarlyStopping`).

    Attributes
    ----------
    chain_ : Chain
    classes_ : ndarray
    n_features_in_, n_iter_ : int
    history_ : History
        One row a pass of the last `fit`; ``history_.to_dataframe()`` is a pandas frame.
    """

    classes_: np.ndarray
    chain_: Chain
    n_iter_: int
    _memory: Arrays | None = None

    def __init__(
        self,
        elements: Elements = None,
        *,
        hidden: int = 64,
        method: str = "ep",
        beta: float = 0.02,
        max_iter: int = 20,
        batch_size: int = 32,
        learning_rate_init: float = 5e-3,
        weight_decay: float = 0.0,
        random_state: Any = None,
        warm_start: bool = False,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.elements = elements
        self.hidden = hidden
        self.method = method
        self.beta = beta
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.learning_rate_init = learning_rate_init
        self.weight_decay = weight_decay
        self.random_state = random_state
        self.warm_start = warm_start
        self.callbacks = callbacks

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ChainClassifier:
        """Train from a fresh start (but with ``warm_start``).

        Parameters
        ----------
        X : (samples, features) array
        y : (samples,) array
        sample_weight : (samples,) array, optional
            Factor on each sample's loss.

        Returns
        -------
        ChainClassifier
            This estimator.

        Raises
        ------
        ValueError
            Parameters or data with which no fit can begin, one class alone, or with ``warm_start`` other classes.
        """
        self._check_parameters()
        X, y = validate_data(self, X, y, dtype=(np.float64, np.float32))
        check_classification_targets(y)
        weight, (X, y) = weighted_samples(sample_weight, X, np.asarray(y))
        classes, labels = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(ONE_CLASS)
        continues = self.warm_start and hasattr(self, "chain_")
        if continues and not np.array_equal(self.classes_, classes):
            raise ValueError("warm_start goes on with the classes of the last fit: these are others")
        self.classes_ = classes
        self._train(X, labels.astype(np.int64), weight, self.max_iter, Cosine(max(1, self.max_iter)), continues)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> ChainClassifier:
        """Go on with one pass over a part of the data, at ``learning_rate_init``; Adam's moments stay.

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
        ChainClassifier
            This estimator.

        Raises
        ------
        ValueError
            Unknown or missing classes, or another number of features than before.
        """
        self._check_parameters()
        first = not hasattr(self, "chain_")
        X, y = validate_data(self, X, y, dtype=(np.float64, np.float32), reset=first)
        check_classification_targets(y)
        weight, (X, y) = weighted_samples(sample_weight, X, np.asarray(y))
        labels = class_codes(self, y, classes)
        passes = 0 if first else self.n_iter_
        self._train(X, labels, weight, 1, Constant(), not first, None if first else self._memory, passes)
        self.n_iter_ = passes + 1
        return self

    def _train(
        self,
        X: np.ndarray,
        labels: np.ndarray,
        weight: np.ndarray | None,
        passes: int,
        schedule: Schedule,
        continues: bool,
        memory: Arrays | None = None,
        made: int = 0,
    ) -> None:
        """Some passes, after those already made."""
        seed = int(check_random_state(self.random_state).randint(2**31))
        if not continues:
            self.chain_ = Chain(
                self._elements(X.shape[1], len(self.classes_)),
                chaining=Chaining(self.method, self.beta),
                seed=seed,
                dtype=X.dtype,
            )
        rates = self.chain_.rates(self.learning_rate_init)
        plan = TrainingPlan(passes, self.batch_size, seed + made, Adam(rates, decay=self.weight_decay), schedule)
        data = (X, labels) if weight is None else (X, labels, weight)
        trainer = Trainer(self.chain_, data, plan, callbacks=self.callbacks, memory=memory)
        outcome = trainer.train()
        outcome.require_steps()
        self.history_, self._memory = outcome.history, trainer.memory
        self.n_iter_ = len(self.history_.rows)

    def _model_state(self) -> tuple[dict[str, np.ndarray], Any]:
        return chain_arrays(self.chain_), describe_chain(self.chain_)

    def _set_model(self, arrays: dict[str, np.ndarray], facts: Any) -> None:
        self.chain_ = restored_chain(arrays, facts)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row."""
        check_is_fitted(self)
        return self.classes_[np.argmax(self.outputs(X), axis=1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """(samples, classes) softmax of the readout."""
        logits = self.outputs(X).astype(np.float64)
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    def outputs(self, X: Any) -> np.ndarray:
        """(samples, classes) outputs of the chain, its logits."""
        check_is_fitted(self)
        return to_numpy(self.chain_.output(validate_data(self, X, reset=False, dtype=(np.float64, np.float32))))

    def _elements(self, features: int, classes: int) -> Sequence[Any]:
        if callable(self.elements):
            return self.elements(features, classes)
        tables = self.elements
        if tables is None:
            units = self.hidden
            tables = [
                {"kind": "linear", "inputs": features, "outputs": units},
                {
                    "kind": "deep-hopfield",
                    "layers": [units, units],
                    "clamped": False,
                    "sweeps": {"free": 15, "nudged": 10},
                },
                {"kind": "readout", "inputs": units, "outputs": classes},
            ]
        return [build(table) for table in tables]
