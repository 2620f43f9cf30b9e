"""Files that are either the old one or the new one, never half of either."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


def atomic_write(path: Path, content: bytes) -> None:
    """Write ``content`` to ``path`` so that a crash at any moment leaves the old file or the new one."""
    with atomic_file(path) as file:
        file.write(content)


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which becomes ``path`` when all is written and the old one stays until then.

    The bytes go to a temporary file beside it, are flushed to the disk, and take the name in one rename. The temporary
    file's name is always the same, so that what a killed process left of it is used up by the next writing.
    """
    temporary = path.with_name(f".{path.name}.part")
    try:
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        raise
    _sync_directory(path.parent)


def _sync_directory(directory: Path) -> None:
    """Make the rename itself survive a power cut, where the system can sync directories."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
