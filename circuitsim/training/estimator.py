"""Estimators with scikit-learn's conventions: fit, partial_fit, warm_start, weights, save and load, written once.

A subclass names its model and its constructor's arguments, says how targets are read, and trains; all else is here.
Files hold arrays and JSON text, no pickle.
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self, TypeVar, dataclass_transform

import numpy as np
from scipy.special import softmax

from circuitsim._scikit import (
    BaseEstimator,
    ClassifierMixin,
    Interval,
    LabelEncoder,
    StrOptions,
    _check_sample_weight,
    check_classification_targets,
    check_is_fitted,
    check_random_state,
    validate_data,
)
from circuitsim.errors import similar
from circuitsim.training.checkpoint import (
    Arrays,
    FusedTrainable,
    Trainable,
    checked,
    load_checkpoint,
    pack,
    save_checkpoint,
    unpack,
)
from circuitsim.training.history import Callback, History
from circuitsim.training.optimizers import Constant, Optimizer, Schedule
from circuitsim.training.trainer import Trainer, TrainingPlan

ABOVE_ZERO = [Interval(Real, 0, None, closed="neither")]
"""What a parameter is that is a finite number above zero."""

T = TypeVar("T")


def whole(least: int) -> list[Any]:
    """What a parameter is that is a whole number of at least ``least``."""
    return [Interval(Integral, least, None, closed="left")]


class Fit(NamedTuple):
    """What a fit starts from.

    Attributes
    ----------
    x, y : ndarray
        Checked samples and the targets that the model learns.
    weight : (samples,) ndarray or None
        Of mean 1.
    continues : bool
        Whether the present model continues to learn.
    passes : int or None
        Passes made so far, of `partial_fit`, which makes one more; None for all passes of `fit`.
    seed : int
        Drawn from ``random_state``.
    outputs : int
        Outputs that the targets need.
    """

    x: np.ndarray
    y: Any
    weight: np.ndarray | None
    continues: bool
    passes: int | None
    seed: int
    outputs: int = 0


@dataclass_transform(eq_default=False)
def estimator(cls: type[T]) -> type[T]:
    """Make the fields of a class the parameters of its constructor, whose error says which name was meant."""
    made: Any = dataclass(eq=False, repr=False)(cls)
    constructor, known = made.__init__, [one.name for one in fields(made) if one.init]

    @functools.wraps(constructor)
    def checked(self: Any, *arguments: Any, **parameters: Any) -> None:
        for name in parameters:
            if name not in known:
                hint = similar(name, known, f"its parameters are {', '.join(known)}")
                raise TypeError(f"{type(self).__name__} has no parameter '{name}': {hint}")
        constructor(self, *arguments, **parameters)

    made.__init__ = checked
    return made


@estimator
class TrainedEstimator(BaseEstimator):
    """A model that is trained in passes over the data, in one file where it is saved.

    A subclass is decorated by `estimator`. It names the attribute of its model in ``_model``, what its parameters may
    be in ``_parameter_constraints``, and the options of scikit-learn's ``validate_data`` in ``_reading`` (those of
    targets in ``_reading_y``). It reads targets in `_targets`, trains in `_train`, and gives its model by
    `_model_state`, taken back by `_set_model`; fitted arrays and numbers have names that end with ``_``.
    """

    _: KW_ONLY
    learning_rate_init: Any = None
    max_iter: int = 10
    batch_size: int = 10
    random_state: Any = None
    warm_start: bool = False
    callbacks: Sequence[Callback] = ()
    n_iter_: int = field(init=False)
    _model = ""
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "max_iter": whole(0),
        **dict.fromkeys(("batch_size", "n_components", "k", "sweeps", "n_iter_no_change"), whole(1)),
        "learning_rate_init": [None, Real, list, tuple, np.ndarray],
        "callbacks": [list, tuple],
        **dict.fromkeys(("gain", "swing", "beta"), ABOVE_ZERO),
        "input_gain": [None, *ABOVE_ZERO],
        "tol": [Interval(Real, 0, None, closed="left")],
        "dtype": [StrOptions({"float32", "float64"})],
    }
    _reading: ClassVar[Mapping[str, Any]] = {"dtype": np.float64}
    _reading_y: ClassVar[Mapping[str, Any]] = {}
    _memory = None  # type: Arrays | None

    def _fit(self, x: Any, y: Any, weight: Any, part: bool = False, classes: Any = None) -> Self:
        """All passes of `fit`, or with ``part`` one more of `partial_fit`."""
        self._validate_params()
        continues = hasattr(self, self._model) and (part or self.warm_start)
        passes = None if not part else self.n_iter_ if continues else 0
        seed = int(check_random_state(self.random_state).randint(2**31))
        given = Fit(*self._samples(x, y, weight, reset=not continues), continues, passes, seed)
        y, outputs = self._targets(given, classes)
        self._train(given._replace(y=y, outputs=outputs))
        if passes is not None:
            self.n_iter_ = passes + 1
        return self

    def _samples(self, x: Any, y: Any, sample_weight: Any, reset: bool) -> tuple[Any, Any, np.ndarray | None]:
        """Checked samples and their targets without those of weight zero, and weights of mean 1, if any."""
        x, y = validate_data(self, x, y, reset=reset, **self._reading, **self._reading_y)
        if sample_weight is None:
            return x, y, None
        weight = _check_sample_weight(sample_weight, x, dtype=np.float64, ensure_non_negative=True)
        kept = weight > 0.0
        return x[kept], y[kept], weight[kept] / weight[kept].mean()

    def _read(self, X: Any) -> Any:
        """Samples for the fitted model."""
        check_is_fitted(self)
        return validate_data(self, X, reset=False, **self._reading)

    def _targets(self, fit: Fit, classes: Any) -> tuple[Any, int]:
        """What the model learns of the targets, and how many outputs that needs."""
        return None, 0

    def _train(self, fit: Fit) -> None:
        """Train, by `_passes`."""
        raise NotImplementedError

    def _passes(
        self,
        trainable: Trainable | FusedTrainable,
        fit: Fit,
        x: np.ndarray,
        seed: int,
        optimizer: Optimizer,
        schedule: Schedule = Constant(),  # noqa: B008 (a frozen value)
        callbacks: Sequence[Callback] = (),
        shuffle: bool = True,
    ) -> None:
        """Train a model on inputs ``x``: ``max_iter`` passes, or a single one at a constant rate, whose optimiser goes
        on from the last."""
        alone = fit.passes is not None
        plan = TrainingPlan(
            1 if alone else self.max_iter,
            self.batch_size,
            seed,
            optimizer,
            Constant() if alone else schedule,
            shuffle=shuffle,
        )
        trainer = Trainer(
            trainable,
            [array for array in (x, fit.y, fit.weight) if array is not None],
            plan,
            callbacks=[*self.callbacks, *callbacks],
            memory=self._memory or {} if fit.passes else {},
        )
        outcome = trainer.train()
        outcome.require_steps()
        self.history_, self._memory = outcome.history, trainer.memory
        self.n_iter_ = len(self.history_.rows)

    def save(self, path: Path | str) -> None:
        """Write the fitted estimator as one file, read back by `load`.

        Parameters that are no JSON values (callbacks, circuits, rules and generators given as objects) are left out:
        the loaded estimator has their defaults. Its model is complete.

        Raises
        ------
        NotFittedError
            The estimator is not fitted.
        CheckpointError
            An attribute holds Python objects other than texts.
        """
        check_is_fitted(self)
        model, facts = self._model_state()
        fitted = {name: value for name, value in vars(self).items() if name.endswith("_")}
        arrays = {name: value for name, value in fitted.items() if isinstance(value, np.ndarray)}
        # Texts in arrays of Python objects become fixed-width texts.
        arrays = {name: np.array(one.tolist()) if one.dtype.hasobject else one for name, one in arrays.items()}
        save_checkpoint(
            path,
            pack(fitted=arrays, model=model),
            {
                "estimator": type(self).__name__,
                "parameters": _json_values(self.get_params(deep=False)),
                "fitted": _json_values(fitted),
                "model": facts,
                "history": getattr(self, "history_", History()).rows,
            },
        )

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read what `save` wrote: predictions are those of the saved estimator, bit for bit.

        Raises
        ------
        CheckpointError
            The file is missing, damaged, or holds another estimator.
        """
        arrays, facts = load_checkpoint(path, estimator=cls.__name__)
        with checked(path):
            found = cls(**facts["parameters"])
            found.__dict__.update(unpack(arrays, "fitted") | facts["fitted"])
            found.history_ = History()
            found.history_.restart(facts["history"])
            found._set_model(unpack(arrays, "model"), facts["model"])
        return found

    def _model_state(self) -> tuple[Arrays, Any]:
        """Arrays of the model, and the rest of it as JSON values."""
        raise NotImplementedError

    def _set_model(self, arrays: Arrays, facts: Any) -> None:
        """Take back what `_model_state` gave."""
        raise NotImplementedError


