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
from typing import BinaryIO

import numpy as np

from circuitsim.datasets.remote import DATA_VARIABLE, data_directory, find
from circuitsim.errors import UsageError

_BYTES = 0x08
_PIECE = 1 << 24


def read_idx(path: Path) -> np.ndarray:
    """Read an ``idx*-ubyte`` file, gzipped (``.gz``) or not; uint8 of the shape the file states.

    Raises
    ------
    UsageError
        The file is missing, damaged or not of this format.
    """
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    try:
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
            return _read(file, path)
    except (OSError, EOFError, zlib.error) as problem:
        raise UsageError(f"{path} is damaged and cannot be read ({problem})") from problem


def _read(file: gzip.GzipFile | BinaryIO, path: Path) -> np.ndarray:
    """The array; no more is unpacked than the header promises."""
    magic = file.read(4)
    if len(magic) < 4 or magic[:2] != b"\x00\x00" or magic[2] != _BYTES:
        raise UsageError(f"{path} is not an idx file of bytes (its magic number is wrong)")
    sizes = file.read(4 * magic[3])
    if len(sizes) < 4 * magic[3]:
        raise UsageError(f"{path} is cut short: {4 + len(sizes)} bytes, its header alone has {4 + 4 * magic[3]}")
    shape = struct.unpack(f">{magic[3]}I", sizes)
    promised = math.prod(shape)
    content = bytearray()
    while len(content) <= promised and (piece := file.read(min(_PIECE, promised + 1 - len(content)))):
        content += piece
    if len(content) != promised:
        begun = 4 + len(sizes)
        found = f"more than {begun + promised}" if len(content) > promised else f"{begun + len(content)}"
        raise UsageError(f"{path} is cut short or too long: {found} bytes where its header promises {begun + promised}")
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


def digits(directory: Path | None) -> ImageData:
    """scikit-learn's 1797 digits of 8 × 8 pixels; a fixed fifth of them is the test set."""
    try:
        from sklearn.datasets import load_digits
    except ImportError as problem:
        raise UsageError(
            "the digits come with scikit-learn, which is not installed: pip install 'circuitsim-exact[learn]'"
        ) from problem
    pixels, labels = load_digits(return_X_y=True)
    images = np.rint(pixels * (255 / 16)).astype(np.uint8)
    order = np.random.default_rng(0).permutation(len(images))
    test, train = order[:360], order[360:]
    labels = labels.astype(np.int64)
    return ImageData("digits", (8, 8), images[train], labels[train], images[test], labels[test])


def mnist(directory: Path | None) -> ImageData:
    """MNIST from its four idx files, gzipped or not."""
    if directory is not None and not directory.is_dir():
        raise UsageError(f"the data directory {directory} does not exist")
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

    train, test = read("train-images-idx3-ubyte"), read("t10k-images-idx3-ubyte")
    train_labels, test_labels = read("train-labels-idx1-ubyte"), read("t10k-labels-idx1-ubyte")
    for images, labels, which in ((train, train_labels, "training"), (test, test_labels, "test")):
        if images.ndim != 3 or labels.ndim != 1 or len(images) != len(labels):
            raise UsageError(
                f"the {which} images and labels in {folder} do not belong together: "
                f"shapes {images.shape} and {labels.shape}"
            )
        if not images.size:
            raise UsageError(f"the {which} images in {folder} are none: their shape is {images.shape}")
    if train.shape[1:] != test.shape[1:]:
        raise UsageError(f"the training and test images in {folder} differ in size: {train.shape} and {test.shape}")
    rows, columns = train.shape[1:]
    return ImageData(
        name,
        (rows, columns),
        train.reshape(len(train), -1),
        train_labels.astype(np.int64),
        test.reshape(len(test), -1),
        test_labels.astype(np.int64),
    )
