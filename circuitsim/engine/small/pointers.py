"""Passing arrays and named tuples of arrays between kernels; interpreted, these functions do nothing."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np


class Pinned:
    """A named tuple of arrays and numbers for many kernel calls: compiled code receives its address.

    Each call inspects each array passed to it, which takes some tenths of a microsecond. The arrays of a pinned tuple
    are inspected once; they stay the same, but their contents may change.

    Parameters
    ----------
    members : named tuple
        Of arrays, numbers, and tuples of these.

    Raises
    ------
    TypeError
        At the first call of a compiled kernel: a member of another kind.
    """

    __slots__ = ("_layout", "_numba_type_", "address", "members")

    def __init__(self, members: Any) -> None:
        self.members = members

    def __getattr__(self, name: str) -> Any:
        """The address and the type for compiled code, at first use."""
        if name not in ("_numba_type_", "address"):
            raise AttributeError(name)
        from circuitsim._pointers import pinned_type

        words: list[int] = []
        self._numba_type_ = pinned_type(self.members, tuple(_laid_out(self.members, words)))
        self._layout = np.array(words, dtype=np.int64)
        self.address = self._layout.ctypes.data
        return getattr(self, name)


def _laid_out(members: Any, words: list[int]) -> list[object]:
    """Append a tuple's representation in compiled code, in words of eight bytes; returns what its type depends on."""
    kinds: list[object] = [type(members)]
    for member in members:
        if isinstance(member, np.ndarray):
            flags = member.flags
            # No reference count, no owner, then the array's fields.
            words += (0, 0, member.size, member.itemsize, member.ctypes.data, *member.shape, *member.strides)
            kinds.append((member.dtype.char, member.ndim, flags.c_contiguous, flags.writeable))
        elif isinstance(member, tuple):
            kinds.append(tuple(_laid_out(member, words)))
        elif isinstance(member, float):
            words += struct.unpack("=q", struct.pack("=d", member))
            kinds.append(float)
        elif isinstance(member, (int, np.integer, np.bool_)):
            words.append(int(member))
            kinds.append(int)
        else:
            raise TypeError(f"{member!r} cannot be pinned: it is no array, no tuple, no number")
    return kinds


def kept(array):
    """The array itself, which the caller keeps alive: compiled code then counts no references."""
    return array


def pointer(members):
    """A named tuple, or a pinned one, to pass to functions: compiled code passes its address
    (`circuitsim._pointers`)."""
    return members.members if isinstance(members, Pinned) else members


def retain(members):
    """No operation; compiled code keeps the target of a `pointer` alive until here."""
