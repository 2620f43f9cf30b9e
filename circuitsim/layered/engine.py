"""A layered network in the memory of the compiled kernels, and its training steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from circuitsim._vectors import aligned
from circuitsim.blocks.propagation import METHODS, check_named, strengths
from circuitsim.blocks.resistive import Crossbar, conductance_rows, diodes
from circuitsim.errors import ConvergenceError, UsageError
from circuitsim.layered import steps
from circuitsim.layered.architecture import Architecture, ResistiveLearning
from circuitsim.layered.layout import BLOCK, LANES, PARTS, Layout, blocks_of, lay_out
from circuitsim.layered.tiles import pack, unpack

STEPS = 256
"""Steps whose images are made numbers of the network's type at a time."""


def as_inputs(images: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Bytes as fractions of 255; numbers as they are."""
    return images / dtype.type(255) if images.dtype == np.uint8 else images.astype(dtype)


class Rule(NamedTuple):
    """Numerical parameters of a step.

    Attributes
    ----------
    samples : int
        Samples in a mini-batch, rounded up to a multiple of 4.
    sweeps, nudged_sweeps : int
        Free and nudged sweeps; their largest number where a tolerance is given.
    tolerance : float
        Sweeps end when no unit moves by more than this, relatively; 0 makes exactly ``sweeps`` of them.
    beta : float
        Strength of the nudge.
    lower, upper : bool
        Whether the states at −β and at +β are used; an unused one is replaced by the free state.
    method : int
        Place in `METHODS`.
    rounding : float
        Largest change of a converged response, relative to the largest one.
    gain : float
        A, the factor of the pixels.
    """

    samples: int
    sweeps: int
    nudged_sweeps: int
    tolerance: float
    beta: float
    lower: bool
    upper: bool
    method: int
    rounding: float
    gain: float


class Memory(NamedTuple):
    """All arrays of a step; (samples, units) arrays are flat. See `allocate`, and `steps` for ``diff`` and ``mean``."""

    tiles: np.ndarray
    inner: np.ndarray
    bias: np.ndarray
    low: np.ndarray
    high: np.ndarray
    no_low: np.ndarray
    no_high: np.ndarray
    mask: np.ndarray
    slot: np.ndarray
    where: np.ndarray
    pixels: np.ndarray
    shift: np.ndarray
    drop: np.ndarray
    free: np.ndarray
    load: np.ndarray
    tile_sums: np.ndarray
    product: np.ndarray
    inverse: np.ndarray
    gains: np.ndarray
    base: np.ndarray
    sums: np.ndarray
    nudged: np.ndarray
    partial: np.ndarray
    moved: np.ndarray
    diff: np.ndarray
    mean: np.ndarray
    phase: np.ndarray
    at_rest: np.ndarray


def allocate(layout: Layout, samples: int, groups: int, dtype: np.dtype) -> Memory:
    """All arrays of a network at rest, zero conductances; ``groups`` times the samples are the rows of a gradient."""
    pixels, last, n = int(layout.units[0]), layout.units.size - 1, layout.total
    low, high, mask = aligned(n, dtype), aligned(n, dtype), aligned(n, dtype)
    for layer in range(1, last + 1):
        here = slice(layout.at[layer], layout.at[layer] + layout.units[layer])
        low[here], high[here] = diodes(int(layout.units[layer])) if layer < last else (-np.inf, np.inf)
        mask[here] = 1
    width = int(layout.width[1])
    slot = np.full((2, pixels), -1, np.int32)
    nonzero, where = aligned(2 * pixels * samples, dtype).reshape(2, -1), np.zeros(pixels, np.int32)
    # The nudged phases have twice as many samples.
    twice, hidden = 2 * samples * n, PARTS * 2 * samples * n
    sizes = {
        "tiles": 2 * pixels * width,
        "inner": layout.size,
        "bias": n,
        "drop": width,
        "shift": samples * width,
        "free": samples * n,
        "load": n,
        "tile_sums": width,
        "product": samples * width,
        "inverse": 3 * n,
        "gains": samples * n,
        "no_low": n,
        "no_high": n,
        "base": twice,
        "sums": twice,
        "nudged": twice,
        "partial": hidden,
        "moved": PARTS,
        "diff": groups * samples * n,
        "mean": groups * samples * n,
    }
    made = Memory(
        low=low,
        high=high,
        mask=mask,
        slot=slot,
        where=where,
        pixels=nonzero,
        phase=np.zeros(2 * samples, np.int64),
        at_rest=np.zeros(2 * samples, np.int64),
        **{name: aligned(size, dtype) for name, size in sizes.items()},
    )
    made.no_low[:], made.no_high[:] = -np.inf, np.inf
    return made


class Engine:
    """Compiled training of a network.

    Parameters
    ----------
    architecture : Architecture
        Without amplifiers (all gains 1).
    learning : ResistiveLearning
        Nudges and sweeps; ``nudged_sweeps`` is how many sweeps are backpropagated through.
    batch : int
        Samples in a step.
    method : {"ep", "bp", "implicit"}
        Equilibrium propagation, truncated backpropagation, implicit differentiation.
    dtype : dtype
        float32 or float64, of everything.
    threads : int
        Number of threads for the large matrices. The bits of the result do not depend on it.

    Notes
    -----
    The step of the first layer is made during the products with the next mini-batch. `flush` makes it at once; later
    results have the same bits.
    """

    def __init__(
        self,
        architecture: Architecture,
        learning: ResistiveLearning,
        batch: int,
        dtype: Any = np.float32,
        threads: int = 1,
        method: str = "ep",
    ) -> None:
        check_named(method=(method, METHODS))
        if set(architecture.gains) != {1.0}:
            raise UsageError(
                "the compiled engine has no amplifiers between layers; train the network as a block instead"
            )
        self.architecture, self.learning, self.batch = architecture, learning, batch
        self.dtype, self.threads = np.dtype(dtype), threads
        self.samples = -(-batch // 4) * 4
        self.layout = lay_out(architecture.units)
        groups = 2 * learning.nudged_sweeps if method == "bp" else 1
        self.memory = allocate(self.layout, self.samples, groups, self.dtype)
        # Small matrices are never shared: nothing more to compile for them.
        large = self.memory.tiles.size >= steps.WORTH_THREADS or self.layout.update_parts.size > 2
        self.shared = threads > 1 and large
        self.pending, self.changed = False, True
        nudges = strengths(learning.variant, learning.beta)
        lower, upper = method == "ep" and min(nudges) < 0, max(nudges) > 0
        # Whole numbers are of another type: the kernels would be compiled again.
        self.rule = Rule(
            self.samples,
            learning.sweeps,
            learning.nudged_sweeps,
            float(learning.tolerance),
            float(learning.beta),
            lower,
            upper,
            METHODS.index(method),
            float(16 * np.finfo(self.dtype).eps),
            float(architecture.input_gain),
        )

    def set(self, parameters: Mapping[str, np.ndarray]) -> None:
        """Take parameters as `Architecture.parameter_shapes` names them."""
        self._forget_pending()
        for layer in range(1, self.architecture.depth + 1):
            weights = parameters[f"conductances{layer - 1}"]
            if layer == 1:
                pack(weights, 0, self.architecture.units[0], self.memory.tiles)
            else:
                self._set_inner(layer, weights)
            self.biases(layer)[...] = parameters[f"bias{layer}"]
        self.refresh()

    def initialise(self, rng: np.random.Generator) -> None:
        """Take what a `DeepResistiveNetwork` draws from this generator, without a second copy of the first layer."""
        self._forget_pending()
        units = self.architecture.units
        first = (2 * units[0], units[1])
        for rows, some in conductance_rows(first, first[0] ** -0.5, rng):
            pack(some, rows.start, units[0], self.memory.tiles)
        for layer, shape in enumerate(pairwise(units[1:]), start=2):
            self._set_inner(layer, Crossbar(*shape).draw(rng).astype(self.dtype))
        self.memory.bias[:] = 0
        self.refresh()

    def get(self) -> dict[str, np.ndarray]:
        """The parameters as plain arrays of their own."""
        self.flush()
        units, found = self.architecture.units, {}
        for layer in range(1, self.architecture.depth + 1):
            plain = unpack(self.memory.tiles, units[0], units[1]) if layer == 1 else self._plain(layer)
            found[f"conductances{layer - 1}"] = plain
        return found | {f"bias{layer}": self.biases(layer).copy() for layer in range(1, len(units))}

    def train(
        self,
        images: np.ndarray,
        labels: np.ndarray,
        rows: np.ndarray,
        rates: Sequence[float],
        bias_rates: Sequence[float],
        weight: np.ndarray | None = None,
    ) -> np.ndarray:
        """Steps on the mini-batches that ``rows`` fall into, in order.

        Parameters
        ----------
        images : (N, D) ndarray
            Bytes, of which 255 stands for an input of one, or floats.
        labels : (N,) ndarray of int64
        rows : (n,) ndarray of int64
        rates, bias_rates : sequence of float
            One for each layer.
        weight : (N,) ndarray of float64, optional
            Factor on each sample's loss.

        Returns
        -------
        (steps, 4) ndarray
            Cost, share of wrong answers and relative residual, at the free state of each mini-batch; share of the
            hidden units whose diode changes between the phases of equilibrium propagation.

        Raises
        ------
        ConvergenceError
            A unit is left without conductance, the nudge −β leaves an output without, or the network has no response
            to the loss's slope.
        """
        metrics = np.full((-(-len(rows) // self.batch), 4), np.nan)
        for start in range(0, len(metrics), STEPS) if len(metrics) else (0,):
            some = rows[start * self.batch : (start + STEPS) * self.batch]
            factors = np.ones(len(some)) if weight is None else weight[some].astype(np.float64)
            given = as_inputs(images[some], self.dtype), labels[some], factors
            self._train(given, rates, bias_rates, metrics[start : start + STEPS])
        return metrics

    def _train(
        self,
        given: tuple[np.ndarray, np.ndarray, np.ndarray],
        rates: Sequence[float],
        bias_rates: Sequence[float],
        metrics: np.ndarray,
    ) -> None:
        """Steps on images, labels and factors in order."""
        done, status, layer, unit = self._threaded(
            steps.train,
            self.memory,
            self.layout,
            self.rule,
            np.array([self.architecture.input_gain, *rates], self.dtype),
            np.array([0, *bias_rates], self.dtype),
            *given,
            self.batch,
            metrics,
            self.changed,
        )
        self.pending, self.changed = True, False
        if status == steps.ZERO_CONDUCTANCE:
            raise ConvergenceError(
                f"unit {unit + 1} of layer {layer} has no conductance left after {done} more steps; "
                "try a lower learning rate"
            )
        if status == steps.NO_RESPONSE:
            raise ConvergenceError(
                f"the implicit gradient did not converge in {steps.ADJOINT_SWEEPS} sweeps after {done} more steps; "
                "try a lower learning rate"
            )
        if status == steps.NEGATIVE_CONDUCTANCE:
            raise ConvergenceError(
                f"output {unit + 1} has less conductance than the nudge of -{self.learning.beta} S takes away; "
                "lower beta, or nudge with the positive variant"
            )

    def flush(self) -> None:
        """Make the pending step of the first layer."""
        if self.pending:
            self.memory.slot[1] = -1
            self._threaded(steps.advance, self.memory, self.layout, self.samples, 0)
            self._forget_pending()

    def parameters(self) -> dict[str, np.ndarray]:
        """The engine's memory of each parameter as it is stored; the pending step of the first layer is not in it."""
        depth = self.architecture.depth
        found = {"conductances0": self.memory.tiles}
        found |= {f"conductances{i - 1}": blocks_of(self.layout, self.memory.inner, i) for i in range(2, depth + 1)}
        return found | {f"bias{i}": self.biases(i) for i in range(1, depth + 1)}

    def refresh(self) -> None:
        """The inner matrices were changed from outside: the next training step sums them again."""
        self.changed = True

    def _forget_pending(self) -> None:
        self.memory.slot[0] = -1
        self.memory.drop[:] = 0
        self.pending = False

    def _threaded(self, kernel: Any, *arguments: Any) -> Any:
        if not self.shared:
            return kernel(*arguments, None)
        from circuitsim._jit import with_threads

        return with_threads(self.threads, kernel, *arguments, True)

    def _is_transposed(self, layer: int) -> bool:
        return bool(self.layout.row_layer[layer] == layer)

    def _set_inner(self, layer: int, weights: np.ndarray) -> None:
        rows = weights.T if self._is_transposed(layer) else weights
        stored = blocks_of(self.layout, self.memory.inner, layer)
        padded = np.zeros((len(stored) * BLOCK, stored.shape[1] * LANES), self.dtype)
        padded[: rows.shape[0], : rows.shape[1]] = rows
        stored[...] = padded.reshape(len(stored), BLOCK, -1, LANES).transpose(0, 2, 1, 3)

    def _plain(self, layer: int) -> np.ndarray:
        stored = blocks_of(self.layout, self.memory.inner, layer)
        rows, columns = (self.layout.units[of[layer]] for of in (self.layout.row_layer, self.layout.column_layer))
        plain = stored.transpose(0, 2, 1, 3).reshape(len(stored) * BLOCK, -1)[:rows, :columns]
        return np.ascontiguousarray(plain.T if self._is_transposed(layer) else plain)

    def biases(self, layer: int) -> np.ndarray:
        """The biases of a layer, in the engine's memory."""
        start = int(self.layout.at[layer])
        return self.memory.bias[start : start + int(self.layout.units[layer])]
