"""Stages for images, (batch, rows, columns, channels): convolution, pooling, batch normalisation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from circuitsim._arrays import Array, device, namespace
from circuitsim.blocks import convolution
from circuitsim.blocks.convolution import Window
from circuitsim.blocks.convolutional import gaussian_orthogonal
from circuitsim.errors import UsageError
from circuitsim.learning.stages import Gradients, Stage


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

    kind = "conv2d"

    def __init__(
        self,
        inputs: int,
        outputs: int,
        size: int = 3,
        stride: int = 1,
        padding: int = 1,
        bias: bool = False,
        variance: float | None = None,
    ) -> None:
        super().__init__(
            inputs=inputs, outputs=outputs, size=size, stride=stride, padding=padding, bias=bias, variance=variance
        )
        if min(inputs, outputs, size, stride) < 1 or padding < 0:
            raise UsageError(f"a convolution cannot have {self.options}")
        self._window = Window(size, stride, padding)
        self.initialise(0)

    def initialise(self, rng: Any, dtype: Any = np.float64) -> None:
        """Draw kernels and biases; the arguments are those of `Stage.initialise`."""
        rng = np.random.default_rng(rng)
        inputs, outputs, size = (self.options[name] for name in ("inputs", "outputs", "size"))
        limit = 1 / math.sqrt(inputs * size * size)
        if self.options["variance"] is None:
            weights = rng.uniform(-limit, limit, (size, size, inputs, outputs))
        else:
            weights = gaussian_orthogonal(rng, size, self.options["variance"], (inputs, outputs))
        self.parameters = {"weights": weights.astype(dtype)}
        if self.options["bias"]:
            self.parameters["bias"] = rng.uniform(-limit, limit, outputs).astype(dtype)

    def forward(self, x: Array, training: bool = False) -> tuple[Array, Any]:
        """(batch, rows, columns, inputs) to (batch, rows, columns, outputs).

        The arguments are those of `Stage.forward`.
        """
        if x.ndim != 4 or x.shape[3] != self.options["inputs"]:
            raise UsageError(
                f"a conv2d stage takes (batch, rows, columns, {self.options['inputs']}), not {tuple(x.shape)}"
            )
        y = convolution.convolve(x, self._kernel(), self._window)
        if "bias" in self.parameters:
            y += self.parameters["bias"]
        return y, x

    def vjp(self, memory: Any, cotangent: Array, wants_input: bool = True) -> tuple[Gradients, Array | None]:
        """The kernel's gradient and the transposed convolution; the arguments are those of `Stage.vjp`."""
        xp, weights = namespace(cotangent), self.parameters["weights"]
        gradient = convolution.kernel_gradient(memory, cotangent, self._window)
        gradients = {"weights": xp.reshape(gradient, weights.shape)}
        if "bias" in self.parameters:
            gradients["bias"] = xp.sum(cotangent, axis=(0, 1, 2))
        if not wants_input:
            return gradients, None
        back = xp.empty_like(memory)
        convolution.convolve_back(cotangent, self._kernel(), self._window, back)
        return gradients, back

    def _kernel(self) -> Array:
        weights = self.parameters["weights"]
        return namespace(weights).reshape(weights, (-1, weights.shape[-1]))


class MaxPool(Stage):
    """Maxima of 2 × 2 squares; of equal ones the first carries the derivative."""

    kind = "max-pool"

    def forward(self, x: Array, training: bool = False) -> tuple[Array, Any]:
        """Half the rows and columns; the arguments are those of `Stage.forward`."""
        y, switches = convolution.max_pool(x)
        return y, (switches, x.shape[1:])

    def vjp(self, memory: Any, cotangent: Array, wants_input: bool = True) -> tuple[Gradients, Array | None]:
        """The cotangent at the places of the maxima, zero elsewhere; the arguments are those of `Stage.vjp`."""
        switches, shape = memory
        return {}, convolution.unpool(cotangent, switches, shape)


