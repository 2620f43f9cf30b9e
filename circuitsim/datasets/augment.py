"""Augmentation of training images by random changes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view


@dataclass(frozen=True)
class FlipAndCrop:
    """Mirror half of the images; then take them at a random place of the image padded with its edge.

    Parameters
    ----------
    shape : tuple of int
        Rows, columns and channels; samples may come as rows.
    padding : int
        Pixels added on each side.
    """

    shape: tuple[int, int, int]
    padding: int = 4

    def __call__(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """(batch, …) changed copies."""
        rows, columns, _ = self.shape
        images = x.reshape(-1, *self.shape)
        mirrored = rng.random(len(images)) < 0.5
        images = np.where(mirrored[:, None, None, None], images[:, :, ::-1], images)
        pad = self.padding
        padded = np.pad(images, ((0, 0), (pad, pad), (pad, pad), (0, 0)), mode="edge")
        down, right = rng.integers(2 * pad + 1, size=(2, len(images)))
        windows = sliding_window_view(padded, (rows, columns), axis=(1, 2))
        return np.moveaxis(windows[np.arange(len(images)), down, right], 1, -1).reshape(x.shape)
