"""Positions on a grid, as a schematic has them: short straight wires, few crossings, ground below.

A local search from the embedding; every choice is made in a fixed order, so that a circuit always looks the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

CROSSING, COVERED, DIAGONAL = 3.0, 8.0, 1.3
"""Cost of two wires that cross, a wire over a vertex, a wire that is neither level nor upright."""

STRUCK, GROUND_SIDEWAYS, GROUND_ABOVE, GROUND_DIAGONAL = 2.5, 0.8, 2.5, 2.0
"""Cost of a wire through the middle of another, where its symbol is; of a ground symbol not below its node."""

BUDGET = 5000
"""Moves to weigh in full for one drawing."""

REACH = [(dx, dy) for r in range(4) for dx in range(-r, r + 1) for dy in range(-r, r + 1) if max(abs(dx), abs(dy)) == r]
"""Cells around a place, nearest first."""


Shape = tuple[np.ndarray, np.ndarray]
"""Vertices that keep their places among each other, and their cells (k, 2) about a centre."""

Moves = dict[int, tuple[int, int]]
"""New cells of vertices."""


class Grid:
    """Vertices on integer cells, and what their arrangement costs.

    Parameters
    ----------
    start : (n, 2) float array
        Wished positions, in cells.
    edges : (m, 2) int array
    parent : (n,) int array
        The vertex a ground symbol hangs on, −1 elsewhere. A ground symbol is the second end of its edge.
    weight : (m,) float array
        Elements that lie side by side on each edge.
    shapes : sequence of (vertices, cells)
        Groups that move as a whole, without a vertex in common; their slanted edges cost nothing.
    budget : int
        Moves to weigh in full.
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
        """Put ``v`` on the free cell nearest to its wish."""
        x, y = round(float(wish[0])), round(float(wish[1]))
        reach = 0
        while True:
            ring = [
                (x + dx, y + dy)
                for dx in range(-reach, reach + 1)
                for dy in range(-reach, reach + 1)
                if max(abs(dx), abs(dy)) == reach and (x + dx, y + dy) not in self.at
            ]
            if ring:
                cell = min(ring, key=lambda c: ((c[0] - wish[0]) ** 2 + (c[1] - wish[1]) ** 2, c))
                self.cells[v] = cell
                self.at[cell] = v
                return
            reach += 1

    def _place_shape(self, vertices: np.ndarray, cells: np.ndarray, wish: np.ndarray) -> None:
        """Put a group where all its cells are free, as near to its wish as `REACH` and steps to the right go."""
        centre = np.round(wish).astype(np.int64)
        steps = itertools.chain(REACH, ((right, 0) for right in itertools.count(4)))
        for step in steps:
            places = [(x, y) for x, y in (cells + centre + step).tolist()]
            if self.at.keys().isdisjoint(places):
                break
        self.cells[vertices] = places
        self.at.update(zip(places, vertices.tolist()))

    def cost(self, moved: Sequence[int] | None = None) -> float:
        """Cost of everything that concerns the vertices ``moved`` (all by default)."""
        own = np.arange(len(self.edges)) if moved is None else self._edges_of(moved)
        return self._lengths(own.tolist(), self.cells.tolist()) + self._conflicts(own, moved or ())

    def _edges_of(self, moved: Sequence[int]) -> np.ndarray:
        return np.array(sorted({e for v in moved for e in self.incident[v]}), dtype=np.int64)

    def _lengths(self, own: Iterable[int], places: Sequence[Sequence[int]], moves: Moves | None = None) -> float:
        """Cost of the lengths and directions of edges, vertices at ``places`` but for those that move."""
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
        # The turn of a middle is the mean of those of the ends.
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
        """Move vertices, with their ground symbols, and whole branches, as long as that helps and the budget lasts."""
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
        """Cells near the neighbours of ``group[0]``, and near where it is."""
        v = group[0]
        others = [int(u) for e in self.incident[v] for u in self.edges[e] if u != v and u not in group]
        x, y = (self.cells[others].mean(0).round().astype(int) if others else self.cells[v]).tolist()
        here = self.cells[v].tolist()
        near = [(x + dx, y + dy) for dx, dy in REACH[:25]] + [(here[0] + dx, here[1] + dy) for dx, dy in REACH[1:9]]
        return list(dict.fromkeys(near))

    def _moves(self, group: list[int], target: tuple[int, int]) -> Moves | None:
        """New cells if ``group[0]`` goes to ``target``: the group moves along; occupants take its former cells."""
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
        """Groups of vertices that one vertex (the root) connects to the rest: what can be turned as a whole."""
        found = []
        half = len(self.cells) / 2
        for u, v in self.edges.tolist():
            for root, first in ((u, v), (v, u)):
                branch, stack = {first}, [first]
                while stack:
                    w = stack.pop()
                    for x in {int(x) for e in self.incident[w] for x in self.edges[e]} - branch - {root}:
                        branch.add(x)
                        stack.append(x)
                if any(not branch.issuperset(shape) and not branch.isdisjoint(shape) for shape in self.shapes):
                    continue
                outside = {int(x) for e in self.incident[root] for x in self.edges[e]} - branch - {root}
                if 1 < len(branch) <= half + 1 and (outside or len(branch) < half):
                    found.append((root, [first, *sorted(branch - {first})]))
        return found

    def _turns(self, root: int, branch: list[int]) -> Iterator[Moves | None]:
        """The branch in all rotations and reflections, its first vertex on each cell near the root."""
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
        """Make the best of the options if it lowers the cost. The cheap part of the cost sorts out most of them."""
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
        """Push everything beyond a row or column one cell nearer if the cells are free and the cost decreases."""
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
    """On which side of the lines p→q the points r lie: (lines, points), 0 on the line."""
    x, y, u, v = p[:, :1], p[:, 1:], q[:, :1] - p[:, :1], q[:, 1:] - p[:, 1:]
    turn: np.ndarray = u * r[:, 1] - v * r[:, 0]
    turn -= u * y - v * x
    return turn


def _between(p: np.ndarray, q: np.ndarray, r: np.ndarray, on_line: np.ndarray) -> int:
    """How many of the points r that are on a line p–q lie strictly between its ends."""
    line, point = on_line.nonzero()
    r = r[point]
    away = (r - p[line]) * (r - q[line])
    return int(np.count_nonzero(away[:, 0] + away[:, 1] < 0))
