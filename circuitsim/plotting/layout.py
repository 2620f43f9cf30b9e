"""Positions of the vertices of a sketch: on a grid, as in a schematic, or in layers for dense circuits.

On the grid: short straight wires, few crossings, ground at the bottom, by local search from a planar embedding. All
choices are made in a fixed order, so that a circuit always looks the same. In layers (crossbars, layered networks):
nodes in columns, elements between neighbouring columns. Every element's symbol is at the fraction 1/(k + 1) of its
length, k the number of nodes on the right: there all wires are equally spaced, so that no symbols overlap.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from circuitsim.circuit import GROUND
from circuitsim.plotting.sketch import Sketch
from circuitsim.program.components import component_labels


class Part(NamedTuple):
    """A connected part of a sketch, as arrays.

    Attributes
    ----------
    edges : (m, 2) int array
        A ground symbol is the second end of its edges.
    parent : (n,) int array
        The vertex of a ground symbol, −1 elsewhere.
    weight : (m,) float array
        Number of parallel elements on each edge.
    slanted : (m,) bool array
        Edges that are diagonal.
    hanging : (m,) bool array
        Edges to a ground symbol.
    left : int array
        Vertices preferably on the left.
    """

    edges: np.ndarray
    parent: np.ndarray
    weight: np.ndarray
    slanted: np.ndarray
    hanging: np.ndarray
    left: np.ndarray


def embedded(part: Part) -> np.ndarray:
    """Positions (n, 2) of a part with mean edge length 1: most edges along the axes, wider than high, most nodes with a
    ground symbol in the lower half, ground symbols below their nodes."""
    core, grounded = np.flatnonzero(part.parent < 0), np.flatnonzero(part.parent >= 0)
    among = part.parent[part.edges[:, 1]] < 0
    x, inner = np.zeros((part.parent.size, 2)), part.edges[among]
    if core.size > 1:
        import networkx

        found = networkx.kamada_kawai_layout(networkx.Graph(inner.tolist()))
        x[core] = [found[vertex] for vertex in core.tolist()]
        x -= x[core].mean(0)
        along = x[inner[:, 1]] - x[inner[:, 0]]
        length, angle = np.hypot(*along.T), np.arctan2(along[:, 1], along[:, 0]) + np.pi / 4 * part.slanted[among]
        angles = np.radians(np.arange(0.0, 90.0, 2.0))
        crooked = (length * np.abs(np.sin(2.0 * (angle - angles[:, None])))).sum(1)
        rotation = angles[np.argmin(np.round(crooked, 9))]
        cos, sin = np.cos(rotation), np.sin(rotation)
        x = x @ np.array([[cos, -sin], [sin, cos]]) / length.mean()
        wide, high = np.ptp(x[core], axis=0)
        x = x[:, ::-1] if high > 1.001 * wide else x
        if part.left.size and x[part.left[0], 0] > 0.0:
            x = x * [-1.0, 1.0]
        if grounded.size and x[part.parent[grounded], 1].mean() > 1e-9:
            x = x * [1.0, -1.0]
    x[grounded] = x[part.parent[grounded]]
    return x


CROSSING, COVERED, DIAGONAL = 3.0, 8.0, 1.3
"""Costs of two crossing wires, of a wire over a vertex, of a diagonal wire."""

STRUCK, GROUND_SIDEWAYS, GROUND_ABOVE, GROUND_DIAGONAL = 2.5, 0.8, 2.5, 2.0
"""Costs of a wire through the middle of another, where its symbol is; of a ground symbol not below its node."""

SWEEPS, TRIED = 40, 10
"""Maximum number of passes over all vertices, and of moves of one group that are compared in full."""

REACH = np.array(sorted(itertools.product(range(-2, 3), repeat=2), key=lambda cell: (max(map(abs, cell)), cell)))
"""Cells around a position, nearest first: itself, its eight neighbours, then theirs."""

ORTHOGONAL = [
    sign * np.diag(mirror) @ rotation
    for sign in (1, -1)
    for mirror in ((1, 1), (-1, 1))
    for rotation in ([[1, 0], [0, 1]], [[0, -1], [1, 0]])
]
"""Rotations by multiples of 90° and their reflections; the identity is the first."""


class Grid:
    """The vertices of a part on integer cells, near their desired positions (n, 2), in cells.

    Attributes
    ----------
    cells : (n, 2) int array
    """

    def __init__(self, part: Part, start: np.ndarray) -> None:
        self.part = part
        self.cells: np.ndarray = np.zeros(start.shape, dtype=np.int32)
        taken: set[tuple[int, ...]] = set()
        for v in np.argsort(part.parent >= 0, kind="stable").tolist():
            wish = start[v] if part.parent[v] < 0 else self.cells[part.parent[v]] + (0.1, -1.0)
            ring = range(-1 - int(len(taken) ** 0.5), 2 + int(len(taken) ** 0.5))
            near = np.round(wish).astype(int) + list(itertools.product(ring, ring))
            order = np.argsort(((near - wish) ** 2).sum(1), kind="stable")
            self.cells[v] = next(cell for cell in near[order] if tuple(cell.tolist()) not in taken)
            taken.add(tuple(self.cells[v].tolist()))

    def groups(self) -> Iterator[tuple[list[int], int]]:
        """Vertices that move together, and how many of `ORTHOGONAL` they try: one, alone and with its ground symbols;
        and those that one other vertex connects to the rest, the neighbour of that first."""
        import networkx

        graph = networkx.Graph(self.part.edges.tolist())
        for v in range(len(self.cells)):
            yield [v, *np.flatnonzero(self.part.parent == v).tolist()], 1
            yield [v], 1
        for bridge in networkx.connected_components(networkx.Graph(self.part.edges[self.part.slanted].tolist())):
            yield sorted(bridge | {v for v in graph if graph[v].keys() <= bridge}), len(ORTHOGONAL)
        for root in sorted(graph):
            pieces = [*networkx.connected_components(graph.subgraph(graph.nodes - {root}))]
            for piece in pieces if len(pieces) > 1 else ():
                first = min(piece & graph[root].keys())
                if 1 < len(piece) <= len(graph) / 2 + 1:
                    yield [first, *sorted(piece - {first})], len(ORTHOGONAL)

    def improve(self) -> float:
        """Move groups, and close gaps, while that lowers the cost; returns it."""
        groups = [*self.groups()]
        for _ in range(SWEEPS):
            better = [self.best(self.moves(*group)) for group in groups] + [self.best(gap) for gap in self.gaps()]
            if not any(better):
                break
        return float(self.cost(self.cells[None])[0])

    def best(self, options: np.ndarray) -> bool:
        """Take the best of these arrangements (k, n, 2) if it is better than the present one, the first."""
        rough = self.lengths(options, np.arange(len(self.part.edges)))
        options = options[[0, *(1 + np.argsort(rough[1:], kind="stable")[:TRIED])]]
        costs = self.cost(options, np.flatnonzero((options != self.cells).any((0, 2))))
        least = int(np.argmin(costs))
        if costs[least] < costs[0] - 1e-9:
            self.cells = options[least]
            return True
        return False

    def moves(self, group: list[int], count: int) -> np.ndarray:
        """All cells after a group has moved near its neighbours, or its place; occupants take the cells it leaves."""
        here, inside = self.cells[group], set(group)
        others = [u for edge in self.part.edges.tolist() if group[0] in edge for u in edge if u not in inside]
        centre = np.round(self.cells[others or group[:1]].mean(0)).astype(int)
        targets = np.concatenate([centre + REACH, here[0] + REACH[1:9]]) if count == 1 else centre + REACH[1:9]
        at = {(x, y): v for v, (x, y) in enumerate(self.cells.tolist())}
        found = [self.cells]
        for matrix, target in itertools.product(ORTHOGONAL[:count], targets):
            new = self.cells.copy()
            new[group] = (here - here[0]) @ matrix + target
            there = [(x, y) for x, y in new[group].tolist()]
            free = [(x, y) for x, y in here.tolist() if (x, y) not in there]
            for cell in there:
                if at.get(cell, group[0]) not in inside:
                    new[at[cell]] = free.pop(0)
            found.append(new)
        return np.array(found)

    def gaps(self) -> Iterator[np.ndarray]:
        """All cells with those beyond a row or column one cell closer, where they are free."""
        for axis in (0, 1):
            for cut in range(self.cells[:, axis].min(), self.cells[:, axis].max()):
                new = self.cells.copy()
                new[new[:, axis] > cut, axis] -= 1
                if len(np.unique(new, axis=0)) == len(new):
                    yield np.array([self.cells, new])

    def lengths(self, cells: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Costs (k,) of the lengths and directions of edges in the arrangements ``cells`` (k, n, 2)."""
        (starts, ends), part = cells[:, self.part.edges[own]].transpose(2, 0, 1, 3), self.part
        slanted, hanging, down = part.slanted[own], part.hanging[own], (ends - starts)[..., 1]
        size = np.abs(ends - starts)
        extra = size.sum(2) - np.where(slanted, 2.0, 1.0)
        crooked = np.where(slanted, size[..., 0] != size[..., 1], size.all(2))
        cost = extra + 0.15 * extra * extra + crooked * (DIAGONAL * part.weight[own] + GROUND_DIAGONAL * hanging)
        total: np.ndarray = (cost + hanging * (GROUND_SIDEWAYS * (down == 0) + GROUND_ABOVE * (down > 0))).sum(1)
        return total

    def cost(self, cells: np.ndarray, moved: np.ndarray | None = None) -> np.ndarray:
        """Costs (k,) of all that involves the vertices ``moved`` (all by default) in the arrangements ``cells``."""
        edges = self.part.edges
        moved = np.arange(cells.shape[1]) if moved is None else moved
        own = np.flatnonzero(np.isin(edges, moved).any(1))
        points = 2 * cells  # so that middles are whole
        lines = points[:, edges]
        of_own = _sides(lines[:, own], points)
        near, far = of_own[:, :, edges[:, 0]], of_own[:, :, edges[:, 1]]
        behind, beyond = _sides(lines, lines[:, own, 0]), _sides(lines, lines[:, own, 1])
        crossed = (near * far < 0) & (behind * beyond < 0).swapaxes(1, 2)
        crossings = crossed.sum((1, 2)) - 0.5 * crossed[:, :, own].sum((1, 2))
        struck, middles = behind + beyond == 0, lines.sum(2) // 2
        of_moved = _sides(lines, points[:, moved]) == 0
        struck[:, own] = of_moved[:, own] = False  # those are among the next
        covered = _within(of_moved, lines, points[:, moved]) + _within(of_own == 0, lines[:, own], points)
        hits = _within(struck, lines, middles[:, own]) + _within(near + far == 0, lines[:, own], middles) - own.size
        total: np.ndarray = self.lengths(cells, own) + CROSSING * crossings + COVERED * covered + STRUCK * hits
        return total


