"""Colour images from files of numbers only: CIFAR's binary version, ImageNet32's npz form.

The Python versions of these data sets are pickles. Reading a pickle can run any program its author wrote, so they are
not read, and a message names a safe form of the same data.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import numpy as np

from circuitsim._npz import npz_headers, read_npz
from circuitsim.datasets.images import ImageData
from circuitsim.datasets.remote import data_directory
from circuitsim.errors import UsageError

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
