"""`save` and `load` of estimators with scikit-learn's conventions: one npz of plain arrays and JSON text, no pickle."""

from __future__ import annotations

import difflib
import functools
import inspect
import json
import math
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Self

import numpy as np

from circuitsim.errors import UsageError
from circuitsim.training.checkpoint import CheckpointError, load_checkpoint, pack, save_checkpoint, unpack
from circuitsim.training.history import History

Arrays = dict[str, np.ndarray]

OTHER_NAMES = {
    "learning_rate": "learning_rate_init",
    "lr": "learning_rate_init",
    "n_iter": "max_iter",
    "epochs": "max_iter",
    "n_epochs": "max_iter",
    "batch": "batch_size",
    "seed": "random_state",
    "hidden_layer_sizes": "hidden",
    "hidden": "n_components",
}
"""Names of other classes and libraries, and scikit-learn's or this package's."""


WHOLE = {"max_iter": 0, "batch_size": 1, "n_components": 1, "n_iter_no_change": 1}
"""Parameters that are whole numbers, and their least values."""

POSITIVE = ("gain", "swing")
"""Parameters that are finite and above zero."""

TOLERANCE = "tol"
"""A parameter that is finite and not negative."""


class SavedEstimator:
    """Adds `save` and `load` to an estimator whose fitted attributes are arrays, numbers and a model.

    A subclass names its fitted arrays and numbers in ``_fitted`` (those that are missing are left out) and gives its
    model by `_model_state`, taken back by `_set_model`.
    """

    _fitted: tuple[str, ...] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        """Give the constructor hints for parameters under other names."""
        super().__init_subclass__(**options)
        if "__init__" in cls.__dict__:
            cls.__init__ = _hinting(cls.__dict__["__init__"])  # type: ignore[method-assign]

    def save(self, path: Path | str) -> None:
        """Write the fitted estimator as one file, read back by `load`.

        Parameters that are no JSON values (callbacks, circuits, rules and generators given as objects) are left out:
        the loaded estimator has their defaults. Its model is complete.

        Raises
        ------
        UsageError
            The estimator is not fitted, or an attribute holds Python objects.
        """
        if not hasattr(self, "n_features_in_"):
            raise UsageError(f"{type(self).__name__} is not fitted: call fit before save")
        model, facts = self._model_state()
        arrays, numbers = dict[str, np.ndarray](), dict[str, Any]()
        for name in ("n_features_in_", "feature_names_in_", "n_iter_", "classes_", *self._fitted):
            value = getattr(self, name, None)
            if isinstance(value, np.ndarray):
                arrays[name] = _plain(name, value)
            elif value is not None:
                numbers[name] = value.item() if isinstance(value, np.generic) else value
        history = getattr(self, "history_", None)
        save_checkpoint(
            Path(path),
            pack(fitted=arrays, model=model),
            {
                "estimator": type(self).__name__,
                "parameters": self._plain_parameters(),
                "fitted": numbers,
                "model": facts,
                "history": None if history is None else history.rows,
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
        arrays, facts = load_checkpoint(Path(path))
        if facts.get("estimator") != cls.__name__:
            raise CheckpointError(f"{path} holds {facts.get('estimator') or 'no estimator'}, not {cls.__name__}")
        found = cls(**facts["parameters"])
        for name, value in {**unpack(arrays, "fitted"), **facts["fitted"]}.items():
            setattr(found, name, value)
        if facts["history"] is not None:
            history = History()
            history.restart(facts["history"])
            found.__dict__["history_"] = history
        found._set_model(unpack(arrays, "model"), facts["model"])
        return found

    def _check_parameters(self) -> None:
        """Refuse parameters with which no fit can begin, by their own names.

        Raises
        ------
        ValueError
        """
        parameters: Mapping[str, Any] = self.get_params(deep=False)  # type: ignore[attr-defined]
        for name, least in WHOLE.items():
            value = parameters.get(name, least)
            if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
                raise ValueError(f"{name} must be a whole number of at least {least}, not {value!r}")
        for name in POSITIVE:
            value = parameters.get(name, 1.0)
            if not isinstance(value, Real) or not 0.0 < float(value) < math.inf:
                raise ValueError(f"{name} must be a finite number above zero, not {value!r}")
        tolerance = parameters.get(TOLERANCE, 0.0)
        if not isinstance(tolerance, Real) or not 0.0 <= float(tolerance) < math.inf:
            raise ValueError(f"{TOLERANCE} must be a finite number of at least zero, not {tolerance!r}")
        callbacks = parameters.get("callbacks", ())
        if not isinstance(callbacks, (list, tuple)) or not all(callable(one) for one in callbacks):
            raise ValueError(f"callbacks is a list of functions of the history, such as [callback], not {callbacks!r}")

    def _plain_parameters(self) -> dict[str, Any]:
        """The constructor's arguments that are JSON values, callbacks left out."""
        parameters: Mapping[str, Any] = self.get_params(deep=False)  # type: ignore[attr-defined]
        return {name: value for name, value in parameters.items() if name != "callbacks" and _is_json(value)}

    def _model_state(self) -> tuple[Arrays, Any]:
        """Arrays of the model, and the rest of it as JSON values."""
        raise TypeError(f"{type(self).__name__} does not say what its model is")

    def _set_model(self, arrays: Arrays, facts: Any) -> None:
        """Take back what `_model_state` gave."""
        raise TypeError(f"{type(self).__name__} does not say what its model is")


def _hinting(constructor: Callable[..., None]) -> Callable[..., None]:
    """The constructor, with an error that says which name was meant."""
    known = list(inspect.signature(constructor).parameters)[1:]

    @functools.wraps(constructor)
    def checked(self: Any, *arguments: Any, **parameters: Any) -> None:
        for name in parameters:
            if name not in known:
                other = OTHER_NAMES.get(name)
                near = [other] if other in known else difflib.get_close_matches(name, known, 1)
                hint = f"did you mean '{near[0]}'?" if near else f"its parameters are {', '.join(known)}"
                raise TypeError(f"{type(self).__name__} has no parameter '{name}': {hint}")
        constructor(self, *arguments, **parameters)

    return checked


def _plain(name: str, array: np.ndarray) -> np.ndarray:
    """An array without Python objects; texts become fixed-width texts."""
    if not array.dtype.hasobject:
        return array
    if all(isinstance(value, str) for value in array.ravel()):
        return array.astype(str)
    raise UsageError(f"{name} holds Python objects; only numbers and texts can be saved")


def _is_json(value: Any) -> bool:
    try:
        return bool(json.dumps(value))
    except (TypeError, ValueError):
        return False
