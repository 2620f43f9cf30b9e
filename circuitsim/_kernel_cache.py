"""On-disk cache of compiled kernels, keyed by the content of their sources and verified before use.

A file's name contains a digest of the sources' contents, the processor and the compiler's version, and a digest of the
argument types; its first bytes are a digest of this name and of the code. A file of other sources or another processor
is therefore not found, and a damaged, truncated or exchanged one is removed. There is no index for processes to contend
for.
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
        Prefix of the kernel's file names.
    made_of : bytes
        Digest of everything that determines its code, except for the argument types.
    """

    def __init__(self, folder: Path, base: str, made_of: bytes) -> None:
        self.folder, self.base = folder, base
        self._begin = f"{base}.{made_of.hex()[:20]}."

    def _path(self, key: tuple[object, ...]) -> Path:
        return self.folder / f"{self._begin}{_digest(repr(key).encode()).hex()[:20]}{ENDING}"

    def holds(self) -> bool:
        """Whether code of these sources exists for some argument types."""
        return any(self.folder.glob(f"{glob.escape(self._begin)}*{ENDING}"))

    def load(self, key: tuple[object, ...]) -> Any:
        """The code saved under a key, or None; an unusable file is removed."""
        path = self._path(key)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        if content[:DIGEST] == _digest(path.name.encode(), content[DIGEST:]):
            # The class of an argument's type may belong to another program and be missing.
            with contextlib.suppress(AttributeError, ImportError, TypeError, ValueError, pickle.UnpicklingError):
                return pickle.loads(content[DIGEST:])
        with contextlib.suppress(OSError):
            path.unlink()
        return None

    def save(self, key: tuple[object, ...], data: bytes) -> None:
        """Save pickled code under a key and remove this kernel's code of other sources."""
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
    """Digest of the names and contents of sources, and of further data."""
    return _digest(*(part for path in paths for part in (path.name.encode(), contents(path))), *more)
