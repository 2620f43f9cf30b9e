"""Derivatives of λ·z(h) + ∫ zᵀ Q z dt with ż = A z by A, by the first state and by Q: doubling, run backwards."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from circuitsim.time_domain.exponentials import PRODUCTS
from circuitsim.time_domain.kernels import time_kernel

NODES, WEIGHTS = np.polynomial.legendre.leggauss(10)
"""Gauss's rule on the shortest stretch: exact to rounding where h times the radius is at most a half."""


class Stretch(NamedTuple):
    """ż = A z over a time: A (n, n), its largest absolute eigenvalue, 1/s, the time, s, and the first state (n,)."""

    system: np.ndarray
    radius: float
    length: float
    state: np.ndarray


class StretchGradient(NamedTuple):
    """Derivatives by A (n, n) and by the first state (n,), and ∫ z zᵀ dt (n, n), the derivative by Q."""

    system: np.ndarray
    state: np.ndarray
    gram: np.ndarray


def stretch_gradient(stretch: Stretch, by_end: np.ndarray, form: np.ndarray | None) -> StretchGradient:
    """The derivatives over one stretch.

    Parameters
    ----------
    stretch : Stretch
    by_end : (n,) float array
        λ.
    form : (n, n) float array or None
        Q, symmetric.
    """
    system, radius, length, z = stretch
    n = z.size
    doublings = max(0, math.frexp(2.0 * radius * length)[1])
    short = math.ldexp(length, -doublings)
    times = 0.5 * short * (1.0 + NODES)
    inside = _powers(system, radius, times) if form is not None else np.zeros((0, n, n))
    weights = 0.5 * short * WEIGHTS
    power = [_powers(system, radius, np.array([short]))[0]]
    kept = form if form is not None else np.zeros((n, n))
    whole = [np.einsum("p,pji,jk,pkl->il", weights[: len(inside)], inside, kept, inside)]
    for _ in range(doublings):
        whole.append(whole[-1] + power[-1].T @ whole[-1] @ power[-1])
        power.append(power[-1] @ power[-1])
    by_power, by_whole = np.outer(by_end, z), np.outer(z, z)
    state = power[-1].T @ by_end + 2.0 * whole[-1] @ z
    for e, w in zip(power[-2::-1], whole[-2::-1]):
        by_power = by_power @ e.T + e.T @ by_power + 2.0 * w @ e @ by_whole
        by_whole = by_whole + e @ by_whole @ e.T
    gradient = _by_system(system, radius, short, by_power)
    gram = np.zeros((n, n))
    for e, t, weight in zip(inside, times.tolist(), weights.tolist()):
        gradient += _by_system(system, radius, t, 2.0 * weight * kept @ e @ by_whole)
        gram += weight * e @ by_whole @ e.T
    return StretchGradient(gradient, state, gram)


def _powers(system: np.ndarray, radius: float, times: np.ndarray) -> np.ndarray:
    """e^{A t} at times (p,): (p, n, n)."""
    n = len(system)
    found = np.zeros((n, times.size, n))
    time_kernel("node_exponentials", PRODUCTS * times.size * n**3)(np.ascontiguousarray(system), radius, times, found)
    return found.transpose(1, 2, 0)


def _by_system(system: np.ndarray, radius: float, time: float, by_power: np.ndarray) -> np.ndarray:
    """Derivative of ⟨by_power, e^{A t}⟩ by A: a block of the exponential of a matrix of twice the size."""
    n = len(system)
    double = np.zeros((2 * n, 2 * n))
    double[:n, :n] = double[n:, n:] = system.T
    double[:n, n:] = by_power
    return _powers(double, radius, np.array([time]))[0][:n, n:]
