"""Deep resistive networks as a scikit-learn classifier."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, field
from numbers import Integral
from typing import Any

import numpy as np

from circuitsim._scikit import ConvergenceWarning
from circuitsim.layered.learner import COMPILED, LayeredLearner, resistive_chain
from circuitsim.layered.network import Architecture, DeepResistiveNetwork
from circuitsim.learning.estimate import Rule
from circuitsim.training import SGD, EarlyStopping, Exponential
from circuitsim.training.checkpoint import Arrays
from circuitsim.training.estimator import Fit, TrainedClassifier, estimator
from circuitsim.training.presets import rates_by_name

GAIN, PIXELS = 100.0, 784
"""The published gain, of MNIST's pixels."""


@estimator
class DRNClassifier(TrainedClassifier):
    """A network of resistors and diodes that learns classes by equilibrium propagation.

    Parameters
    ----------
    hidden : sequence of int
        Units of the hidden layers.
    input_gain : float, optional
        A: volts for an input of one. 100 √(features / 784) if not given: a hidden unit is a mean of its inputs, and
        MNIST is learnt with 100.
    scale_inputs : bool
        Map each feature linearly from its range in ``fit`` to [−1, 1], unless all features lie in [−1, 1] already.
    learning_rate_init : float or sequence of float
        Of all layers, or one a layer, the first first.
    beta : float
        Strength of the nudge, S; must stay below the conductance of every output (about √hidden / 4 at first).
    sweeps : int
        Free and nudged sweeps.
    method : {"ep", "bp", "implicit"} or Rule
        How gradients are found.
    batch_size, max_iter : int
        Samples in a step; most passes over the data.
    tol, n_iter_no_change : float, int
        `fit` ends when the loss, V², has not fallen by ``tol`` in this number of passes, and warns (ConvergenceWarning)
        if ``max_iter`` passes do not get there. With a ``tol`` of 0 there are ``max_iter`` passes, without a warning.
    rate_decay : float
        Factor on the learning rates after each epoch.
    dtype : {"float32", "float64"}
    random_state : int, RandomState or None
        Source of all chance.
    warm_start : bool
        Whether `fit` continues from the last one, with the same features and classes, in place of a fresh start.
    callbacks : sequence of callable
        Called with the history after each pass; one that returns True ends the training
        (`circuitsim.training.EarlyStopping`).

    Attributes
    ----------
    classes_ : ndarray
    n_features_in_ : int
    network_ : DeepResistiveNetwork
        The trained network, in double precision; ``network_.to_circuit(x)`` is its circuit for a row of
        ``inputs(X)``.
    input_centre_, input_scale_ : (features,) ndarray
        An input of the network is (feature − centre) / scale.
    history_ : History
        One row per pass of the last `fit`; ``history_.to_dataframe()`` is a pandas frame.
    n_iter_ : int
        Passes made by the last `fit`, and by `partial_fit` since.
    """

    hidden: Sequence[int] = (100,)
    _: KW_ONLY
    input_gain: float | None = None
    scale_inputs: bool = True
    learning_rate_init: float | Sequence[float] = 0.006
    beta: float = 0.1
    sweeps: int = 4
    method: str | Rule = "ep"
    batch_size: int = 4
    max_iter: int = 200
    tol: float = 1e-4
    n_iter_no_change: int = 10
    rate_decay: float = 0.99
    dtype: str = "float32"
    network_: DeepResistiveNetwork = field(init=False)
    _model = "network_"

    def _train(self, fit: Fit) -> None:
        """See `TrainedEstimator`."""
        whole, parameters = fit.passes is None, None
        seed = fit.seed + (fit.passes or 0)
        units = (fit.x.shape[1], *self._hidden(), fit.outputs)
        if fit.continues:
            known, parameters = self.network_.architecture.units, self.network_.parameters
            if whole and known != units:
                raise ValueError("warm_start continues the last fit: its features or layers were others")
            units = known
        else:
            self._measure(fit.x)
        levels = [EarlyStopping("loss", self.n_iter_no_change, self.tol)] * bool(whole and self.tol)
        start = self._network(units, parameters, self.sweeps, (seed, 3), self.dtype)
        make: Any = LayeredLearner if self.method in COMPILED else resistive_chain
        learner = make(start, self.batch_size, self.method, self.beta)
        rates: Any = self.learning_rate_init
        schedule = Exponential(self.rate_decay)
        self._passes(
            learner,
            fit,
            self._scaled(fit.x),
            seed,
            SGD(rates_by_name(rates, rates) if np.ndim(rates) else float(rates)),
            schedule,
            levels,
        )
        # In double precision, so that the outputs of a sample do not depend on the others of its batch.
        self.network_ = self._network(units, learner.block.parameters, self.sweeps)
        if self.n_iter_ == self.max_iter > 0 and not all(level(self.history_) for level in levels):
            warnings.warn(
                f"the loss still falls after {self.max_iter} pass{'es' if self.max_iter > 1 else ''} "
                f"(by more than {self.tol:g} V² in {self.n_iter_no_change}): "
                "raise max_iter or tol; tol=0 makes all passes without this warning",
                ConvergenceWarning,
                stacklevel=4,
            )

    @property
    def _reading(self) -> dict[str, Any]:  # type: ignore[override]
        return {"dtype": np.dtype(self.dtype)}

    def _hidden(self) -> tuple[int, ...]:
        if np.ndim(self.hidden) != 1 or not all(isinstance(n, Integral) and n >= 2 for n in self.hidden):
            raise ValueError(
                f"hidden must be the units of each hidden layer, each at least 2, such as (100,), not {self.hidden!r}"
            )
        return tuple(map(int, self.hidden))

    def inputs(self, X: Any) -> np.ndarray:
        """(samples, features) inputs of the network for samples."""
        return self._scaled(self._read(X))

    def _scores(self, X: Any) -> np.ndarray:
        inputs = self.inputs(X)
        return self.network_.relax(inputs).output

    def _model_state(self) -> tuple[Arrays, Any]:
        return self.network_.parameters, {
            "units": self.network_.architecture.units,
            "sweeps": self.network_.sweeps.free,
        }

    def _set_model(self, arrays: Arrays, facts: Any) -> None:
        self.network_ = self._network(facts["units"], arrays, facts["sweeps"])

    def _network(
        self, units: Sequence[int], parameters: Any, sweeps: int, rng: Any = 0, dtype: Any = np.float64
    ) -> DeepResistiveNetwork:
        gain = float(self.input_gain or GAIN * math.sqrt(units[0] / PIXELS))
        return DeepResistiveNetwork(Architecture(tuple(units), gain), parameters, rng, sweeps, 0.0, dtype)

    def _measure(self, X: np.ndarray) -> None:
        """Set centre and scale of the inputs."""
        low, high = X.min(axis=0), X.max(axis=0)
        self.input_centre_, self.input_scale_ = np.zeros_like(low), np.ones_like(low)
        outside = max(-low.min(), high.max()) > 1.0
        if outside and self.scale_inputs:
            # Halves, because the range itself may be beyond the largest number.
            self.input_centre_, half = 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low
            self.input_scale_ = np.where(half > 0.0, half, 1.0)
        elif outside:
            warnings.warn(
                f"inputs reach from {low.min():g} to {high.max():g}; the network is made for [-1, 1]: "
                "scale_inputs=True maps them there",
                UserWarning,
                stacklevel=5,
            )

    def _scaled(self, X: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray((X - self.input_centre_) / self.input_scale_, dtype=self.dtype)
