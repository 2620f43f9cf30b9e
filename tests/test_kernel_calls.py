"""Kernels called from Python, and arrays that they fill: as interpreted, every argument released."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from circuitsim import _jit


def _filled(a: np.ndarray, m: np.ndarray, flags: np.ndarray, first: int, stop: int) -> None:
    """Numbers stored in stretches, in rows and in all of an array."""
    a[:] = 0.5
    a[first:stop] = 2
    a[first:] = a[0] + 1.0
    m[:] = 3.0
    m[1][:stop] = 4.0
    flags[:] = True
    flags[first:stop] = False


@pytest.mark.parametrize(("first", "stop"), [(0, 5), (2, 4), (-3, -1), (-9, 99), (4, 2)])
def test_filled_stretches(first: int, stop: int) -> None:
    expected, found = ((np.zeros(6), np.zeros((2, 3)), np.zeros(5, bool)) for _ in range(2))
    _filled(*expected, first, stop)
    _jit.jit(fastmath=False)(_filled)(*found, first, stop)
    for one, other in zip(expected, found):
        np.testing.assert_array_equal(one, other)


def test_arguments_from_python_are_released_once_however_a_call_ends() -> None:
    def scaled(pair: tuple[np.ndarray, np.ndarray], a: np.ndarray, flag: bool) -> tuple[np.ndarray, np.ndarray, bool]:
        if a.size > 3:
            raise ValueError("too long")
        return pair[0] * 2.0, a, flag

    kernel = _jit.jit(unroll=True)(scaled)
    a, b, long = np.ones(3), np.ones((2, 2))[:, 0], np.ones(4)
    before = [sys.getrefcount(one) for one in (a, b, long)]
    for _ in range(100):
        first, same, flag = kernel((a, b), a, True)
        assert same is a and flag is True and first.tolist() == [2.0, 2.0, 2.0]
        with pytest.raises(ValueError, match="too long"):
            kernel((a, b), long, False)
    del first, same
    assert [sys.getrefcount(one) for one in (a, b, long)] == before
