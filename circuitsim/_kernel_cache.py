"""On-disk cache of compiled kernels, keyed by the content of their sources and verified before use.

A file's name holds a digest of the contents of the sources, the processor and the version of the compiler, and one of
the types of the arguments; its first bytes are a digest of this name and of the code. So a file of other sources or of
another processor is not found, and one that is damaged, cut short or exchanged for another is removed. There is no
index that several processes could write at once.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import pickle
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from circuitsim._files import atomic_write

ENDING = ".kernel"

DIGEST = 32
"""Bytes of a SHA-256 digest."""


class KernelFiles:
    """The files of one kernel.

    Parameters
    ----------
    folder : Path
    base : str
        What the names of the kernel's files begin with.
    made_of : bytes
        Digest of everything that decides what its code does, except for the types of its arguments.
    """

    def __init__(self, folder: Path, base: str, made_of: bytes) -> None:
        self.folder, self.base = folder, base
        self._begin = f"{base}.{made_of.hex()[:20]}."

    def _path(self, key: tuple[object, ...]) -> Path:
        return self.folder / f"{self._begin}{_digest(repr(key).encode()).hex()[:20]}{ENDING}"

    def holds(self) -> bool:
        """Whether there is code of these sources, for some types of arguments."""
        return any(self.folder.glob(f"{glob.escape(self._begin)}*{ENDING}"))

    def load(self, key: tuple[object, ...]) -> Any:
        """What was kept under a key; None where there is nothing, or nothing that can be used, which is removed."""
        path = self._path(key)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        if content[:DIGEST] == _digest(path.name.encode(), content[DIGEST:]):
            # A class of an argument's type may be gone although the sources are the same: it is another program's.
            with contextlib.suppress(AttributeError, ImportError, TypeError, ValueError, pickle.UnpicklingError):
                return pickle.loads(content[DIGEST:])
        with contextlib.suppress(OSError):
            path.unlink()
        return None

    def save(self, key: tuple[object, ...], data: bytes) -> None:
        """Keep pickled code under a key, and remove this kernel's code of other sources."""
        path = self._path(key)
        atomic_write(path, _digest(path.name.encode(), data) + data)
        for other in self.folder.glob(f"{glob.escape(self.base)}.*{ENDING}"):
            if not other.name.startswith(self._begin):
                other.unlink(missing_ok=True)


def _digest(*parts: bytes) -> bytes:
    found = hashlib.sha256()
    for part in parts:
        found.update(len(part).to_bytes(8, "little") + part)
    return found.digest()


@cache
def contents(path: Path) -> bytes:
    """Digest of a file's content, read once per process."""
    return hashlib.sha256(path.read_bytes()).digest()


def made_of(paths: Iterable[Path], *more: bytes) -> bytes:
    """Digest of names and contents of sources, and of more."""
    return _digest(*(part for path in paths for part in (path.name.encode(), contents(path))), *more)
