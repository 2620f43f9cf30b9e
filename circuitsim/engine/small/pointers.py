"""How kernels hand each other arrays and named tuples of arrays; interpreted, all of this does nothing."""

from __future__ import annotations


def kept(array):
    """The array itself, which the caller keeps until all is done: compiled code counts no references of it."""
    return array


def pointer(members):
    """A named tuple to hand to functions: compiled code hands its address (`circuitsim._pointers`)."""
    return members


def retain(members):
    """Nothing; in compiled code what a `pointer` points at exists until then."""
