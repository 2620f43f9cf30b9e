"""A circuit to be drawn, and the positions of its nodes: on a grid, as in a schematic, or in layers for dense circuits.

A sketch has vertices to place, and edges of parallel elements between them. Ground is not a vertex: every node
connected to it gets a ground symbol of its own, as in a hand-drawn schematic, so that the many wires to ground cross no
other wires. The four equal arms of a bridge are slanted, and share one ground symbol.

On the grid: short straight wires, few crossings, ground at the bottom, by iterated local search from a spring
embedding. An arrangement is judged as a router of printed circuits does: every wire occupies its half cells, and two
things on one half cell cost. All choices are made in a fixed order, so that a circuit always looks the same.

In layers (crossbars, layered networks): nodes in columns, elements between neighbouring columns. Every element's symbol
is at the fraction 1/(k + 1) of its length, k the number of nodes on the right: there all wires are equally spaced, so
that no symbols overlap.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.operating_point import inner_parts
from circuitsim.circuit import GROUND, Circuit
from circuitsim.circuit.elements import VOLTAGE


class Sketch(NamedTuple):
    """The vertices and edges to place.

    Attributes
    ----------
    node : (n,) int array
        The circuit's node at each vertex; ``GROUND`` at a ground symbol.
    parent : (n,) int array
        The vertex of a ground symbol; −1 at other vertices, and at the ground symbol of a bridge.
    edges : (m, 2) int array
        A ground symbol is always a second end.
    slanted : (m,) bool array
        Edges that are diagonal.
    left : int array
        Vertices preferably on the left: of voltage sources.
    elements : list of list of int
        The elements (positions in the circuit) side by side on each edge.
    loops : list of int
        Elements with both ends on one node, which are not drawn.
    """

    node: np.ndarray
    parent: np.ndarray
    edges: np.ndarray
    slanted: np.ndarray
    left: np.ndarray
    elements: list[list[int]]
    loops: list[int]

    def part(self, members: Sequence[int]) -> Sketch:
        """The vertices ``members``, renumbered, and the edges between them."""
        local = np.full(len(self.node) + 1, -1)  # the last one for −1
        local[list(members)] = np.arange(len(members))
        own = (local[self.edges] >= 0).all(1)
        kept = [elements for elements, inside in zip(self.elements, own.tolist()) if inside]
        left = local[self.left]
        vertices = self.node[list(members)], local[self.parent[list(members)]]
        return Sketch(*vertices, local[self.edges[own]], self.slanted[own], left[left >= 0], kept, [])


SIDE = 3
"""Number of elements at each side of a bridge: two arms, and one between the sides."""

MOST = 200
"""Maximum number of nodes of a circuit searched for bridges; larger ones are drawn without symbols."""


def bridge_arms(first: Sequence[int], second: Sequence[int], kind: Sequence[int]) -> dict[int, int]:
    """Element → number of its bridge, for the arms of bridges, no two of which have a common node except ground.

    Two nodes are the sides of a bridge if each has three elements, and four of these, all of one kind, are arms: they
    lead to the same two nodes. The others lead from one side to the other.
    """
    incident: dict[int, dict[int, int]] = {}
    for k, (a, b) in enumerate(zip(first, second)):
        if a != b:
            incident.setdefault(a, {})[k] = b
            incident.setdefault(b, {})[k] = a
    found: dict[int, int] = {}
    used: set[int] = set()
    sides = [node for node in sorted(incident) if len(incident[node]) == SIDE and node != GROUND]
    for one, other in combinations(sides, 2):
        leads = [*incident[one].items(), *incident[other].items()]
        ends = {*incident[one].values()} & {*incident[other].values()}
        ends = {end for end in ends if len(ends) == 2 or len(incident[end]) >= SIDE}
        arms = [k for k, end in leads if end in ends]
        across = all(end in (*ends, one, other) or len(incident[end]) == 2 for _, end in leads)
        nodes = {one, other, *ends} - {GROUND}
        if across and len(ends) == 2 and len(arms) == 4 and len({kind[k] for k in arms}) == 1 and not nodes & used:
            found.update(dict.fromkeys(arms, len(used)))
            used |= nodes
    return found


def sketch(circuit: Circuit) -> Sketch:
    """The vertices and edges of a circuit, in the order of its elements.

    Parameters
    ----------
    circuit : Circuit
    """
    kind, first, second = (column.tolist() for column in circuit.arrays()[:3])
    hidden = inner_parts(circuit)[1].tolist()
    bridges = bridge_arms(first, second, kind) if len({*first, *second}) <= MOST else {}
    vertices: dict[tuple[int, ...], int] = {}
    edges: dict[tuple[int, int], list[int]] = {}

    def vertex(*key: int) -> int:
        """The vertex of a node (node, −1), or of the ground symbol of a vertex or a bridge (ground, vertex, bridge)."""
        return vertices.setdefault(key, len(vertices))

    for k, (a, b) in enumerate(zip(first, second)):
        if a == b or hidden[k]:
            continue
        if GROUND in (a, b):
            above = vertex(max(a, b), -1)
            ends = above, vertex(GROUND, -1, bridges[k]) if k in bridges else vertex(GROUND, above)
        else:
            ends = min(vertex(a, -1), vertex(b, -1)), max(vertex(a, -1), vertex(b, -1))
        edges.setdefault(ends, []).append(k)
    node, parent = np.array([key[:2] for key in vertices], dtype=int).reshape(-1, 2).T
    joined = np.array([*edges], dtype=int).reshape(-1, 2)
    slanted = np.array([members[0] in bridges for members in edges.values()], dtype=bool)
    supplied = np.array([any(kind[k] == VOLTAGE for k in members) for members in edges.values()], dtype=bool)
    loops = [k for k, (a, b) in enumerate(zip(first, second)) if a == b]
    return Sketch(node, parent, joined, slanted, joined[supplied, 0], [*edges.values()], loops)


LONG, DIAGONAL = 0.15, 2.0
"""Costs of the square of a wire's excess length, and of a diagonal wire; one cell of excess length costs 1."""

