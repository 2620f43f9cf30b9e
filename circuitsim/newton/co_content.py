"""Derivatives of co-contents by model parameters, for the learning rules of smooth devices.

A device is a junction j(u; p) with a series resistance r. Its co-content φ(v) is the minimum over u of
∫ j du + (v − u)²/(2 r). By the envelope theorem ∂φ/∂p = ∫₀ᵘ ∂j/∂p du at the junction voltage u, and ∂φ/∂r = −½ i². A
difference of two such derivatives is computed as one integral between the two voltages, which avoids cancellation.
"""

from __future__ import annotations

import numpy as np

from circuitsim.engine.small.pointers import kept
from circuitsim.newton.steps import by_parameters, law

DEEPEST = 40
"""Maximum number of bisections of an interval, so that a breakpoint of the curve is located to 1e-12 of it."""

PANELS = 120
"""Maximum number of intervals, for curves whose rounding errors keep the estimate from converging."""

CLOSE = 1e-10
"""Relative change of an integral under bisection at which it is accepted; the error of the halves is far smaller."""

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
NODES, WEIGHTS = _NODES.tolist(), _WEIGHTS.tolist()
"""Nodes and weights of the eight-point Gauss–Legendre rule on [−1, 1]."""


def panel(p, low, high, out, here, nodes, weights):
    """Fill in ∫ ∂j/∂p du from ``low`` to ``high`` by one Gauss–Legendre rule; ``here`` is workspace of that size."""
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    out[:] = 0.0
    for k in range(nodes.size):
        by_parameters(p, middle + half * nodes[k], here)
        for c in range(out.size):
            out[c] += half * weights[k] * here[c]


def integral(p, low, high, out, work, ends, nodes, weights):
    """Fill in ∫ ∂j/∂p du from ``low`` to ``high`` by adaptive bisection.

    Parameters
    ----------
    work : (4, w) float array
        Workspace.
    ends : (3, DEEPEST + 2) float array
        Workspace: a stack of intervals and their depths of bisection.
    """
    out[:] = 0.0
    work[3, :] = 0.0
    ends[0, 0], ends[1, 0], ends[2, 0] = low, high, 0.0
    left, panels = 1, 0
    while left > 0:
        left -= 1
        panels += 1
        a, b, depth = ends[0, left], ends[1, left], ends[2, left]
        middle = 0.5 * (a + b)
        panel(p, a, b, work[0], work[3], nodes, weights)
        panel(p, a, middle, work[1], work[3], nodes, weights)
        panel(p, middle, b, work[2], work[3], nodes, weights)
        far = False
        for c in range(out.size):
            halves = work[1, c] + work[2, c]
            far = far or abs(halves - work[0, c]) > CLOSE * (abs(out[c]) + abs(halves))
        if far and depth < DEEPEST and panels < PANELS and middle != a and middle != b:
            ends[0, left], ends[1, left], ends[2, left] = a, middle, depth + 1.0
            ends[0, left + 1], ends[1, left + 1], ends[2, left + 1] = middle, b, depth + 1.0
            left += 2
            continue
        for c in range(out.size):
            out[c] += work[1, c] + work[2, c]


def co_content_differences(rows, nodes, weights, u, i, share, out):
    """Σ_b share_b (∂φ/∂p at the first state − ∂φ/∂p at the second) for each device and parameter.

    Parameters
    ----------
    rows : (s, w) float array
        Rows of the devices (`circuitsim.newton.steps.numbered_rows`).
    nodes, weights : (8,) float arrays
        `NODES`, `WEIGHTS`.
    u, i : (2, batch, s) float arrays
        Junction voltages, V, and currents, A, at both states.
    share : (batch,) float array
    out : (s, w) float array
        Overwritten.
    """
    rows, out = kept(rows), kept(out)
    work, ends, found = np.zeros((4, rows.shape[1])), np.empty((3, DEEPEST + 2)), np.empty(rows.shape[1])
    out[:] = 0.0
    for d in range(rows.shape[0]):
        for b in range(share.size):
            if share[b] == 0.0:
                continue
            integral(rows[d], u[1, b, d], u[0, b, d], found, work, ends, nodes, weights)
            found[0] = -0.5 * (i[0, b, d] - i[1, b, d]) * (i[0, b, d] + i[1, b, d])
            for c in range(found.size):
                out[d, c] += share[b] * found[c]


def responses_of_laws(rows, u, change, share, out):
    """Σ_b share_b change_b ∂i/∂p for each device and parameter, at fixed device voltages.

    Parameters
    ----------
        Rows of the devices.
    u : (batch, s) float array
        Junction voltages, V.
    change : (batch, s) float array
        Device voltages of the adjoint circuit, V.
    share : (batch,) float array
    out : (s, w) float array
        Overwritten.
    """
    rows, out = kept(rows), kept(out)
    here = np.zeros(rows.shape[1])
    out[:] = 0.0
    for d in range(rows.shape[0]):
        here[:] = 0.0
        for b in range(share.size):
            if share[b] == 0.0:
                continue
            by_parameters(rows[d], u[b, d], here)
            j, g = law(rows[d], u[b, d])
            here[0] = -j * g
            factor = share[b] * change[b, d] / (1.0 + rows[d, 0] * g)
            for c in range(here.size):
                out[d, c] += factor * here[c]


__all__ = ["DEEPEST", "NODES", "WEIGHTS", "co_content_differences", "integral", "panel", "responses_of_laws"]
