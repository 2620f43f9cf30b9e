"""Labelled images as rows of bytes, ready for training, and the idx format of the MNIST files: a magic number, the
shape, then bytes in C order.
"""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from circuitsim.datasets.remote import DATA_VARIABLE, data_directory, find
from circuitsim.errors import UsageError

_BYTES = b"\0\0\x08"
_PIECE = 1 << 24


def read_idx(path: Path) -> np.ndarray:
    """Read an ``idx*-ubyte`` file, gzipped (``.gz``) or not; uint8 of the shape the file states.

    No more is unpacked than the header promises.

    Raises
    ------
    UsageError
        The file is missing, damaged or not of this format.
    """
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    try:
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
            magic = file.read(4)
            if len(magic) < 4 or magic[:3] != _BYTES:
                raise UsageError(f"{path} is not an idx file of bytes (its magic number is wrong)")
            begun = 4 + 4 * magic[3]
            sizes = file.read(begun - 4)
            if len(sizes) < begun - 4:
                raise UsageError(f"{path} is truncated: {4 + len(sizes)} bytes, its header alone has {begun}")
            shape = struct.unpack(f">{magic[3]}I", sizes)
            promised, content = math.prod(shape), bytearray()
            while len(content) <= promised and (piece := file.read(min(_PIECE, promised + 1 - len(content)))):
                content += piece
    except (OSError, EOFError, zlib.error) as problem:
        raise UsageError(f"{path} is damaged and cannot be read ({problem})") from problem
    if len(content) != promised:
        found = f"more than {begun + promised}" if len(content) > promised else f"{begun + len(content)}"
        raise UsageError(f"{path} is truncated or too long: {found} bytes where its header states {begun + promised}")
    return np.frombuffer(content, np.uint8).reshape(shape)


@dataclass(frozen=True)
class ImageData:
    """Images and labels.

    Attributes
    ----------
    name : str
        As `load` takes it.
    shape : tuple of int
        Rows and columns of an image, and channels if it is in colour.
    train, test : (samples, pixels) ndarray of uint8
        One image in each row; 255 is full intensity.
    train_labels, test_labels : (samples,) ndarray of int64
    """

    name: str
    shape: tuple[int, ...]
    train: np.ndarray
    train_labels: np.ndarray
    test: np.ndarray
    test_labels: np.ndarray

    @property
    def classes(self) -> int:
        """The largest label and one more."""
        return int(max(self.train_labels.max(), self.test_labels.max())) + 1


def of_scikit_learn(name: str) -> Any:
    """A data set that comes with scikit-learn, as it gives it.

    Parameters
    ----------
    name : {"iris", "digits"}

    Raises
    ------
    UsageError
        scikit-learn is not installed.
    """
    try:
        from sklearn import datasets
    except ImportError:
        raise UsageError(
            f"the data set {name!r} comes with scikit-learn, which is not installed: "
            "pip install 'circuitsim-exact[learn]'"
        ) from None
    return getattr(datasets, f"load_{name}")()


def digits(directory: Path | None) -> ImageData:
    """scikit-learn's 1797 digits of 8 × 8 pixels; a fixed fifth of them is the test set."""
    found = of_scikit_learn("digits")
    order = np.random.default_rng(0).permutation(len(found.data))
    images, labels = np.rint(found.data * (255 / 16)).astype(np.uint8)[order], found.target.astype(np.int64)[order]
    return ImageData("digits", (8, 8), images[360:], labels[360:], images[:360], labels[:360])


def mnist(directory: Path | None) -> ImageData:
    """MNIST from its four idx files, gzipped or not."""
    folder = find("mnist", directory)
    if folder is None:
        raise UsageError(
            f"MNIST is not in {data_directory(directory)}: fetch it once with circuitsim data fetch mnist, or name the "
            f"folder that holds its four idx files with --data-dir or ${DATA_VARIABLE}"
        )
    return idx_files(folder, "mnist")


def idx_files(folder: Path, name: str) -> ImageData:
    """The four files of MNIST's form in a folder."""

    def read(stem: str) -> np.ndarray:
        plain = folder / stem
        return read_idx(plain if plain.is_file() else folder / f"{stem}.gz")

    sets = []
    for which, prefix in (("training", "train"), ("test", "t10k")):
        images, labels = read(f"{prefix}-images-idx3-ubyte"), read(f"{prefix}-labels-idx1-ubyte")
        if images.ndim != 3 or labels.ndim != 1 or len(images) != len(labels) or not images.size:
            raise UsageError(
                f"the {which} images and labels in {folder} do not belong together: "
                f"shapes {images.shape} and {labels.shape}"
            )
        sets.append((images, labels.astype(np.int64)))
    (train, train_labels), (test, test_labels) = sets
    if train.shape[1:] != test.shape[1:]:
        raise UsageError(f"the training and test images in {folder} differ in size: {train.shape} and {test.shape}")
    rows = [images.reshape(len(images), -1) for images in (train, test)]
    return ImageData(name, train.shape[1:], rows[0], train_labels, rows[1], test_labels)


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
