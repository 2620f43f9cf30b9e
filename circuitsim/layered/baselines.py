"""Gradients of a layered network that do not nudge it: truncated backpropagation, and the implicit function theorem.

Both return what the first layer needs as a sum of products over samples, so that no dense gradient of the largest
matrix is made. The first layer's inputs are currents here, and its total conductances are in the energy's slopes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from circuitsim.blocks.alternating import LayeredEnergy, Relaxed
from circuitsim.blocks.resistive import crossbar_gradients

States = Sequence[np.ndarray]


class Gradient(NamedTuple):
    """Derivatives of a loss, summed over the batch with each sample's weight.

    Attributes
    ----------
    shift : (batch, n_1) ndarray
        Minus the derivative by each first-layer unit's input current.
    drop : (n_1,) ndarray
        The derivative by the first matrix is ``drop ∓ A xᵀ shift`` (rows of +x above, of −x below).
    inner : list of ndarray
        By the matrices of layers 2..L.
    biases : list of ndarray
        By the biases of layers 1..L.
    """

    shift: np.ndarray
    drop: np.ndarray
    inner: list[np.ndarray]
    biases: list[np.ndarray]


def implicit(energy: LayeredEnergy, relaxed: Relaxed, slope: np.ndarray) -> Gradient:
    """Exact derivatives at a converged free state; ``slope`` is ∂loss/∂output, each sample's weight in it."""
    moves = [-pull for pull in energy.adjoint(relaxed, slope)]
    drop, inner = crossbar_gradients(relaxed.layers, moves)
    return Gradient(moves[0], drop, inner, [-d.sum(axis=0) for d in moves])


def backpropagation(
    energy: LayeredEnergy,
    matrices: Sequence[np.ndarray],
    constants: States,
    free: Relaxed,
    sweeps: int,
    slope: Callable[[np.ndarray], np.ndarray],
) -> Gradient:
    """Backpropagation through ``sweeps`` sweeps that start at a state, which counts as constant.

    Unlike `LayeredEnergy.truncated`, every sweep is differentiated at the state that it made: the published baseline
    of deep resistive networks, whose free phase has not converged.

    Parameters
    ----------
    matrices : sequence of ndarray
        Of layers 2..L, S.
    slope : callable
        ∂loss/∂output at the outputs after these sweeps, each sample's weight in it.
    """
    tape = [free]
    energy.relax(constants, free, sweeps, record=tape)
    last = len(constants) - 1
    sums = [layer.slope for layer in energy.layers]
    falls = [np.zeros_like(total) for total in sums]
    by_inner, by_bias = [np.zeros_like(g) for g in matrices], [np.zeros_like(total) for total in sums]
    back = [np.zeros_like(state) for state in free.layers]
    back[last] = slope(tape[-1].layers[last])
    shift = np.zeros_like(back[0])
    for new, old in pairwise(reversed(tape)):
        # The first, third … layers were updated first: from the state before the sweep.
        gains = energy.gains(new.layers)
        for parity, seen in ((1, new.layers), (0, old.layers)):
            for layer in range(parity, last + 1, 2):
                pull = back[layer] * gains[layer]
                back[layer] = np.zeros_like(pull)
                by_bias[layer] += pull.sum(axis=0)
                falls[layer] += (pull * new.layers[layer]).sum(axis=0)
                if layer == 0:
                    shift -= pull
                else:
                    back[layer - 1] += pull @ matrices[layer - 1].T
                    by_inner[layer - 1] += seen[layer - 1].T @ pull
                if layer < last:
                    back[layer + 1] += pull @ matrices[layer]
                    by_inner[layer] += pull.T @ seen[layer + 1]
    for g, (below, above) in zip(by_inner, pairwise(falls)):
        g -= below[:, None] + above
    return Gradient(shift, -falls[0], by_inner, by_bias)


def output_conductance(
    matrices: Sequence[np.ndarray], sums: Sequence[np.ndarray], free: Sequence[np.ndarray]
) -> np.ndarray:
    """Matrix of conductances between the outputs, S, with inputs at 0 V and only ``free`` hidden units able to move.

    Parameters
    ----------
    matrices : sequence of ndarray
        Of layers 2..L, S.
    sums : sequence of (units,) ndarray
        Total conductance at each unit, S.
    free : sequence of (units,) bool ndarray
        Hidden units that are not held at 0 V by their diode. The more are free, the smaller is the result.
    """
    here, known = np.flatnonzero(free[0]), None
    for layer, g in enumerate(matrices, 1):
        there = np.flatnonzero(free[layer]) if layer < len(matrices) else np.arange(g.shape[1])
        between = g[np.ix_(here, there)].astype(float)
        # Nothing joins units of the first layer: its matrix is diagonal.
        solved = between / sums[0][here, None] if known is None else np.linalg.solve(known, between)
        known = np.diag(sums[layer][there].astype(float)) - between.T @ solved
        here = there
    assert known is not None  # there is at least one hidden layer
    return known