GROUND_SIDEWAYS, GROUND_ABOVE, GROUND_DIAGONAL = 0.8, 2.5, 2.0
"""Costs of a ground symbol that is not below its node."""

WIRE, MIDDLE, VERTEX = 1.7, 3.2, 4.7
"""Weights of what occupies a half cell: a wire; its middle, where its symbol is; a vertex. Two on one half cell cost
the product: 3 for crossing wires, 5 for a wire through a symbol, 8 for a wire over a vertex."""

PREFERENCE = 0.01
"""Cost of a part that is higher than wide, or has its sources on the right: decides between mirror images."""

SWEEPS, SEARCHES, STARTS, KICK = 40, 12, 3, 0.4
"""Maximum number of passes over all groups of vertices in one local search; number of searches; standard deviation,
cells, by which the best arrangement is disturbed before the next one."""

GOOD = 1.0
"""Cost below which the search ends: at most one ground symbol lies sideways."""

MANY = 40
"""Maximum number of nodes for which the search is repeated."""

AROUND = np.array(sorted(itertools.product((-1, 0, 1), repeat=2), key=lambda cell: max(map(abs, cell))))
"""A cell, and its eight neighbours."""

ROTATIONS = [
    np.array([(cos, sin), (-mirror * sin, mirror * cos)])
    for mirror in (1, -1)
    for cos, sin in zip(np.cos(np.radians(range(0, 360, 15))), np.sin(np.radians(range(0, 360, 15))))
]
"""Rotations by multiples of 15°, and their reflections; the identity is the first."""

SCALES = (1.0, 0.92, 1.15, 1.3)
"""Mean lengths of wires, cells."""

ORTHOGONAL = [np.rint(rotation).astype(int) for rotation in ROTATIONS[::6]]
"""Those by multiples of 90°."""


