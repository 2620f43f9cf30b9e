"""A chain as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np

from circuitsim._arrays import to_numpy
from circuitsim.blocks.hopfield import DeepHopfieldBlock
from circuitsim.blocks.layered import Sweeps
from circuitsim.learning.chain import Chain, chain_arrays, restored_chain
from circuitsim.learning.estimate import Rule
from circuitsim.learning.rules import Chaining
from circuitsim.learning.stages import Linear, Readout, build, describe_chain
from circuitsim.training import Adam, Cosine
from circuitsim.training.checkpoint import Arrays
from circuitsim.training.estimator import Fit, SoftmaxClassifier, estimator, whole

Elements = Sequence[Mapping[str, Any]] | Callable[[int, int], Sequence[Any]] | None


@estimator
class ChainClassifier(SoftmaxClassifier):
    """Digital stages and energy-based blocks, trained end to end.

    Parameters
    ----------
    elements : callable, sequence of dict, or None
        ``elements(n_features, n_classes)`` gives the chain's stages and blocks; or their descriptions, as TOML files
        state them. None: a linear stage, a deep Hopfield block of two layers of `hidden` units, a readout.
    hidden : int
        Units of each layer where `elements` is None.
    method : {"ep", "bp", "implicit"} or Rule
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
        Whether `fit` continues from the last one, with the same features and classes, in place of a fresh start.
    callbacks : sequence of callable
        Called with the history after each pass; one that returns True ends the training
        (`circuitsim.training.EarlyStopping`).

    Attributes
    ----------
    chain_ : Chain
    classes_ : ndarray
    n_features_in_, n_iter_ : int
    history_ : History
        One row per pass of the last `fit`; ``history_.to_dataframe()`` is a pandas frame.
    """

    elements: Elements = None
    _: KW_ONLY
    hidden: int = 64
    method: str | Rule = "ep"
    beta: float = 0.02
    max_iter: int = 20
    batch_size: int = 32
    learning_rate_init: float = 5e-3
    weight_decay: float = 0.0
    _model = "chain_"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SoftmaxClassifier._parameter_constraints,
        "hidden": whole(1),
    }
    _reading: ClassVar[dict[str, Any]] = {"dtype": (np.float64, np.float32)}

    def _train(self, fit: Fit) -> None:
        """Adam's moments continue from one pass of `partial_fit` to the next."""
        seed = fit.seed + (fit.passes or 0)
        if not fit.continues:
            self.chain_ = Chain(
                self._elements(fit.x.shape[1], fit.outputs),
                rule=Chaining(self.method, self.beta),
                seed=seed,
                dtype=fit.x.dtype,
            )
        optimizer = Adam(self.chain_.rates(self.learning_rate_init), decay=self.weight_decay)
        self._passes(self.chain_, fit, fit.x, seed, optimizer, Cosine(max(1, self.max_iter)))

    def _model_state(self) -> tuple[Arrays, Any]:
        return chain_arrays(self.chain_), describe_chain(self.chain_)

    def _set_model(self, arrays: Arrays, facts: Any) -> None:
        self.chain_ = restored_chain(arrays, facts)

    def outputs(self, X: Any) -> np.ndarray:
        """(samples, classes) outputs of the chain, its logits."""
        x = self._read(X)
        return to_numpy(self.chain_.output(x))

    def _scores(self, X: Any) -> np.ndarray:
        return self.outputs(X).astype(np.float64)

    def _elements(self, features: int, classes: int) -> Sequence[Any]:
        if callable(self.elements):
            return self.elements(features, classes)
        if self.elements is None:
            units = self.hidden
            block = DeepHopfieldBlock([units, units], clamped=False, sweeps=Sweeps(15, 10))
            return [Linear(features, units), block, Readout(units, classes)]
        return [build(table) for table in self.elements]
