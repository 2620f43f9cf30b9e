"""Kernels of stages of large circuits: currents that follow from node potentials, which are pairs of doubles."""

from __future__ import annotations

from circuitsim.engine.double_double import add


def follow(order, edge, parent, first, second, resistors, siemens, sources, emf, roots, v, low, current, need, most):
    """Potentials, currents of resistors, and those of voltage sources and conducting diodes that follow from them.

    Parameters
    ----------
    order, edge, parent : int arrays
        Trees of voltage sources, shorts, conducting diodes and dead ends, see `circuitsim.engine.spanning.Tree`.
    first, second : (m,) int arrays
    resistors, sources : int arrays
        Resistors; current sources.
    siemens : float array
        Conductances of the resistors, S.
    emf : (m,) float array
        Voltages of voltage sources, else 0, V.
    roots : (r,) int array
        Roots of the trees without ground, nodes by themselves too.
    v, low : (n_nodes,) float arrays
        Potentials as pairs, V: those of roots are given, the others filled in.
    current : (m,) float array
        Those of current sources are given, those of resistors, voltage sources and conducting diodes filled in, A.
    need : (n_nodes,) float array
        Filled: net current into each root, A.
    most : (n_nodes,) float array
        Filled: largest |current| at each node, A.

    Returns
    -------
    float
        The largest net current into a root, of the largest current there.
    """
    for k in range(order.size):
        e = edge[k]
        if e < 0:
            continue
        u, p = order[k], parent[k]
        if emf[e] == 0.0:
            v[u], low[u] = v[p], low[p]
        else:
            v[u], low[u] = add(v[p], low[p], emf[e] if first[e] == u else -emf[e], 0.0)
    for k in range(need.size):
        need[k] = most[k] = 0.0
    for k in range(resistors.size):
        e = resistors[k]
        a, b = first[e], second[e]
        c = siemens[k] * ((v[a] - v[b]) + (low[a] - low[b]))
        current[e] = c
        if c != 0.0:
            need[a] -= c
            need[b] += c
            c = abs(c)
            most[a], most[b] = max(most[a], c), max(most[b], c)
    for e in sources:
        a, b, c = first[e], second[e], current[e]
        if c != 0.0:
            need[a] -= c
            need[b] += c
            c = abs(c)
            most[a], most[b] = max(most[a], c), max(most[b], c)
    for k in range(order.size - 1, -1, -1):
        e = edge[k]
        if e < 0:
            continue
        u, p, c = order[k], parent[k], need[order[k]]
        current[e] = c if first[e] == u else -c
        need[p] += c
        most[u], most[p] = max(most[u], abs(c)), max(most[p], abs(c))
    worst = 0.0
    for k in range(roots.size):
        off, scale = abs(need[roots[k]]), most[roots[k]]
        if not off <= worst * scale:
            worst = off / scale
    return worst


def add_to(roots, rows, change, v, low):
    """Add changes of unknowns, V, to the potentials of roots."""
    for k in range(roots.size):
        u = roots[k]
        v[u], low[u] = add(v[u], low[u], change[rows[k]], 0.0)


def differences(first, second, v, low, drop):
    """Fill in the voltages first − second of all elements, V."""
    for e in range(first.size):
        a, b = first[e], second[e]
        drop[e] = (v[a] - v[b]) + (low[a] - low[b])


def dead_ends(first, second, edges, sources, degree, joined, dead):
    """Mark the elements beyond which the circuit ends: they carry nothing, whatever the values are.

    Parameters
    ----------
    first, second : (m,) int arrays
    edges, sources : int arrays
        Elements that conduct, current sources.
    degree, joined : (n_nodes,) int arrays
        Work space, zero: elements at each node, and their exclusive or.
    dead : (m,) bool array
        Filled.
    """
    for e in edges:
        a, b = first[e], second[e]
        if a != b:
            degree[a] += 1
            degree[b] += 1
            joined[a] ^= e
            joined[b] ^= e
    for e in sources:
        degree[first[e]] += 2
        degree[second[e]] += 2
    for k in range(1, degree.size):
        u = k
        while u != 0 and degree[u] == 1:
            e = joined[u]
            p = second[e] if first[e] == u else first[e]
            dead[e] = True
            degree[u] = 0
            degree[p] -= 1
            joined[p] ^= e
            u = p


__all__ = ["add_to", "dead_ends", "differences", "follow"]
