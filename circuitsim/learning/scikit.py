"""Circuits as scikit-learn estimators: fit, predict, score, in pipelines and searches."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, ClassVar, Self

import numpy as np

from circuitsim._scikit import HasMethods, RegressorMixin, StrOptions, check_is_fitted
from circuitsim.blocks.circuit import CircuitBlock
from circuitsim.circuit import Circuit
from circuitsim.errors import TopologyError
from circuitsim.learning.chain import Chain, Learner
from circuitsim.learning.estimate import CrossEntropy, Loss, Rule, SquaredError
from circuitsim.learning.rules import rule_named
from circuitsim.learning.stages import build, describe
from circuitsim.learning.start import default_beta, learning_rates, output_spread
from circuitsim.netlist.roles import Roles, make_roles
from circuitsim.training import Adam, Cosine
from circuitsim.training.checkpoint import Arrays, copy_into
from circuitsim.training.estimator import (
    Fit,
    SoftmaxClassifier,
    SupervisedEstimator,
    TrainedEstimator,
    estimator,
    whole,
)


def rectifier_network(inputs: int, hidden: int, outputs: int, rng: np.random.Generator) -> tuple[Circuit, Roles]:
    """Inputs and their negatives → rectified hidden nodes → outputs: resistors between neighbours, one diode a unit.

    Every hidden unit is two nodes, a and b, and a diode between them: in the first half of the units from a to b, so
    that b follows a upwards only, in the second half from b to a. Both are free, so a conducting diode merges two
    unknown potentials. Sources of +1 V and −1 V give every unit and output a bias.

    Parameters
    ----------
    inputs : int
        Features; each has two sources, ``Vp{j}`` for its value and ``Vn{j}`` for its negative, V.
    hidden : int
        Hidden units; with none the resistors go from the inputs to the outputs.
    outputs : int
        Nodes ``o0``, ``o1`` …
    rng : numpy.random.Generator
        For the first resistances, whose geometric mean is 1 Ω; they may change from 1 mΩ to 1 kΩ.

    Returns
    -------
    circuit : Circuit
    roles : Roles
        The inputs are ``Vp0 … Vp{n-1} Vn0 … Vn{n-1}``: `doubled` gives their values.

    Raises
    ------
    TopologyError
        No inputs, no outputs, or a negative number of hidden units.
    """
    if inputs < 1 or hidden < 0 or outputs < 1:
        raise TopologyError(f"a network of {inputs} inputs, {hidden} hidden units and {outputs} outputs cannot be made")
    circuit = Circuit("rectifier network")
    rails = [f"{sign}{j}" for sign in "pn" for j in range(inputs)]
    supplies = {"high": 1.0, "low": -1.0}
    for name, volts in {**dict.fromkeys(rails, 0.0), **supplies}.items():
        circuit.voltage_source(f"V{name}", name, "0", volts)

    def resistor(name: str, first: str, second: str) -> None:
        circuit.resistor(name, first, second, float(f"{np.exp(rng.uniform(-1.0, 1.0)):.4g}"))

    for k in range(hidden):
        for j, rail in enumerate([*rails, *supplies]):
            resistor(f"Ra{k}_{j}", rail, f"a{k}")
        ends = (f"a{k}", f"b{k}") if k < (hidden + 1) // 2 else (f"b{k}", f"a{k}")
        circuit.diode(f"D{k}", *ends)
        resistor(f"Rb{k}", f"b{k}", "0")
    layer = [f"b{k}" for k in range(hidden)] or rails
    for m in range(outputs):
        for j, name in enumerate([*layer, *supplies]):
            resistor(f"Ro{m}_{j}", name, f"o{m}")
    names = " ".join(f"V{name}" for name in rails)
    roles = make_roles(circuit, names, " ".join(f"v(o{m})" for m in range(outputs)), "R* min=0.001 max=1000")
    return circuit, roles


def doubled(x: np.ndarray, gain: float) -> np.ndarray:
    """Features (samples, n) as values of the input sources (samples, 2 n): ``[+gain x, −gain x]`` (Scellier 2024)."""
    return gain * np.hstack([x, -x])


@estimator
class CircuitEstimator(TrainedEstimator):
    """What regressor and classifier share: a circuit, scaled features, training."""

    _model = "block_"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TrainedEstimator._parameter_constraints,
        "hidden": whole(0),
        "method": [StrOptions({"ep", "implicit"}), HasMethods("estimate")],
    }

    circuit: Circuit | None = None
    roles: Roles | None = None
    _: KW_ONLY
    hidden: int = 8
    gain: float = 4.0
    method: str | Rule = "ep"
    max_iter: int = 60
    batch_size: int = 16

    def _block(self, outputs: int, rng: np.random.Generator) -> CircuitBlock:
        circuit, roles = self.circuit, self.roles
        if circuit is None and roles is None:
            circuit, roles = rectifier_network(self.n_features_in_, self.hidden, outputs, rng)
        if circuit is None or roles is None:
            raise TopologyError("give both a circuit and its roles, or neither")
        if len(roles.inputs) not in (self.n_features_in_, 2 * self.n_features_in_) or len(roles.outputs) != outputs:
            raise TopologyError(
                f"the circuit has {len(roles.inputs)} inputs and {len(roles.outputs)} outputs; the data need "
                f"{self.n_features_in_} (or {2 * self.n_features_in_}, with negatives) and {outputs}"
            )
        return CircuitBlock(circuit, roles)

    def _voltages(self, X: np.ndarray) -> np.ndarray:
        """Values of the input sources: standardised features times the gain, and negatives where there are inputs."""
        x = (X - self.mean_) / self.scale_
        return self.gain * x if self.block_.n_inputs == self.n_features_in_ else doubled(x, self.gain)

    def _train(self, fit: Fit) -> None:
        """Adam's moments continue from one pass of `partial_fit` to the next."""
        seeds = np.random.default_rng((fit.seed, fit.passes) if fit.passes else fit.seed)
        if not fit.continues:
            self.mean_, self.scale_ = moments(fit.x, fit.weight)
            self.block_ = self._block(fit.outputs, seeds)
        x = self._voltages(fit.x)
        if not fit.continues:
            self._measure(x, fit.weight)
        self.learner_ = self._learner()
        rates = learning_rates(self.block_, x, lr=self.learning_rate_init or None)
        schedule = Cosine(max(1, self.max_iter), 0.02)
        self._passes(self.learner_, fit, x, int(seeds.integers(2**31)), Adam(rates), schedule)

    def _learner(self) -> Chain:
        loss = self._loss()
        beta = default_beta(self.block_, loss) if self.method == "ep" else None
        return Learner(self.block_, rule_named(self.method, beta=beta), loss)

    def _model_state(self) -> tuple[Arrays, Any]:
        return dict(self.block_.parameters), describe(self.block_)

    def _set_model(self, arrays: Arrays, facts: Any) -> None:
        self.block_ = build(facts)
        copy_into(self.block_.parameters, arrays, "parameters")
        self.learner_ = self._learner()

    def _measure(self, x: np.ndarray, weight: np.ndarray | None) -> None:
        """What the loss needs of the first outputs, at these input voltages."""

    def _loss(self) -> Loss:
        return SquaredError()

    def _outputs(self, X: Any) -> np.ndarray:
        """(samples, outputs) output voltages, V."""
        x = self._voltages(self._read(X))
        return self.learner_.output(x)

    @property
    def trained_(self) -> Circuit:
        """The circuit with its learned values."""
        check_is_fitted(self)
        return self.block_.trained()


