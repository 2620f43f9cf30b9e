"""Waveforms of one mode on a time window: Chebyshev interpolants, their first root, and the size of a resolved window.

On a window of length h the state at all Chebyshev nodes is a stack of matrix exponentials times the state at its left
end. The stack depends on the mode and on h alone, so periodic circuits compute it once. A window is resolved where the
last coefficients are rounding; its first root is isolated by the eigenvalues of a colleague matrix, then refined by
Newton's method on the exact waveform.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from scipy.linalg import expm

POINTS = 32
"""Chebyshev nodes of a window."""
RESOLVED = 1e-12
"""Last coefficients of a resolved window against the largest."""
TURN = 8.0
"""Longest window times the largest imaginary part of an eigenvalue: an oscillation is not passed over."""

NODES = np.sort(chebyshev.chebpts1(POINTS))
"""Chebyshev nodes of the first kind in (−1, 1), ascending: the ends are not among them."""
TO_COEFFICIENTS = np.linalg.inv(chebyshev.chebvander(NODES, POINTS - 1))
"""Values at the nodes → coefficients."""
WEIGHTS = (lambda k: np.where(k % 2 == 0, 2.0 / (1.0 - k * k + (k == 1)), 0.0))(np.arange(POINTS)) @ TO_COEFFICIENTS
"""Quadrature on [−1, 1] at the nodes (Fejér 1933)."""


class Window(NamedTuple):
    """Matrix exponentials of one mode for windows of one length.

    Attributes
    ----------
    length : float
        h, s.
    inside : (POINTS, n, n) float array
        e^{A τ} at the nodes' times τ in (0, h).
    across : (n, n) float array
        e^{A h}.
    """

    length: float
    inside: np.ndarray
    across: np.ndarray


def window(system: np.ndarray, length: float) -> Window:
    """The matrix exponentials of a window."""
    times = 0.5 * length * (1.0 + NODES)
    return Window(length, expm(times[:, None, None] * system), expm(length * system))


def longest(system: np.ndarray) -> float:
    """The longest window that passes over no oscillation of the system, s."""
    fastest = float(np.abs(np.linalg.eigvals(system).imag).max(initial=0.0))
    return TURN / fastest if fastest > 0.0 else np.inf


def resolved(values: np.ndarray, size: np.ndarray) -> bool:
    """Whether waveforms (…, POINTS) are polynomials on the window, by the last coefficients against ``size`` (…)."""
    last = values @ TO_COEFFICIENTS[-2:].T
    return bool((np.abs(last).max(axis=-1, initial=0.0) <= RESOLVED * size).all())


def first_root(values: np.ndarray, orders: np.ndarray, size: np.ndarray) -> tuple[float, int]:
    """The first time at which one of several waveforms becomes negative, as a share of the window, and its index.

    Parameters
    ----------
    values : (d, POINTS) float array
        The waveforms at the nodes.
    orders : (d,) int array
        Number of leading Taylor terms that are zero at the left end; waveforms of negative order are left out.
    size : (d,) float array
        Magnitudes against which the waveforms' rounding counts.

    Returns
    -------
    root, index
        inf, −1 where all stay positive.
    """
    share = 0.5 * (1.0 + NODES)
    best, which = np.inf, -1
    for d in np.flatnonzero(orders >= 0):
        if values[d].min() > 0.0 and orders[d] == 0:
            coefficients = TO_COEFFICIENTS @ values[d]
            if coefficients[0] > np.abs(coefficients[1:]).sum():
                continue
        noise = 1e-13 * size[d]
        if values[d].min() >= -noise and np.abs(values[d]).max() <= noise:
            continue
        # Without the leading zeros at the left end the first root is a root of its own.
        coefficients = TO_COEFFICIENTS @ (values[d] / share ** orders[d])
        keep = np.flatnonzero(np.abs(coefficients) > 1e-15 * np.abs(coefficients).max())[-1] + 1
        roots = chebyshev.chebroots(coefficients[:keep]) if keep > 1 else np.zeros(0)
        real = np.sort(roots.real[(np.abs(roots.imag) < 1e-7) & (np.abs(roots.real) <= 1.0 + 1e-9)])
        for x in real:
            root = 0.5 * (1.0 + float(x))
            if root >= best:
                break
            if root > 0.0 and _falls(coefficients, float(x)):
                best, which = root, int(d)
                break
    return best, which


def _falls(coefficients: np.ndarray, x: float) -> bool:
    """Whether an interpolant is negative after its root x, by its first nonzero derivative there."""
    size = np.abs(coefficients).sum()
    for k in range(1, 4):
        slope = float(chebyshev.chebval(x, chebyshev.chebder(coefficients, k)))
        if abs(slope) > 1e-9 * size:
            return slope < 0.0
    return False
