"""Gradients of a layered network that do not nudge it: truncated backpropagation, and the implicit function theorem.

Both work on the reference's arrays (`numpy_layers`), for any batch, and return what the first layer needs as a sum of
products over samples, so that no dense gradient of the largest matrix is made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from circuitsim.errors import ConvergenceError
from circuitsim.layered import numpy_layers
from circuitsim.layered.numpy_layers import Contrast, Drive, Matrices, States


class Gradient(NamedTuple):
    """Derivatives of a loss, summed over the batch with each sample's weight.

    Attributes
    ----------
    shift : (batch, n_1) ndarray
        Minus the derivative by each first-layer unit's numerator.
    drop : (n_1,) ndarray
        The derivative by the first matrix is ``drop ∓ A xᵀ shift`` (rows of +x above, of −x below).
    inner : list of ndarray
        By the matrices of layers 2..L.
    biases : list of ndarray
        By the biases of layers 1..L.
    """

    shift: np.ndarray
    drop: np.ndarray
    inner: Matrices
    biases: list[np.ndarray]

    def first(self, x: np.ndarray, gain: float) -> np.ndarray:
        """The dense derivative by the doubled first matrix, (2 D, n_1)."""
        input_part = x.T @ self.shift * self.shift.dtype.type(gain)
        return np.concatenate([self.drop - input_part, self.drop + input_part])


def contrastive(pair: Contrast) -> Gradient:
    """Equilibrium propagation's estimate from two nudged states, or a derivative from an adjoint and a state."""
    return Gradient(
        pair.diff[0],
        (pair.diff[0] * pair.mean[0]).sum(axis=0),
        [numpy_layers.inner_gradient(pair, layer) for layer in range(1, len(pair.diff))],
        [-d.sum(axis=0) for d in pair.diff],
    )


def is_free(u: States) -> States:
    """1 where a unit is off its bound (outputs always), 0 where its diode conducts."""
    return [(x != 0).astype(x.dtype) for x in u[:-1]] + [np.ones_like(u[-1])]


def backpropagation(
    inner: Matrices,
    biases: Matrices,
    given: Drive,
    u: States,
    sweeps: int,
    slope: Callable[[np.ndarray], np.ndarray],
) -> Gradient:
    """Backpropagation through ``sweeps`` sweeps that start at the free state ``u``, which counts as constant.

    Parameters
    ----------
    slope : callable
        ∂loss/∂output at the outputs after these sweeps, each sample's weight in it.
    """
    sums = numpy_layers.conductances(inner, given.load)
    tape, outputs = _record(inner, biases, given, sums, u, sweeps)
    return _unroll(inner, sums, tape, slope(outputs))


class _Update(NamedTuple):
    """One layer's update: its number, its new state, and its neighbours' states at that time."""

    layer: int
    new: np.ndarray
    below: np.ndarray | None
    above: np.ndarray | None


def _record(
    inner: Matrices, biases: Matrices, given: Drive, sums: list[np.ndarray], u: States, sweeps: int
) -> tuple[list[_Update], np.ndarray]:
    tape: list[_Update] = []
    u, last = list(u), len(u) - 1
    for _ in range(sweeps):
        for first in (0, 1):
            for layer in range(first, len(u), 2):
                p = numpy_layers.minimum(layer, inner, biases, given, sums, u, None)
                u[layer] = numpy_layers.clamp(p, layer == last)
                below, above = u[layer - 1] if layer else None, u[layer + 1] if layer < last else None
                tape.append(_Update(layer, u[layer], below, above))
    return tape, u[last]


def _unroll(inner: Matrices, sums: list[np.ndarray], tape: list[_Update], loss_slope: np.ndarray) -> Gradient:
    batch, dtype, last = len(loss_slope), loss_slope.dtype, len(sums) - 1
    slope = [np.zeros((batch, len(s)), dtype) for s in sums]
    slope[last] = loss_slope
    shift, drop = np.zeros((batch, len(sums[0])), dtype), np.zeros(len(sums[0]), dtype)
    by_inner, by_bias = [np.zeros_like(g) for g in inner], [np.zeros(len(s), dtype) for s in sums]
    for update in reversed(tape):
        layer, new = update.layer, update.new
        free = 1 if layer == last else new != 0
        # By the numerator; by the conductance it is −a times the new state.
        a = slope[layer] * free / sums[layer]
        slope[layer] = np.zeros_like(a)
        fall = (a * new).sum(axis=0)
        by_bias[layer] += a.sum(axis=0)
        if update.below is None:
            shift -= a
            drop -= fall
        else:
            slope[layer - 1] = slope[layer - 1] + a @ inner[layer - 1].T
            by_inner[layer - 1] += update.below.T @ a - fall
        if update.above is not None:
            slope[layer + 1] = slope[layer + 1] + a @ inner[layer]
            by_inner[layer] += a.T @ update.above - fall[:, None]
    return Gradient(shift, drop, by_inner, by_bias)


def adjoint(
    inner: Matrices, load: np.ndarray, u: States, loss_slope: np.ndarray, tolerance: float = 0.0, limit: int = 1000
) -> States:
    """λ with H λ = −∂loss/∂u on the units that are off their bounds, by conjugate gradients, all samples together.

    Raises
    ------
    ConvergenceError
        The tolerance (relative; by default a hundred round-offs) is not met within the limit.
    """
    sums, free = numpy_layers.conductances(inner, load), is_free(u)
    tolerance = tolerance or 100 * float(np.finfo(loss_slope.dtype).eps)
    x = [np.zeros_like(s) for s in free]
    r = [np.zeros_like(s) for s in free[:-1]] + [-loss_slope]
    z = [a / s for a, s in zip(r, sums)]
    p, rz = z, _dot(r, z)
    goal = tolerance**2 * rz
    for _ in range(limit):
        if (rz <= goal).all():
            return x
        q = _hessian(inner, sums, free, p)
        # Converged samples: no division by zero.
        curvature = _dot(p, q)
        step = np.where(rz > goal, rz / np.where(curvature > 0, curvature, 1), 0)[:, None].astype(loss_slope.dtype)
        x = [a + step * b for a, b in zip(x, p)]
        r = [a - step * b for a, b in zip(r, q)]
        z = [a / s for a, s in zip(r, sums)]
        before, rz = rz, _dot(r, z)
        turn = (rz / np.where(before > 0, before, 1))[:, None].astype(loss_slope.dtype)
        p = [a + turn * b for a, b in zip(z, p)]
    raise ConvergenceError(f"the adjoint did not converge to {tolerance:.1e} within {limit} steps")


def _hessian(inner: Matrices, sums: list[np.ndarray], free: States, p: States) -> States:
    out = []
    for layer, here in enumerate(p):
        pull = p[layer - 1] @ inner[layer - 1] if layer else 0
        pull = pull + (p[layer + 1] @ inner[layer].T if layer < len(inner) else 0)
        out.append((sums[layer] * here - pull) * free[layer])
    return out


def _dot(a: States, b: States) -> np.ndarray:
    return np.sum([(x * y).sum(axis=1, dtype=np.float64) for x, y in zip(a, b)], axis=0)


def implicit(inner: Matrices, load: np.ndarray, u: States, loss_slope: np.ndarray) -> Gradient:
    """Exact derivatives at a converged free state ``u``: those of `contrastive` with the adjoint as difference."""
    return contrastive(Contrast(adjoint(inner, load, u, loss_slope), list(u)))
