"""Pinned tuples: compiled kernels read from memory what interpreted ones read from the tuple."""

from __future__ import annotations

import gc
from typing import NamedTuple

import numpy as np
import pytest

from circuitsim import _pointers
from circuitsim._jit import jit
from circuitsim.engine.small.pointers import Pinned, pointer, retain


class Inner(NamedTuple):
    """Two arrays, one of them of bytes."""

    flags: np.ndarray
    matrix: np.ndarray


class Outer(NamedTuple):
    """All kinds of members."""

    number: float
    inner: Inner
    holds: bool
    count: int
    slices: np.ndarray
    cube: np.ndarray


def weighed(members, scale):  # type: ignore[no-untyped-def]
    """A sum to which every member contributes; the first entry of the slices becomes it."""
    of = pointer(members)
    found = of.number + of.count + (0.5 if of.holds else 0.25)
    for k in range(of.slices.size):
        found += of.slices[k] * (k + 1)
    for i in range(of.inner.matrix.shape[0]):
        for j in range(of.inner.matrix.shape[1]):
            found += of.inner.matrix[i, j] * (i - 2 * j) if of.inner.flags[i] else 0.0
    for i in range(of.cube.shape[2]):
        found += of.cube[1, 0, i]
    of.slices[0] = scale * found
    return found


def drawn(seed: int, holds: bool) -> Outer:
    """Random members; the slices go backwards over every third number."""
    rng = np.random.default_rng(seed)
    inner = Inner(rng.random(4) < 0.5, rng.standard_normal((4, 3)))
    slices = rng.standard_normal(30)[::-3]
    number, count, cube = float(rng.standard_normal()), -int(rng.integers(9)), rng.standard_normal((2, 1, 5))
    return Outer(number, inner, holds, count, slices, cube)


@pytest.fixture(scope="module", name="compiled")
def _compiled():  # type: ignore[no-untyped-def]
    _pointers.register(pointer, retain)
    return jit(fastmath=False)(weighed)


@pytest.mark.parametrize("seed", range(6))
def test_compiled_and_interpreted_kernels_read_the_same(compiled, seed: int) -> None:  # type: ignore[no-untyped-def]
    members = drawn(seed, seed % 2 == 0)
    expected = weighed(members, 0.0)
    pinned = Pinned(drawn(seed, seed % 2 == 0))
    gc.collect()
    assert compiled(pinned, 1.0) == expected
    assert pinned.members.slices[0] == expected


def test_contents_may_change_between_calls(compiled) -> None:  # type: ignore[no-untyped-def]
    pinned, twin = Pinned(drawn(9, True)), drawn(9, True)
    for k in range(4):
        pinned.members.inner.matrix[2, 1] = twin.inner.matrix[2, 1] = 10.0**k
        assert compiled(pinned, 0.5) == weighed(twin, 0.5)
    assert len(compiled.signatures) == 1
