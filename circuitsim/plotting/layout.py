"""Positions of the vertices of a sketch: on a grid, as in a schematic, or in layers for dense circuits.

On the grid: short straight wires, few crossings, ground at the bottom, by local search from a planar embedding. All
choices are made in a fixed order, so that a circuit always looks the same. In layers (crossbars, layered networks):
nodes in columns, elements between neighbouring columns. Every element's symbol is at the fraction 1/(k + 1) of its
length, k the number of nodes on the right: there all wires are equally spaced, so that no symbols overlap.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from circuitsim.plotting.sketch import Diamond, Sketch
from circuitsim.program.components import component_labels


def embed(n: int, edges: np.ndarray) -> np.ndarray:
    """Positions of a connected graph with mean edge length 1 and most edges along the axes.

    Parameters
    ----------
    n : int
        Number of vertices.
    edges : (m, 2) int array

    Returns
    -------
    (n, 2) float array
    """
    import networkx

    graph = networkx.Graph(edges.tolist())
    graph.add_nodes_from(range(n))
    found = networkx.kamada_kawai_layout(graph)
    x = np.array([found[vertex] for vertex in range(n)])
    return x if n == 1 else _turned(x, edges)


def _turned(x: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Rotate so that edges run along the axes, wider than high; scale to a mean edge length of 1."""
    x = x - x.mean(0)
    along = x[edges[:, 1]] - x[edges[:, 0]]
    length = np.hypot(*along.T)
    angle = np.arctan2(along[:, 1], along[:, 0])
    turns = np.radians(np.arange(0.0, 90.0, 2.0))
    crooked = [(length * np.abs(np.sin(2.0 * (angle - turn)))).sum() for turn in turns]
    turn = float(turns[int(np.argmin(np.round(crooked, 9)))])
    cos, sin = np.cos(turn), np.sin(turn)
    x = x @ np.array([[cos, -sin], [sin, cos]])
    if np.ptp(x[:, 1]) > 1.001 * np.ptp(x[:, 0]):
        x = x[:, ::-1]
    return x / max(float(length.mean()), 1e-12)


CROSSING, COVERED, DIAGONAL = 3.0, 8.0, 1.3
"""Costs of two crossing wires, of a wire over a vertex, of a diagonal wire."""

STRUCK, GROUND_SIDEWAYS, GROUND_ABOVE, GROUND_DIAGONAL = 2.5, 0.8, 2.5, 2.0
"""Costs of a wire through the middle of another, where its symbol is; of a ground symbol not below its node."""

BUDGET = 5000
"""Maximum number of moves evaluated in full for one drawing."""

REACH = [(dx, dy) for r in range(4) for dx in range(-r, r + 1) for dy in range(-r, r + 1) if max(abs(dx), abs(dy)) == r]
"""Cells around a position, nearest first."""


Shape = tuple[np.ndarray, np.ndarray]
"""Vertices that move as a rigid group, and their cells (k, 2) about a centre."""

Moves = dict[int, tuple[int, int]]
"""New cells of vertices."""


