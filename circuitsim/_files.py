"""Atomic file replacement: a file is old or new, never a mixture; errors name the file."""

from __future__ import annotations

import contextlib
import csv
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from circuitsim.errors import UsageError

TEMPORARY = ".part"
"""Suffix of temporary files."""


def atomic_write(path: Path, content: bytes) -> None:
    """Write ``content`` to ``path`` so that a crash at any moment leaves the old file or the new one."""
    with atomic_file(path) as file:
        file.write(content)


def write_file(path: str | os.PathLike[str], content: bytes) -> None:
    """`atomic_write` to a user's path, following links; devices and pipes are written directly."""
    if os.path.exists(path) and not os.path.isfile(path):
        with naming(path), open(path, "wb") as file:
            file.write(content)
    else:
        # The file behind a symbolic link is replaced, not the link.
        atomic_write(Path(os.path.realpath(path)), content)


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which replaces ``path`` when complete.

    The bytes are written to a temporary file in the same folder and flushed to disk; one rename then replaces ``path``.
    Each writer has its own temporary file: of several at once, the last rename wins. A killed process leaves its
    temporary file (`remove_abandoned`); a failure removes it.

    Raises
    ------
    OSError
        With ``path`` as its file name.
    """
    # The name is cut so that the whole remains within the system's limit (255 bytes).
    temporary = path.with_name(f".{path.name[:48]}.{os.urandom(8).hex()}{TEMPORARY}")
    with naming(path):
        try:
            with open(temporary, "xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        _sync_directory(path.parent)


@contextlib.contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Add ``path`` to operating-system errors: those about a full disk or a temporary file do not name it."""
    try:
        yield
    except OSError as error:
        if error.errno is None or isinstance(error, BrokenPipeError):
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def remove_abandoned(directory: Path) -> None:
    """Remove temporary files left by a killed process in a directory that no other process writes to."""
    for left in directory.glob(f".*.{'[0-9a-f]' * 16}{TEMPORARY}"):
        left.unlink(missing_ok=True)


def _sync_directory(directory: Path) -> None:
    """Make the rename survive a power failure, if the system can sync directories."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def no_data(path: Path) -> str:
    """The error message for missing data at a path."""
    return f"no data file {str(path)!r}: {'it is a folder' if path.is_dir() else 'there is no such file'}"


def csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The non-blank rows of a CSV file with their line numbers, cells stripped.

    Raises
    ------
    UsageError
        An unterminated quoted cell or another format error, or a row of other length than the first, with file and
        line.
    """
    width = 0
    with open(path, encoding="utf-8-sig", newline="", errors="surrogateescape") as file:
        reader = csv.reader(file, strict=True)
        try:
            for row in reader:
                cells = [cell.strip() for cell in row]
                if any(cells):
                    width = width or len(cells)
                    if len(cells) != width:
                        raise UsageError(f"{path}:{reader.line_num}: {len(cells)} cells, the header has {width}")
                    yield reader.line_num, cells
        except csv.Error as error:
            raise UsageError(f"{path}:{reader.line_num}: {error}") from None


def finite_number(path: Path, line: int, cell: str) -> float:
    """The number in a cell of a file.

    Raises
    ------
    UsageError
        It is none, or not finite.
    """
    with contextlib.suppress(ValueError):
        if math.isfinite(value := float(cell)):
            return value
    raise UsageError(f"{path}:{line}: {cell[:40]!r} is not a finite number")