def cost(part: Sketch, cells: np.ndarray) -> np.ndarray:
    """Costs (k,) of the arrangements ``cells`` (k, n, 2)."""
    begin, end = (cells[:, ends] for ends in part.edges.T)
    size, down = np.abs(end - begin), (end - begin)[..., 1]
    extra, hanging = size.sum(2) - 1.0 - part.slanted, part.node[part.edges[:, 1]] == GROUND
    crooked = np.where(part.slanted, size[..., 0] != size[..., 1], size.all(2))
    wires = extra + LONG * extra**2 + crooked * (DIAGONAL + GROUND_DIAGONAL * hanging)
    wires += hanging * (GROUND_SIDEWAYS * (down == 0) + GROUND_ABOVE * (down > 0))
    wide, high = np.ptp(cells, axis=1).T
    aside = cells[:, part.left, 0].sum(1) * cells.shape[1] > cells[..., 0].sum(1) * part.left.size
    total: np.ndarray = wires.sum(1) + PREFERENCE * ((high > wide) + aside)
    steps = 2 * size.max(2)
    option, edge, step = (np.arange(steps.max() + 1) < steps[..., None]).nonzero()
    share = step / steps[option, edge]
    along = 2.0 * (begin[option, edge] + share[:, None] * (end - begin)[option, edge])
    points = np.concatenate([np.rint(along), 2 * cells.reshape(-1, 2)]).astype(int)
    weight = np.select([share == 0.0, share == 0.5], [0.0, MIDDLE], WIRE)
    weight = np.concatenate([weight, np.full(cells[..., 0].size, VERTEX)])
    owner = np.concatenate([option, np.repeat(np.arange(len(cells)), cells.shape[1])])
    place = points - points.min(0)
    box = len(cells), *(place.max(0) + 1)
    held = np.bincount(np.ravel_multi_index((owner, *place.T), box), weight, np.prod(box)).reshape(len(cells), -1)
    return total + 0.5 * ((held**2).sum(1) - np.bincount(owner, weight**2))


def on_grid(part: Sketch) -> np.ndarray:
    """Cells (n, 2) of a part: the best of several local searches, each from the best so far, disturbed."""
    starts = np.array([*embedded(part)])
    _, different = np.unique(np.round(cost(part, starts), 6), return_index=True)
    starts = starts[different[:STARTS]]
    best, random = starts[0], np.random.default_rng(0)
    for k in range(SEARCHES if (part.parent < 0).sum() <= MANY else 1):
        kicked = (
            snapped(best + random.normal(0.0, KICK, best.shape)) if k >= STARTS else starts[min(k, len(starts) - 1)]
        )
        best = _best(part, np.array([best, improved(part, kicked)]))
        if cost(part, best[None])[0] < GOOD:
            break
    return best


def embedded(part: Sketch) -> Iterator[np.ndarray]:
    """Arrangements (n, 2) in all directions, on every second cell, with the ground symbols below their nodes."""
    import networkx

    core, grounded = np.flatnonzero(part.parent < 0), np.flatnonzero(part.parent >= 0)
    x, inner = np.zeros((part.parent.size, 2)), part.edges[part.parent[part.edges[:, 1]] < 0]
    if core.size > 1:
        found = networkx.kamada_kawai_layout(networkx.Graph(inner.tolist()))
        x[core] = [found[v] for v in core.tolist()]
        x /= np.hypot(*(x[inner[:, 1]] - x[inner[:, 0]]).T).mean()
    for scale, rotation in itertools.product(SCALES, ROTATIONS):
        rotated = scale * x[core] @ rotation
        low, high = rotated.min(0), rotated.max(0)
        cells = np.zeros(x.shape, dtype=int)
        cells[core] = 2 * snapped(rotated - 0.5 * (low + high - np.rint(high - low)))  # the corners are cells
        cells[grounded] = cells[part.parent[grounded]] - (0, 1)
        yield cells


def snapped(wish: np.ndarray) -> np.ndarray:
    """The different cells (n, 2) nearest to positions, in all."""
    from scipy.optimize import linear_sum_assignment

    reach = 2 + int(0.5 * len(wish) ** 0.5)
    spans = [np.arange(int(low) - reach, int(high) + reach) for low, high in zip(wish.min(0), wish.max(0))]
    cells = np.array([*itertools.product(*spans)])
    return cells[linear_sum_assignment(((wish[:, None] - cells) ** 2).sum(2))[1]]


