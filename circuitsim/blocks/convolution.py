"""Convolutions and 2 × 2 pooling on images with channels last: copies into a matrix and one BLAS product.

Images are (batch, rows, columns, channels). A kernel is a matrix of (size² · channels in, channels out): row
``(i · size + j) · channels + c`` multiplies the pixel i − padding below and j − padding right of the output's place.
For numpy arrays the copies are compiled loops; the functions named ``plain_*`` are their twins in the array API, and
serve every other library.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from circuitsim._arrays import Array, device, namespace
from circuitsim._jit import jit
from circuitsim.blocks.memory import scratch

#: Bytes of copied pixels that one product works on; smaller ones lose more in BLAS than they win in the caches.
CHUNK = 8 << 20


class Window(NamedTuple):
    """A square window that slides over an image."""

    size: int = 3
    stride: int = 1
    padding: int = 1

    def places(self, length: int) -> int:
        """Number of outputs along a side of an image."""
        return (length + 2 * self.padding - self.size) // self.stride + 1

    def output(self, shape: tuple[int, ...], channels: int) -> tuple[int, int, int]:
        """Shape of the output for an image of this shape."""
        return self.places(shape[0]), self.places(shape[1]), channels


def convolve(images: Array, kernel: Array, window: Window, out: Array | None = None) -> Array:
    """(batch, rows, columns, channels out) of the convolution (a correlation, as in every neural network library)."""
    xp = namespace(images)
    shape = window.output(images.shape[1:], kernel.shape[1])
    if not isinstance(images, np.ndarray):
        result = xp.reshape(plain_patches(images, window) @ kernel, (images.shape[0], *shape))
        if out is None:
            return result
        out[...] = result
        return out
    if out is None:
        out = np.empty((len(images), *shape), images.dtype)
    for part, patches in _chunks(images, window):
        _copy_patches(images[part], *window, patches)
        np.matmul(patches, kernel, out=_matrix(out[part]))
    return out


def convolve_back(above: Array, kernel: Array, window: Window, out: Array) -> None:
    """The transposed map: what `above` pulls at the images with, into `out`."""
    if not isinstance(above, np.ndarray):
        xp = namespace(above)
        patches = xp.reshape(above, (-1, above.shape[-1])) @ kernel.T
        out[...] = plain_add_patches(patches, tuple(out.shape), window)
        return
    for part, patches in _chunks(out, window):
        np.matmul(_matrix(above[part]), kernel.T, out=patches)
        _add_patches(patches, *window, out[part])


def kernel_gradient(images: Array, above: Array, window: Window) -> Array:
    """(size² · channels in, channels out) Σ over samples and places of patch ⊗ above."""
    if not isinstance(images, np.ndarray):
        return plain_patches(images, window).T @ namespace(above).reshape(above, (-1, above.shape[-1]))
    total = np.zeros((window.size**2 * images.shape[-1], above.shape[-1]), images.dtype)
    for part, patches in _chunks(images, window):
        _copy_patches(images[part], *window, patches)
        total += patches.T @ _matrix(above[part])
    return total


def max_pool(images: Array, out: Array | None = None) -> tuple[Array, Array]:
    """Maxima of 2 × 2 squares and where they were (0 to 3), the first of equals; an odd last line is left out."""
    if not isinstance(images, np.ndarray):
        found, switches = plain_max_pool(images)
        if out is None:
            return found, switches
        out[...] = found
        return out, switches
    batch, rows, columns, channels = images.shape
    if out is None:
        out = np.empty((batch, rows // 2, columns // 2, channels), images.dtype)
    switches = np.empty(out.shape, np.uint8)
    _pool_max(images, out, switches)
    return out, switches


def pool_where(images: Array, switches: Array) -> Array:
    """The entries of 2 × 2 squares at the places given."""
    if not isinstance(images, np.ndarray):
        return plain_pool_where(images, switches)
    out = np.empty(switches.shape, images.dtype)
    _pool_where(images, switches, out)
    return out


def unpool(pooled: Array, switches: Array, shape: tuple[int, ...]) -> Array:
    """Zeros of (batch, *shape) with each entry at the place it was taken from: the transpose of `pool_where`."""
    if not isinstance(pooled, np.ndarray):
        return plain_unpool(pooled, switches, shape)
    out = np.empty((len(pooled), *shape), pooled.dtype)
    _unpool(pooled, switches, out)
    return out


def plain_patches(images: Array, window: Window) -> Array:
    """(batch · places, size² · channels) copies of the window's entries."""
    xp = namespace(images)
    size, stride, padding = window
    batch, rows, columns, channels = images.shape
    padded = xp.zeros(
        (batch, rows + 2 * padding, columns + 2 * padding, channels), dtype=images.dtype, device=device(images)
    )
    padded[:, padding : padding + rows, padding : padding + columns, :] = images
    out_rows, out_columns = window.places(rows), window.places(columns)
    shifted = [
        padded[:, i : i + stride * out_rows : stride, j : j + stride * out_columns : stride, :]
        for i in range(size)
        for j in range(size)
    ]
    return xp.reshape(xp.concat(shifted, axis=-1), (batch * out_rows * out_columns, -1))


