"""Eight numbers side by side, for kernels that treat eight samples at once.

Interpreted, they are arrays of eight numbers; compiled, vector registers (`circuitsim._lanes`), with equal bits. The
usual operators act number by number, also between eight numbers and one.
"""

from __future__ import annotations

import numpy as np

WIDTH = 8
"""How many they are."""


def load(array, at):
    """Eight neighbours of a one-dimensional array, from place ``at``."""
    return array[at : at + WIDTH].copy()


def store(array, at, lanes):
    """Write eight neighbours."""
    array[at : at + WIDTH] = lanes


def spread(number):
    """One number, eight times."""
    return np.full(WIDTH, number)


def magnitude(lanes):
    """Absolute values."""
    return np.abs(lanes)


def larger(one, other):
    """The larger of each two; ``other`` where one is not a number."""
    return np.where(one > other, one, other)


def smaller(one, other):
    """The smaller of each two; ``other`` where one is not a number."""
    return np.where(one < other, one, other)


def where_above(one, other, this, that):
    """``this`` where ``one`` > ``other``, else ``that``."""
    return np.where(one > other, this, that)


def any_above(one, other):
    """Whether one of eight is larger than its counterpart."""
    return bool((one > other).any())


def root(lanes):
    """Square roots."""
    return np.sqrt(lanes)