def improved(part: Sketch, cells: np.ndarray) -> np.ndarray:
    """The cells (n, 2) after groups have moved, and gaps have closed, while that lowers the cost."""
    groups = [*_groups(part)]
    for _ in range(SWEEPS):
        before = cells
        for axis in (0, 1):
            for cut in range(cells[:, axis].min(), cells[:, axis].max()):
                cells = _best(part, np.array([cells, *_shifts(cells, cells[:, axis] > cut)]))
        for group in groups:
            cells = _best(part, np.array([cells, *_moves(part, cells, group)]))
        if np.array_equal(cells, before):
            break
    return cells


def _best(part: Sketch, options: np.ndarray) -> np.ndarray:
    """The arrangement of least cost; of equal ones the first."""
    found: np.ndarray = options[np.argmin(np.round(cost(part, options), 6))]
    return found


def _groups(part: Sketch) -> Iterator[list[int]]:
    """Vertices that move together: one, alone and with its ground symbols; all; those that one vertex connects to the
    rest, its neighbour first."""
    import networkx

    graph = networkx.Graph(part.edges.tolist())
    yield sorted(graph)
    for v in sorted(graph):
        yield [v]
        yield [v, *np.flatnonzero(part.parent == v).tolist()]
        pieces = [*networkx.connected_components(graph.subgraph(graph.nodes - {v}))]
        for piece in pieces if len(pieces) > 1 else ():
            first = min(piece & graph[v].keys())
            if 1 < len(piece) <= len(graph) / 2 + 1:
                yield [first, *sorted(piece - {first})]


def _moves(part: Sketch, cells: np.ndarray, group: list[int]) -> Iterator[np.ndarray]:
    """All cells after a group has moved near its neighbours, or its place; occupants take the cells it leaves."""
    here, inside = cells[group], set(group)
    others = [u for edge in part.edges.tolist() if group[0] in edge for u in edge if u not in inside]
    centre = np.rint(cells[others or group[:1]].mean(0)).astype(int)
    at = {(x, y): v for v, (x, y) in enumerate(cells.tolist())}
    many = len(group) > 2
    for rotation in ORTHOGONAL if many else ORTHOGONAL[:1]:
        for target in [*(centre + AROUND), *(here[0] + AROUND[: 1 if many else 9])]:
            new = cells.copy()
            new[group] = (here - here[0]) @ rotation + target
            there = [(x, y) for x, y in new[group].tolist()]
            free = [(x, y) for x, y in here.tolist() if (x, y) not in there]
            for cell in there:
                if at.get(cell, group[0]) not in inside:
                    new[at[cell]] = free.pop(0)
            yield new


def _shifts(cells: np.ndarray, beyond: np.ndarray) -> Iterator[np.ndarray]:
    """All cells with some, beyond a row or a column, one cell closer, farther or aside, where they are free."""
    for shift in AROUND[1:]:
        new = cells + beyond[:, None] * shift
        if len(np.unique(new, axis=0)) == len(new):
            yield new


LAYERED = 2.0
"""Minimum number of elements per node (excluding ground symbols) for layers."""

SMALLEST = 6
"""Minimum number of nodes for layers."""

ORDERINGS = 6
"""Number of times that all layers are put in order by their neighbours."""


class Placed(NamedTuple):
    """Positions of the vertices (n, 2), in cells, and of each edge's symbol, as a fraction from its start."""

    positions: np.ndarray
    share: np.ndarray


