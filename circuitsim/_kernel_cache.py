"""On-disk cache of compiled kernels, keyed by what they are made of and verified before use.

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
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from circuitsim._files import atomic_write
from circuitsim.engine.small import pointers

ENDING = ".kernel"

SHARED = tuple(str(Path(__file__).with_name(name)) for name in ("_jit.py", "_pointers.py", "_vectors.py"))
"""Sources of what numba inserts into kernels instead of calling it."""

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
def contents(path: str) -> bytes:
    """Digest of a file's content, read once per process."""
    return hashlib.sha256(Path(path).read_bytes()).digest()


def made_of(kernel: Any, *more: bytes) -> bytes:
    """Digest of what a kernel is made of (`reached`) and of further data."""
    functions, constants = reached(kernel)
    sources = sorted({function.__code__.co_filename for function in functions})
    parts = [(Path(path).name.encode(), contents(path)) for path in (*sources, *SHARED)]
    return _digest(*(part for pair in parts for part in pair), *map(str.encode, sorted(constants)), *more)


def reached(function: Any) -> tuple[list[FunctionType], set[str]]:
    """A kernel and the functions that it calls, directly or not, as Python functions; and what its machine code depends
    on besides: ``name = value`` of each constant and the fields of each class."""
    found: dict[FunctionType, None] = {}
    constants: set[str] = set()
    left = [("", function)]
    while left:
        name, one = left.pop()
        one = getattr(one, "py_func", one)
        if isinstance(one, FunctionType) and one not in found and one.__module__ != pointers.__name__:
            found[one] = None
            names = sorted(set(_names(one.__code__)))
            values = [one.__globals__[name] for name in names if name in one.__globals__]
            own = [
                value for value in values if isinstance(value, ModuleType) and value.__name__.startswith(__package__)
            ]
            spaces = one.__globals__, *map(vars, own)
            left += [(name, space[name]) for space in spaces for name in names if name in space]
            left += [("", cell.cell_contents) for cell in one.__closure__ or ()]
        elif isinstance(one, (int, float, str, tuple, np.generic)):
            constants.add(f"{name} = {one!r}")
        elif isinstance(one, type):
            constants.add(f"{name} = {getattr(one, '_fields', None)}")
    return list(found), constants


def _names(code: CodeType) -> Iterator[str]:
    """The global names that code uses, and those of functions defined in it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
