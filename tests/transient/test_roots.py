"""The first root of several waveforms on a window."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.polynomial import chebyshev

from circuitsim.time_domain.roots import POINTS, first_root


@pytest.mark.parametrize("seed", range(40))
def test_the_first_root_of_several_waveforms(seed: int) -> None:
    """Against the eigenvalues of companion matrices, whatever the order of the waveforms."""
    rng = np.random.default_rng(seed)
    series = np.zeros((6, POINTS))
    series[:, :14] = rng.normal(size=(6, 14)) * 0.8 ** np.arange(14)
    left = chebyshev.chebval(-1.0, series.T)
    series *= np.where(left < 0.0, -1.0, 1.0)[:, None]
    expected, which = np.inf, -1
    for k, row in enumerate(series):
        roots = chebyshev.chebroots(row[:14])
        shares = 0.5 * (1.0 + roots.real[(abs(roots.imag) < 1e-9) & (abs(roots.real) < 1.0)])
        if shares.size and shares.min() < expected:
            expected, which = shares.min(), k
    for order in (np.arange(6), np.arange(6)[::-1]):
        share, found = first_root(series[order], np.zeros(6, dtype=np.int64), np.ones(6))
        assert share == pytest.approx(expected, abs=1e-12)
        assert (int(order[found]) if found >= 0 else -1) == which
