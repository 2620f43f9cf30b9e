"""The large driver: active-set iterations on node potentials in doubles, around any linear solver.

The steps are those of the small driver (`circuitsim.engine.steps`). Only clear violations count here (`CLEAR`): linear
solvers may be iterative. What is left to decide, refined currents and potentials decide
(`circuitsim.engine.active_set`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.engine import steps
from circuitsim.engine.exchange import exchange_all
from circuitsim.engine.kernels import kernel
from circuitsim.engine.network import Network
from circuitsim.engine.refinement import representative
from circuitsim.engine.search import Change, Search
from circuitsim.program.flow import spanning_forest
from circuitsim.program.structure import Structure
from circuitsim.solvers.linear import Factored

CLEAR = 1e-9
"""A current or voltage above this share of the magnitudes that it is a sum of is clear."""

EQUAL = 1e-13
"""Ends of a diode that differ by less than this share of their potentials are equal."""

EVEN = 1e8
"""Largest ratio of resistances for which potentials in doubles tell most of the conducting diodes."""


class Start(NamedTuple):
    """Where refined iterations begin.

    Attributes
    ----------
    closed : int array
        Conducting diodes, the largest current first.
    current : (m,) float array
        Branch currents of resistors, A.
    factored : Factored or None
        The nodal matrix of the last iteration.
    iterations : int
        Linear circuits solved.
    """

    closed: np.ndarray
    current: np.ndarray
    factored: Factored | None
    iterations: int


def suits(net: Network) -> bool:
    """Whether there are diodes and similar resistances, and resistors and sources lead from every node to ground."""
    r = net.ascending
    return bool(net.diodes.size and net.grounded and r.size and net.ohms[r[-1]] <= EVEN * net.ohms[r[0]])


def topology(structure: Structure) -> steps.Topology:
    """What the steps need of a structure."""
    forest, (_, first, second, _, _) = structure.forest, structure.arrays
    node, r, d = forest.order, structure.resistors, structure.diodes
    edge = structure.voltage_edges[forest.edge[node]]
    return steps.Topology(
        structure.n, structure.coordinate, node, forest.parent[node], edge, r, first[r], second[r], first[d], second[d]
    )  # fmt: skip


def iterate(net: Network, closed: np.ndarray, guess: np.ndarray, limit: int) -> Start:
    """Active-set iterations until no violation is clear, a set returns or ``limit`` linear circuits are solved."""
    m, d, structure = net.first.size, net.diodes, net.structure
    plan = topology(structure)
    state = steps.new_state(plan, 1.0 / net.ohms[plan.resistor])
    v, offset = np.zeros((2, net.n_nodes))
    kernel(steps.offsets, plan.tree_node.size)(plan, structure.arrays.kind, net.first, net.emf, offset)
    begins, ends = net.first[net.sources], net.second[net.sources]
    amperes = net.source[net.sources]
    injected = np.bincount(ends, amperes, net.n_nodes) - np.bincount(begins, amperes, net.n_nodes)
    tail, head = plan.coordinate[plan.anode], plan.coordinate[plan.cathode]
    start, finish = kernel(steps.start, m), kernel(steps.finish_at_hand, m)
    position = np.full(m, -1, dtype=np.int64)
    position[d] = np.arange(d.size)
    order, factored, count, search = position[closed], None, 0, Search(closed.size > 0)
    while True:
        count += 1
        on = np.zeros(d.size, dtype=bool)
        on[spanning_forest(plan.n, tail, head, order)] = True
        start(plan, injected, offset, state, on, v)
        branch = net.branch[d[on]]
        factored = net.laplacian.factor(branch[branch >= 0], factored)
        state.change[:] = factored.solve(state.change[:-1])
        conducting = np.zeros(m, dtype=bool)
        conducting[d[on]] = True
        state.forest.last[:] = representative(net, conducting)
        finish(plan, injected, offset, state, on, v, CLEAR)
        leave, enter, flow = on & ~state.wanted, state.wanted & ~on, state.flow
        if leave.any():
            forward = v[plan.anode] - v[plan.cathode]
            equal = np.abs(forward) <= EQUAL * np.maximum(np.abs(v[plan.anode]), np.abs(v[plan.cathode]))
            need = np.bincount(plan.coordinate, state.need, plan.n + 1)
            scale = np.bincount(plan.coordinate, state.size, plan.n + 1)
            flow = exchange_all(tail, head, state.root, equal, on, state.flow, state.noise, need, scale)
            on = flow != 0.0
            leave = on & (flow < -CLEAR * state.noise)
        wrong = int(leave.sum() + enter.sum())
        change = search.next(np.packbits(on).tobytes(), wrong, int(enter.sum()))
        if change is Change.PART and wrong:
            part = search.part(leave | enter)
            leave, enter = leave & part, enter & part
        stays = np.flatnonzero(on if change is Change.ENTER_ONLY else on & ~leave)
        stays = stays[np.argsort(-flow[stays], kind="stable")]
        if not wrong or change is Change.DUAL or count >= limit:
            current = np.zeros(m)
            current[plan.resistor] = (v[plan.resistor_first] - v[plan.resistor_second]) * state.g
            return Start(d[stays], current, factored, count)
        entering = np.flatnonzero(enter)
        forward = v[plan.anode[entering]] - v[plan.cathode[entering]]
        order = np.concatenate([entering[np.argsort(-forward, kind="stable")], stays])
        if change in (Change.NONE_CONDUCTS, Change.ALL_CONDUCT):
            order = np.arange(d.size if change is Change.ALL_CONDUCT else 0)
