"""Loops over the resistors of a linear circuit, for several responses at once: interpreted or compiled.

Arrays of rows: one row per node, one column per response. `Branches` tells which rows a resistor joins.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Branches(NamedTuple):
    """The resistors of a circuit.

    Attributes
    ----------
    a, b : (r,) int arrays
        Super-nodes of their ends (`circuitsim.program.structure`), n for fixed potentials.
    at_a, at_b : (r,) int arrays
        Rows of their ends among the grouped nodes (in super-nodes of several); the last row, of zeros, for all others.
    g : (r,) float array
        Conductances, S.
    """

    a: np.ndarray
    b: np.ndarray
    at_a: np.ndarray
    at_b: np.ndarray
    g: np.ndarray

    def subset(self, which: np.ndarray) -> Branches:
        """A selection."""
        return Branches(*(column[which] for column in self))


def net_currents(branches, x, offset, net, size, at_net, at_size):
    """Accumulate the currents that resistors draw from each super-node (``net``) and each grouped node (``at_net``), A.

    Parameters
    ----------
    branches : Branches
    x : (n + 1, c) float array
        Potentials of the super-nodes, V.
    offset : (grouped + 1, c) float array
        Potentials of nodes relative to their super-nodes, V; the last row is zero.
    net, size : (n + 1, c) float arrays
        Updated: net currents and the sums of their magnitudes, A.
    at_net, at_size : (grouped + 1, c) float arrays
        The same by node; the last row is meaningless.
    """
    last = offset.shape[0] - 1
    for e in range(branches.a.size):
        a, b, p, q, g = branches.a[e], branches.b[e], branches.at_a[e], branches.at_b[e], branches.g[e]
        for c in range(x.shape[1]):
            flow = g * ((x[a, c] - x[b, c]) + (offset[p, c] - offset[q, c]))
            net[a, c] += flow
            net[b, c] -= flow
            size[a, c] += abs(flow)
            size[b, c] += abs(flow)
        if p == last and q == last:
            continue
        for c in range(x.shape[1]):
            flow = g * ((x[a, c] - x[b, c]) + (offset[p, c] - offset[q, c]))
            at_net[p, c] += flow
            at_net[q, c] -= flow
            at_size[p, c] += abs(flow)
            at_size[q, c] += abs(flow)


def weighted_residuals(injected, net, size, rounding, weight, x, bound, largest):
    """Weighted sums of the residual currents with their rounding, A, and the largest magnitudes.

    Parameters
    ----------
    injected, net, size : (n + 1, c) float arrays
        Currents into the super-nodes, currents drawn by resistors, and sums of magnitudes, A.
    rounding : (n + 1,) float array
        Fraction of the magnitudes.
    weight : (n, k) float array
    x : (n + 1, c) float array
        Potentials, V.
    bound : (k, c) float array
        Overwritten.
    largest : (2, c) float array
        Overwritten: of ``size``, A, and of ``x``, V.
    """
    bound[:] = 0.0
    largest[:] = 0.0
    left = np.empty(size.shape[1])
    for k in range(size.shape[0]):
        for c in range(left.size):
            largest[0, c] = max(largest[0, c], size[k, c])
            largest[1, c] = max(largest[1, c], abs(x[k, c]))
        if k < weight.shape[0]:
            for c in range(left.size):
                given = injected[k, c]
                left[c] = abs(given - net[k, c]) + rounding[k] * (size[k, c] + abs(given))
            for j in range(weight.shape[1]):
                share = weight[k, j]
                for c in range(left.size):
                    bound[j, c] += share * left[c]


def drop_products(branches, x, offset, y, y_offset, found):
    """Add to ``found`` (r,) for each resistor the sum over all columns of the products of its drops, V²."""
    for e in range(branches.a.size):
        a, b, p, q = branches.a[e], branches.b[e], branches.at_a[e], branches.at_b[e]
        total = 0.0
        for c in range(x.shape[1]):
            drop = (x[a, c] - x[b, c]) + (offset[p, c] - offset[q, c])
            total += drop * ((y[a, c] - y[b, c]) + (y_offset[p, c] - y_offset[q, c]))
        found[e] += total
