"""Convolutional deep Hopfield networks: s_{l+1} • Pool(θ_l ⋆ s_l) between layers (Nest & Ernoult 2024, Eq. 90)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np

from circuitsim._arrays import Array, device, namespace
from circuitsim.blocks import convolution, winograd
from circuitsim.blocks.convolution import Window
from circuitsim.blocks.couplings import Coupling, DenseCoupling
from circuitsim.blocks.hopfield import hopfield_layers
from circuitsim.blocks.layered import LayeredBlock, Sweeps
from circuitsim.errors import TopologyError


@dataclass(frozen=True)
class ConvolutionCoupling:
    """C is a 3 × 3 convolution with padding 1, followed by 2 × 2 maxima where it pools; Cᵀ puts values back.

    Parameters
    ----------
    image : tuple of int
        Rows, columns and channels of the lower layer.
    channels : int
        Of the upper layer.
    pool : bool
    variance : float
        V of the Gaussian orthogonal ensemble that each 3 × 3 slice is drawn from: V/3 off its diagonal, 2V/3 on it.
    weights : (3, 3, channels below, channels above) array, optional
        Those that it is bound to.
    """

    image: tuple[int, int, int]
    channels: int
    pool: bool
    variance: float
    weights: Any = None

    @property
    def output(self) -> tuple[int, int, int]:
        """Shape of the upper layer."""
        rows, columns, _ = self.image
        return (rows // 2, columns // 2, self.channels) if self.pool else self._full

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(3, 3, channels below, channels above)."""
        return 3, 3, self.image[2], self.channels

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """(3, 3, below, above)."""
        return gaussian_orthogonal(rng, 3, self.variance, (self.image[2], self.channels))

    def bind(self, weights: Array) -> Self:
        """The coupling with these weights."""
        return replace(self, weights=weights)

    def forward(self, below: Array, out: Array, switches: Array | None, renew: bool) -> Array | None:
        """Write Pool(θ ⋆ below) into `out`; returns the places the maxima were at."""
        if not self.pool:
            winograd.convolve(below, self._filters, out)
            return None
        full = namespace(below).empty((below.shape[0], *self._full), dtype=below.dtype, device=device(below))
        winograd.convolve(below, self._filters, full)
        if renew or switches is None:
            out[...], switches = convolution.max_pool(full)
        else:
            out[...] = convolution.pool_where(full, switches)
        return switches

    def backward(self, above: Array, out: Array, switches: Array | None) -> None:
        """Write θᵀ ⋆ Unpool(above) into `out`; zero before the first pooling."""
        if self.pool and switches is None:
            out[...] = 0
        else:
            winograd.convolve(self.lift(above, switches), self._turned, out)

    def lift(self, above: Array, switches: Array | None) -> Array:
        """The upper layer before pooling: zeros but where a maximum was taken."""
        if not self.pool:
            return above
        if switches is None:
            raise TopologyError("the state has no pooled places; relax it first")
        return convolution.unpool(above, switches, self._full)

    def outer(self, below: Array, lifted: Array) -> Array:
        """(3, 3, below, above) Σ over samples and places of pixel ⊗ lifted."""
        gradient = convolution.kernel_gradient(below, lifted, Window())
        return namespace(gradient).reshape(gradient, self.shape)

    @property
    def _full(self) -> tuple[int, int, int]:
        """Shape of the upper layer before pooling."""
        return (*self.image[:2], self.channels)

    @property
    def _kernel(self) -> Array:
        return namespace(self.weights).reshape(self.weights, (9, self.image[2], self.channels))

    @cached_property
    def _filters(self) -> Array:
        return winograd.transformed(self._kernel)

    @cached_property
    def _turned(self) -> Array:
        """Those of the transposed convolution, whose kernel is turned by 180 degrees."""
        xp = namespace(self.weights)
        return winograd.transformed(xp.permute_dims(xp.flip(self._kernel, axis=0), (0, 2, 1)))


def gaussian_orthogonal(
    rng: np.random.Generator, size: int, variance: float, stack: tuple[int, ...] = ()
) -> np.ndarray:
    """(size, size, *stack) symmetric slices with variance V/N off and 2V/N on the diagonal (P2, App. A.6.3)."""
    square = rng.normal(size=(size, size, *stack))
    return (square + np.swapaxes(square, 0, 1)) * math.sqrt(variance / (2 * size))


@dataclass(eq=False, repr=False)
class ConvolutionalHopfieldBlock(LayeredBlock):
    """A deep Hopfield network whose first layers are images, coupled by 3 × 3 convolutions.

    Parameters
    ----------
    image : tuple of int
        Rows, columns and channels of the first layer; x has the same shape, a pull on each unit.
    channels : sequence of int
        Channels of each further layer of images.
    pool : sequence of bool
        Whether each of those is pooled 2 × 2 (maxima, inside the energy).
    dense : sequence of int
        Units of fully connected layers after them.
    activation, clamped, sweeps, rng, dtype
        As for `DeepHopfieldBlock`.
    variance : float
        V of the kernels' Gaussian orthogonal ensemble.
    spread : float
        Dense weights start uniform in ±spread/√(units before them).
    """

    kind = "convolutional-hopfield"

    image: Sequence[int]
    channels: Sequence[int] = ()
    pool: Sequence[bool] = ()
    dense: Sequence[int] = ()
    activation: str = "ernoult"
    clamped: bool = True
    sweeps: Sweeps = field(default_factory=Sweeps)
    variance: float = 1e-3
    spread: float = 0.5
    rng: InitVar[Any] = 0
    dtype: InitVar[Any] = np.float32

    def __post_init__(self, rng: Any, dtype: Any) -> None:
        self.pool = list(self.pool) or [False] * len(self.channels)
        if len(self.image) != 3 or len(self.pool) != len(self.channels):
            raise TopologyError(
                "a convolutional block needs (rows, columns, channels) of its first layer, and as many pools as "
                f"further channels; it got {tuple(self.image)}, {list(self.channels)} and {self.pool}"
            )
        shapes: list[tuple[int, ...]] = [tuple(self.image)]
        couplings: list[Coupling] = []
        for count, pooled in zip(self.channels, self.pool):
            rows, columns, below = shapes[-1]
            coupling = ConvolutionCoupling((rows, columns, below), count, bool(pooled), self.variance)
            couplings.append(coupling)
            shapes.append(coupling.output)
        sizes = [math.prod(shapes[-1]), *self.dense]
        couplings += [DenseCoupling(lower, upper, self.spread) for lower, upper in pairwise(sizes)]
        shapes += [(units,) for units in self.dense]
        self._assemble(hopfield_layers(shapes, self.activation, self.clamped), couplings, None, rng, dtype)
