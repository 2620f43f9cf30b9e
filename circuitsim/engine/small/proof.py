"""The certificate of branch currents and drops along a spanning tree: `circuitsim.certificate.certify` in a kernel.

For refined currents, or those that follow from a tree: each drop is checked relative to itself or the largest in its
loop.
"""

from __future__ import annotations

import numpy as np

from circuitsim.certificate import CLEAR, current_scale, net_currents, update_maximum
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR
from circuitsim.engine.double_double import add, multiply
from circuitsim.engine.tree import tree_potentials

AIM = 1e-10
"""Residuals, and a simple bound on the errors, below this need no sharper bound."""
CANCELS = 1e-3
"""A potential below this fraction of the largest drop on its path to node 0 is checked relative to that drop."""
AGREES = 1e-12
"""A drop that agrees with its potentials to this relative accuracy needs no check of its loop."""


def largest(relative):
    """The largest of 7 residuals."""
    error = 0.0
    for k in range(7):
        error = max(error, relative[k])
    return error


def loop_scale(tree, drop, a, b, left, relative):
    """The largest |drop| on the tree path from a to b, V; or any one of which ``left``, V, is at most the fraction
    ``relative``."""
    most = 0.0
    while a != b and not left <= relative * most:
        if tree.depth[a] < tree.depth[b]:
            a, b = b, a
        most = max(most, abs(drop[tree.edge_of[a]]))
        a = tree.parent_of[a]
    return most


def tied_scale(e, size, local, above_first, above_second):
    """`current_scale` of an element of the tree, A; of others ``local``, since they connect nothing by themselves."""
    return current_scale(size, local) if e in (above_first, above_second) else local


def error_bound(tree, branches, current, largest, total, power):
    """Bound on the error of any current relative to its `circuitsim.certificate.current_scale`, given the sum of the
    residual currents ``total``, A, and of their powers, W.

    A residual drives at most its chord's current alone; in R it dissipates at most ``power``.
    """
    bound, by, (first, second, ohms, _) = 0.0, tree.edge_of, branches
    for e in range(ohms.size):
        if current[e] != 0.0:
            local = max(largest[first[e]], largest[second[e]])
            scale = tied_scale(e, abs(current[e]), local, by[first[e]], by[second[e]])
            if not total <= bound * scale:
                error = min(total, np.sqrt(power / abs(ohms[e]))) if ohms[e] != 0.0 else total
                bound = max(bound, error / scale)
    return bound


def potential_bound(tree, ohms, drop, v, total, power):
    """Bound on the error of any potential relative to itself (`CANCELS`); arguments as for `error_bound`.

    The error at the end of a path is at most that of the currents times its resistance, Σ R ``total``, and √(Σ R
    ``power``).
    """
    bound, path, largest = 0.0, np.zeros(v.size), np.zeros(v.size)
    for j in range(1, v.size):
        u, p, e = tree.order[j], tree.parent[j], tree.edge[j]
        path[u], largest[u] = path[p] + abs(ohms[e]), max(largest[p], abs(drop[e]))
        scale = max(abs(v[u]), CANCELS * largest[u])
        if path[u] * total > bound * scale:
            error = min(path[u] * total, np.sqrt(path[u] * power))
            bound = max(bound, error / scale)
    return bound


def prove_branches(made, kind, value, current, low, v, drop, at_node, worst, relative):
    """The certificate of branch currents; fills in drops and potentials.

    Parameters
    ----------
    made : circuitsim.engine.small.spanning.Spanned
        The circuit with its spanning tree.
    current, low : (m,) float arrays
        Branch currents, A, and their low-order parts.
    v : (n_nodes,) float array
        Overwritten, V: node 0 at zero.
    drop : (m,) float array
        Overwritten: branch voltages, V. Those of resistors are R i.
    at_node : (2, n_nodes) float array
        Workspace.
    worst, relative : (7,) float arrays
        Overwritten, in the order of `circuitsim.certificate.EQUATIONS`.

    Returns
    -------
    float
        Bound on the error of any current relative to its `circuitsim.certificate.current_scale` (`error_bound`), and of
        any potential (`potential_bound`), for tree currents that follow from the chord currents in pairs of doubles.
        Infinite where the sign of a voltage is within `circuitsim.certificate.CLEAR` of rounding.
    """
    m, n, tree, (first, second, ohms, emf) = kind.size, v.size, made.tree, made.branches
    worst[:] = 0.0
    relative[:] = 0.0
    worst[0], relative[0], _ = net_currents(first, second, current, at_node)
    by, v_low = tree.edge_of, np.zeros(n)
    for e in range(m):
        drop[e] = emf[e] if ohms[e] == 0.0 else ohms[e] * current[e]
    v[0] = 0.0
    tree_potentials(tree, made.branches, current, low, v, v_low)
    kvl = kvl_relative = forward = forward_relative = reverse = reverse_relative = 0.0
    total, power, least, clear = 0.0, 0.0, np.inf, worst[0] < np.inf
    for e in range(m):
        a, b, c = first[e], second[e], current[e]
        between, between_low = add(v[a], v_low[a], -v[b], -v_low[b])
        local = max(at_node[1, a], at_node[1, b])
        if c != 0.0 and abs(c) < least:  # its scale is not less
            least = min(least, tied_scale(e, abs(c), local, by[a], by[b]))
        if kind[e] == DIODE and c == 0.0:
            drop[e] = between
            clear = clear and (between == 0.0 or abs(between) >= CLEAR * max(abs(v[a]), abs(v[b])))
            if between > 0.0:
                scale = max(between, loop_scale(tree, drop, a, b, between, forward_relative))
                forward, forward_relative = update_maximum(forward, forward_relative, between, scale)
        elif kind[e] == CURRENT or (kind[e] == RESISTOR and not abs(value[e]) < np.inf):
            drop[e] = between
        else:
            left, size = abs(drop[e] - between), abs(drop[e])
            if ohms[e] != 0.0:
                d, d_low = multiply(ohms[e], c, low[e])
                rest = abs(add(d, d_low, -between, -between_low)[0])
                driven = rest / abs(ohms[e])
                total += driven
                power += rest * driven
            if left <= kvl_relative * size:  # the scale of its loop is not less
                kvl = max(kvl, left)
            else:
                scale = size
                if not left <= AGREES * size:
                    scale = max(size, loop_scale(tree, drop, a, b, left, kvl_relative))
                kvl, kvl_relative = update_maximum(kvl, kvl_relative, left, scale)
        if kind[e] == DIODE:
            reverse, reverse_relative = update_maximum(reverse, reverse_relative, max(-c, 0.0), local)
        printed, size = abs(drop[e] - (v[a] - v[b])), abs(drop[e])
        if printed > AGREES * size:
            kvl, kvl_relative = update_maximum(kvl, kvl_relative, printed, max(size, abs(v[a]), abs(v[b])))
    worst[1], worst[3], worst[4] = kvl, forward, reverse
    relative[1], relative[3], relative[4] = kvl_relative, forward_relative, reverse_relative
    for j in range(1, n):
        u, p = tree.order[j], tree.parent[j]
        # Zero by balance or by rounding?
        clear = clear and (not made.live[tree.edge[j]] or at_node[1, u] > 0.0 or at_node[1, p] > 0.0)
    if not clear:
        return np.inf
    bound = total / least if least < np.inf else total
    if total > AIM * least:
        bound = error_bound(tree, made.branches, current, at_node[1], total, power)
    return max(bound, potential_bound(tree, ohms, drop, v, total, power))
