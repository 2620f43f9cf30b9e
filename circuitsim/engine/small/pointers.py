"""How kernels hand each other arrays and named tuples of arrays; interpreted, all of this does nothing."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np


class Pinned:
    """A named tuple of arrays and numbers for many calls of kernels: compiled code gets its address.

    A call looks at each array that it is handed, some tenths of a microsecond for each, at each call. Of a pinned tuple
    the arrays are looked at once; they are the same from then on, their contents may change.

    Parameters
    ----------
    members : named tuple
        Of arrays, numbers, and tuples of these.

    Raises
    ------
    TypeError
        At the first call of a compiled kernel: another kind of member.
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
        self._layout = np.array(words, dtype=np.uint64)
        self.address = self._layout.ctypes.data
        return getattr(self, name)


def _laid_out(members: Any, words: list[int]) -> list[object]:
    """Add what compiled code has in memory for a tuple, in words of eight bytes; returns what its type depends on."""
    kinds: list[object] = [type(members)]
    for member in members:
        if isinstance(member, np.ndarray):
            about = member.__array_interface__
            address, read_only = about["data"]
            # No count of references, no owner, then what an array is.
            words += [0, 0, member.size, member.itemsize, address, *member.shape, *(n % 2**64 for n in member.strides)]
            kinds.append((about["typestr"], member.ndim, member.flags.c_contiguous, read_only))
        elif isinstance(member, tuple):
            kinds.append(tuple(_laid_out(member, words)))
        elif isinstance(member, float):
            words += struct.unpack("=Q", struct.pack("=d", member))
            kinds.append(float)
        elif isinstance(member, (int, np.integer, np.bool_)):
            words.append(int(member) % 2**64)
            kinds.append(int)
        else:
            raise TypeError(f"{member!r} cannot be pinned: it is no array, no tuple, no number")
    return kinds


def kept(array):
    """The array itself, which the caller keeps until all is done: compiled code counts no references of it."""
    return array


def pointer(members):
    """A named tuple, or a pinned one, to hand to functions: compiled code hands its address
    (`circuitsim._pointers`)."""
    return members.members if isinstance(members, Pinned) else members


def retain(members):
    """Nothing; in compiled code what a `pointer` points at exists until then."""
