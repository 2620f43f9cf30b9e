"""Continuation: the states of the diodes as the sources move from one operating point to new values.

Along q(t) = q_before + t (q_now − q_before) the basic variables of given states are affine in t. Where the first one
changes sign its diode changes state, and the path goes on, unless it turns back there: the branch has ended, and what
comes next is a jump.
"""

from __future__ import annotations

import numpy as np

from circuitsim.controlled.ports import Hybrid, Ports
from circuitsim.controlled.states import CLEAR, holds, sizes


def followed(problem: Hybrid, ports: Ports, volts: np.ndarray, amperes: np.ndarray) -> tuple[np.ndarray | None, bool]:
    """Basic variables on the branch of an operating point, and whether that branch ended on the way.

    Parameters
    ----------
    problem, ports
        At the new sources.
    volts, amperes : (d,) float arrays
        Voltages of the diodes, and their currents times ρ, at the operating point to continue, V.
    """
    now, m, d = problem.constant, problem.matrix, volts.size
    before = _constant_at(problem, volts, amperes)
    basic = problem.basic(amperes > 0.0)
    if holds(now, m, basic):
        return basic, False
    at = 0.0
    for _ in range(20 * d + 20):
        table = np.where(basic, -m, np.eye(d))
        try:
            here, slope = np.linalg.solve(table, np.stack([before, now - before], axis=1)).T
        except np.linalg.LinAlgError:
            return None, True
        ends = np.where(slope < 0.0, here / np.where(slope < 0.0, -slope, 1.0), np.inf)
        scale = sizes(now, m, basic, here + slope)
        if (here + slope >= -CLEAR * scale).all():
            return basic, False
        k = int(np.argmin(np.where(ends >= at - 1e-9, ends, np.inf)))
        at = max(at, float(ends[k]))
        turned = basic.copy()
        turned[k] = not turned[k]
        rate = _rate(m, turned, now - before, k)
        if rate is None or rate <= 0.0:
            return None, True  # behind the corner the path runs backwards
        basic = turned
    return None, True


def _rate(m: np.ndarray, basic: np.ndarray, change: np.ndarray, k: int) -> float | None:
    """How fast basic variable ``k`` grows with t."""
    try:
        return float(np.linalg.solve(np.where(basic, -m, np.eye(basic.size)), change)[k])
    except np.linalg.LinAlgError:
        return None


def _constant_at(problem: Hybrid, volts: np.ndarray, amperes: np.ndarray) -> np.ndarray:
    """The constant for which these voltages and currents satisfy y = constant + matrix z."""
    z = np.where(problem.base, -volts, amperes)
    y = np.where(problem.base, amperes, -volts)
    return np.asarray(y - problem.matrix @ z)