def layered(part: Sketch, symbols: bool = True) -> Placed | None:
    """The part in layers; None where it is not dense or has elements within a layer.

    Parameters
    ----------
    part : Sketch
        Its vertices on the left are the first layer; if that fails, all nodes at an even distance from the first one.
    symbols : bool
        Whether to leave room for a symbol on every element.
    """
    import networkx

    inner = part.edges[part.parent[part.edges[:, 1]] < 0].tolist()
    graph = networkx.Graph(inner)
    if len(graph) < SMALLEST or len(inner) < LAYERED * len(graph):
        return None
    columns = [sorted(layer) for layer in networkx.bfs_layers(graph, part.left.tolist())] if part.left.size else []
    layer = {v: k for k, column in enumerate(columns) for v in column}
    if len(layer) < len(graph) or any(layer[u] == layer[v] for u, v in inner):
        if not networkx.is_bipartite(graph):
            return None
        columns = [sorted(half) for half in networkx.bipartite.sets(graph)]
        layer = {v: k for k, column in enumerate(columns) for v in column}
    height = {v: k / len(column) for column in columns for k, v in enumerate(column)}
    for ordering in range(ORDERINGS):
        for column in columns[1:] if ordering % 2 == 0 else columns[-2::-1]:
            column.sort(key=lambda v: round(sum(height[u] for u in graph[v]) / len(graph[v]), 9))
            height.update((v, k / len(column)) for k, v in enumerate(column))
    positions, share, x = np.zeros((part.parent.size, 2)), np.full(len(part.edges), 0.5), 0.0
    widest = max(map(len, columns))
    for column, after in zip(columns, [*columns[1:], columns[-1]]):
        spacing = max(1.5, 0.4 * widest) if symbols else max(1.0, min(4.0, 0.8 * widest / len(column)))
        for row, v in enumerate(column):
            positions[v] = x, ((len(column) - 1) / 2 - row) * spacing
        x += max(4.0, 1.05 * (len(after) + 1) if symbols else 0.35 * widest)
    aside = {0: (-1.0, 0.0), len(columns) - 1: (1.0, 0.0)}
    for e, (u, v) in enumerate(part.edges.tolist()):
        if part.parent[v] >= 0:
            positions[v] = positions[u] + aside.get(layer[u], (0.0, -0.8))
        else:
            near = 1.0 / (len(columns[max(layer[u], layer[v])]) + 1)
            share[e] = near if layer[u] < layer[v] else 1.0 - near
    return Placed(positions, share)


ON_GRID = 160
"""Maximum number of vertices of a circuit drawn with symbols; larger ones are drawn in layers or not at all."""

DENSE = 2.5
"""Number of edges per vertex, ground symbols included, from which symbols and labels would overprint each other."""

GAP = 1.6
"""Distance between two parts in cells."""


def with_symbols(sketch: Sketch) -> bool:
    """Whether a circuit is drawn with symbols and labels: neither too large nor too dense."""
    return len(sketch.node) <= ON_GRID and len(sketch.edges) <= DENSE * max(len(sketch.node), MANY)


def place(sketch: Sketch) -> Placed | None:
    """Positions of the vertices, in cells, x to the right and y up, and of the symbols on the edges.

    None for a circuit without symbols that is not layered, whose picture would be unreadable. Connected parts lie side
    by side, in rows about as wide as the whole is high; the tallest part of a row sets its height.
    """
    import networkx

    symbols = with_symbols(sketch)
    positions, share = np.zeros((len(sketch.node), 2)), np.full(len(sketch.edges), 0.5)
    pieces = []
    for members in map(sorted, networkx.connected_components(networkx.Graph(sketch.edges.tolist()))):
        part = sketch.part(members)
        placed = layered(part, symbols)
        if placed is None:
            if not symbols:
                return None
            placed = Placed(on_grid(part), np.full(len(part.edges), 0.5))
        share[np.isin(sketch.edges[:, 0], members)] = placed.share
        pieces.append((members, placed.positions, np.ptp(placed.positions, axis=0) + GAP))
    width = max(
        [np.sqrt(sum(1.5 * size.prod() for *_, size in pieces)), *(size[0] for *_, size in pieces)], default=0.0
    )
    x = top = height = 0.0
    for members, local, size in pieces:
        if x and x + size[0] > width + 1e-9:
            x, top, height = 0.0, top - height, 0.0
        positions[members] = local - [local[:, 0].min(), local[:, 1].max()] + [x, top]
        x, height = x + size[0], max(height, float(size[1]))
    return Placed(positions, share)
