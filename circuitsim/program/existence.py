"""Existence of a steady state: both ways to fail, each with a witness that names elements (docs/theory.md).

A steady state exists iff (F) the difference constraints of sources and diodes have no negative cycle, and (B) no
union of islands (parts joined by resistors and voltage sources) has a net current that no diode can carry away.
"""

from __future__ import annotations

from bisect import bisect
from fractions import Fraction

import numpy as np

from circuitsim.errors import UnboundedError, some
from circuitsim.program.structure import (
    ROUNDING,
    QuadraticProgram,
    Structure,
    contradiction,
    excess_of,
    source_voltages,
)


def feasible_program(structure: Structure, program: QuadraticProgram) -> tuple[QuadraticProgram, np.ndarray]:
    """The program with a point that satisfies all its constraints, bounds being relaxed where they miss by rounding.

    Returns
    -------
    program : QuadraticProgram
        The same, with bounds raised by at most 1e-12 of the voltages around a loop that closes to rounding.
    x : (n + 1,) float array
        A feasible point, V, with x[n] = 0.

    Raises
    ------
    InfeasibleError
        A named cycle of diodes and voltage sources that no potentials satisfy.
    """
    bound = program.bound.copy()
    while True:
        x, cycle = bellman_ford(program.n, program.tail, program.head, bound)
        if cycle is None:
            return program._replace(bound=bound), x - x[program.n]
        elements, members = _cycle_elements(structure, program, cycle)
        excess = excess_of(members)
        if excess > 0.0:
            raise contradiction(structure, elements, excess)
        bound[cycle] += 4.0 * ROUNDING * max(map(abs, members), default=0.0)


def bellman_ford(n: int, tail: np.ndarray, head: np.ndarray, bound: np.ndarray) -> tuple[np.ndarray, list[int] | None]:
    """Potentials with x_tail ≤ x_head + bound for all constraints, or a negative cycle of constraint positions."""
    x = np.zeros(n + 1)
    if not (bound < 0.0).any():
        return x, None
    last = np.full(n + 1, -1, dtype=np.int64)
    for sweep in range(n + 2):
        reach = x[head] + bound
        # Smaller decreases are rounding of a sum of bounds, which could cycle forever.
        improves = np.flatnonzero(reach < x[tail] - 1e-15 * (np.abs(reach) + np.abs(bound)))
        if not improves.size:
            return x, None
        np.minimum.at(x, tail[improves], reach[improves])
        won = improves[reach[improves] == x[tail[improves]]]
        last[tail[won]] = won
        # A cycle of predecessors is a negative cycle; checking for it now and then ends infeasible searches early.
        if sweep % 8 == 7 or sweep == n + 1:
            cycle = _predecessor_cycle(last, head)
            if cycle is not None:
                return x, cycle
    raise AssertionError("Bellman–Ford neither converged nor found a cycle")


def _predecessor_cycle(last: np.ndarray, head: np.ndarray) -> list[int] | None:
    """The constraints of a cycle in the graph node → head[last[node]], or None."""
    state = np.zeros(last.size, dtype=np.int64)
    for start in np.flatnonzero(last >= 0).tolist():
        u = start
        while last[u] >= 0 and state[u] == 0:
            state[u] = start + 1
            u = int(head[last[u]])
        if last[u] >= 0 and state[u] == start + 1:
            cycle, v = [], u
            while True:
                cycle.append(int(last[v]))
                v = int(head[last[v]])
                if v == u:
                    return cycle
    return None


def _cycle_elements(structure: Structure, program: QuadraticProgram, cycle: list[int]) -> tuple[list[int], list[float]]:
    """The diodes of a cycle and the sources between them, in order, and the voltages of these sources.

    Their sum is the forward voltage across the diodes.
    """
    (_, first, second, _, _), voltage = structure.arrays, source_voltages(structure, program.value)
    elements: list[int] = []
    members: list[float] = []
    for position, following in zip(cycle, [*cycle[1:], cycle[0]]):
        d, after = int(program.diode[position]), int(program.diode[following])
        leaves, enters = int(second[d]), int(first[after])
        # Paths between two fixed trees (of ground, of references) never occur: parts share no diode.
        path = structure.forest.path(leaves, enters)
        elements += [d, *(edge for edge, _ in path)]
        members += [-float(sign * voltage[edge]) for edge, sign in path]
    return elements, members