def plain_add_patches(patches: Array, shape: tuple[int, ...], window: Window) -> Array:
    """Patches added up where they were copied from."""
    xp = namespace(patches)
    size, stride, padding = window
    batch, rows, columns, channels = shape
    out_rows, out_columns = window.places(rows), window.places(columns)
    patches = xp.reshape(patches, (batch, out_rows, out_columns, size * size, channels))
    padded = xp.zeros(
        (batch, rows + 2 * padding, columns + 2 * padding, channels), dtype=patches.dtype, device=device(patches)
    )
    for place in range(size * size):
        i, j = divmod(place, size)
        padded[:, i : i + stride * out_rows : stride, j : j + stride * out_columns : stride, :] += patches[
            :, :, :, place, :
        ]
    return padded[:, padding : padding + rows, padding : padding + columns, :]


def _quarters(images: Array) -> list[Array]:
    """The four entries of all 2 × 2 squares."""
    rows, columns = images.shape[1] // 2 * 2, images.shape[2] // 2 * 2
    return [images[:, i:rows:2, j:columns:2, :] for i in (0, 1) for j in (0, 1)]


def plain_max_pool(images: Array) -> tuple[Array, Array]:
    """As `max_pool`."""
    xp = namespace(images)
    four = xp.stack(_quarters(images), axis=-1)
    return xp.max(four, axis=-1), xp.astype(xp.argmax(four, axis=-1), xp.uint8)


def plain_pool_where(images: Array, switches: Array) -> Array:
    """As `pool_where`."""
    xp = namespace(images)
    return sum(xp.astype(switches == k, images.dtype) * part for k, part in enumerate(_quarters(images)))


def plain_unpool(pooled: Array, switches: Array, shape: tuple[int, ...]) -> Array:
    """As `unpool`."""
    xp = namespace(pooled)
    out = xp.zeros((pooled.shape[0], *shape), dtype=pooled.dtype, device=device(pooled))
    for k, part in enumerate(_quarters(out)):
        part[...] = xp.astype(switches == k, pooled.dtype) * pooled
    return out


def _matrix(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1, array.shape[-1])


def _chunks(images: np.ndarray, window: Window) -> Iterator[tuple[slice, np.ndarray]]:
    """Slices of the batch, each with memory for its patches."""
    batch, rows, columns, channels = images.shape
    places, width = window.places(rows) * window.places(columns), window.size**2 * channels
    step = max(1, min(batch, CHUNK // (places * width * images.itemsize)))
    for start in range(0, batch, step):
        part = slice(start, min(start + step, batch))
        yield part, scratch("patches", (part.stop - start) * places * width, images.dtype).reshape(-1, width)


@jit(unroll=True)
def _copy_patches(images, size, stride, padding, out):
    batch, rows, columns, channels = images.shape
    out_rows = (rows + 2 * padding - size) // stride + 1
    out_columns = (columns + 2 * padding - size) // stride + 1
    place = 0
    for b in range(batch):
        for r in range(out_rows):
            for q in range(out_columns):
                for i in range(size):
                    y = r * stride + i - padding
                    for j in range(size):
                        x = q * stride + j - padding
                        start = (i * size + j) * channels
                        if 0 <= y < rows and 0 <= x < columns:
                            for c in range(channels):
                                out[place, start + c] = images[b, y, x, c]
                        else:
                            for c in range(channels):
                                out[place, start + c] = 0
                place += 1


@jit(unroll=True)
def _add_patches(patches, size, stride, padding, out):
    batch, rows, columns, channels = out.shape
    out_rows = (rows + 2 * padding - size) // stride + 1
    out_columns = (columns + 2 * padding - size) // stride + 1
    out[:] = 0
    place = 0
    for b in range(batch):
        for r in range(out_rows):
            for q in range(out_columns):
                for i in range(size):
                    y = r * stride + i - padding
                    for j in range(size):
                        x = q * stride + j - padding
                        start = (i * size + j) * channels
                        if 0 <= y < rows and 0 <= x < columns:
                            for c in range(channels):
                                out[b, y, x, c] += patches[place, start + c]
                place += 1


@jit(unroll=True)
def _pool_max(images, out, switches):
    batch, rows, columns, channels = out.shape
    for b in range(batch):
        for r in range(rows):
            for q in range(columns):
                for c in range(channels):
                    best, where = images[b, 2 * r, 2 * q, c], 0
                    for k in range(1, 4):
                        value = images[b, 2 * r + k // 2, 2 * q + k % 2, c]
                        if value > best:
                            best, where = value, k
                    out[b, r, q, c] = best
                    switches[b, r, q, c] = where


@jit(unroll=True)
def _pool_where(images, switches, out):
    batch, rows, columns, channels = out.shape
    for b in range(batch):
        for r in range(rows):
            for q in range(columns):
                for c in range(channels):
                    k = switches[b, r, q, c]
                    out[b, r, q, c] = images[b, 2 * r + k // 2, 2 * q + k % 2, c]


@jit(unroll=True)
def _unpool(pooled, switches, out):
    batch, rows, columns, channels = pooled.shape
    out[:] = 0
    for b in range(batch):
        for r in range(rows):
            for q in range(columns):
                for c in range(channels):
                    k = switches[b, r, q, c]
                    out[b, 2 * r + k // 2, 2 * q + k % 2, c] = pooled[b, r, q, c]
