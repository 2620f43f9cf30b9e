"""Convolutional blocks beside their sweeps written out; where the weights of their kernels start."""

import numpy as np
import pytest

from circuitsim.ffebm import Conv2d, ConvolutionalHopfieldBlock, Sweeps


def convolved(images: np.ndarray, kernel: np.ndarray, stride: int = 1, padding: int = 1) -> np.ndarray:
    size = kernel.shape[0]
    padded = np.pad(images, ((0, 0), (padding,) * 2, (padding,) * 2, (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (size, size), axis=(1, 2))[:, ::stride, ::stride]
    return np.einsum("brcaij,ijao->brco", windows, kernel)


def transposed(images: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    return convolved(images, kernel[::-1, ::-1].swapaxes(2, 3))


def squares(images: np.ndarray) -> np.ndarray:
    """(batch, rows/2, columns/2, channels, 4)."""
    batch, rows, columns, channels = images.shape
    parts = images.reshape(batch, rows // 2, 2, columns // 2, 2, channels)
    return parts.transpose(0, 1, 3, 5, 2, 4).reshape(batch, rows // 2, columns // 2, channels, 4)


def unpooled(values: np.ndarray, places: np.ndarray) -> np.ndarray:
    batch, rows, columns, channels = values.shape
    parts = (values[..., None] * np.eye(4)[places]).reshape(batch, rows, columns, channels, 2, 2)
    return parts.transpose(0, 1, 4, 2, 5, 3).reshape(batch, 2 * rows, 2 * columns, channels)


# Even and odd sides; more images than are worked on at a time.
@pytest.mark.parametrize(("image", "channels"), [((8, 8, 6), [8, 5]), ((6, 10, 16), [32, 16])])
@pytest.mark.parametrize(("sweeps", "batch"), [(1, 3), (3, 3), (12, 3), (2, 700)])
def test_sweeps_are_those_written_out(
    image: tuple[int, int, int], channels: list[int], sweeps: int, batch: int
) -> None:
    block = ConvolutionalHopfieldBlock(
        image, channels, [True, False], [7], sweeps=Sweeps(sweeps, sweeps), variance=0.02, dtype=np.float64
    )
    x = np.random.default_rng(2).normal(size=(batch, block.n_inputs))
    first, second, dense = (block.parameters[f"weights{k}"] for k in (1, 2, 3))
    half = image[0] // 2, image[1] // 2
    sizes = [image, (*half, channels[0]), (*half, channels[1]), (7,)]
    _, b, _, d = (np.zeros((batch, *size)) for size in sizes)
    back = 0.0
    for _ in range(sweeps):
        a = np.clip(x.reshape(batch, *image) + back, 0, 1)
        c = np.clip(convolved(b, second) + (d @ dense.T).reshape(batch, *sizes[2]), 0, 1)
        four = squares(convolved(a, first))
        b = np.clip(four.max(axis=-1) + transposed(c, second), 0, 1)
        d = np.clip(c.reshape(batch, -1) @ dense, 0, 1)
        back = transposed(unpooled(b, four.argmax(axis=-1)), first)
    np.testing.assert_allclose(block.relax(x).output, d, atol=1e-12)


@pytest.mark.parametrize(("size", "stride", "padding"), [(3, 1, 1), (3, 2, 1), (2, 2, 0), (5, 1, 2)])
def test_the_stage_is_that_convolution(size: int, stride: int, padding: int) -> None:
    stage = Conv2d(2, 3, size=size, stride=stride, padding=padding)
    images = np.random.default_rng(0).normal(size=(3, 6, 7, 2))
    expected = convolved(images, stage.parameters["weights"], stride, padding)
    np.testing.assert_allclose(stage.forward(images)[0], expected, atol=1e-12)


def test_kernels_start_in_the_gaussian_orthogonal_ensemble() -> None:
    block = ConvolutionalHopfieldBlock((4, 4, 200), [200], [False], variance=0.6, dtype=np.float64)
    slices = block.parameters["weights1"]
    np.testing.assert_array_equal(slices, np.swapaxes(slices, 0, 1))
    np.testing.assert_allclose(slices.var(axis=(2, 3)), 0.2 * (1 + np.eye(3)), rtol=0.03)
