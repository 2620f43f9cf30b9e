"""Convolutional deep Hopfield networks: s_{l+1} • Pool(θ_l ⋆ s_l) between layers (Nest & Ernoult 2024, Eq. 90).

3 × 3 convolutions of stride one and padding one are taken by Winograd's method, 16 products for four outputs instead of
36. F(2 × 2, 3 × 3) of Lavin & Gray, *Fast algorithms for convolutional neural networks* (2016): for a square d of four
by four pixels and a kernel g, the outputs are Aᵀ [(G g Gᵀ) ⊙ (Bᵀ d B)] A. Squares overlap by two; the products, one for
each of 16 places, are products of matrices over the channels. Arrays of any library; an odd side gets a line of zeros.

Other convolutions are one product of matrices, whose rows are windows. Images are (batch, rows, columns, channels),
arrays of any library. A kernel is (size², channels in, channels out): entry ``i · size + j`` multiplies the pixel i −
padding below and j − padding right of the output's place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np

from circuitsim._arrays import Array, device, namespace
from circuitsim.blocks.alternating import Coupling, DenseCoupling
from circuitsim.blocks.hopfield import hopfield_layers
from circuitsim.blocks.layered import LayeredBlock, Sweeps
from circuitsim.errors import TopologyError


class Window(NamedTuple):
    """A square window that slides over an image."""

    size: int = 3
    stride: int = 1
    padding: int = 1

    def places(self, length: int) -> int:
        """Number of outputs along a side of an image."""
        return (length + 2 * self.padding - self.size) // self.stride + 1


def convolve(images: Array, kernel: Array, window: Window) -> Array:
    """(batch, rows, columns, channels out) of the convolution (a correlation, as in every neural network library)."""
    shape = (-1, *map(window.places, images.shape[1:3]), kernel.shape[2])
    return namespace(images).reshape(_windows(images, window) @ _matrix(kernel), shape)


def convolve_back(above: Array, kernel: Array, window: Window, shape: tuple[int, ...]) -> Array:
    """The transposed map of `above`, onto images of a shape."""
    padded, inside = bordered(above, shape, window)
    each = (*above.shape[:3], kernel.shape[0], shape[3])
    pulls = namespace(above).reshape(_matrix(above) @ _matrix(kernel).T, each)
    for k, at in enumerate(_shifts(window, shape)):
        padded[at] += pulls[..., k, :]
    return inside


def kernel_gradient(images: Array, above: Array, window: Window) -> Array:
    """(size², channels in, channels out) Σ over samples and places of pixel ⊗ above."""
    shape = (window.size**2, images.shape[3], above.shape[3])
    return namespace(images).reshape(_windows(images, window).T @ _matrix(above), shape)


def _windows(images: Array, window: Window) -> Array:
    """(batch · rows · columns, size² · channels) what each place sees."""
    padded, inside = bordered(images, images.shape, window)
    inside[...] = images
    return _matrix(namespace(images).concat([padded[at] for at in _shifts(window, images.shape)], axis=3))


def max_pool(images: Array) -> tuple[Array, Array]:
    """Maxima of 2 × 2 squares and where they were (0 to 3), the first of equals; an odd last line is left out."""
    xp, four = namespace(images), quarters(images)
    best = xp.maximum(xp.maximum(four[0], four[1]), xp.maximum(four[2], four[3]))
    less = [xp.astype(part != best, xp.uint8) for part in four[:3]]
    return best, less[0] * (1 + less[1] * (1 + less[2]))


def pool_where(images: Array, switches: Array) -> Array:
    """The entries of 2 × 2 squares at the places given."""
    xp = namespace(images)
    return sum(xp.astype(switches == k, images.dtype) * part for k, part in enumerate(quarters(images)))


def unpool(pooled: Array, switches: Array, shape: tuple[int, ...]) -> Array:
    """Zeros of (batch, *shape) with each entry at the place it was taken from: the transpose of `pool_where`."""
    xp = namespace(pooled)
    out = xp.zeros((pooled.shape[0], *shape), dtype=pooled.dtype, device=device(pooled))
    for k, part in enumerate(quarters(out)):
        part[...] = xp.astype(switches == k, pooled.dtype) * pooled
    return out


def quarters(images: Array) -> list[Array]:
    """The four entries of all 2 × 2 squares."""
    rows, columns = images.shape[1] // 2 * 2, images.shape[2] // 2 * 2
    return [images[:, i:rows:2, j:columns:2, :] for i in (0, 1) for j in (0, 1)]


def _matrix(array: Array) -> Array:
    return namespace(array).reshape(array, (-1, array.shape[-1]))


def bordered(like: Array, shape: tuple[int, ...], window: Window) -> tuple[Array, Array]:
    """Zeros for images of a shape with their borders, and the part of them inside."""
    (batch, rows, columns, channels), border = shape, window.padding
    whole = batch, rows + 2 * border, columns + 2 * border, channels
    padded = namespace(like).zeros(whole, dtype=like.dtype, device=device(like))
    return padded, padded[:, border : border + rows, border : border + columns]


def _shifts(window: Window, shape: tuple[int, ...]) -> list[tuple[slice, ...]]:
    """The pixels of images of a shape that each entry of the window meets."""
    size, stride, _ = window
    down, right = (stride * window.places(side) for side in shape[1:3])
    shifts = [(i, j) for i in range(size) for j in range(size)]
    return [(slice(None), slice(i, i + down, stride), slice(j, j + right, stride)) for i, j in shifts]


CHUNK = 1 << 20
"""Numbers of transformed images that are worked on at a time."""

_KERNEL = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
_INPUT = np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]])
_OUTPUT = np.array([[1, 1, 1, 0], [0, 1, -1, -1]])


def _on_both_sides(matrix: np.ndarray, columns: Array) -> Array:
    """M d Mᵀ of squares, one a column, row after row."""
    xp = namespace(columns)
    both = xp.asarray(np.kron(matrix, matrix), dtype=columns.dtype, device=device(columns))
    return both @ xp.reshape(columns, (both.shape[1], -1))


def transformed(kernel: Array) -> Array:
    """(16, below, above) G g Gᵀ of a kernel (9, below, above)."""
    return namespace(kernel).reshape(_on_both_sides(_KERNEL, kernel), (16, *kernel.shape[1:]))


def convolve_by_transform(images: Array, filters: Array, out: Array) -> None:
    """The convolution of images (batch, rows, columns, below) with transformed kernels, into ``out``."""
    xp, (_, rows, columns, below) = namespace(images), images.shape
    down, across = -(-rows // 2), -(-columns // 2)
    step = max(1, CHUNK // (16 * down * across * (below + filters.shape[2])))
    for first in range(0, images.shape[0], step):
        part = images[first : first + step]
        padded, inside = bordered(part, (part.shape[0], 2 * down, 2 * across, below), Window())
        inside[:, :rows, :columns] = part
        places = [padded[:, i : i + 2 * down : 2, j : j + 2 * across : 2] for i in range(4) for j in range(4)]
        products = xp.reshape(_on_both_sides(_INPUT, xp.stack(places)), (16, -1, below)) @ filters
        four = xp.reshape(_on_both_sides(_OUTPUT, products), (2, 2, part.shape[0], down, across, -1))
        whole = xp.reshape(xp.permute_dims(four, (2, 3, 0, 4, 1, 5)), (part.shape[0], 2 * down, 2 * across, -1))
        out[first : first + step] = whole[:, :rows, :columns]


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
            convolve_by_transform(below, self._filters, out)
            return None
        full = namespace(below).empty((below.shape[0], *self._full), dtype=below.dtype, device=device(below))
        convolve_by_transform(below, self._filters, full)
        if renew or switches is None:
            out[...], switches = max_pool(full)
        else:
            out[...] = pool_where(full, switches)
        return switches

    def backward(self, above: Array, out: Array, switches: Array | None) -> None:
        """Write θᵀ ⋆ Unpool(above) into `out`; zero before the first pooling."""
        if self.pool and switches is None:
            out[...] = 0
        else:
            convolve_by_transform(self.lift(above, switches), self._turned, out)

    def lift(self, above: Array, switches: Array | None) -> Array:
        """The upper layer before pooling: zeros but where a maximum was taken."""
        if not self.pool:
            return above
        if switches is None:
            raise TopologyError("the state has no pooled places; relax it first")
        return unpool(above, switches, self._full)

    def outer(self, below: Array, lifted: Array) -> Array:
        """(3, 3, below, above) Σ over samples and places of pixel ⊗ lifted."""
        gradient = kernel_gradient(below, lifted, Window())
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
        return transformed(self._kernel)

    @cached_property
    def _turned(self) -> Array:
        """Those of the transposed convolution, whose kernel is turned by 180 degrees."""
        xp = namespace(self.weights)
        return transformed(xp.permute_dims(xp.flip(self._kernel, axis=0), (0, 2, 1)))


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
