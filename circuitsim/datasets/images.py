"""Labelled images as rows of bytes, ready for training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from circuitsim.datasets.idx import read_idx
from circuitsim.errors import UsageError


@dataclass(frozen=True)
class ImageData:
    """Images and labels.

    Attributes
    ----------
    name : str
        As `load_images` takes it.
    shape : tuple of int
        Rows and columns of an image.
    train, test : (samples, pixels) ndarray of uint8
        One image in each row; 255 is full intensity.
    train_labels, test_labels : (samples,) ndarray of int64
    """

    name: str
    shape: tuple[int, int]
    train: np.ndarray
    train_labels: np.ndarray
    test: np.ndarray
    test_labels: np.ndarray


def _digits(directory: Path | None) -> ImageData:
    """scikit-learn's 1797 digits of 8 × 8 pixels; a fixed fifth of them is kept for testing."""
    try:
        from sklearn.datasets import load_digits
    except ImportError as problem:
        raise UsageError(
            "the digits come with scikit-learn, which is not installed: pip install scikit-learn"
        ) from problem
    pixels, labels = load_digits(return_X_y=True)
    images = np.rint(pixels * (255 / 16)).astype(np.uint8)
    order = np.random.default_rng(0).permutation(len(images))
    test, train = order[:360], order[360:]
    labels = labels.astype(np.int64)
    return ImageData("digits", (8, 8), images[train], labels[train], images[test], labels[test])


def _mnist(directory: Path | None) -> ImageData:
    """MNIST from its four idx files, gzipped or not."""
    if directory is None:
        raise UsageError("MNIST needs --data-dir: a directory with its four idx files (train-images-idx3-ubyte.gz, …)")
    if not directory.is_dir():
        raise UsageError(f"the data directory {directory} does not exist")

    def read(stem: str) -> np.ndarray:
        plain = directory / stem
        return read_idx(plain if plain.is_file() else directory / f"{stem}.gz")

    train, test = read("train-images-idx3-ubyte"), read("t10k-images-idx3-ubyte")
    train_labels, test_labels = read("train-labels-idx1-ubyte"), read("t10k-labels-idx1-ubyte")
    for images, labels, which in ((train, train_labels, "training"), (test, test_labels, "test")):
        if images.ndim != 3 or labels.ndim != 1 or len(images) != len(labels):
            raise UsageError(
                f"the {which} images and labels in {directory} do not belong together: "
                f"shapes {images.shape} and {labels.shape}"
            )
    rows, columns = train.shape[1:]
    return ImageData(
        "mnist",
        (rows, columns),
        train.reshape(len(train), -1),
        train_labels.astype(np.int64),
        test.reshape(len(test), -1),
        test_labels.astype(np.int64),
    )


DATASETS: dict[str, Callable[[Path | None], ImageData]] = {"digits": _digits, "mnist": _mnist}


def load_images(name: str, directory: Path | None = None) -> ImageData:
    """One of the data sets by name.

    Parameters
    ----------
    name : {"digits", "mnist"}
    directory : Path, optional
        Where the files of ``mnist`` are.
    """
    if name not in DATASETS:
        raise UsageError(f"there is no data set '{name}'; there are {', '.join(DATASETS)}")
    return DATASETS[name](directory)
