"""Labelled images as rows of bytes, ready for training, and the idx format of the MNIST files: a magic number, the
shape, then bytes in C order.

Colour images from files of numbers only: CIFAR's binary version, ImageNet32's npz form.

The Python versions of these data sets are pickles. Reading a pickle can run any program its author wrote, so they are
not read, and a message names a safe form of the same data.
"""

from __future__ import annotations

import gzip
import math
import os
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from circuitsim._npz import npz_headers, read_npz
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


SIDE = 32
_PIXELS = 3 * SIDE * SIDE
_BINARY = "the 'binary version (suitable for C programs)'"

Labelled = tuple[np.ndarray, np.ndarray]


class Form(NamedTuple):
    """The files of a data set.

    Attributes
    ----------
    about : str
        A line about it.
    folder : str
        Usual name of their folder.
    train, test
        Files that must be there.
    wanted : str
        What to download.
    label_bytes, classes : int
        Of a record, where files are records of labels and pixels: CIFAR-100 has a coarse label before the one that
        counts. Otherwise files are npz, with ``data`` and ``labels`` from 1.
    """

    about: str
    folder: str
    train: tuple[str, ...]
    test: str
    wanted: str
    label_bytes: int = 0
    classes: int = 1000

    def inside(self, root: Path) -> Path | None:
        """The folder, or its usual sub-folder, that holds all files."""
        places = (root, root / self.folder)
        return next((p for p in places if all((p / name).is_file() for name in (*self.train, self.test))), None)


COLOUR = {
    "cifar10": Form(
        "60,000 colour images of 10 classes, 32 × 32 pixels; files of CIFAR-10's binary version",
        "cifar-10-batches-bin",
        tuple(f"data_batch_{k}.bin" for k in range(1, 6)),
        "test_batch.bin",
        f"{_BINARY} of CIFAR-10",
        1,
        10,
    ),
    "cifar100": Form(
        "60,000 colour images of 100 classes, 32 × 32 pixels; files of CIFAR-100's binary version",
        "cifar-100-binary",
        ("train.bin",),
        "test.bin",
        f"{_BINARY} of CIFAR-100",
        2,
        100,
    ),
    "imagenet32": Form(
        "1.3 million colour images of 1,000 classes, 32 × 32 pixels; npz files of ImageNet32x32",
        "imagenet32",
        ("train_data_batch_1.npz",),
        "val_data.npz",
        "the npz form of ImageNet32x32",
    ),
}


def load_colour(name: str, directory: str | os.PathLike[str] | None = None) -> ImageData:
    """A data set of 32 × 32 colour images, rows of bytes with the channels of a pixel side by side.

    Parameters
    ----------
    name : {"cifar10", "cifar100", "imagenet32"}
    directory : path, optional
        The folder of its files, or the data directory that holds such a folder.

    Raises
    ------
    UsageError
        Files that are missing, damaged, or pickles.
    """
    form, root = COLOUR[name], data_directory(directory)
    place = form.inside(root)
    if place is None:
        missing = next(name for name in (*form.train, form.test) if not (root / name).is_file())
        raise UsageError(
            f"there is no {missing} in {root}\n    hint: --data-dir names a folder that holds {form.wanted}\n"
            "    hint: files of the Python version are pickles, which can run any program and are not read; "
            "docs/models.md has five lines that convert one of trusted origin"
        )
    if form.label_bytes:
        sets = [_records([place / own for own in names], form) for names in (form.train, (form.test,))]
    else:
        trains = sorted(place.glob("train_data_batch_*.npz"), key=lambda path: (len(path.name), path.name))
        sets = [_archives(trains), _archives([place / form.test])]
    return ImageData(name, (SIDE, SIDE, 3), *sets[0], *sets[1])


def _records(paths: Sequence[Path], form: Form) -> Labelled:
    """All records of several files: the last label byte counts, planes become channels."""
    images, labels = [], []
    for path in paths:
        size = path.stat().st_size
        length = form.label_bytes + _PIXELS
        if size == 0 or size % length:
            raise UsageError(f"{path} is truncated or not such a file: {size} bytes are not records of {length}")
        records = np.fromfile(path, np.uint8).reshape(-1, length)
        labels.append(records[:, form.label_bytes - 1].astype(np.int64))
        if labels[-1].max() >= form.classes:
            raise UsageError(f"{path} has labels up to {labels[-1].max()}, where there are {form.classes} classes")
        images.append(_channels_last(records[:, form.label_bytes :]))
    return np.concatenate(images), np.concatenate(labels)


def _archives(paths: Sequence[Path]) -> Labelled:
    """``data`` and ``labels`` of npz files, one after the other into memory made once."""
    counts = []
    for path in paths:
        (shape, dtype), (each, kind) = npz_headers(path, ("data", "labels"))
        if shape[1:] != (_PIXELS,) or dtype != np.uint8 or not shape[0] or each != shape[:1] or kind.kind not in "iu":
            raise UsageError(
                f"{path}: 'data' must be rows of {_PIXELS} bytes, one or more, and 'labels' a whole number for each, "
                f"not {dtype} {shape} and {kind} {each}"
            )
        counts.append(shape[0])
    images, labels = np.empty((sum(counts), _PIXELS), np.uint8), np.empty(sum(counts), np.int64)
    for path, end, count in zip(paths, accumulate(counts), counts):
        arrays = read_npz(path, ("data", "labels"))
        images[end - count : end], labels[end - count : end] = _channels_last(arrays["data"]), arrays["labels"]
    if labels.min() < 1 or labels.max() > 1000:
        raise UsageError(f"{paths[0].parent}: labels of ImageNet32 are 1 to 1000, not {labels.min()} to {labels.max()}")
    return images, labels - 1


def _channels_last(planes: np.ndarray) -> np.ndarray:
    """Rows of three planes as rows of pixels."""
    pixels = planes.reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(pixels).reshape(len(planes), _PIXELS)