class SoftPool(Stage):
    """Σ x eˣ / Σ eˣ over 2 × 2 squares (Stergiou et al. 2021)."""

    kind = "soft-pool"

    def forward(self, x: Array, training: bool = False) -> tuple[Array, Any]:
        """Half the rows and columns, an odd last one left out; the arguments are those of `Stage.forward`."""
        xp = namespace(x)
        rows, columns = x.shape[1] // 2 * 2, x.shape[2] // 2 * 2
        four = xp.stack([x[:, i:rows:2, j:columns:2, :] for i in (0, 1) for j in (0, 1)], axis=0)
        share = xp.exp(four - xp.max(four, axis=0, keepdims=True))
        share = share / xp.sum(share, axis=0, keepdims=True)
        y = xp.sum(share * four, axis=0)
        return y, (share * (1 + four - y), x.shape)

    def vjp(self, memory: Any, cotangent: Array, wants_input: bool = True) -> tuple[Gradients, Array | None]:
        """The cotangent times ∂y/∂x_i = p_i (1 + x_i − y); the arguments are those of `Stage.vjp`."""
        slopes, shape = memory
        xp = namespace(cotangent)
        rows, columns = shape[1] // 2 * 2, shape[2] // 2 * 2
        back = xp.zeros(shape, dtype=cotangent.dtype, device=device(cotangent))
        for place in range(4):
            back[:, place // 2 : rows : 2, place % 2 : columns : 2, :] = slopes[place] * cotangent
        return {}, back


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

    kind = "batch-norm"

    def __init__(self, channels: int, momentum: float = 0.1, epsilon: float = 1e-5) -> None:
        super().__init__(channels=channels, momentum=momentum, epsilon=epsilon)
        self.initialise(0)

    def initialise(self, rng: Any, dtype: Any = np.float64) -> None:
        """Scale 1, shift 0, running mean 0 and variance 1; the arguments are those of `Stage.initialise`."""
        channels = self.options["channels"]
        self.parameters = {"scale": np.ones(channels, dtype), "shift": np.zeros(channels, dtype)}
        self.averages = {"mean": np.zeros(channels, dtype), "variance": np.ones(channels, dtype)}

    def forward(self, x: Array, training: bool = False) -> tuple[Array, Any]:
        """The same shape; in training with the mean and variance of the batch.

        The arguments are those of `Stage.forward`.
        """
        xp = namespace(x)
        if x.shape[-1] != self.options["channels"]:
            raise UsageError(
                f"a batch-norm stage takes {self.options['channels']} channels last, not an array {tuple(x.shape)}"
            )
        axes = tuple(range(x.ndim - 1))
        count = math.prod(x.shape[:-1])
        if training:
            if count < 2:
                raise UsageError("batch normalisation needs at least two values a channel: use larger batches")
            mean = xp.mean(x, axis=axes)
            variance = xp.mean((x - mean) ** 2, axis=axes)
        else:
            mean, variance = self.averages["mean"], self.averages["variance"]
        inverse = 1 / xp.sqrt(variance + self.options["epsilon"])
        centred = (x - mean) * inverse
        y = centred * self.parameters["scale"] + self.parameters["shift"]
        return y, (centred, inverse, mean, variance, count if training else 0)

    def vjp(self, memory: Any, cotangent: Array, wants_input: bool = True) -> tuple[Gradients, Array | None]:
        """Through the mean and variance of the batch too, where they were its own.

        The arguments are those of `Stage.vjp`.
        """
        xp = namespace(cotangent)
        centred, inverse, _, _, count = memory
        axes = tuple(range(cotangent.ndim - 1))
        scale, shift = xp.sum(cotangent * centred, axis=axes), xp.sum(cotangent, axis=axes)
        back = cotangent
        if count:
            back = cotangent - (shift + centred * scale) / count
        return {"scale": scale, "shift": shift}, back * (inverse * self.parameters["scale"])

    def observe(self, memory: Any) -> None:
        """Move the running mean and variance towards the batch's."""
        _, _, mean, variance, count = memory
        if count:
            weight = self.options["momentum"]
            self.averages["mean"] += weight * (mean - self.averages["mean"])
            self.averages["variance"] += weight * (variance * (count / (count - 1)) - self.averages["variance"])