class Grid:
    """Vertices on integer cells, and the cost of their arrangement.

    Parameters
    ----------
    start : (n, 2) float array
        Desired positions, in cells.
    edges : (m, 2) int array
    parent : (n,) int array
        The vertex of a ground symbol, −1 elsewhere. A ground symbol is the second end of its edge.
    weight : (m,) float array
        Number of parallel elements on each edge.
    shapes : sequence of (vertices, cells)
        Disjoint groups that move as a whole; their diagonal edges have no cost.
    budget : int
        Maximum number of moves evaluated in full.
    """

    def __init__(
        self,
        start: np.ndarray,
        edges: np.ndarray,
        parent: np.ndarray,
        weight: np.ndarray,
        shapes: Sequence[Shape] = (),
    ) -> None:
        n = len(start)
        self.shapes = [vertices.tolist() for vertices, _ in shapes]
        self.fixed = {v for shape in self.shapes for v in shape}
        self.slanted = np.zeros(len(edges), dtype=bool)
        for shape in self.shapes:
            self.slanted |= np.isin(edges, shape).all(1)
        self.edges, self.parent, self.weight = edges, parent, weight
        self.cells = np.zeros((n, 2), dtype=np.int64)
        self.at: dict[tuple[int, int], int] = {}
        self.children = [np.flatnonzero(parent == v).tolist() for v in range(n)]
        self.incident = [np.flatnonzero((edges == v).any(1)).tolist() for v in range(n)]
        hangs = (parent[edges[:, 1]] >= 0).tolist()
        self.facts = list(zip(*edges.T.tolist(), weight.tolist(), self.slanted.tolist(), hangs))
        self.tries = 0
        for vertices, cells in shapes:
            self._place_shape(vertices, cells, start[vertices].mean(0))
        for v in np.flatnonzero(parent < 0).tolist():
            if v not in self.fixed:
                self._place_vertex(v, start[v])
        for v in np.flatnonzero(parent >= 0).tolist():
            x, y = self.cells[parent[v]].tolist()
            beside = [cell for cell in ((x, y - 1), (x + 1, y), (x - 1, y), (x, y + 1)) if cell not in self.at]
            self._place_vertex(v, np.array(beside[0] if beside else (x + 0.1, y - 1.0)))

    def _place_vertex(self, v: int, wish: np.ndarray) -> None:
        """Put ``v`` on the free cell nearest to its desired position."""
        x, y = round(float(wish[0])), round(float(wish[1]))
        reach = range(-math.isqrt(len(self.at)) - 1, math.isqrt(len(self.at)) + 2)
        free = ((x + dx, y + dy) for dx in reach for dy in reach if (x + dx, y + dy) not in self.at)
        cell = min(free, key=lambda c: ((c[0] - wish[0]) ** 2 + (c[1] - wish[1]) ** 2, c))
        self.cells[v] = cell
        self.at[cell] = v

    def _place_shape(self, vertices: np.ndarray, cells: np.ndarray, wish: np.ndarray) -> None:
        """Put a group where all its cells are free, near its desired position, by `REACH` and steps to the right."""
        centre = np.round(wish).astype(np.int64)
        steps = itertools.chain(REACH, ((right, 0) for right in itertools.count(4)))
        for step in steps:
            places = [(x, y) for x, y in (cells + centre + step).tolist()]
            if self.at.keys().isdisjoint(places):
                break
        self.cells[vertices] = places
        self.at.update(zip(places, vertices.tolist()))

    def cost(self, moved: Sequence[int] | None = None) -> float:
        """Cost of everything that involves the vertices ``moved`` (all by default)."""
        own = np.arange(len(self.edges)) if moved is None else self._edges_of(moved)
        return self._lengths(own.tolist(), self.cells.tolist()) + self._conflicts(own, moved or ())

    def _edges_of(self, moved: Sequence[int]) -> np.ndarray:
        return np.array(sorted({e for v in moved for e in self.incident[v]}), dtype=np.int64)

    def _lengths(self, own: Iterable[int], places: Sequence[Sequence[int]], moves: Moves | None = None) -> float:
        """Cost of the lengths and directions of edges, with vertices at ``places`` except those that move."""
        moves = moves or {}
        cost = 0.0
        for edge in own:
            u, v, weight, slanted, hangs = self.facts[edge]
            (x, y), (to_x, to_y) = moves.get(u) or places[u], moves.get(v) or places[v]
            wide, high = abs(to_x - x), abs(to_y - y)
            extra = wide + high - 1.0
            cost += extra + 0.15 * extra * extra
            diagonal = wide > 0 and high > 0
            if diagonal and not slanted:
                cost += DIAGONAL * weight
            if hangs:
                cost += GROUND_DIAGONAL if diagonal and not slanted else 0.0
                cost += GROUND_SIDEWAYS if to_y == y else GROUND_ABOVE if to_y > y else 0.0
        return cost

    def _conflicts(self, own: np.ndarray, moved: Sequence[int]) -> float:
        """Crossings of the edges ``own`` with any, vertices under them, and ``moved`` vertices under any edge."""
        points = self.cells.astype(float)  # whole numbers: every comparison is exact
        starts, ends = points[self.edges[:, 0]], points[self.edges[:, 1]]
        middle = (starts + ends) / 2
        p, q = starts[own], ends[own]
        m, k = len(starts), own.size
        of = _turn(p, q, np.concatenate([starts, ends, points]))
        of_starts, of_ends = of[:, :m], of[:, m : 2 * m]
        far = _turn(starts, ends, np.concatenate([p, q, points[list(moved)]]))
        of_first, of_second = far[:, :k], far[:, k : 2 * k]
        crossings = np.count_nonzero((of_starts * of_ends < 0) & (of_first * of_second < 0).T)
        # The orientation of a midpoint is the mean of those of the ends.
        struck = _between(p, q, middle, of_starts + of_ends == 0) - k
        covered = _between(p, q, points, of[:, 2 * m :] == 0)
        if k < m:
            others = np.ones(m, dtype=bool)
            others[own] = False
            starts, ends, far = starts[others], ends[others], far[others]
            struck += _between(starts, ends, middle[own], far[:, :k] + far[:, k : 2 * k] == 0)
            covered += _between(starts, ends, points[list(moved)], far[:, 2 * k :] == 0)
        return CROSSING * crossings + COVERED * covered + STRUCK * struck

    def improve(self) -> None:
        """Move vertices, with their ground symbols, and whole branches, while that helps and the budget lasts."""
        branches = self._branches()
        better = len(self.cells) > 1
        while better and self.tries < BUDGET:
            better = False
            for shape in self.shapes:
                group = [*shape, *(child for v in shape for child in self.children[v])]
                better |= self._best(group, (self._moves(group, target) for target in self._targets(group)))
            for v in (v for v in range(len(self.cells)) if v not in self.fixed):
                groups = [[v]] if not self.children[v] else [[v, *self.children[v]], [v]]
                for group in groups:
                    better |= self._best(group, (self._moves(group, target) for target in self._targets(group)))
            for root, branch in branches:
                better |= self._best(branch, self._turns(root, branch))
            better |= self._close_gaps()

    def _targets(self, group: list[int]) -> list[tuple[int, int]]:
        """Cells near the neighbours of ``group[0]``, and near its own."""
        v = group[0]
        others = [int(u) for e in self.incident[v] for u in self.edges[e] if u != v and u not in group]
        x, y = (self.cells[others].mean(0).round().astype(int) if others else self.cells[v]).tolist()
        here = self.cells[v].tolist()
        near = [(x + dx, y + dy) for dx, dy in REACH[:25]] + [(here[0] + dx, here[1] + dy) for dx, dy in REACH[1:9]]
        return list(dict.fromkeys(near))

    def _moves(self, group: list[int], target: tuple[int, int]) -> Moves | None:
        """New cells if ``group[0]`` moves to ``target``: the group moves along; occupants take its former cells."""
        here = self.cells[group[0]].tolist()
        shift = target[0] - here[0], target[1] - here[1]
        if shift == (0, 0):
            return None
        moves = {v: (int(self.cells[v, 0]) + shift[0], int(self.cells[v, 1]) + shift[1]) for v in group}
        for cell in moves.values():
            there = self.at.get(cell)
            if there is not None and there not in moves:
                if len(group) > 1 or there in self.fixed:
                    return None
                return {**moves, there: (here[0], here[1])}
        return moves

    def _branches(self) -> list[tuple[int, list[int]]]:
        """Groups of vertices connected to the rest by one vertex (the root), which can be rotated as a whole."""
        import networkx

        found, half, graph = [], len(self.cells) / 2, networkx.Graph(self.edges.tolist())
        for u, v in self.edges.tolist():
            for root, first in ((u, v), (v, u)):
                branch = networkx.node_connected_component(graph.subgraph(graph.nodes - {root}), first)
                if any(not branch.issuperset(shape) and not branch.isdisjoint(shape) for shape in self.shapes):
                    continue
                if 1 < len(branch) <= half + 1 and (set(graph[root]) - branch or len(branch) < half):
                    found.append((root, [first, *sorted(branch - {first})]))
        return found

    def _turns(self, root: int, branch: list[int]) -> Iterator[Moves | None]:
        """The branch in all rotations and reflections, with its first vertex on each cell near the root."""
        shape = self.cells[branch] - self.cells[branch[0]]
        inside = set(branch)
        for mirror in (1, -1):
            for turn in ((1, 0, 0, 1), (0, -1, 1, 0), (-1, 0, 0, -1), (0, 1, -1, 0)):
                turned = (shape * [mirror, 1]) @ np.array(turn).reshape(2, 2)
                for dx, dy in REACH[1:9]:
                    cells = (turned + self.cells[root] + [dx, dy]).tolist()
                    moves = {v: (x, y) for v, (x, y) in zip(branch, cells)}
                    free = all(self.at.get(cell, v) in inside for v, cell in moves.items())
                    yield moves if free else None

    def _best(self, group: list[int], options: Iterable[Moves | None]) -> bool:
        """Apply the best option if it lowers the cost; most options are rejected by a cheap part of the cost."""
        rated = []
        places = self.cells.tolist()
        base: dict[tuple[int, ...], tuple[list[int], float]] = {}
        for order, moves in enumerate(options):
            if moves is not None:
                moved = tuple(sorted({*moves, *group}))
                if moved not in base:
                    edges = self._edges_of(moved).tolist()
                    base[moved] = edges, self._lengths(edges, places)
                edges, before = base[moved]
                rated.append((self._lengths(edges, places, moves) - before, order, moves))
        conflicts: dict[tuple[int, ...], tuple[np.ndarray, float]] = {}
        for cheap, _, moves in sorted(rated, key=lambda item: item[:2]):
            if self.tries >= BUDGET:
                break
            moved = tuple(moves)
            if moved not in conflicts:
                own = self._edges_of(moved)
                conflicts[moved] = own, self._conflicts(own, moved)
            own, before = conflicts[moved]
            if cheap >= before - 1e-9:
                continue
            self.tries += 1
            old = self.cells[list(moved)]
            self.cells[list(moved)] = list(moves.values())
            if cheap + self._conflicts(own, moved) < before - 1e-9:
                for cell in old.tolist():
                    del self.at[tuple(cell)]
                self.at.update({cell: v for v, cell in moves.items()})
                return True
            self.cells[list(moved)] = old
        return False

    def _close_gaps(self) -> bool:
        """Shift everything beyond a row or column one cell closer if the cells are free and the cost decreases."""
        closed = False
        for axis, cut in self._cuts():
            far = self.cells[:, axis] > cut
            if any(far[shape].any() and not far[shape].all() for shape in self.shapes):
                continue
            beyond = np.flatnonzero(far)
            old = self.cells.copy()
            before = self.cost()
            self.cells[beyond, axis] -= 1
            if len({tuple(c) for c in self.cells.tolist()}) == len(old) and self.cost() < before - 1e-9:
                self.at = {(x, y): v for v, (x, y) in enumerate(self.cells.tolist())}
                closed = True
            else:
                self.cells = old
        return closed

    def _cuts(self) -> Iterator[tuple[int, int]]:
        for axis in (0, 1):
            low, high = int(self.cells[:, axis].min()), int(self.cells[:, axis].max())
            yield from ((axis, cut) for cut in range(low, high))


