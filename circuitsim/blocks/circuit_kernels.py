"""The loop over samples and branches that differences of energies need."""

from __future__ import annotations

import numpy as np

from circuitsim._jit import jit


@jit(unroll=True)
def branch_products(
    first: np.ndarray, second: np.ndarray, left: np.ndarray, right: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Σ_b weight_b (left_a − left_c)(right_a − right_c) for every branch a → c.

    Parameters
    ----------
    first, second : (r,) int arrays
        Ends of the branches.
    left, right : (batch, n_nodes) float arrays
    weight : (batch,) float array

    Returns
    -------
    (r,) float array
    """
    out = np.zeros(first.size)
    for b in range(weight.size):
        if weight[b] != 0.0:
            for r in range(first.size):
                a, c = first[r], second[r]
                out[r] += weight[b] * ((left[b, a] - left[b, c]) * (right[b, a] - right[b, c]))
    return out
