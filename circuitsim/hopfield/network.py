"""A deep Hopfield network that learns classes from rows of bytes; a `Trainable`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from circuitsim.blocks import Nudge
from circuitsim.blocks.alternating import Relaxed
from circuitsim.blocks.hopfield import DeepHopfieldBlock, LayeredState, Sweeps
from circuitsim.blocks.propagation import METHODS, VARIANTS, check_named, check_strength, contrast
from circuitsim.errors import UsageError
from circuitsim.training.checkpoint import copy_into
from circuitsim.training.trainable import Arrays


@dataclass(frozen=True)
class HopfieldLearning:
    """How the gradient of the cost ½ Σ (o − y)² is estimated.

    Attributes
    ----------
    beta : float
        Strength of the nudge: E + β · cost.
    method : {"ep", "bp", "implicit"}
        Equilibrium propagation; backpropagation through the last K sweeps; the adjoint of the free state.
    variant : {"centred", "positive", "negative"}
        Which states EP contrasts.
    warm : bool
        Whether a batch starts at the nudged states of the batch before it, slot by slot; otherwise at zero.
    allow_nonconvex : bool
        Whether samples count whose energy is not convex at −β; otherwise they are left out. Both are not certified.
    """

    beta: float = 0.2
    method: str = "ep"
    variant: str = "centred"
    warm: bool = True
    allow_nonconvex: bool = False

    def __post_init__(self) -> None:
        check_strength(self.beta)
        check_named(method=(self.method, METHODS), variant=(self.variant, VARIANTS))
        if self.beta >= 1 and self.method == "ep" and self.variant != "positive":
            raise UsageError(f"a nudge of −{self.beta} leaves the linear output without a minimum; β must be below 1")


def network(
    units: Sequence[int],
    sweeps: Sweeps,
    learning: HopfieldLearning,
    batch: int,
    rng: Any = 0,
    dtype: Any = np.float32,
    spread: float = 0.7,
) -> DeepHopfieldNetwork:
    """A network with hidden units in [0, 1] and linear outputs.

    Parameters
    ----------
    units : sequence of int
        Inputs, hidden layers (at least one), outputs.
    sweeps : Sweeps
        Of the free and the nudged phase.
    learning : HopfieldLearning
        How gradients are computed.
    batch : int
        Samples in a step.
    rng : numpy.random.Generator or int
        Source of the weights, or its seed.
    dtype : dtype
        float32 or float64.
    spread : float
        Factor on the range of the initial weights.

    Raises
    ------
    UsageError
        Fewer than three layers.
    """
    if len(units) < 3:
        raise UsageError(f"a network has inputs, at least one hidden layer and outputs, not layers {list(units)}")
    block = DeepHopfieldBlock(
        list(units[1:]), clamped=False, inputs=units[0], sweeps=sweeps, spread=spread, rng=rng, dtype=dtype
    )
    return DeepHopfieldNetwork(block, learning, batch)


class DeepHopfieldNetwork:
    """Classes from images by a deep Hopfield network (Scellier 2024, App. E); a `Trainable`.

    A step, as in the authors' code: T free sweeps; K sweeps nudged by −β and K by +β, both from the free state and in
    the order of the free sweeps; the difference is the gradient. The +β state is where the next batch starts.

    Parameters
    ----------
    block : DeepHopfieldBlock
        With input weights and a linear last layer.
    learning : HopfieldLearning
    batch : int
        Samples in a step.

    Notes
    -----
    The energy may have several minima, so states are certified to be stationary, not least: ``residual`` and
    ``nudged_residual`` are the largest |s − argmin over that unit alone| / max(1, |s|) in a batch, and the trainer
    has their means over the batches; ``sweeps`` is the number of free sweeps made, ``uncertified_fraction`` the
    share of samples whose state at −β is no strict minimum of the nudged energy (`LayeredState.strict`).
    """

    def __init__(self, block: DeepHopfieldBlock, learning: HopfieldLearning, batch: int) -> None:
        self.block, self.learning, self.batch = block, learning, batch
        self._dtype = block.parameters["bias1"].dtype
        self._levels = (np.arange(256) / 255).astype(self._dtype)
        self._last = [np.zeros((batch, units), self._dtype) for units in block.options["layers"]]

    def __repr__(self) -> str:
        return f"DeepHopfieldNetwork({self.block!r}, {self.learning!r}, batch={self.batch})"

    @property
    def parameters(self) -> Mapping[str, np.ndarray]:
        """The block's own."""
        return self.block.parameters

    def gradient(
        self, batch: tuple[np.ndarray, ...], rng: np.random.Generator
    ) -> tuple[Arrays | None, dict[str, float]]:
        """Mean gradient of a batch, and its metrics.

        Parameters
        ----------
        batch : (pixels, labels)
            (batch, inputs) bytes, and (batch,) classes.
        rng : numpy.random.Generator
            Not used: a step draws nothing.

        Returns
        -------
        gradient : dict of ndarray, or None
            By parameter; None where no nudged state is a strict minimum.
        metrics : dict of str to float
            See the notes of the class.

        Raises
        ------
        DivergedError
            ``allow_nonconvex``, and no sample has finite nudged states.
        """
        pixels, labels = batch
        x, target = self._levels[pixels], self.targets(labels)
        size = len(x)
        free = self.block.relax(x, None, self._start(size))
        distance = free.output - target
        metrics = {
            "loss": 0.5 * float((distance**2).sum()) / size,
            "error": float((free.output.argmax(axis=1) != labels).mean()),
            "residual": float(free.residual.max()),
        }
        weight = np.full(size, 1.0 / size, self._dtype)
        if self.learning.method == "ep":
            gradients, last, nudged = self._contrast(x, target, free, weight)
            metrics |= nudged
        else:
            rule = self.block.truncated if self.learning.method == "bp" else self.block.implicit
            gradients, _ = rule(free, x, distance, weight)
            last = free.layers
            metrics |= {"nudged_residual": 0.0, "kink_share": 0.0, "uncertified_fraction": 0.0}
        metrics["sweeps"] = float(free.relaxed.sweeps)
        if self.learning.warm:
            for memory, state in zip(self._last, last):
                memory[:size] = state
        return gradients, metrics

    def _contrast(
        self, x: np.ndarray, target: np.ndarray, free: LayeredState, weight: np.ndarray
    ) -> tuple[Arrays | None, Sequence[np.ndarray], dict[str, float]]:
        """EP: the gradient, the last nudged state, metrics of the nudged phases."""
        rule, size = self.learning, len(x)

        def relax(betas: tuple[float, ...]) -> list[LayeredState]:
            """All nudges as one batch."""
            stiffness = np.repeat(np.array(betas, self._dtype), size)[:, None]
            nudge = Nudge(-stiffness * np.tile(target, (len(betas), 1)), stiffness)  # type: ignore[arg-type]
            together = self.block.relax(x, nudge, _repeated(free, len(betas)))
            return [_part(together, slice(k * size, (k + 1) * size)) for k in range(len(betas))]

        found = contrast(self.block, x, free, rule.variant, rule.beta, relax)
        strict, kinks = found.plus.strict & found.minus.strict, found.kinks
        metrics = {
            "nudged_residual": max(float(s.residual.max()) for s in (found.plus, found.minus) if s is not free),
            "kink_share": 0.0 if kinks is None else kinks.share,
            "uncertified_fraction": 1.0 - float(strict.mean()),
        }
        used = found.counted(rule.allow_nonconvex, strict)
        if not used.any():
            return None, free.layers, metrics
        last = found.minus if rule.variant == "negative" else found.plus
        begins = [np.where(used[:, None], after, before) for after, before in zip(last.layers, free.layers)]
        return found.parameters(weight, used), begins, metrics

    def targets(self, labels: np.ndarray) -> np.ndarray:
        """(samples, outputs) one-hot."""
        return np.eye(self.block.n_outputs, dtype=self._dtype)[labels]

    def _start(self, size: int) -> LayeredState | None:
        """Initial states of a batch: the last nudged states, slot by slot."""
        if not self.learning.warm:
            return None
        # Only what is relaxed counts as a free phase's start.
        layers = tuple(memory[:size] for memory in self._last)
        relaxed = Relaxed(layers, (None,) * (len(layers) - 1), 0)
        return LayeredState(relaxed, self.block._layered_energy(), (), None, None)

    def relax(self, pixels: np.ndarray) -> LayeredState:
        """The free state of images (bytes), from zero."""
        return self.block.relax(self._levels[pixels])

    def predict(self, pixels: np.ndarray, batch: int = 500) -> np.ndarray:
        """Classes of images, from states of zero.

        Parameters
        ----------
        pixels : (samples, inputs) ndarray
            Bytes.
        batch : int
            Samples relaxed at a time.

        Returns
        -------
        (samples,) ndarray of int64
        """
        parts = [self.relax(pixels[at : at + batch]).output.argmax(axis=1) for at in range(0, len(pixels), batch)]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    def project(self) -> None:
        """All weights are allowed."""

    def state_arrays(self) -> Arrays:
        """The states at which the next batch starts."""
        return {f"last{layer}": memory for layer, memory in enumerate(self._last, start=1)}

    def load_state_arrays(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take back what `state_arrays` gave."""
        copy_into(self.state_arrays(), arrays, "states")

    def save(self, path: Path | str) -> None:
        """Write the network as one npz of plain arrays and JSON text."""
        self.block.save(path)

    @classmethod
    def load(cls, path: Path | str, learning: HopfieldLearning | None = None, batch: int = 16) -> DeepHopfieldNetwork:
        """Read what `save` wrote.

        Parameters
        ----------
        path : path
            The file.
        learning : HopfieldLearning, optional
            For further training; the defaults if not given.
        batch : int
            Samples in a step of further training.

        Raises
        ------
        CheckpointError
            The file is missing, damaged, or holds no such network.
        """
        return cls(DeepHopfieldBlock.load(path), learning or HopfieldLearning(), batch)


def _repeated(state: LayeredState, times: int) -> LayeredState:
    """A batch several times over."""
    if times == 1:
        return state
    layers = tuple(np.tile(layer, (times, 1)) for layer in state.layers)
    constants = [np.tile(pull, (times, 1)) if pull.ndim == 2 else pull for pull in state.constants]
    return replace(state, relaxed=state.relaxed._replace(layers=layers), constants=constants)


def _part(state: LayeredState, rows: slice) -> LayeredState:
    """Some samples of a batch."""

    def some(relaxed: Relaxed) -> Relaxed:
        return relaxed._replace(layers=tuple(layer[rows] for layer in relaxed.layers))

    nudge, begin = state.nudge, state.begin
    if nudge is not None:
        nudge = Nudge(nudge.linear[rows], nudge.stiffness[rows])  # type: ignore[index]
    constants = [pull[rows] if pull.ndim == 2 else pull for pull in state.constants]
    return replace(
        state,
        relaxed=some(state.relaxed),
        constants=constants,
        nudge=nudge,
        begin=None if begin is None else some(begin),
    )
