"""Convolutions and 2 × 2 pooling on images with channels last: one product of matrices, whose rows are windows.

Images are (batch, rows, columns, channels), arrays of any library. A kernel is (size², channels in, channels out):
entry ``i · size + j`` multiplies the pixel i − padding below and j − padding right of the output's place.
"""

from __future__ import annotations

from typing import NamedTuple

from circuitsim._arrays import Array, device, namespace


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