def check_bounded(structure: Structure, program: QuadraticProgram) -> None:
    """Refuse circuits whose sources drive a current without return path.

    Raises
    ------
    UnboundedError
        The nodes of a cut with net current into (or out of) it, and the sources across it.
    """
    if not structure.currents.size or (structure.grounded and not structure.references.size):
        return  # resistors connect every node to ground
    n, value = program.n, program.value
    island = structure.islands
    ground = island[n]
    supply, scale = np.zeros(n + 1), np.zeros(n + 1)
    _gather(structure, value, island[structure.coordinate], supply, scale)
    supply[np.abs(supply) <= ROUNDING * scale] = 0.0
    _check_part_balance(structure, value)
    supply[ground] = 0.0
    if not supply.any():
        return
    tail, head = island[program.tail], island[program.head]
    for sign, source, target in ((1.0, tail, head), (-1.0, head, tail)):
        stuck = _unroutable(sign * supply, source, target, int(ground), scale)
        if stuck:
            inside = np.isin(island[structure.coordinate], np.array(sorted(stuck)))
            raise _cut(structure, value, inside, sign)


def _check_part_balance(structure: Structure, value: np.ndarray) -> None:
    """Require that the source currents into each part without ground balance: nothing else can carry the rest."""
    part = structure.part
    net, scale = np.zeros((2, part.size))
    _gather(structure, value, part, net, scale)
    for reference in structure.references.tolist():
        if abs(net[reference]) > ROUNDING * scale[reference]:
            raise _cut(structure, value, part == reference, float(np.sign(net[reference])))


def _gather(structure: Structure, value: np.ndarray, group: np.ndarray, net: np.ndarray, scale: np.ndarray) -> None:
    """Accumulate (in place) the net source current into each group of nodes and the sum of magnitudes, A."""
    _, first, second, _, _ = structure.arrays
    i = structure.currents
    i = i[group[first[i]] != group[second[i]]]
    for end, sign in ((first, -1.0), (second, 1.0)):
        np.add.at(net, group[end[i]], sign * value[i])
        np.add.at(scale, group[end[i]], np.abs(value[i]))


UNITS = 2**1074
"""All doubles are integers in units of 2⁻¹⁰⁷⁴."""


def _unroutable(supply: np.ndarray, source: np.ndarray, target: np.ndarray, ground: int, scale: np.ndarray) -> set[int]:
    """Islands from which some of the positive ``supply`` reaches neither ground nor islands of negative supply.

    Arcs source → target have unlimited capacity. Where such islands exist, they are the smallest minimum cut of the
    fewest supplies, in order, that have one; any supply that reaches ground is absorbed there without competing with
    others.
    """
    import networkx
    from networkx.algorithms.flow import dinitz

    arcs = networkx.DiGraph(zip(source.tolist(), target.tolist()))
    arcs.add_nodes_from([ground, "in", "out"])
    grounded = networkx.ancestors(arcs, ground) | {ground}
    starts = [k for k in np.flatnonzero(supply > 0.0).tolist() if k not in grounded]
    for k in np.flatnonzero(supply < 0.0).tolist():
        arcs.add_edge(k, "out", capacity=int(Fraction(-float(supply[k])) * UNITS))

    def cut(count: int) -> set[int]:
        """The smallest minimum cut of the first ``count`` supplies."""
        graph = arcs.copy()
        for k in starts[:count]:
            graph.add_edge("in", k, capacity=int(Fraction(float(supply[k] - ROUNDING * scale[k])) * UNITS))
        rest = dinitz(graph, "in", "out").edges(data=True)
        free = networkx.DiGraph((u, v) for u, v, arc in rest if arc["flow"] < arc["capacity"])
        return set(networkx.descendants(free, "in")) if "in" in free else set()

    return cut(bisect(range(len(starts)), False, key=lambda count: bool(cut(count)))) if cut(len(starts)) else set()


def _cut(structure: Structure, value: np.ndarray, inside: np.ndarray, sign: float) -> UnboundedError:
    """The error for a set of nodes whose net source current (sign +: into it) has no return path."""
    circuit = structure.named
    _, first, second, _, _ = structure.arrays
    nodes = [circuit.node_names[k] for k in np.flatnonzero(inside & structure.touched).tolist()]
    i = structure.currents
    across = i[(inside[first[i]] != inside[second[i]]) & (value[i] != 0.0)]
    net = float(np.where(inside[second[across]], value[across], -value[across]).sum())
    names = [circuit.names[k] for k in across.tolist()]
    direction = "into" if sign > 0 else "out of"
    return UnboundedError(
        f"no steady state: {', '.join(names[:8])} drive{'s' * (len(names) == 1)} {abs(net):.6g} A {direction} "
        f"{some(nodes)} without another DC path; add one (a large resistor to ground, say) or turn a diode",
        elements=names,
        nodes=nodes,
    )
