"""Loops and cuts of sources that close up to rounding, made to close exactly for the oracle.

A loop of voltage sources (shorts and inductors are sources of 0 V) closes if |Σ| ≤ n · 2⁻⁵² · max of its n members, and
so does the cut of current sources around a floating part. The oracle works on the exact binary values, where
0.1 + 0.2 − 0.3 is not zero: `closed_edges` moves the last member of each such loop, and one source of each such cut, by
the missing 2⁻⁵². Loops and cuts with diodes stay as they are: `refused_by_rounding` tells where the oracle's refusal
rests on such a sum, and there nothing is compared; where a tie of diodes rests on one, the circuit with the values as
written (`decimal_edges`) has it exactly.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import networkx
from circuits import Sketch
from exact import Edge, Oracle, held, is_fixed
from exact_graphs import negative_cycle, parts, route_or_cut

EPSILON = Fraction(1, 2**52)


def rounds_to_zero(total: Fraction, members: Sequence[Fraction]) -> bool:
    """Whether a sum is zero up to the rounding of its members."""
    return abs(total) <= len(members) * EPSILON * max(map(abs, members), default=Fraction(0))


def closed_edges(sketch: Sketch) -> list[Edge]:
    """The exact edges of a circuit, with loops and cuts of sources closed."""
    return with_closed_cuts(sketch.n, with_closed_loops(sketch.n, sketch.edges()))


def decimal_edges(sketch: Sketch) -> list[Edge]:
    """The same circuit with the values as written: 0.3 is 3/10, not the nearest binary number.

    Ties of diodes in loops of such sources (0.1 + 0.2 − 0.3) hold exactly here; in binary they are off by 2⁻⁵⁴.
    """
    edges = [(letter, a, b, Fraction(0 if letter == "D" else repr(value))) for letter, a, b, value in sketch.parts]
    return with_closed_cuts(sketch.n, with_closed_loops(sketch.n, edges))


def with_closed_loops(n: int, edges: Sequence[Edge]) -> list[Edge]:
    """Each voltage source that closes a loop up to rounding closes it exactly."""
    tree, result = networkx.empty_graph(n), list(edges)
    for k, edge in enumerate(edges):
        if not is_fixed(edge):
            continue
        letter, a, b, _ = edge
        if not networkx.has_path(tree, a, b):
            tree.add_edge(a, b, at=k)
            continue
        steps = [(u, tree.edges[u, v]["at"]) for u, v in pairwise(networkx.shortest_path(tree, a, b))]
        way = [(j, held(edges[j]) * (1 if edges[j][1] == u else -1)) for u, j in steps]
        total = sum((drop for _, drop in way), Fraction(0))
        members = [held(edge), *(drop for _, drop in way)]
        if letter == "V" and a != b and rounds_to_zero(total - held(edge), members):
            result[k] = (letter, a, b, total)
        elif letter != "V" and a != b and total and rounds_to_zero(total, members):
            # A short across sources: the last source of the loop moves.
            last = next(j for j, drop in way if drop)
            _, c, d, value = result[last]
            along = next(drop for j, drop in way if j == last)
            result[last] = ("V", c, d, value - total if along == value else value + total)
            return with_closed_loops(n, result)
    return result


def with_closed_cuts(n: int, edges: Sequence[Edge]) -> list[Edge]:
    """Each floating part whose net current is zero up to rounding is balanced exactly, leaves of the parts first."""
    part = parts(n, ((a, b) for letter, a, b, _ in edges if letter not in "IC"))
    result = list(edges)
    crossing = [k for k, (letter, a, b, _) in enumerate(edges) if letter == "I" and part[a] != part[b]]
    graph, via = networkx.Graph(), dict[int, int]()
    for k in crossing[::-1]:
        graph.add_edge(*ends(part, edges[k]), at=k)
    for root in sorted(graph):
        if root not in via:
            tree = [(p, graph.edges[q, p]["at"]) for q, p in networkx.bfs_edges(graph, root)]
            via |= {root: -1, **dict(tree)}
    for p, k in reversed(via.items()):
        into = [result[j][3] * (1 if part[result[j][2]] == p else -1) for j in crossing if p in ends(part, result[j])]
        total = sum(into, Fraction(0))
        if k >= 0 and total and rounds_to_zero(total, into):
            letter, a, b, value = result[k]
            result[k] = (letter, a, b, value - total if part[b] == p else value + total)
    return result


def ends(part: Sequence[int], edge: Edge) -> tuple[int, int]:
    """The parts at both ends of an edge."""
    return part[edge[1]], part[edge[2]]


def refused_by_rounding(oracle: Oracle) -> bool:
    """Whether the oracle's refusal rests on a loop or a cut with diodes that is zero up to rounding."""
    arcs = [(a, b, Fraction(0)) for _, a, b, _ in oracle.diodes]
    for edge in oracle.fixed:
        arcs += [(edge[1], edge[2], held(edge)), (edge[2], edge[1], -held(edge))]
    members = [arcs[k][2] for k in negative_cycle(oracle.n, arcs)]
    if members:
        return rounds_to_zero(sum(members), members)
    if oracle.unbalanced:
        return False
    ways = [(a, b, True) for _, a, b, _ in (*oracle.fixed, *oracle.resistors)]
    ways += [(a, b, False) for _, a, b, _ in oracle.diodes]
    flow, cut = route_or_cut(oracle.n, ways, oracle.injected, oracle.references)
    members = [value * (1 if b in cut else -1) for _, a, b, value in oracle.sources if (a in cut) != (b in cut)]
    return flow is None and rounds_to_zero(sum(members, Fraction(0)), members)
