"""Stages for images, (batch, rows, columns, channels): convolution, pooling, batch normalisation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from circuitsim._arrays import Array, device, namespace
from circuitsim.blocks import convolution
from circuitsim.blocks.convolution import Window
from circuitsim.blocks.convolutional import gaussian_orthogonal
from circuitsim.errors import UsageError
from circuitsim.learning.stages import Gradients, Output, Stage


@dataclass(eq=False, repr=False)
class Conv2d(Stage):
    """A convolution.

    Parameters
    ----------
    inputs, outputs : int
        Channels.
    size, stride, padding : int
        Of the window.
    bias : bool
        Before batch normalisation a bias would have no effect.
    variance : float, optional
        V of the Gaussian orthogonal ensemble each slice is drawn from (Nest & Ernoult 2024, App. A.6.3); left out,
        weights are uniform in ±1/√(inputs · size²), PyTorch's default.
    """

    inputs: int
    outputs: int
    size: int = 3
    stride: int = 1
    padding: int = 1
    bias: bool = False
    variance: float | None = None
    kind = "conv2d"

    def __post_init__(self) -> None:
        super().__post_init__()
        if min(self.inputs, self.outputs, self.size, self.stride) < 1 or self.padding < 0:
            raise UsageError(f"a convolution cannot have {self.options}")
        self._window = Window(self.size, self.stride, self.padding)

    def initialise(self, rng: Any, dtype: Any = np.float64) -> None:
        """Draw kernels and biases; the arguments are those of `Stage.initialise`."""
        rng, size, channels = np.random.default_rng(rng), self.size, (self.inputs, self.outputs)
        limit = 1 / math.sqrt(self.inputs * size * size)
        if self.variance is None:
            weights = rng.uniform(-limit, limit, (size, size, *channels))
        else:
            weights = gaussian_orthogonal(rng, size, self.variance, channels)
        self.parameters = {"weights": weights.astype(dtype)}
        if self.bias:
            self.parameters["bias"] = rng.uniform(-limit, limit, self.outputs).astype(dtype)

    def forward(self, x: Array, training: bool = False) -> Output:
        """(batch, rows, columns, inputs) to (batch, rows, columns, outputs).

        The arguments are those of `Stage.forward`.
        """
        if x.ndim != 4 or x.shape[3] != self.inputs:
            raise UsageError(f"a conv2d stage takes (batch, rows, columns, {self.inputs}), not {tuple(x.shape)}")
        y = convolution.convolve(x, self._kernel(), self._window)
        if "bias" in self.parameters:
            y += self.parameters["bias"]

        def pullback(cotangent: Array) -> tuple[Gradients, Array]:
            xp, weights = namespace(cotangent), self.parameters["weights"]
            gradient = convolution.kernel_gradient(x, cotangent, self._window)
            gradients = {"weights": xp.reshape(gradient, weights.shape)}
            if "bias" in self.parameters:
                gradients["bias"] = xp.sum(cotangent, axis=(0, 1, 2))
            return gradients, convolution.convolve_back(cotangent, self._kernel(), self._window, x.shape)

        return y, pullback

    def _kernel(self) -> Array:
        weights = self.parameters["weights"]
        return namespace(weights).reshape(weights, (-1, *weights.shape[2:]))


class MaxPool(Stage):
    """Maxima of 2 × 2 squares; of equal ones the first carries the derivative."""

    kind = "max-pool"

    def forward(self, x: Array, training: bool = False) -> Output:
        """Half the rows and columns; the arguments are those of `Stage.forward`."""
        y, switches = convolution.max_pool(x)
        return y, lambda cotangent: ({}, convolution.unpool(cotangent, switches, x.shape[1:]))


class SoftPool(Stage):
    """Σ x eˣ / Σ eˣ over 2 × 2 squares (Stergiou et al. 2021): ∂y/∂x_i = p_i (1 + x_i − y) with p_i = e^x_i / Σ eˣ."""

    kind = "soft-pool"

    def forward(self, x: Array, training: bool = False) -> Output:
        """Half the rows and columns, an odd last one left out; the arguments are those of `Stage.forward`."""
        xp = namespace(x)
        batch, rows, columns, channels = x.shape
        rows, columns = rows // 2, columns // 2
        four = xp.reshape(x[:, : 2 * rows, : 2 * columns], (batch, rows, 2, columns, 2, channels))
        share = xp.exp(four - xp.max(four, axis=(2, 4), keepdims=True))
        share = share / xp.sum(share, axis=(2, 4), keepdims=True)
        y = xp.sum(share * four, axis=(2, 4), keepdims=True)

        def pullback(cotangent: Array) -> tuple[Gradients, Array]:
            back = xp.zeros(x.shape, dtype=cotangent.dtype, device=device(cotangent))
            found = share * (1 + four - y) * cotangent[:, :, None, :, None]
            back[:, : 2 * rows, : 2 * columns] = xp.reshape(found, (batch, 2 * rows, 2 * columns, channels))
            return {}, back

        return y[:, :, 0, :, 0], pullback


@dataclass(eq=False, repr=False)
class BatchNorm(Stage):
    """Batch normalisation over all axes but the last (Ioffe & Szegedy 2015).

    Parameters
    ----------
    channels : int
        Length of the last axis.
    momentum : float
        Weight of a batch in the running mean and (unbiased) variance, which are used outside of training.
    epsilon : float
        Added to the variance.
    """

    channels: int
    momentum: float = 0.1
    epsilon: float = 1e-5
    kind = "batch-norm"

    def initialise(self, rng: Any, dtype: Any = np.float64) -> None:
        """Scale 1, shift 0, running mean 0 and variance 1; the arguments are those of `Stage.initialise`."""
        zeros, ones = np.zeros(self.channels, dtype), np.ones(self.channels, dtype)
        self.parameters = {"scale": ones, "shift": zeros}
        self.averages = {"mean": zeros.copy(), "variance": ones.copy()}

    def forward(self, x: Array, training: bool = False) -> Output:
        """The same shape; in training with the mean and variance of the batch, towards which the running ones move.

        The arguments are those of `Stage.forward`.
        """
        xp = namespace(x)
        if x.shape[-1] != self.channels:
            raise UsageError(f"a batch-norm stage takes {self.channels} channels last, not an array {tuple(x.shape)}")
        axes = tuple(range(x.ndim - 1))
        count = math.prod(x.shape[:-1])
        if training:
            if count < 2:
                raise UsageError("batch normalisation needs at least two values a channel: use larger batches")
            mean = xp.mean(x, axis=axes)
            variance = xp.mean((x - mean) ** 2, axis=axes)
            for name, seen in (("mean", mean), ("variance", variance * (count / (count - 1)))):
                self.averages[name] += self.momentum * (seen - self.averages[name])
        else:
            mean, variance = self.averages["mean"], self.averages["variance"]
        inverse = 1 / xp.sqrt(variance + self.epsilon)
        centred = (x - mean) * inverse

        def pullback(cotangent: Array) -> tuple[Gradients, Array]:
            scale, shift = xp.sum(cotangent * centred, axis=axes), xp.sum(cotangent, axis=axes)
            # In training also through the mean and variance of the batch.
            back = cotangent - (shift + centred * scale) / count if training else cotangent
            return {"scale": scale, "shift": shift}, back * (inverse * self.parameters["scale"])

        return centred * self.parameters["scale"] + self.parameters["shift"], pullback
