"""Counts of bits, which processors have instructions for; compiled, they are these (`circuitsim._bits`)."""

from __future__ import annotations

import numpy as np


def ones(word):
    """How many bits of an unsigned number of 64 are set."""
    return np.uint64(int(word).bit_count())
