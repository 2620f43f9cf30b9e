"""Data sets: scikit-learn's bundled digits; MNIST, CIFAR and ImageNet32, downloaded once or read from local files."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from circuitsim.datasets.images import COLOUR, ImageData, digits, idx_files, load_colour, mnist, read_idx
from circuitsim.datasets.remote import data_directory, find
from circuitsim.errors import UsageError

__all__ = ["DATASETS", "ImageData", "choose", "load", "read_idx"]

DATASETS: dict[str, Callable[[Path | None], ImageData]] = {
    "digits": digits,
    "mnist": mnist,
    **{name: partial(load_colour, name) for name in COLOUR},
}
"""Name → what reads it, from the data directory."""


def load(name: str | os.PathLike[str], directory: str | os.PathLike[str] | None = None) -> ImageData:
    """Labelled images by name.

    Parameters
    ----------
    name : {"digits", "mnist", "cifar10", "cifar100", "imagenet32"} or path
        A path is a folder with four files of MNIST's form and names.
    directory : path, optional
        The data directory, for a data set that has files (see `circuitsim.datasets.remote.data_directory`).

    Raises
    ------
    UsageError
        No such data set, or its files are missing or damaged; the message names the remedy.
    """
    place = Path(directory) if directory is not None else None
    if isinstance(name, str) and name in DATASETS:
        return DATASETS[name](place)
    folder = Path(name)
    if folder.is_dir():
        return idx_files(folder, str(folder))
    raise UsageError(f"there is no data set '{name}', nor a folder of that name; there are {', '.join(DATASETS)}")


def choose(dataset: str | None, directory: str | None) -> tuple[str, list[str]]:
    """The data set selected by ``--dataset`` and ``--data-dir`` for a model of images, and a note for the user.

    Without ``--dataset`` it is MNIST if it is present or ``--data-dir`` is given; otherwise scikit-learn's digits, with
    a note.

    Parameters
    ----------
    dataset : str or None
        As given; None chooses.
    directory : str or None
        Folder that holds the files.

    Returns
    -------
    name : str
        Of the data set.
    notes : list of str
        What to say about the choice; empty where it was given.
    """
    if dataset is not None:
        return dataset, []
    if directory is not None or find("mnist") is not None:
        return "mnist", []
    note = (
        f"MNIST is not in {data_directory()}: using scikit-learn's bundled digits "
        "(circuitsim data fetch mnist fetches MNIST once)"
    )
    return "digits", [note]
