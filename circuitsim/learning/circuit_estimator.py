"""What the scikit-learn estimators of circuits have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from circuitsim._scikit import (
    BaseEstimator,
    check_is_fitted,
    check_random_state,
    validate_data,
)
from circuitsim.blocks.circuit import CircuitBlock
from circuitsim.circuit import Circuit
from circuitsim.errors import TopologyError
from circuitsim.learning.equilibrium import EquilibriumPropagation
from circuitsim.learning.estimate import Estimator
from circuitsim.learning.learner import Learner
from circuitsim.learning.losses import Loss, SquaredError
from circuitsim.learning.networks import doubled, rectifier_network
from circuitsim.learning.start import default_beta, default_device_rate, default_learning_rate
from circuitsim.netlist import dumps, loads
from circuitsim.netlist.roles import Roles, read_roles
from circuitsim.training import Adam, Callback, Constant, Cosine, Schedule, Trainer, TrainingPlan
from circuitsim.training.checkpoint import copy_into
from circuitsim.training.saved_estimator import SavedEstimator
from circuitsim.training.trainable import Arrays


class CircuitEstimator(SavedEstimator, BaseEstimator):
    """What regressor and classifier share: a circuit, scaled features, training."""

    n_iter_: int
    _memory: Arrays | None = None
    _fitted = ("mean_", "scale_", "target_mean_", "target_scale_", "temperature_", "_single")

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
    ) -> None:
        self.circuit = circuit
        self.roles = roles
        self.hidden = hidden
        self.gain = gain
        self.estimator = estimator
        self.learning_rate_init = learning_rate_init
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.random_state = random_state
        self.warm_start = warm_start
        self.callbacks = callbacks

    def _block(self, outputs: int, rng: np.random.Generator) -> CircuitBlock:
        if (self.circuit is None) != (self.roles is None):
            raise TopologyError("give both a circuit and its roles, or neither")
        circuit, roles = self.circuit, self.roles
        if circuit is None or roles is None:
            circuit, roles = rectifier_network(self.n_features_in_, self.hidden, outputs, rng)
        if len(roles.inputs) not in (self.n_features_in_, 2 * self.n_features_in_) or len(roles.outputs) != outputs:
            raise TopologyError(
                f"the circuit has {len(roles.inputs)} inputs and {len(roles.outputs)} outputs; the data need "
                f"{self.n_features_in_} (or {2 * self.n_features_in_}, with negatives) and {outputs}"
            )
        return CircuitBlock(circuit, roles)

    def _voltages(self, X: np.ndarray) -> np.ndarray:
        """Values of the input sources: standardised features times the gain, and negatives where there are inputs."""
        x = (X - self.mean_) / self.scale_
        both = self.block_.n_inputs == 2 * self.n_features_in_
        return doubled(x, self.gain) if both else self.gain * x

    def _train(self, X: np.ndarray, y: np.ndarray, outputs: int, weight: np.ndarray | None) -> None:
        """Passes of `fit`."""
        schedule = Cosine(max(1, self.max_iter), 0.02)
        self._pass(X, y, outputs, weight, self.max_iter, schedule, self._continues(outputs), None, 0)

    def _train_part(self, X: np.ndarray, y: np.ndarray, outputs: int, weight: np.ndarray | None, first: bool) -> None:
        """The pass of `partial_fit`."""
        made = 0 if first else self.n_iter_
        self._pass(X, y, outputs, weight, 1, Constant(), not first, None if first else self._memory, made)
        self.n_iter_ = made + 1

    def _pass(
        self,
        X: np.ndarray,
        y: np.ndarray,
        outputs: int,
        weight: np.ndarray | None,
        passes: int,
        schedule: Schedule,
        continues: bool,
        memory: Arrays | None,
        made: int,
    ) -> None:
        """Some passes, after those already made."""
        seeds = np.random.default_rng((check_random_state(self.random_state).randint(2**31), *[made] * (made > 0)))
        if not continues:
            self.mean_, spread = moments(X, weight)
            self.scale_ = np.where(spread > 0.0, spread, 1.0)
            self.block_ = self._block(outputs, seeds)
        x = self._voltages(X)
        loss = self._loss(x, weight, continues)
        self.learner_ = self._learner(loss)
        rate = self.learning_rate_init or default_learning_rate(self.block_, x, "adam")
        rates = dict.fromkeys(self.block_.parameters, rate)
        if "law" in rates:
            rates["law"] = default_device_rate(x, "adam")
        plan = TrainingPlan(passes, self.batch_size, int(seeds.integers(2**31)), Adam(rates), schedule)
        data = (x, y) if weight is None else (x, y, weight)
        trainer = Trainer(self.learner_, data, plan, callbacks=self.callbacks, memory=memory)
        outcome = trainer.train()
        outcome.require_steps()
        self.history_, self._memory = outcome.history, trainer.memory
        self.n_iter_ = len(self.history_.rows)

    def _learner(self, loss: Loss) -> Learner:
        estimator = self.estimator or EquilibriumPropagation(default_beta(self.block_, loss))
        return Learner(self.block_, estimator, loss)

    def _model_state(self) -> tuple[dict[str, np.ndarray], Any]:
        block = self.block_
        return dict(block.parameters), {"deck": dumps(block.trained(), block.roles), "tolerance": block.tolerance}

    def _set_model(self, arrays: dict[str, np.ndarray], facts: Any) -> None:
        deck = loads(facts["deck"])
        self.block_ = CircuitBlock(deck.where_change(None)[0], read_roles(deck)[0], facts["tolerance"])
        copy_into(self.block_.parameters, arrays, "parameters")
        self.learner_ = self._learner(self._fitted_loss())

    def _continues(self, outputs: int) -> bool:
        """Whether a fit goes on from the last one."""
        if not (self.warm_start and hasattr(self, "block_")):
            return False
        if self.block_.n_inputs not in (self.n_features_in_, 2 * self.n_features_in_):
            raise ValueError("warm_start goes on with the features of the last fit: these are others")
        if self.block_.n_outputs != outputs:
            raise ValueError("warm_start goes on with the outputs of the last fit: these data need others")
        return True

    def _loss(self, x: np.ndarray, weight: np.ndarray | None, continues: bool) -> Loss:
        """The loss for a fit on these input voltages."""
        return self._fitted_loss()

    def _fitted_loss(self) -> Loss:
        """The loss of the last fit; the squared error."""
        return SquaredError()

    def _outputs(self, X: Any) -> np.ndarray:
        """(samples, outputs) output voltages, V."""
        check_is_fitted(self)
        return self.learner_.predict(self._voltages(validate_data(self, X, reset=False, dtype=np.float64)))

    @property
    def trained_(self) -> Circuit:
        """The circuit with its learned values."""
        check_is_fitted(self)
        return self.block_.trained()


def moments(values: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations of the columns.

    Raises
    ------
    ValueError
        Values whose squares are larger than the largest double.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if weight is None:
            mean, spread = values.mean(axis=0), values.std(axis=0)
        else:
            mean = np.average(values, axis=0, weights=weight)
            spread = np.sqrt(np.average((values - mean) ** 2, axis=0, weights=weight))
    if not (np.isfinite(mean) & np.isfinite(spread)).all():
        raise ValueError(f"values up to {np.abs(values).max():.3g} are too large for a variance; scale them")
    return mean, spread
