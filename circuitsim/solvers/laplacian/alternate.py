"""Conducting diodes by alternating directions, for several sets of sources with one factor.

The method of multipliers (Gabay & Mercier 1976) for the least power dissipated in resistors while no diode has a
forward voltage. In a step every diode is a conductance G beside a current source; their currents come from one
substitution. With w the voltage across a diode plus its multiplier, a current over G, min(w, 0) is the voltage of a
diode that blocks and G max(w, 0) the current of one that conducts: the sources are G |w|. Eight sets of sources go side
by side, as in `circuitsim.solvers.laplacian.substitute`.
"""

from __future__ import annotations

import numpy as np

from circuitsim._jit import jit
from circuitsim.solvers.laplacian.factor import Factor
from circuitsim.solvers.laplacian.substitute import GROUP, backward_group, forward_group

RELAXED = 1.8
"""Overrelaxation: between 1 and 2 the method converges."""
STEPS = 30
"""Most steps. In meshes of 5,000 nodes and 3,000 diodes 15 leave no diode in the wrong state."""
QUIET = 2
"""Steps without a change after which there are no more."""


@jit()
def _inject(tail, head, siemens, held, w, x):
    """Take the currents of diodes and their sources out of their first nodes into their second ones."""
    for e in range(tail.size):
        a, b, g = tail[e] * GROUP, head[e] * GROUP, siemens[e]
        for m in range(GROUP):
            amperes = g * (held[e * GROUP + m] + abs(w[e * GROUP + m]))
            x[a + m] -= amperes
            x[b + m] += amperes


@jit()
def _turn(tail, head, held, x, relaxed, w):
    """The step of ``w``; returns how many diodes change their state."""
    changed = 0
    for e in range(tail.size):
        a, b = tail[e] * GROUP, head[e] * GROUP
        for m in range(GROUP):
            before = w[e * GROUP + m]
            volts = x[a + m] - x[b + m] + held[e * GROUP + m]
            after = relaxed * volts + (1.0 - relaxed) * min(before, 0.0) + max(before, 0.0)
            changed += (after > 0.0) != (before > 0.0)
            w[e * GROUP + m] = after
    return changed


@jit()
def _alternate(first, row_ptr, rows, offset, values, pivots, tail, head, siemens, held, drive, w):
    """Steps until no diode changes its state in `QUIET` of them; returns how many changed in the last one."""
    n, x, changed, quiet = pivots.size, np.empty((pivots.size + 1) * GROUP), 0, 0
    for _ in range(STEPS):
        x[: n * GROUP] = drive
        _inject(tail, head, siemens, held, w, x)
        x[n * GROUP :] = 0.0
        forward_group(first, row_ptr, rows, offset, values, x)
        backward_group(first, row_ptr, rows, offset, values, pivots, x)
        x[n * GROUP :] = 0.0
        changed = _turn(tail, head, held, x, RELAXED, w)
        quiet = quiet + 1 if changed == 0 else 0
        if quiet == QUIET:
            break
    return changed


def conducting(
    factor: Factor, tail: np.ndarray, head: np.ndarray, siemens: np.ndarray, held: np.ndarray, drive: np.ndarray
) -> tuple[np.ndarray, int]:
    """Diodes that conduct, nearly all of them right, and how many changed in the last step.

    Parameters
    ----------
    factor : Factor
        Of resistors and of all diodes at the conductances ``siemens``, without pinned nodes.
    tail, head : (d,) int arrays
        Nodes of the diodes; ground is n.
    siemens : (d,) float array
        G, in the unit of the factor's weights.
    held : (d, samples) float array
        Voltages that sources hold across the diodes where the potentials of nodes are zero, V.
    drive : (n, samples) float array
        Currents into the nodes where their potentials are zero, A over the unit of the weights.

    Returns
    -------
    closed : (samples, d) bool array
    changed : int
    """
    s, count, changed = factor.symbolic, held.shape[1], 0
    place = np.append(s.pattern.position, s.n)
    panels = s.first, s.row_ptr, s.rows, s.offset, factor.values, factor.pivots, place[tail], place[head], siemens
    closed = np.empty((count, tail.size), dtype=bool)
    for begin in range(0, count, GROUP):
        many = min(GROUP, count - begin)
        group, lanes = np.zeros((tail.size, GROUP)), np.zeros((s.n, GROUP))
        group[:, :many], lanes[:, :many] = held[:, begin : begin + many], drive[s.pattern.order, begin : begin + many]
        w = np.zeros(tail.size * GROUP)
        changed += _alternate(*panels, group.ravel(), lanes.ravel(), w)
        closed[begin : begin + many] = (w.reshape(-1, GROUP) > 0.0)[:, :many].T
    return closed, changed
