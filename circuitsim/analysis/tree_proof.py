"""One sample of a linear circuit along a spanning tree: currents, potentials and certificate in compiled passes.

As `circuitsim.engine.small.sample_proof` for eight samples side by side: chords carry what potentials say, the tree
what is left, in pairs of doubles. For samples that have conducting diodes of their own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from circuitsim import certificate, engine
from circuitsim._graphs import choose_forest
from circuitsim.certificate import CLEAR
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR, VOLTAGE
from circuitsim.engine.small.along_tree import Branches
from circuitsim.engine.small.kernels import small_kernel
from circuitsim.engine.small.proof import prove_branches
from circuitsim.engine.small.spanning import find_live, span
from circuitsim.engine.small.workspace import Walk
from circuitsim.engine.tree import RESOLUTION, correct_chords, loop_residuals, tree_currents, tree_potentials
from circuitsim.kernel_family import KernelFamily
from circuitsim.kernels import register_module


class Sample(NamedTuple):
    """Numbers of one sample.

    Attributes
    ----------
    value : (m,) float array
        Of the elements, Ω, V, A.
    current, low : (m,) float arrays
        Branch currents, A, as sums of two doubles.
    v : (n_nodes,) float array
        Potentials, V.
    residual : (chords,) float array
        Violations of the voltage law in the loops of the chords, V.
    injected : (n + 1,) float array
        Currents into super-nodes, A, whose potentials correct them.
    relative : (7,) float array
        Violations in the order of `circuitsim.certificate.EQUATIONS`, relative to their scales.
    """

    value: np.ndarray
    current: np.ndarray
    low: np.ndarray
    v: np.ndarray
    residual: np.ndarray
    injected: np.ndarray
    relative: np.ndarray


def sample_tree(kind, first, second, value, preferred, resistors, n_nodes):
    """The spanning tree of a linear circuit: the elements ``preferred`` first, then ``resistors`` in their order.

    Returns
    -------
    Walk
        Its last member holds only the chords that may carry current.
    joined : bool
        Whether it reaches all nodes and holds all of ``preferred``.
    """
    branches = Branches(preferred, resistors, preferred[:0])
    edges, kept = np.empty(preferred.size + resistors.size, np.int64), np.empty(n_nodes, np.int64)
    edges[: preferred.size] = preferred
    edges[preferred.size :] = resistors
    walk = Walk(
        np.empty(n_nodes, np.int64),
        np.empty(n_nodes, np.int64),
        np.empty(n_nodes, np.int64),
        np.empty(n_nodes, np.int64),
        np.empty(n_nodes, np.int64),
        np.empty(n_nodes, np.int64),
        np.empty(resistors.size, np.int64),
    )
    count = choose_forest(n_nodes, first, second, edges, kept)
    joined = count >= preferred.size and (preferred.size == 0 or kept[preferred.size - 1] == preferred[-1])
    joined = joined and span(first, second, kept[:count], walk) == n_nodes
    chords = find_live(branches, kind, first, second, value, walk) if joined else 0
    return Walk(walk.order, walk.edge, walk.parent, walk.above, walk.depth, walk.live, walk.chord[:chords]), joined


def correct_sample(walk, first, second, last, x, sample):
    """Add to the chords' currents what potentials ``x`` of the super-nodes (n + 1,), V, and residuals ask for; ``last``
    is the super-node whose potential stands for each node."""
    correct_chords(walk.chord, first, second, last, sample.value, sample.residual, x, sample.current, sample.low)


def carry_sample(walk, kind, first, second, sample):
    """Fill in the currents of current sources and of the tree."""
    value, current, count = sample.value, sample.current, walk.chord.size
    m, n = kind.size, sample.v.size
    carriers = np.empty(m, np.int64)
    for k in range(count):
        carriers[k] = walk.chord[k]
    for e in range(m):
        if kind[e] == CURRENT:
            current[e] = value[e]
            if value[e] != 0.0 and first[e] != second[e]:
                carriers[count] = e
                count += 1
    block, above, none = np.zeros(m, np.int64), np.zeros(n, np.int64), np.empty(0)
    need, need_low, largest = np.empty(n), np.empty(n), np.empty(n)
    tree_currents(
        walk.order,
        walk.edge,
        walk.parent,
        first,
        second,
        carriers[:count],
        block,
        above,
        none,
        none,
        current,
        sample.low,
        need,
        need_low,
        largest,
        RESOLUTION,
    )


def close_sample(walk, kind, first, second, coordinate, sample):
    """From the currents of the chords those of the tree; fills in the residuals of the loops and what they inject
    (`circuitsim.engine.tree.loop_residuals`)."""
    carry_sample(walk, kind, first, second, sample)
    m, n, value, v = kind.size, sample.v.size, sample.value, sample.v
    ohms, emf, v_low, edge_of = np.zeros(m), np.zeros(m), np.zeros(n), np.empty(n, np.int64)
    for e in range(m):
        if kind[e] == VOLTAGE:
            emf[e] = value[e]
        elif kind[e] == RESISTOR and abs(value[e]) < np.inf:
            ohms[e] = value[e]
    for k in range(n):
        edge_of[walk.order[k]] = walk.edge[k]
    v[0] = 0.0
    tree_potentials(walk.order, walk.edge, walk.parent, first, ohms, emf, sample.current, sample.low, v, v_low)
    loop_residuals(
        walk.chord,
        first,
        second,
        coordinate,
        ohms,
        emf,
        sample.current,
        sample.low,
        v,
        v_low,
        walk.depth,
        edge_of,
        walk.above,
        sample.residual,
        sample.injected,
    )


def prove_sample(walk, kind, first, second, signed, sample):
    """From the currents of the chords those of the tree, potentials, and their certificate.

    Parameters
    ----------
    walk : Walk
        The spanning tree; its last member holds the chords that may carry current.
    kind, first, second : (m,) int arrays
        The elements.
    signed : bool
        Whether diodes of the tree must conduct, and all others block.
    sample : Sample
        Holds values and the currents of the chords, zero for all other resistors and diodes; filled in but for
        residuals.

    Returns
    -------
    float
        Bound on the errors of currents and potentials (`circuitsim.engine.small.proof.prove_branches`); infinite where
        a sign is within `circuitsim.certificate.CLEAR` of rounding.
    """
    carry_sample(walk, kind, first, second, sample)
    current, v, drop = sample.current, sample.v, np.empty(kind.size)
    at_node, worst = np.empty((2, v.size)), np.empty(7)
    bound = prove_branches(
        walk, kind, first, second, sample.value, current, sample.low, v, drop, at_node, worst, sample.relative
    )
    if signed and not clear_signs(walk, kind, first, second, current, v, drop, at_node[1]):
        bound = np.inf
    for e in range(kind.size):
        current[e] += 0.0  # no −0.0
    for k in range(v.size):
        v[k] += 0.0
    return bound


def clear_signs(walk, kind, first, second, current, v, drop, largest):
    """Whether all diodes of the tree clearly conduct and all others clearly block, by the ``largest`` current at each
    node, A."""
    inside = np.zeros(kind.size, np.bool_)
    for j in range(1, walk.edge.size):
        inside[walk.edge[j]] = True
    clear = True
    for e in range(kind.size):
        if kind[e] == DIODE:
            a, b = first[e], second[e]
            if inside[e]:
                clear = clear and current[e] > CLEAR * max(largest[a], largest[b])
            else:
                clear = clear and drop[e] < -CLEAR * max(abs(v[a]), abs(v[b]))
    return clear


def _register() -> None:
    """Let compiled kernels call the functions they are made of."""
    small_kernel.compiled("spanning_tree")  # lets kernels call those of small circuits
    register_module(sys.modules[__name__])


def _sources() -> Iterator[Path]:
    yield Path(__file__)
    yield Path(str(certificate.__file__))
    yield from sorted(Path(str(engine.__file__)).parent.rglob("*.py"))


KERNELS = ("sample_tree", "close_sample", "correct_sample", "prove_sample")
"""Functions that `tree_kernel` is asked for."""


tree_kernel = KernelFamily(KERNELS, (sys.modules[__name__],), _register, _sources)
"""The kernel of a name (`KERNELS`) for work on so many nodes in all."""
