"""Weights and classes of samples, as scikit-learn's estimators take them."""

from __future__ import annotations

from typing import Any

import numpy as np


def weighted_samples(sample_weight: Any, *arrays: np.ndarray) -> tuple[np.ndarray | None, tuple[np.ndarray, ...]]:
    """Weights of mean 1, and the arrays without the samples of weight zero; None for no weights.

    Raises
    ------
    ValueError
        Another number of weights than samples, a negative weight, one that is not finite, or none above zero.
    """
    if sample_weight is None:
        return None, arrays
    weight = np.asarray(sample_weight, dtype=np.float64)
    samples = len(arrays[0])
    if weight.ndim == 0:
        weight = np.full(samples, float(weight))
    if weight.shape != (samples,):
        raise ValueError(f"sample_weight has shape {weight.shape}, not ({samples},): one weight a sample")
    if not (np.isfinite(weight).all() and (weight >= 0.0).all() and (weight > 0.0).any()):
        raise ValueError("the weights of samples must be finite and not negative, and one must lie above zero")
    kept = weight > 0.0
    return weight[kept] / weight[kept].mean(), tuple(array[kept] for array in arrays)


ONE_CLASS = "a classifier needs samples of at least two classes; there is one class"


def class_codes(estimator: Any, y: np.ndarray, classes: Any) -> np.ndarray:
    """Places of classes in ``estimator.classes_``, which the first call sets.

    Parameters
    ----------
    estimator : classifier
    y : (samples,) array
        Classes of a part of the data.
    classes : array or None
        All classes; needed in the first call.

    Returns
    -------
    (samples,) int64 ndarray

    Raises
    ------
    ValueError
        No classes or a single one in the first call, other ones later, or a class in ``y`` that is not among them.
    """
    given = None if classes is None else np.unique(classes)
    if not hasattr(estimator, "classes_"):
        if given is None:
            raise ValueError("classes must be passed on the first call to partial_fit: a part may lack some of them")
        if given.size < 2:
            raise ValueError(ONE_CLASS)
        estimator.classes_ = given
    elif given is not None and not np.array_equal(given, estimator.classes_):
        raise ValueError(f"the classes {given} are not those of earlier calls, {estimator.classes_}")
    known = estimator.classes_
    unknown = np.setdiff1d(y, known)
    if unknown.size:
        raise ValueError(f"y has classes {unknown} that are not among {known}")
    return np.searchsorted(known, y).astype(np.int64)
