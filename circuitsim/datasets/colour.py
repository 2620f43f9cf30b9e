"""Colour images from files of numbers only: CIFAR's binary version, ImageNet32's npz form.

The Python versions of these data sets are pickles. Reading a pickle can run any program its author wrote, so they are
refused, and the message names a safe form of the same data.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from circuitsim._npz import npz_headers, read_npz
from circuitsim.datasets.images import ImageData
from circuitsim.datasets.remote import data_directory
from circuitsim.errors import UsageError

SIDE = 32
_PIXELS = 3 * SIDE * SIDE
_BINARY = "the 'binary version (suitable for C programs)'"


Labelled = tuple[np.ndarray, np.ndarray]

FILES: dict[str, tuple[str, tuple[str, ...]]] = {
    "cifar10": ("cifar-10-batches-bin", (*(f"data_batch_{k}.bin" for k in range(1, 6)), "test_batch.bin")),
    "cifar100": ("cifar-100-binary", ("train.bin", "test.bin")),
    "imagenet32": ("imagenet32", ("train_data_batch_1.npz", "val_data.npz")),
}
"""Data set → usual name of its folder, and the files that must be there."""

ABOUT = {
    "cifar10": "60,000 colour images of 10 classes, 32 × 32 pixels; files of CIFAR-10's binary version",
    "cifar100": "60,000 colour images of 100 classes, 32 × 32 pixels; files of CIFAR-100's binary version",
    "imagenet32": "1.3 million colour images of 1,000 classes, 32 × 32 pixels; npz files of ImageNet32x32",
}
"""Data set → a line about it."""


def find_colour(name: str, directory: str | os.PathLike[str] | None = None) -> Path | None:
    """The folder that holds the files of a data set, None where one is missing."""
    usual, files = FILES[name]
    root = data_directory(directory)
    places = [place for place in (root, root / usual) if all((place / file).is_file() for file in files)]
    return places[0] if places else None


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
    if name not in COLOUR:
        raise UsageError(f"there is no data set '{name}' of colour images; there are {', '.join(COLOUR)}")
    root = data_directory(directory)
    if not root.is_dir():
        raise UsageError(f"the data directory {root} does not exist; name the folder of {name} with --data-dir")
    train, test = COLOUR[name](root)
    return ImageData(name, (SIDE, SIDE, 3), *train, *test)


def cifar10(folder: Path) -> tuple[Labelled, Labelled]:
    """``data_batch_1.bin`` … ``data_batch_5.bin`` and ``test_batch.bin``: a label and 3072 bytes each."""
    found = _inside(folder, *FILES["cifar10"], f"{_BINARY} of CIFAR-10")
    *trains, test = [found / name for name in FILES["cifar10"][1]]
    return _records(trains, 1, 10), _records([test], 1, 10)


def cifar100(folder: Path) -> tuple[Labelled, Labelled]:
    """``train.bin`` and ``test.bin``: a coarse label, a fine one (which counts) and 3072 bytes each."""
    found = _inside(folder, *FILES["cifar100"], f"{_BINARY} of CIFAR-100")
    return _records([found / "train.bin"], 2, 100), _records([found / "test.bin"], 2, 100)


def imagenet32(folder: Path) -> tuple[Labelled, Labelled]:
    """``train_data_batch_*.npz`` (one or more) and ``val_data.npz``, each with ``data`` and ``labels`` from 1."""
    folder = folder / "imagenet32" if (folder / "imagenet32").is_dir() else folder
    trains = sorted(folder.glob("train_data_batch_*.npz"), key=lambda path: (len(path.name), path.name))
    names = [path.name for path in trains] or ["train_data_batch_1.npz"]
    _inside(folder, "", [*names, "val_data.npz"], "the npz form of ImageNet32x32")
    return _archives(trains), _archives([folder / "val_data.npz"])


COLOUR: dict[str, Callable[[Path], tuple[Labelled, Labelled]]] = {
    "cifar10": cifar10,
    "cifar100": cifar100,
    "imagenet32": imagenet32,
}


def _inside(folder: Path, usual: str, names: Sequence[str], wanted: str) -> Path:
    """The folder, or its usual sub-folder, that holds all files.

    Raises
    ------
    UsageError
        Some are missing; names pickles that are there instead.
    """
    for place in (folder, folder / usual):
        if all((place / name).is_file() for name in names):
            return place
    for place in sorted({folder, *folder.glob("*/")}):
        for path in sorted(place.iterdir()) if place.is_dir() else ():
            if path.is_file() and _is_pickle(path):
                raise UsageError(
                    f"{path} is a pickle, and reading a pickle runs whatever program is in it, so it is not read\n"
                    f"    hint: download {wanted}; its files are {', '.join(names[:2])}, …\n"
                    "    hint: docs/models.md has five lines that write it from a pickle of trusted origin"
                )
    missing = next(name for name in names if not (folder / name).is_file())
    raise UsageError(f"there is no {missing} in {folder}\n    hint: --data-dir names a folder that holds {wanted}")


def _is_pickle(path: Path) -> bool:
    """Whether a file begins like a pickle: protocol 2 and above, or protocol 0 or 1 of a dictionary."""
    with open(path, "rb") as file:
        head = file.read(4)
    return (head[:1] == b"\x80" and len(head) > 1 and 2 <= head[1] <= 5) or head[:2] in (b"(d", b"}q", b"(l")


def _records(paths: Sequence[Path], label_bytes: int, classes: int) -> Labelled:
    """All records of several files: the last label byte counts, planes become channels."""
    images, labels = [], []
    for path in paths:
        size = path.stat().st_size
        length = label_bytes + _PIXELS
        if size == 0 or size % length:
            raise UsageError(f"{path} is cut short or no such file: {size} bytes are no records of {length}")
        records = np.fromfile(path, np.uint8).reshape(-1, length)
        labels.append(records[:, label_bytes - 1].astype(np.int64))
        if labels[-1].max() >= classes:
            raise UsageError(f"{path} has labels up to {labels[-1].max()}, where there are {classes} classes")
        images.append(_channels_last(records[:, label_bytes:]))
    return np.concatenate(images), np.concatenate(labels)


def _archives(paths: Sequence[Path]) -> Labelled:
    """``data`` and ``labels`` of npz files, one after the other into memory made once."""
    shapes = [_shape_in(path) for path in paths]
    images = np.empty((sum(shapes), _PIXELS), np.uint8)
    labels = np.empty(len(images), np.int64)
    start = 0
    for path, count in zip(paths, shapes, strict=True):
        arrays = read_npz(path, ("data", "labels"))
        if arrays["labels"].shape != (count,) or arrays["labels"].dtype.kind not in "iu":
            raise UsageError(f"{path}: 'labels' must be {count} whole numbers, one for each row of 'data'")
        images[start : start + count] = _channels_last(arrays["data"])
        labels[start : start + count] = arrays["labels"]
        start += count
    if labels.min() < 1 or labels.max() > 1000:
        raise UsageError(f"{paths[0].parent}: labels of ImageNet32 are 1 to 1000, not {labels.min()} to {labels.max()}")
    return images, labels - 1


def _shape_in(path: Path) -> int:
    """Samples in an npz file, from the header of its ``data``."""
    ((shape, dtype),) = npz_headers(path, ("data",))
    if len(shape) != 2 or shape[1] != _PIXELS or dtype != np.uint8 or not shape[0]:
        raise UsageError(f"'data' in {path} must be rows of {_PIXELS} bytes, one or more, not {dtype} {shape}")
    return int(shape[0])


def _channels_last(planes: np.ndarray) -> np.ndarray:
    """Rows of three planes as rows of pixels."""
    pixels = planes.reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(pixels).reshape(len(planes), _PIXELS)
