"""A layered network in the memory of the compiled kernels, and its training steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from circuitsim.errors import ConvergenceError, UsageError
from circuitsim.layered import steps
from circuitsim.layered.architecture import Architecture, Learning
from circuitsim.layered.layout import BLOCK, LANES, PARTS, Layout, blocks_of, lay_out
from circuitsim.layered.reference import bounds
from circuitsim.layered.tiles import pack, unpack
from circuitsim.layered.vectors import aligned


def allocate(layout: Layout, samples: int, dtype: np.dtype) -> steps.Memory:
    """All arrays of a network at rest, zero conductances."""
    pixels, last, n = int(layout.units[0]), layout.units.size - 1, layout.total
    low, high, keep = aligned(n, dtype), aligned(n, dtype), aligned(n, dtype)
    for layer in range(1, last + 1):
        here = slice(layout.at[layer], layout.at[layer] + layout.units[layer])
        low[here], high[here] = bounds(int(layout.units[layer]), layer == last)
        keep[here] = 1
    width = int(layout.width[1])
    slot, phase = np.full((2, pixels), -1, np.int32), np.zeros((2, samples // 2), np.int64)
    lit = aligned(2 * pixels * samples, dtype).reshape(2, -1)
    sizes = {
        "tiles": 2 * pixels * width, "inner": layout.size, "bias": n, "shift": samples * width, "drop": width,
        "free": samples * n, "load": n, "tile_sums": width, "product": samples * width, "inverse": 3 * n,
        "base": 2 * samples * n, "sums": 2 * samples * n, "nudged": 2 * samples * n,
        "partial": PARTS * 2 * samples * n if last > 2 else PARTS * n, "moved": PARTS, "diff": samples * n,
        "mean": samples * n,
    }  # fmt: skip
    levels = (np.arange(256) / 255).astype(dtype)
    return steps.Memory(
        low=low, high=high, keep=keep, levels=levels, slot=slot, pixels=lit, phase=phase,
        **{name: aligned(size, dtype) for name, size in sizes.items()},
    )  # fmt: skip


class Engine:
    """A network that trains itself at full speed by equilibrium propagation.

    Parameters
    ----------
    architecture : Architecture
        Without amplifiers (all gains 1).
    learning : Learning
        Nudges and sweeps.
    batch : int
        Samples in a step.
    dtype : dtype
        float32 or float64, of everything.
    threads : int
        How many threads share the large matrices. The bits of the result do not depend on it.

    Notes
    -----
    The step of the first layer is made while the next mini-batch passes over it. `flush` makes it at once; what follows
    then has the same bits.
    """

    def __init__(
        self, architecture: Architecture, learning: Learning, batch: int, dtype: Any = np.float32, threads: int = 1
    ) -> None:
        if set(architecture.gains) != {1.0}:
            raise UsageError(
                "the compiled engine has no amplifiers between layers; train the network as a block instead"
            )
        self.architecture, self.learning, self.batch = architecture, learning, batch
        self.dtype, self.threads = np.dtype(dtype), threads
        self.samples = -(-batch // 4) * 4
        self.layout = lay_out(architecture.units)
        self.memory = allocate(self.layout, self.samples, self.dtype)
        self.pending = False
        lower, upper = learning.variant != "positive", learning.variant != "negative"
        self.rule = steps.Rule(
            self.samples, learning.sweeps, learning.nudged_sweeps, learning.tolerance, learning.beta, lower, upper,
            architecture.input_gain,
        )  # fmt: skip

    def set(self, parameters: Mapping[str, np.ndarray]) -> None:
        """Take parameters as `Architecture.parameter_shapes` names them."""
        self._forget_pending()
        for layer in range(1, self.architecture.depth + 1):
            weights = parameters[f"weights.{layer}"]
            if layer == 1:
                pack(weights, int(self.layout.width[1]), self.memory.tiles)
            else:
                self._set_inner(layer, weights.T if self._is_transposed(layer) else weights)
            self._biases(layer)[...] = parameters[f"biases.{layer}"]
        self.refresh()

    def get(self) -> dict[str, np.ndarray]:
        """The parameters as plain arrays of their own."""
        self.flush()
        units, found = self.architecture.units, {}
        for layer in range(1, self.architecture.depth + 1):
            if layer == 1:
                found["weights.1"] = unpack(self.memory.tiles, units[0], units[1])
            else:
                inner = self._get_inner(layer)
                found[f"weights.{layer}"] = np.ascontiguousarray(inner.T if self._is_transposed(layer) else inner)
        return found | {f"biases.{layer}": self._biases(layer).copy() for layer in range(1, len(units))}

    def train(
        self,
        images: np.ndarray,
        labels: np.ndarray,
        rows: np.ndarray,
        rates: Sequence[float],
        bias_rates: Sequence[float],
    ) -> np.ndarray:
        """Steps on the mini-batches that ``rows`` fall into, in order.

        Parameters
        ----------
        images : (N, D) ndarray of uint8
            255 stands for an input of one.
        labels : (N,) ndarray of int64
        rows : (n,) ndarray of int64
        rates, bias_rates : sequence of float
            One for each layer.

        Returns
        -------
        (steps, 3) ndarray
            Cost, share of wrong answers and relative residual, at the free state of each mini-batch.

        Raises
        ------
        ConvergenceError
            A unit is left without conductance, or the nudge −β leaves an output without.
        """
        gain = self.architecture.input_gain
        metrics = np.full((-(-len(rows) // self.batch), 3), np.nan)
        done, status, layer, unit = self._threaded(
            steps.train, self.memory, self.layout, self.rule, np.array([gain, *rates], self.dtype),
            np.array([0, *bias_rates], self.dtype), images, labels, rows, self.batch, metrics,
        )  # fmt: skip
        self.pending = True
        if status == steps.STARVED:
            raise ConvergenceError(
                f"unit {unit + 1} of layer {layer} has no conductance left after {done} more steps; try a lower learning rate"
            )
        if status == steps.TIPPED:
            raise ConvergenceError(
                f"output {unit + 1} has less conductance than the nudge of -{self.learning.beta} S takes away; "
                "lower beta, or nudge with the positive variant"
            )
        return metrics

    def flush(self) -> None:
        """Make the step that is kept for the first layer."""
        if self.pending:
            self.memory.slot[1] = -1
            self._threaded(steps.advance, self.memory, self.layout, self.samples)
            self._forget_pending()

    def refresh(self) -> None:
        """Sums over the inner matrices again, after they were changed from outside."""
        self.memory.diff[:] = 0
        zeros = np.zeros(self.architecture.depth + 1, self.dtype)
        steps.update(self.memory, self.layout, zeros, zeros, self.samples, None)

    def _forget_pending(self) -> None:
        self.memory.slot[0] = -1
        self.memory.drop[:] = 0
        self.pending = False

    def _threaded(self, kernel: Any, *arguments: Any) -> Any:
        if self.threads == 1:
            return kernel(*arguments, None)
        from circuitsim._jit import with_threads

        return with_threads(self.threads, kernel, *arguments, True)

    def _is_transposed(self, layer: int) -> bool:
        return bool(self.layout.row_layer[layer] == layer)

    def _set_inner(self, layer: int, rows: np.ndarray) -> None:
        stored = blocks_of(self.layout, self.memory.inner, layer)
        padded = np.zeros((len(stored) * BLOCK, stored.shape[1] * LANES), self.dtype)
        padded[: rows.shape[0], : rows.shape[1]] = rows
        stored[...] = padded.reshape(len(stored), BLOCK, -1, LANES).transpose(0, 2, 1, 3)

    def _get_inner(self, layer: int) -> np.ndarray:
        stored = blocks_of(self.layout, self.memory.inner, layer)
        rows, columns = (self.layout.units[of[layer]] for of in (self.layout.row_layer, self.layout.column_layer))
        return stored.transpose(0, 2, 1, 3).reshape(len(stored) * BLOCK, -1)[:rows, :columns]

    def _biases(self, layer: int) -> np.ndarray:
        start = int(self.layout.at[layer])
        return self.memory.bias[start : start + int(self.layout.units[layer])]
