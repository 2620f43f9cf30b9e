"""Grounded Laplacians in dense numpy, by subtraction-free (GTH) elimination: the readable form of the compiled kernels.

Eliminating node k of a network of conductances w joins its neighbours i, j by w_ki w_kj / p_k (star–mesh), where the
pivot p_k is the *sum* of the conductances at k. Nothing is subtracted, so every number of the factor is accurate to a
few ulps whatever the range of the conductances (Grassmann, Taksar & Heyman 1985; Alfa, Xue & Ye 2002), and an ideal
short is a conductance larger than all others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

SHORT = 1e120
"""Conductance of an ideal short in a network scaled so that its largest conductance is 1."""


class DenseFactor(NamedTuple):
    """Factor of a grounded Laplacian of n nodes.

    Attributes
    ----------
    share : (n, n + 1) float array
        Row k: the fraction of node k's current that goes to each later node, and (last column) to ground.
    pivot : (n,) float array
        Conductance of node k to all later nodes and ground; 0 for the last node of a part not tied to ground.
    """

    share: np.ndarray
    pivot: np.ndarray


def factor(n: int, a: np.ndarray, b: np.ndarray, w: np.ndarray) -> DenseFactor:
    """Eliminate the nodes 0…n−1 of the network with edges a–b of conductance w ≥ 0; index n is ground."""
    mesh = np.zeros((n, n + 1))
    swap = a > b
    low, high = np.where(swap, b, a), np.where(swap, a, b)
    np.add.at(mesh, (low, high), w)
    pivot = np.zeros(n)
    for k in range(n):
        row = mesh[k, k + 1 :]
        pivot[k] = row.sum()
        if pivot[k] > 0.0:
            share = row / pivot[k]
            # Only the part above the diagonal is read again.
            mesh[k + 1 :, k + 1 :] += np.multiply.outer(row[:-1], share)
            mesh[k, k + 1 :] = share
    return DenseFactor(mesh, pivot)


def solve(factored: DenseFactor, current: np.ndarray) -> np.ndarray:
    """Potentials (n + 1,) or (n + 1, k), ground's 0 last, for the injected ``current`` (n,) or (n, k).

    The last node of a part not tied to ground is held at 0 V and absorbs the part's net current.
    """
    share, pivot = factored
    n = pivot.size
    flow = np.zeros((n + 1, *current.shape[1:]))
    flow[:n] = current
    for k in range(n):
        flow[k + 1 :] += np.multiply.outer(share[k, k + 1 :], flow[k])
    x = np.zeros_like(flow)
    for k in range(n - 1, -1, -1):
        if pivot[k] > 0.0:
            x[k] = flow[k] / pivot[k] + share[k, k + 1 :] @ x[k + 1 :]
    return x
