"""The compiled sweeps of exact coordinate descent; `circuitsim.solvers.coordinate_descent.sweep` is the twin."""

from __future__ import annotations

import numpy as np

from circuitsim._jit import jit


@jit()
def descend(ptr, neighbour, g, drive, low_ptr, low, low_bound, high_ptr, high, high_bound, current, x, moves, sweeps):
    """Sweep over all nodes until the largest move is at most ``moves`` of the largest potential.

    Parameters are those of `circuitsim.solvers.coordinate_descent.Incidence`, then x (n + 1,), changed in place, and
    the stopping rule. Returns the number of sweeps, or ``sweeps + 1`` if nodes still moved after the last.
    """
    n = current.size
    for done in range(1, sweeps + 1):
        largest = 0.0
        size = 0.0
        for k in range(n):
            total = 0.0
            inflow = current[k]
            for j in range(ptr[k], ptr[k + 1]):
                total += g[j]
                inflow += g[j] * x[neighbour[j]] + drive[j]
            lower = -np.inf
            for j in range(low_ptr[k], low_ptr[k + 1]):
                lower = max(lower, x[low[j]] - low_bound[j])
            upper = np.inf
            for j in range(high_ptr[k], high_ptr[k + 1]):
                upper = min(upper, x[high[j]] + high_bound[j])
            if total > 0.0:
                target = inflow / total
            elif inflow > 0.0:
                target = upper
            elif inflow < 0.0:
                target = lower
            else:
                target = x[k]
            target = min(max(target, lower), upper)
            if np.isfinite(target):
                largest = max(largest, abs(target - x[k]))
                size = max(size, abs(target))
                x[k] = target
        if largest <= moves * size:
            return done
    return sweeps + 1