def moments(values: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations of the columns; 1 for a deviation of zero.

    Raises
    ------
    ValueError
        Values whose squares are larger than the largest double.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.average(values, axis=0, weights=weight)
        spread = np.sqrt(np.average((values - mean) ** 2, axis=0, weights=weight))
    if not (np.isfinite(mean) & np.isfinite(spread)).all():
        raise ValueError(f"values up to {np.abs(values).max():.3g} are too large for a variance; scale them")
    return mean, np.where(spread > 0.0, spread, 1.0)


@estimator
class CircuitRegressor(RegressorMixin, CircuitEstimator, SupervisedEstimator):
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
    method : {"ep", "implicit"} or Rule
        How gradients are found: ``ep`` is centred equilibrium propagation with constant currents.
    learning_rate_init : float, optional
        Of Adam, S; 2 % of the median conductance if not given. It falls along a cosine.
    max_iter, batch_size : int
        Passes over the data; samples in a step.
    random_state : int, RandomState or None
        Source of all chance.
    warm_start : bool
        Whether `fit` continues from the last one, with the same features and classes, in place of a fresh start.
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
        One row per pass of the last `fit`; ``history_.to_dataframe()`` is a pandas frame.
    n_features_in_, n_iter_ : int
    """

    _: KW_ONLY
    swing: float = 0.3
    _reading_y: ClassVar[dict[str, Any]] = {"multi_output": True, "y_numeric": True}

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Continue with one pass over part of the data, at ``learning_rate_init``; Adam's moments are kept.

        Features and targets are scaled by the moments of the first part.

        Parameters
        ----------
        X : (samples, features) array
        y : (samples,) or (samples, targets) array
        sample_weight : (samples,) array, optional
            Factor on each sample's loss.

        Returns
        -------
        CircuitRegressor
            This estimator.

        Raises
        ------
        ValueError
            Another number of features or targets than before.
        """
        return self._fit(X, y, sample_weight, True)

    def _targets(self, fit: Fit, classes: Any) -> tuple[Any, int]:
        """Targets in output volts: less their mean, over their deviation, times `swing`."""
        y = fit.y
        if not fit.continues:
            self.target_mean_, scale = moments(y, fit.weight)
            self.target_scale_ = scale / self.swing
        elif y.shape[1:] != np.shape(self.target_mean_):
            raise ValueError(f"y has targets of shape {y.shape[1:]}, in earlier calls {np.shape(self.target_mean_)}")
        return (y - self.target_mean_) / self.target_scale_, y[0].size

    def predict(self, X: Any) -> np.ndarray:
        """Targets of samples."""
        found = self._outputs(X) * self.target_scale_ + self.target_mean_
        return found if np.ndim(self.target_mean_) else found[:, 0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = False
        tags.target_tags.multi_output = True
        return tags


@estimator
class CircuitClassifier(CircuitEstimator, SoftmaxClassifier):
    """Classification by a circuit: one output a class, the highest voltage is the answer; cross-entropy is its loss.

    The parameters are those of `CircuitRegressor`, except for ``swing``.

    Attributes
    ----------
    classes_ : ndarray
        In the order of the outputs.
    trained_ : Circuit
        The circuit with its learned values.
    block_ : CircuitBlock
    history_ : History
        One row per pass of the last `fit`; ``history_.to_dataframe()`` is a pandas frame.
    n_features_in_, n_iter_ : int
    """

    def _scores(self, X: Any) -> np.ndarray:
        """Output voltages over the temperature of the loss."""
        return self._outputs(X) / self.temperature_

    def _measure(self, x: np.ndarray, weight: np.ndarray | None) -> None:
        self.temperature_ = output_spread(self.block_, x, weight)

    def _loss(self) -> CrossEntropy:
        return CrossEntropy(self.temperature_)
