"""Atomic file replacement: a file is the old or the new one, never half of either; errors name the file."""

from __future__ import annotations

import contextlib
import csv
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from circuitsim.errors import UsageError

TEMPORARY = ".part"
"""How the names of temporary files end."""


def atomic_write(path: Path, content: bytes) -> None:
    """Write ``content`` to ``path`` so that a crash at any moment leaves the old file or the new one."""
    with atomic_file(path) as file:
        file.write(content)


def write_file(path: str | os.PathLike[str], content: bytes) -> None:
    """`atomic_write` for a name that a person gave: the file behind a link; devices and pipes as they are."""
    if os.path.exists(path) and not os.path.isfile(path):
        with naming(path), open(path, "wb") as file:
            file.write(content)
    else:
        # The file behind a symbolic link is replaced, not the link.
        atomic_write(Path(os.path.realpath(path)), content)


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which becomes ``path`` when all is written and the old one stays until then.

    The bytes go to a temporary file beside it, are flushed to the disk, and take the name in one rename. Each writing
    has a temporary file of its own: of several at once the last one counts. A killed process leaves its temporary file
    (`remove_abandoned`); a failure removes it.

    Raises
    ------
    OSError
        With ``path`` as its file name.
    """
    # The name is cut so that a long one plus the rest is still a name the system takes (255 bytes).
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
    """Give ``path`` to the system's complaints: those about a full disk or a temporary file do not name it."""
    try:
        yield
    except OSError as error:
        if error.errno is None or isinstance(error, BrokenPipeError):
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def remove_abandoned(directory: Path) -> None:
    """Remove the temporary files that a killed process left in a directory which no other process writes to."""
    for left in directory.glob(f".*.{'[0-9a-f]' * 16}{TEMPORARY}"):
        left.unlink(missing_ok=True)


def _sync_directory(directory: Path) -> None:
    """Make the rename itself survive a power cut, where the system can sync directories."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def no_data(path: Path) -> str:
    """Why there are no data at a path, as a message."""
    return f"no data file {str(path)!r}: {'it is a folder' if path.is_dir() else 'there is no such file'}"


def csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV file that are not blank, each with its line number; cells without blanks around them.

    Raises
    ------
    UsageError
        A quoted cell that does not end, or another fault of the format, by file and line.
    """
    with open(path, encoding="utf-8-sig", newline="", errors="surrogateescape") as file:
        reader = csv.reader(file, strict=True)
        try:
            for row in reader:
                cells = [cell.strip() for cell in row]
                if any(cells):
                    yield reader.line_num, cells
        except csv.Error as error:
            raise UsageError(f"{path}:{reader.line_num}: {error}") from None