def _sides(lines: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The sides of lines (k, m, 2, 2) on which points (k, p, 2) lie (k, m, p): 0 on the line."""
    (x, y), (u, v) = lines[:, :, 0].transpose(2, 0, 1), (lines[:, :, 1] - lines[:, :, 0]).transpose(2, 0, 1)
    made: np.ndarray = u[..., None] * points[:, None, :, 1] - v[..., None] * points[:, None, :, 0]
    return made - (u * y - v * x)[..., None]


def _within(on_line: np.ndarray, lines: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Numbers (k,) of the points on lines that lie strictly between their ends."""
    option, line, point = on_line.nonzero()
    away = points[option, point][:, None] - lines[option, line]
    return np.bincount(option[(away[:, 0] * away[:, 1]).sum(1) < 0], minlength=len(on_line))


LAYERED = 2.0
"""Minimum number of elements per node (excluding ground symbols) for layers."""

SMALLEST = 6


class PlacedLayers(NamedTuple):
    """Positions of the vertices (n, 2), in cells, and of each edge's symbol, as a fraction from its start."""

    positions: np.ndarray
    share: np.ndarray


def layered(part: Part, symbols: bool = True) -> PlacedLayers | None:
    """The part in layers; None where it is not dense or has elements within a layer.

    Parameters
    ----------
    part : Part
        Its vertices on the left are the first layer; if that fails, all nodes at an even distance from the first one.
    symbols : bool
        Whether to leave room for a symbol on every element.
    """
    edges, parent = part.edges, part.parent
    core = np.flatnonzero(parent < 0)
    inner = edges[parent[edges[:, 1]] < 0]
    if core.size < SMALLEST or len(inner) < LAYERED * core.size:
        return None
    layer = _distance(parent.size, inner, part.left)
    if not _fits(layer, core, inner):
        layer = _distance(parent.size, inner, core[:1]) % 2
        if not _fits(layer, core, inner):
            return None
    columns = _ordered([core[layer[core] == k].tolist() for k in range(int(layer[core].max()) + 1)], inner)
    return _placed(columns, edges, parent, layer, symbols)


def _distance(n: int, edges: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Graph distance from the vertices ``start``; −1 where not connected."""
    distance = np.full(n, -1, dtype=np.int64)
    distance[start] = 0
    hops = 0
    while (near := distance[edges] == hops).any():
        hops += 1
        reached = edges[:, ::-1][near]
        distance[reached[distance[reached] < 0]] = hops
    return distance


def _fits(layer: np.ndarray, core: np.ndarray, inner: np.ndarray) -> bool:
    """Whether every vertex has a layer, and every element joins neighbouring ones."""
    return bool((layer[core] >= 0).all() and (np.abs(np.diff(layer[inner], axis=1)) == 1).all())


def _ordered(columns: list[list[int]], inner: np.ndarray, sweeps: int = 6) -> list[list[int]]:
    """Order the vertices of each column by the mean height of their neighbours, sweeping back and forth."""
    height = {v: k / len(column) for column in columns for k, v in enumerate(column)}
    neighbours: dict[int, list[int]] = {v: [] for v in height}
    for u, v in inner.tolist():
        neighbours[u].append(v)
        neighbours[v].append(u)
    for sweep in range(sweeps):
        for column in columns[1:] if sweep % 2 == 0 else columns[-2::-1]:
            column.sort(key=lambda v: round(sum(height[u] for u in neighbours[v]) / max(1, len(neighbours[v])), 9))
            height.update((v, k / len(column)) for k, v in enumerate(column))
    return columns


def _placed(
    columns: list[list[int]], edges: np.ndarray, parent: np.ndarray, layer: np.ndarray, symbols: bool
) -> PlacedLayers:
    widest = max(map(len, columns))
    positions = np.zeros((parent.size, 2))
    x = 0.0
    for k, column in enumerate(columns):
        spacing = max(1.5, 0.4 * widest) if symbols else max(1.0, min(4.0, 0.8 * widest / len(column)))
        for row, v in enumerate(column):
            positions[v] = x, ((len(column) - 1) / 2 - row) * spacing
        room = 1.05 * (len(columns[min(k + 1, len(columns) - 1)]) + 1) if symbols else 0.35 * widest
        x += max(4.0, room)
    last = len(columns) - 1
    for v in np.flatnonzero(parent >= 0).tolist():
        own = int(layer[parent[v]])
        aside = {0: (-1.0, 0.0), last: (1.0, 0.0)}.get(own, (0.0, -0.8))
        positions[v] = positions[parent[v]] + aside
    share = np.full(len(edges), 0.5)
    for e, (u, v) in enumerate(edges.tolist()):
        if parent[v] < 0:
            left, right = (u, v) if layer[u] < layer[v] else (v, u)
            near = 1.0 / (len(columns[int(layer[right])]) + 1)
            share[e] = near if left == u else 1.0 - near
    return PlacedLayers(positions, share)


ON_GRID = 160
"""Maximum number of vertices of a circuit drawn with symbols; larger ones are drawn in layers or not at all."""

DENSE = 2.5
"""Number of bundles per vertex, ground symbols included, from which symbols and labels would overprint each other."""

SCALES = (1.15, 1.0, 1.3, 0.8, 1.5, 2.0)
"""Initial lengths of elements in cells. The search is local, so the best result from several starts is taken."""

MANY_STARTS = 40
"""Maximum number of nodes for which all starts are tried."""

GAP = 1.6
"""Distance between two parts in cells."""


def with_symbols(sketch: Sketch) -> bool:
    """Whether a circuit is drawn with symbols and labels: neither too large nor too dense."""
    return len(sketch.node) <= ON_GRID and len(sketch.bundles) <= DENSE * max(len(sketch.node), MANY_STARTS)


def place(sketch: Sketch, sources: Sequence[int] = ()) -> PlacedLayers | None:
    """Positions of the vertices, in cells, x to the right and y up, and of the symbols on the bundles.

    None for a circuit without symbols that is not layered, whose picture would be unreadable.

    Parameters
    ----------
    sketch : Sketch
    sources : sequence of int
        Vertices preferably on the left.
    """
    seen: dict[tuple[bytes, ...], PlacedLayers | None] = {}  # equal parts get equal drawings
    n = len(sketch.node)
    ends = np.array([(b.start, b.end) for b in sketch.bundles], dtype=np.int64).reshape(-1, 2)
    label = component_labels(n, ends[:, 0], ends[:, 1])
    parent, ground = np.array(sketch.parent, dtype=np.int64), np.array(sketch.node) == GROUND
    weight = np.array([float(len(b.elements)) for b in sketch.bundles])
    slanted = np.array([b.slanted for b in sketch.bundles], dtype=bool)
    share = np.full(len(ends), 0.5)
    pieces = []
    for root in np.unique(label).tolist():
        members, own = np.flatnonzero(label == root), label[ends[:, 0]] == root
        local = np.full(n + 1, -1, dtype=np.int64)  # the last one for −1
        local[members] = np.arange(members.size)
        left = np.array([local[v] for v in sources if local[v] >= 0], dtype=np.int64)
        edges = ends[own]
        part = Part(local[edges], local[parent[members]], weight[own], slanted[own], ground[edges[:, 1]], left)
        key = tuple(array.tobytes() for array in part)
        if key not in seen:
            seen[key] = _placed_part(part, with_symbols(sketch))
        placed = seen[key]
        if placed is None:
            return None
        share[own] = placed.share
        pieces.append((members, placed.positions))
    return PlacedLayers(_packed(n, pieces), share)


def _placed_part(part: Part, small: bool) -> PlacedLayers | None:
    """One part in layers, or on the grid by the best of several local searches."""
    found = layered(part, small)
    if found is not None or not small:
        return found
    wish = embedded(part)
    best = np.inf, wish
    for scale in SCALES if (part.parent < 0).sum() <= MANY_STARTS else SCALES[:1]:
        grid = Grid(part, scale * wish)
        best = min(best, (grid.improve(), grid.cells.astype(float)), key=lambda one: one[0])
        if best[0] < 1.0:
            break  # at most one ground symbol lies sideways: no further gain
    return PlacedLayers(best[1], np.full(len(part.edges), 0.5))


def _packed(n: int, pieces: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Parts side by side, in rows about as wide as the whole is high; the tallest part of a row sets its height."""
    positions = np.zeros((n, 2))
    sizes = [np.ptp(x, axis=0) + GAP for _, x in pieces]
    width = max(max((s[0] for s in sizes), default=0.0), float(np.sqrt(sum(1.5 * s[0] * s[1] for s in sizes))))
    x = top = height = 0.0
    for (members, local), size in zip(pieces, sizes):
        if x and x + size[0] > width + 1e-9:
            x, top, height = 0.0, top - height, 0.0
        positions[members] = local - [local[:, 0].min(), local[:, 1].max()] + [x, top]
        x, height = x + size[0], max(height, float(size[1]))
    return positions