def _turn(p: np.ndarray, q: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Orientation: the side of the lines p→q on which the points r lie, (lines, points), 0 on the line."""
    x, y, u, v = p[:, :1], p[:, 1:], q[:, :1] - p[:, :1], q[:, 1:] - p[:, 1:]
    turn: np.ndarray = u * r[:, 1] - v * r[:, 0]
    turn -= u * y - v * x
    return turn


def _between(p: np.ndarray, q: np.ndarray, r: np.ndarray, on_line: np.ndarray) -> int:
    """Number of the points r on a line p–q that lie strictly between its ends."""
    line, point = on_line.nonzero()
    r = r[point]
    away = (r - p[line]) * (r - q[line])
    return int(np.count_nonzero(away[:, 0] + away[:, 1] < 0))


DENSE = 2.0
"""Minimum number of elements per node (excluding ground symbols) for layers."""

SMALLEST = 6


class PlacedLayers(NamedTuple):
    """Positions of the vertices (n, 2), in cells, and of each edge's symbol, as a fraction from its start."""

    positions: np.ndarray
    share: np.ndarray


def layered(edges: np.ndarray, parent: np.ndarray, sources: np.ndarray, symbols: bool = True) -> PlacedLayers | None:
    """The circuit in layers; None where it is not dense or has elements within a layer.

    Parameters
    ----------
    edges : (m, 2) int array
    parent : (n,) int array
        The vertex of a ground symbol, −1 elsewhere.
    sources : int array
        Vertices for the first layer; if that fails, all nodes at an even distance from the first vertex.
    symbols : bool
        Whether to leave room for a symbol on every element.
    """
    core = np.flatnonzero(parent < 0)
    inner = edges[parent[edges[:, 1]] < 0]
    if core.size < SMALLEST or len(inner) < DENSE * core.size:
        return None
    layer = _distance(parent.size, inner, sources)
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
    for hops in range(n):
        near = distance[edges] == hops
        reached = edges[:, ::-1][near]
        reached = reached[distance[reached] < 0]
        if not reached.size:
            break
        distance[reached] = hops + 1
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

SCALES = (1.0, 1.15, 1.3, 1.5, 2.0)
"""Initial lengths of elements in cells. The search is local, so the best result from several starts is taken."""

MANY_STARTS = 60
"""Maximum number of nodes for which all starts are tried."""

GAP = 1.6
"""Distance between two parts in cells."""


def place(sketch: Sketch, sources: Sequence[int] = ()) -> PlacedLayers | None:
    """Positions of the vertices, in cells, x to the right and y up, and of the symbols on the bundles.

    None for a circuit with more than `ON_GRID` vertices that is not layered, whose picture would be unreadable.

    Parameters
    ----------
    sketch : Sketch
    sources : sequence of int
        Vertices preferably on the left.
    """
    seen: dict[tuple[bytes, ...], PlacedLayers] = {}  # equal parts get equal drawings
    n = len(sketch.node)
    ends = np.array([(b.start, b.end) for b in sketch.bundles], dtype=np.int64).reshape(-1, 2)
    part = component_labels(n, ends[:, 0], ends[:, 1])
    parent = np.array(sketch.parent, dtype=np.int64)
    weight = np.array([float(len(b.elements)) for b in sketch.bundles])
    share = np.full(len(ends), 0.5)
    pieces = []
    for root in np.unique(part).tolist():
        members = np.flatnonzero(part == root)
        local = np.full(n, -1, dtype=np.int64)
        local[members] = np.arange(members.size)
        own = part[ends[:, 0]] == root
        own_parent = np.where(parent[members] >= 0, local[parent[members]], -1)
        left = np.array([local[v] for v in sources if local[v] >= 0], dtype=np.int64)
        diamonds = [shaped(d, local) for d in sketch.diamonds if part[d.left] == root]
        key = tuple(a.tobytes() for a in (local[ends[own]], own_parent, weight[own], left, *(v for v, _ in diamonds)))
        placed = seen.get(key) or _component(local[ends[own]], own_parent, weight[own], left, diamonds, n <= ON_GRID)
        if placed is None:
            return None
        seen[key] = placed
        share[own] = placed.share
        pieces.append((members, placed.positions))
    return PlacedLayers(_packed(n, pieces), share)


def shaped(diamond: Diamond, local: np.ndarray) -> Shape:
    """The vertices of a bridge, and their cells about its centre."""
    wide = max(1, (len(diamond.middle) + 2) // 2)
    inner = len(diamond.middle)
    across = [j - inner // 2 + (j >= inner // 2 and inner % 2 == 0) for j in range(inner)]
    cells = [(-wide, 0), (wide, 0), (0, wide), (0, -wide), *((x, 0) for x in across)]
    return local[[*diamond[:4], *diamond.middle]], np.array(cells, dtype=np.int64)


def _component(
    edges: np.ndarray,
    parent: np.ndarray,
    weight: np.ndarray,
    left: np.ndarray,
    diamonds: Sequence[Shape],
    small: bool,
) -> PlacedLayers | None:
    found = None if diamonds else layered(edges, parent, left, small)
    if found is not None or not small:
        return found
    core = np.flatnonzero(parent < 0)
    number = np.cumsum(parent < 0) - 1
    inner = edges[parent[edges[:, 1]] < 0]
    wish = np.zeros((parent.size, 2))
    wish[core] = _upright(embed(core.size, number[inner]), number, parent, left)
    scales = SCALES if core.size <= MANY_STARTS else SCALES[1:2]
    starts = (Grid(wish * scale, edges, parent, weight, diamonds) for scale in scales)
    return PlacedLayers(_best_grid(starts), np.full(len(edges), 0.5))


def _best_grid(grids: Iterable[Grid]) -> np.ndarray:
    """The cheapest arrangement of several local searches."""
    best = None
    starts: set[bytes] = set()
    for grid in grids:
        if grid.cells.tobytes() in starts:
            continue
        starts.add(grid.cells.tobytes())
        grid.improve()
        if best is None or grid.cost() < best.cost() - 1e-9:
            best = grid
        if best.cost() < 1.0:
            break  # at most one ground symbol lies sideways: no further gain
    assert best is not None
    return best.cells.astype(float)


def _upright(x: np.ndarray, number: np.ndarray, parent: np.ndarray, left: np.ndarray) -> np.ndarray:
    """Mirror so that the first of ``left`` is on the left, and most nodes with a ground symbol in the lower half."""
    if left.size and x[number[left[0]], 0] > x[:, 0].mean():
        x = x * np.array([-1.0, 1.0])
    grounded = number[parent[parent >= 0]]
    if grounded.size and x[grounded, 1].mean() > x[:, 1].mean() + 1e-9:
        x = x * np.array([1.0, -1.0])
    return x


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
