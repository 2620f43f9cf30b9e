"""The loop of `precise.add_flows`, for circuits large enough to be worth a compiled kernel."""

from __future__ import annotations

import numpy as np

from circuitsim._jit import fma, jit


@jit(fastmath=False)
def add_flows(a, b, g, e, x, last, high, low, scale):
    """See `circuitsim.program.precise.add_flows`; the same bits, with products that know their own rounding."""
    for k in range(a.size):
        # Unsigned: a node's number never counts from the end.
        first, second = np.uint64(a[k]), np.uint64(b[k])
        i, j = np.uint64(last[first]), np.uint64(last[second])
        if i == j:
            continue
        u, v = x[first], -x[second]
        size = g[k] * (abs(u) + abs(v) + abs(e[k]))
        scale[i] += size
        scale[j] += size
        s = u + v
        t = s - u
        drop_low = (u - (s - t)) + (v - t)
        u, v = s, e[k]
        s = u + v
        t = s - u
        drop_low += (u - (s - t)) + (v - t)
        p = g[k] * s
        p_low = fma(g[k], s, -p) + g[k] * drop_low  # type: ignore[call-arg]
        c = high[i]
        s = c - p
        t = s - c
        high[i] = s
        low[i] += (c - (s - t)) + (-p - t) - p_low
        c = high[j]
        s = c + p
        t = s - c
        high[j] = s
        low[j] += (c - (s - t)) + (p - t) + p_low
