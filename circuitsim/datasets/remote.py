"""Data sets to download once: files, checksums, addresses, and the data directory."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from circuitsim.errors import DownloadError, UsageError

DATA_VARIABLE = "CIRCUITSIM_DATA"
"""Environment variable that names the data directory, in place of the user's cache directory."""

_TIMEOUT = 30.0
_CHUNK = 1 << 16


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


def _pooch() -> Any:
    """The package that fetches files, an extra.

    Raises
    ------
    UsageError
        It is not installed.
    """
    try:
        import pooch
    except ImportError:
        raise UsageError("fetching data sets needs pooch: pip install 'circuitsim-exact[data]'") from None
    return pooch


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
        Told what became of each file, and why a mirror failed.

    Raises
    ------
    UsageError
        No such data set, a folder that cannot be written, or pooch is not installed.
    DownloadError
        No mirror delivered a file with the right content.
    """
    if name not in REMOTE:
        raise UsageError(f"there is no data set '{name}' to fetch; there is {', '.join(REMOTE)}")
    pooch = _pooch()
    pooch.get_logger().setLevel("ERROR")
    folder = data_directory(directory) / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise UsageError(f"cannot make the folder {folder}: {problem.strerror or problem}") from None
    for file in REMOTE[name].files:
        if _is_right(folder / file.name, file):
            progress(f"{file.name}: already there")
            continue
        _fetch_file(file, folder, mirrors or REMOTE[name].mirrors, progress)
    return folder


def _is_right(path: Path, file: RemoteFile) -> bool:
    return path.is_file() and path.stat().st_size == file.size and _pooch().file_hash(str(path)) == file.sha256


def _fetch_file(file: RemoteFile, folder: Path, mirrors: Sequence[str], progress: Callable[[str], None]) -> None:
    """One file from the first mirror that has it right."""
    pooch = _pooch()
    failures = []
    for mirror in mirrors:
        address = f"{mirror.rstrip('/')}/{file.name}.gz"
        try:
            pooch.retrieve(
                address, f"sha256:{file.sha256}", fname=file.name, path=folder, downloader=_Unpacking(file.size)
            )
        # requests' errors are OSErrors; a wrong hash is a ValueError.
        except (OSError, ValueError, EOFError, zlib.error) as problem:
            failures.append(f"{address}: {_reason(problem)}")
            progress(failures[-1])
        else:
            # Temporary files are for their owner alone; a data directory may serve several people.
            (folder / file.name).chmod(0o644)
            progress(f"{file.name}: fetched from {mirror}")
            return
    tried = "\n    ".join(failures)
    raise DownloadError(
        f"{file.name} could not be fetched:\n    {tried}\n"
        "    hint: try again later, name another --mirror, or put the files into a folder and name it with --data-dir"
    )


def _reason(problem: Exception) -> str:
    """One line that a person can use."""
    if isinstance(problem, ValueError) and "hash" in str(problem):
        return "the content is not what it should be (wrong checksum)"
    return str(problem).splitlines()[0] if str(problem) else type(problem).__name__


class _Unpacking:
    """A pooch downloader that unpacks while it writes, and stops at the size the content must have."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __call__(self, url: str, output_file: Any, pooch: Any) -> None:
        """Fetch ``url`` and write its unpacked content to ``output_file``, a path."""
        import requests

        with requests.get(url, stream=True, timeout=_TIMEOUT) as response, open(output_file, "wb") as out:
            response.raise_for_status()
            _unpack(response.iter_content(_CHUNK), out, self.size)


def _unpack(chunks: Iterator[bytes], out: BinaryIO, size: int) -> None:
    """Write the gzip stream ``chunks`` unpacked; memory does not grow with what a hostile server sends."""
    unpacker = zlib.decompressobj(wbits=31)
    written = 0
    for packed in chunks:
        while packed:
            part = unpacker.decompress(packed, _CHUNK)
            packed = unpacker.unconsumed_tail
            written += len(part)
            if written > size:
                raise ValueError(f"the content is longer than the {size} bytes it should have")
            out.write(part)
        if unpacker.eof:
            break
    if not unpacker.eof:
        raise EOFError(f"the download stopped early, after {written} of {size} unpacked bytes")
