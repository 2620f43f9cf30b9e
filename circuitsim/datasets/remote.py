"""Data sets to download once: files, checksums, addresses, and the data directory."""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Callable, Sequence
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

from circuitsim._files import atomic_write
from circuitsim.errors import DownloadError, UsageError

DATA_VARIABLE = "CIRCUITSIM_DATA"
"""Environment variable that names the data directory, in place of the user's cache directory."""

_TIMEOUT = 30.0


class RemoteFile(NamedTuple):
    """A file of a data set, stored unpacked under ``name`` and served gzipped as ``name.gz``.

    ``size`` (bytes) and ``sha256`` are those of the unpacked content: mirrors compress differently.
    """

    name: str
    size: int
    sha256: str


class RemoteSet(NamedTuple):
    """A data set: a line about it, its files, and the addresses of the folders that serve them."""

    about: str
    files: tuple[RemoteFile, ...]
    mirrors: tuple[str, ...]


REMOTE: dict[str, RemoteSet] = {
    "mnist": RemoteSet(
        "70,000 handwritten digits, 28 × 28 pixels",
        (
            RemoteFile(
                "train-images-idx3-ubyte",
                47_040_016,
                "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            ),
            RemoteFile(
                "train-labels-idx1-ubyte", 60_008, "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"
            ),
            RemoteFile(
                "t10k-images-idx3-ubyte", 7_840_016, "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"
            ),
            RemoteFile(
                "t10k-labels-idx1-ubyte", 10_008, "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"
            ),
        ),
        (
            "https://ossci-datasets.s3.amazonaws.com/mnist",
            "https://storage.googleapis.com/cvdf-datasets/mnist",
            "https://raw.githubusercontent.com/fgnt/mnist/master",
        ),
    ),
}


def data_directory(given: str | os.PathLike[str] | None = None) -> Path:
    """The data directory: ``given``, else ``$CIRCUITSIM_DATA``, else the user's cache directory."""
    if given is not None:
        return Path(given)
    if os.environ.get(DATA_VARIABLE):
        return Path(os.environ[DATA_VARIABLE])
    import platformdirs

    return platformdirs.user_cache_path("circuitsim", appauthor=False)


def find(name: str, directory: str | os.PathLike[str] | None = None) -> Path | None:
    """The folder that holds all files of a remote data set, gzipped or not; None if there is none.

    Searches the data directory (see `data_directory`): its folder ``name``, then the directory itself.
    """
    root = data_directory(directory)
    stems = [file.name for file in REMOTE[name].files]
    for folder in (root / name, root):
        if all((folder / stem).is_file() or (folder / f"{stem}.gz").is_file() for stem in stems):
            return folder
    return None


def fetch(
    name: str,
    directory: str | os.PathLike[str] | None = None,
    mirrors: Sequence[str] = (),
    progress: Callable[[str], None] = lambda line: None,
) -> Path:
    """Fetch a data set into the folder ``name`` of the data directory; returns that folder.

    A valid file is not fetched again, so that an interrupted fetch continues;
    a file takes its name only after its content has been checked.

    Parameters
    ----------
    name : str
        A name in `REMOTE`.
    directory : path, optional
        The data directory (see `data_directory`).
    mirrors : sequence of str
        Addresses of folders to try instead of the default ones, in this order.
    progress : callable
        Called with a message for each file, and for each mirror that failed.

    Raises
    ------
    UsageError
        No such data set, or a folder that cannot be written.
    DownloadError
        No mirror delivered a file with the right content.
    """
    if name not in REMOTE:
        raise UsageError(f"there is no data set '{name}' to fetch; there is {', '.join(REMOTE)}")
    folder = data_directory(directory) / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise UsageError(f"cannot make the folder {folder}: {problem.strerror or problem}") from None
    for file in REMOTE[name].files:
        place = folder / file.name
        if place.is_file() and place.stat().st_size == file.size and _is_right(place.read_bytes(), file):
            progress(f"{file.name}: already there")
        else:
            atomic_write(place, _fetched(file, mirrors or REMOTE[name].mirrors, progress))
    return folder


def _is_right(content: bytes, file: RemoteFile) -> bool:
    return hashlib.sha256(content).hexdigest() == file.sha256


def _fetched(file: RemoteFile, mirrors: Sequence[str], progress: Callable[[str], None]) -> bytes:
    """The content of a file, from the first mirror that has it right."""
    failures = []
    for mirror in mirrors:
        address = f"{mirror.rstrip('/')}/{file.name}.gz"
        try:
            with urlopen(address, timeout=_TIMEOUT) as response, gzip.open(response) as packed:
                # What a hostile server sends is unpacked up to the size the content must have.
                content: bytes = packed.read(file.size + 1)
            if not _is_right(content, file):
                raise ValueError(
                    f"the content is longer than the {file.size} bytes it should have"
                    if len(content) > file.size
                    else "the content has a wrong checksum"
                )
        # Errors of addresses and of gzip are OSErrors.
        except (OSError, ValueError, EOFError, HTTPException, zlib.error) as problem:
            failures.append(f"{address}: {problem}")
            progress(failures[-1])
        else:
            progress(f"{file.name}: fetched from {mirror}")
            return content
    tried = "\n    ".join(failures)
    raise DownloadError(
        f"{file.name} could not be fetched:\n    {tried}\n"
        "    hint: try again later, name another --mirror, or put the files into a folder and name it with --data-dir"
    )