class SupervisedEstimator(TrainedEstimator):
    """An estimator that learns targets."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from samples and their targets, from a fresh start (but with ``warm_start``).

        Parameters
        ----------
        X : (samples, features) array
        y : (samples,) array
            Classes, at least two; of a regressor numbers, also (samples, targets).
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
            targets, features or layers.
        """
        return self._fit(X, y, sample_weight)


@estimator
class TrainedClassifier(ClassifierMixin, SupervisedEstimator):
    """A model with one output for each class, which gives the outputs (samples, classes) by ``_outputs(X)``."""

    classes_: np.ndarray = field(init=False)

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
        return self._fit(X, y, sample_weight, True, classes)

    def predict(self, X: Any) -> np.ndarray:
        """The class of the highest output for each sample."""
        scores = self._scores(X)  # an error where nothing is fitted
        return self.classes_[scores[:, : self.classes_.size].argmax(axis=1)]

    def decision_function(self, X: Any) -> np.ndarray:
        """Outputs (samples, classes); of two classes the second less the first."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if self.classes_.size == 2 else scores

    def _scores(self, X: Any) -> np.ndarray:
        """(samples, classes) outputs of the model."""
        raise NotImplementedError

    def _targets(self, fit: Fit, classes: Any) -> tuple[Any, int]:
        """Places of the classes in ``classes_``, which a fresh start sets."""
        check_classification_targets(fit.y)
        part = fit.passes is not None
        given = None if part and classes is None else np.unique(classes if part else fit.y)
        if fit.continues:
            if given is not None and not np.array_equal(given, self.classes_):
                raise ValueError(f"the classes {given} are not those of earlier calls, {self.classes_}")
        elif given is None:
            raise ValueError("classes must be passed on the first call to partial_fit: a part may lack some of them")
        elif given.size < 2:
            raise ValueError("a classifier needs samples of at least two classes; there is one class")
        else:
            self.classes_ = given
        return LabelEncoder().fit(self.classes_).transform(fit.y), self.classes_.size


class SoftmaxClassifier(TrainedClassifier):
    """A classifier whose loss is the cross-entropy of its outputs."""

    def predict_proba(self, X: Any) -> np.ndarray:
        """(samples, classes) softmax of the outputs."""
        return np.asarray(softmax(self._scores(X), axis=1))


def _json_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Those that are JSON values."""
    found = {}
    for name, value in values.items():
        with contextlib.suppress(TypeError, ValueError):
            found[name] = json.loads(json.dumps(value))
    return found
