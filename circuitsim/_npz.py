"""Safe reading of npz files: no pickles, and memory bounded by the file's content."""

from __future__ import annotations

import contextlib
import math
import os
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from circuitsim.errors import UsageError

# Deflate compresses at most 1032 bytes into one: an archive that claims more is damaged or hostile.
_PACKED_AT_MOST = 1040
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}

Header = tuple[tuple[int, ...], np.dtype[Any]]


def read_npz(path: Path, names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
    """Arrays of an npz file by name, each verified against the archive's checksum.

    Parameters
    ----------
    path : Path
        The file.
    names : sequence of str, optional
        Which arrays; all of them if not given.

    Raises
    ------
    UsageError
        The file is missing, damaged, or has no such array. Sizes are checked before memory is allocated.
    """
    with _opened(path) as archive:
        found = {}
        for name, member in _members(archive, names, path).items():
            _header(archive, member, path)
            with archive.open(member) as file:
                found[name] = np.lib.format.read_array(file, allow_pickle=False)
        return found


def npz_headers(path: Path, names: Sequence[str]) -> list[Header]:
    """Shapes and types of arrays of an npz file; raises like `read_npz`.

    Raises
    ------
    UsageError
        The file is missing, damaged, or has no such array.
    """
    with _opened(path) as archive:
        return [_header(archive, member, path) for member in _members(archive, names, path).values()]


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open the archive; errors of the zip, deflate and npy parsers become a `UsageError`."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except (UsageError, MemoryError):
        raise
    except Exception as problem:
        raise UsageError(f"{path} is damaged and cannot be read as npz ({problem})") from problem


def _members(archive: zipfile.ZipFile, names: Sequence[str] | None, path: Path) -> dict[str, str]:
    """Name of the array → name in the archive."""
    there = {name.removesuffix(".npy"): name for name in archive.namelist()}
    if names is None:
        return there
    if missing := [name for name in names if name not in there]:
        raise UsageError(f"{path}: there is no array {' and '.join(missing)}")
    return {name: there[name] for name in names}


def _header(archive: zipfile.ZipFile, name: str, path: Path) -> Header:
    """Shape and type of the array in a member of the archive.

    Raises
    ------
    ValueError
        Its content is pickled, or its length differs from its header.
    """
    info = archive.getinfo(name)
    with archive.open(name) as file:
        version = np.lib.format.read_magic(file)
        if version not in _HEADERS:
            raise ValueError(f"{name} is of version {version} of the npy format")
        shape, _, dtype = _HEADERS[version](file)
        stored = info.file_size - file.tell()
    if dtype.hasobject:
        raise ValueError(f"{name} holds Python objects, which are pickles; they are not read")
    packed = min(info.compress_size, os.path.getsize(path))
    if stored != math.prod(shape) * dtype.itemsize or info.file_size > _PACKED_AT_MOST * packed + 1024:
        raise ValueError(f"{name} is said to be {dtype} {shape}, its content is of another size")
    return shape, dtype
