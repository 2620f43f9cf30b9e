"""Millions of names as bytes in one array, found by a hash table that compiled kernels read and extend too."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from circuitsim.circuit.names import IndexedNames

PRIME = (1 << 31) - 1
"""Modulus of the hash, a polynomial of the bytes."""

BASE = secrets.randbelow(1 << 28) + (1 << 28)
"""Where the polynomial is taken, drawn for each process, so that no deck can be written whose names collide."""

FREE = -1
"""A slot of the hash table without a name."""

_DECODED = 4096


class NameArrays(NamedTuple):
    """A name table for kernels; arrays have room for more names.

    Attributes
    ----------
    characters : uint8 array
        All names, one behind the other (UTF-8).
    ends : int64 array
        Where each name ends.
    marks : int32 array
        Hash of each name in lower case.
    slots : int32 array
        The hash table, a power of two: positions of names, or `FREE`.
    size : (1,) int64 array
        Number of names.
    base : int
        Of the hash.
    """

    characters: np.ndarray
    ends: np.ndarray
    marks: np.ndarray
    slots: np.ndarray
    size: np.ndarray
    base: int


def hash_of(key: bytes) -> int:
    """Hash of a name in lower case."""
    value = 1
    for byte in key:
        value = (value * BASE + byte) % PRIME
    return value


class NameTable(IndexedNames):
    """Names in the order they were added, and their positions by name in lower case."""

    def __init__(self, names: Any = ()) -> None:
        self._size = np.zeros(1, np.int64)
        self._characters, self._ends = np.zeros(64, np.uint8), np.zeros(16, np.int64)
        self._marks, self._slots = np.zeros(16, np.int32), np.full(32, FREE, np.int32)
        self._spelled: dict[int, str] = {}
        for name in names:
            self.append(name)

    def arrays(self) -> NameArrays:
        """The table for kernels, which may fill the room that `reserve` made."""
        return NameArrays(self._characters, self._ends, self._marks, self._slots, self._size, BASE)

    @property
    def characters(self) -> int:
        """Bytes of all names."""
        return int(self._ends[len(self) - 1]) if len(self) else 0

    def reserve(self, names: int, characters: int) -> None:
        """Make room for so many more names, and bytes of names."""
        need = len(self) + names
        if need > self._ends.size:
            room = max(need, self._ends.size + (self._ends.size >> 1))
            self._ends, self._marks = _grown(self._ends, room), _grown(self._marks, room)
        if self.characters + characters > self._characters.size:
            more = self._characters.size + (self._characters.size >> 1)
            self._characters = _grown(self._characters, max(self.characters + characters, more))
        if 3 * need > 2 * self._slots.size:
            self._hash_again(1 << (3 * need // 2).bit_length())

    def _hash_again(self, room: int) -> None:
        """A hash table of ``room`` slots: names go to the first free slot from their own on."""
        self._slots = np.full(room, FREE, np.int32)
        left = np.arange(len(self), dtype=np.int32)
        at = self._marks[: len(self)].astype(np.int64) & (room - 1)
        while left.size:
            taken = self._slots[at] != FREE
            self._slots[at[~taken][::-1]] = left[~taken][::-1]  # of several the first stays
            stay = self._slots[at] != left
            left, at = left[stay], (at[stay] + 1) & (room - 1)

    def append(self, name: str) -> None:
        """Add a name that is not there yet in either case."""
        key = name.lower()
        stored = (name if name.isascii() else key).encode("utf-8", "surrogatepass")
        self.reserve(1, len(stored))
        k, start = len(self), self.characters
        if not name.isascii():
            self._spelled[k] = name
        self._characters[start : start + len(stored)] = np.frombuffer(stored, np.uint8)
        self._ends[k] = start + len(stored)
        mark = hash_of(key.encode("utf-8", "surrogatepass"))
        self._marks[k] = mark
        slot = mark & (self._slots.size - 1)
        while self._slots[slot] != FREE:
            slot = (slot + 1) & (self._slots.size - 1)
        self._slots[slot] = k
        self._size[0] = k + 1

    def find(self, key: str) -> int | None:
        """Position of the name that is ``key`` in lower case."""
        mark = hash_of(key.encode("utf-8", "surrogatepass"))
        slot = mark & (self._slots.size - 1)
        while (k := int(self._slots[slot])) != FREE:
            if self._marks[k] == mark and self[k].lower() == key:
                return k
            slot = (slot + 1) & (self._slots.size - 1)
        return None

    def __len__(self) -> int:
        return int(self._size[0])

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, slice):
            start, stop, step = item.indices(len(self))
            names = list(self._between(start, stop)) if step == 1 else [self[k] for k in range(start, stop, step)]
            return names
        k = range(len(self))[item]
        return self._spelled.get(k) or bytes(self._characters[self._start(k) : self._ends[k]]).decode()

    def __iter__(self) -> Iterator[str]:
        return self._between(0, len(self))

    def _start(self, k: int) -> int:
        return int(self._ends[k - 1]) if k else 0

    def _between(self, start: int, stop: int) -> Iterator[str]:
        """Names by blocks, which share one copy of their bytes."""
        for first in range(start, stop, _DECODED):
            last = min(first + _DECODED, stop)
            before, ends = self._start(first), self._ends[first:last].tolist()
            data = bytes(self._characters[before : ends[-1]])
            for k, end in enumerate(ends, first):
                name = data[before - self._start(first) : end - self._start(first)]
                yield self._spelled.get(k) or name.decode("utf-8", "surrogatepass")
                before = end

    def copy(self) -> NameTable:
        """A table that grows on its own."""
        other = NameTable.__new__(NameTable)
        other._size, other._spelled = self._size.copy(), dict(self._spelled)
        other._characters, other._ends = self._characters[: self.characters].copy(), self._ends[: len(self)].copy()
        other._marks, other._slots = self._marks[: len(self)].copy(), self._slots.copy()
        return other

    def __getstate__(self) -> tuple[np.ndarray, np.ndarray, dict[int, str]]:
        """Names without their hashes, so that equal names have equal bytes."""
        return self._characters[: self.characters].copy(), self._ends[: len(self)].copy(), dict(self._spelled)

    def __setstate__(self, state: tuple[np.ndarray, np.ndarray, dict[int, str]]) -> None:
        self._characters, self._ends, self._spelled = state
        self._size = np.array([self._ends.size], np.int64)
        self._marks = _marks(self._characters, self._ends)
        for k, name in self._spelled.items():
            self._marks[k] = hash_of(name.lower().encode("utf-8", "surrogatepass"))
        self._hash_again(1 << (3 * (self._ends.size + 1) // 2).bit_length())


def _grown(array: np.ndarray, room: int) -> np.ndarray:
    grown = np.zeros(room, array.dtype)
    grown[: array.size] = array
    return grown


def _marks(characters: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Hashes of all names, letters of ASCII in lower case, byte by byte of all names at once."""
    starts = np.concatenate([[0], ends[:-1]])
    length = ends - starts
    mark = np.ones(ends.size, np.int64)
    place = np.arange(ends.size)
    for offset in range(int(length.max(initial=0))):
        place = place[length[place] > offset]
        byte = characters[starts[place] + offset].astype(np.int64)
        byte += 32 * ((byte >= 65) & (byte <= 90))
        mark[place] = (mark[place] * BASE + byte) % PRIME
    return mark.astype(np.int32)


__all__ = ["FREE", "PRIME", "NameArrays", "NameTable", "hash_of"]
