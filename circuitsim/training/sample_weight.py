"""Weights of samples, as scikit-learn's estimators take them."""

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
