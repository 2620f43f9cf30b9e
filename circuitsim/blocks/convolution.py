"""Convolutions and 2 × 2 pooling on images with channels last: copies into a matrix and one product of matrices.

Images are (batch, rows, columns, channels), arrays of any library. A kernel is a matrix of (size² · channels in,
channels out): row ``(i · size + j) · channels + c`` multiplies the pixel i − padding below and j − padding right of the
output's place.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from circuitsim._arrays import Array, device, namespace

#: Numbers of copied pixels that one product works on: they stay in the caches, and memory is bounded.
CHUNK = 2 << 20


class Window(NamedTuple):
    """A square window that slides over an image."""

    size: int = 3
    stride: int = 1
    padding: int = 1

    def places(self, length: int) -> int:
        """Number of outputs along a side of an image."""
        return (length + 2 * self.padding - self.size) // self.stride + 1


def convolve(images: Array, kernel: Array, window: Window, out: Array | None = None) -> Array:
    """(batch, rows, columns, channels out) of the convolution (a correlation, as in every neural network library)."""
    xp, shape = namespace(images), (*map(window.places, images.shape[1:3]), kernel.shape[1])
    if out is None:
        out = xp.empty((images.shape[0], *shape), dtype=images.dtype, device=device(images))
    for part in _parts(images, window):
        out[part, ...] = xp.reshape(patches(images[part, ...], window) @ kernel, (-1, *shape))
    return out


def convolve_back(above: Array, kernel: Array, window: Window, out: Array) -> None:
    """The transposed map: what `above` pulls at the images with, into `out`."""
    for part in _parts(out, window):
        copies = _matrix(above[part, ...]) @ kernel.T
        out[part, ...] = add_patches(copies, tuple(out[part, ...].shape), window)


def kernel_gradient(images: Array, above: Array, window: Window) -> Array:
    """(size² · channels in, channels out) Σ over samples and places of patch ⊗ above."""
    parts = _parts(images, window)
    return sum(patches(images[part, ...], window).T @ _matrix(above[part, ...]) for part in parts)


def patches(images: Array, window: Window) -> Array:
    """(batch · places, size² · channels) copies of the window's entries."""
    xp, (padded, inside) = namespace(images), _bordered(images, images.shape, window)
    inside[...] = images
    shifted = [padded[at] for at in _shifts(window, *images.shape[1:3])]
    return xp.reshape(xp.concat(shifted, axis=-1), (-1, window.size**2 * images.shape[3]))


def add_patches(copies: Array, shape: tuple[int, ...], window: Window) -> Array:
    """Patches added up where they were copied from: the transpose of `patches`, images of a shape (batch, …)."""
    _, rows, columns, channels = shape
    copies = namespace(copies).reshape(
        copies, (-1, window.places(rows), window.places(columns), window.size**2, channels)
    )
    padded, inside = _bordered(copies, shape, window)
    for place, at in enumerate(_shifts(window, rows, columns)):
        padded[at] += copies[:, :, :, place, :]
    return inside


def max_pool(images: Array) -> tuple[Array, Array]:
    """Maxima of 2 × 2 squares and where they were (0 to 3), the first of equals; an odd last line is left out."""
    xp, four = namespace(images), _quarters(images)
    best = xp.maximum(xp.maximum(four[0], four[1]), xp.maximum(four[2], four[3]))
    less = [xp.astype(part != best, xp.uint8) for part in four[:3]]
    return best, less[0] * (1 + less[1] * (1 + less[2]))


def pool_where(images: Array, switches: Array) -> Array:
    """The entries of 2 × 2 squares at the places given."""
    xp = namespace(images)
    return sum(xp.astype(switches == k, images.dtype) * part for k, part in enumerate(_quarters(images)))


def unpool(pooled: Array, switches: Array, shape: tuple[int, ...]) -> Array:
    """Zeros of (batch, *shape) with each entry at the place it was taken from: the transpose of `pool_where`."""
    xp = namespace(pooled)
    out = xp.zeros((pooled.shape[0], *shape), dtype=pooled.dtype, device=device(pooled))
    for k, part in enumerate(_quarters(out)):
        part[...] = xp.astype(switches == k, pooled.dtype) * pooled
    return out


def _quarters(images: Array) -> list[Array]:
    """The four entries of all 2 × 2 squares."""
    rows, columns = images.shape[1] // 2 * 2, images.shape[2] // 2 * 2
    return [images[:, i:rows:2, j:columns:2, :] for i in (0, 1) for j in (0, 1)]


def _matrix(array: Array) -> Array:
    return namespace(array).reshape(array, (-1, array.shape[-1]))


def _parts(images: Array, window: Window) -> Iterator[slice]:
    """Slices of the batch that are worked on at a time."""
    batch, rows, columns, channels = images.shape
    step = max(1, CHUNK // (window.places(rows) * window.places(columns) * window.size**2 * channels))
    yield from (slice(start, start + step) for start in range(0, batch, step))


def _bordered(like: Array, shape: tuple[int, ...], window: Window) -> tuple[Array, Array]:
    """Zeros for images of a shape with their borders, and the part of them inside."""
    (batch, rows, columns, channels), border = shape, window.padding
    whole = batch, rows + 2 * border, columns + 2 * border, channels
    padded = namespace(like).zeros(whole, dtype=like.dtype, device=device(like))
    return padded, padded[:, border : border + rows, border : border + columns]


def _shifts(window: Window, rows: int, columns: int) -> list[tuple[slice, ...]]:
    """The pixels that each entry of the window meets."""
    size, stride, _ = window
    down, right = stride * window.places(rows), stride * window.places(columns)
    shifts = [(i, j) for i in range(size) for j in range(size)]
    return [(slice(None), slice(i, i + down, stride), slice(j, j + right, stride)) for i, j in shifts]
