"""Graphs and equations with exact numbers: potentials with offsets, difference constraints, flows, elimination."""

import math
from collections import deque
from collections.abc import Iterable, Sequence
from fractions import Fraction


class Potentials:
    """Union–find with exact offsets: v(node) = v(root) + offset."""

    def __init__(self, n: int) -> None:
        self.parent = list(range(n))
        self.offset = [Fraction(0)] * n

    def find(self, u: int) -> tuple[int, Fraction]:
        total = Fraction(0)
        while self.parent[u] != u:
            total += self.offset[u]
            u = self.parent[u]
        return u, total

    def join(self, u: int, v: int, drop: Fraction) -> bool:
        """Demand v(u) − v(v) = drop; False if that contradicts an earlier demand."""
        (ru, ou), (rv, ov) = self.find(u), self.find(v)
        if ru == rv:
            return ou - ov == drop
        if ru < rv:
            self.parent[rv], self.offset[rv] = ru, ou - ov - drop
        else:
            self.parent[ru], self.offset[ru] = rv, drop + ov - ou
        return True


def parts(n: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """Smallest node of each node's component."""
    union = Potentials(n)
    for u, v in pairs:
        union.join(u, v, Fraction(0))
    return [union.find(u)[0] for u in range(n)]


def relaxed(n: int, arcs: Sequence[tuple[int, int, Fraction]]) -> tuple[list[Fraction], list[int], int]:
    """Potentials with x[u] ≤ x[v] + w for all arcs (u, v, w), the arc that lowered each of them last, and a node that
    another round would lower; −1 in the absence of a negative cycle."""
    x, via = [Fraction(0)] * n, [-1] * n
    for _ in range(n + 1):
        last = -1
        for e, (u, v, w) in enumerate(arcs):
            if x[v] + w < x[u]:
                x[u], via[u], last = x[v] + w, e, u
        if last < 0:
            break
    return x, via, last


def shortest(n: int, arcs: Sequence[tuple[int, int, Fraction]]) -> list[Fraction] | None:
    """The potentials of `relaxed`, or None in the presence of a negative cycle."""
    x, _, last = relaxed(n, arcs)
    return x if last < 0 else None


def negative_cycle(n: int, arcs: Sequence[tuple[int, int, Fraction]]) -> list[int]:
    """Indices of the arcs of a cycle with a negative sum of weights; empty if there is none."""
    _, via, u = relaxed(n, arcs)
    path: list[int] = []
    while u >= 0 and via[u] not in path:
        path.append(via[u])
        u = arcs[via[u]][1]
    return path[path.index(via[u]) :] if path else []


def augment(
    around: Sequence[Sequence[tuple[int, int, int]]],
    arcs: Sequence[tuple[int, int, bool]],
    flow: Sequence,
    rest: Sequence,
    free: set[int],
    start: int,
    sign: int,
) -> tuple[dict[int, tuple[int, int, int]], int | None]:
    """Breadth-first tree from a node with excess (sign 1) or deficit (−1), and the node where it ends or None."""
    via: dict[int, tuple[int, int, int]] = {start: (start, -1, 1)}
    queue = deque([start])
    while queue:
        u = queue.popleft()
        for v, e, way in around[u]:
            along = way * sign
            if v in via or not (along > 0 or arcs[e][2] or flow[e] > 0):
                continue
            via[v] = (u, e, along)
            if v in free or rest[v] * sign < 0:
                return via, v
            queue.append(v)
    return via, None


def route_or_cut(
    n: int, arcs: Sequence[tuple[int, int, bool]], need: Sequence, free: set[int]
) -> tuple[list | None, set[int]]:
    """Currents on the arcs (u, v, both_ways) with out − in = need at every node but the ``free`` ones.

    One-way arcs carry ≥ 0. Augmenting paths, breadth first, in the exact arithmetic of ``need`` (integers or
    fractions); unlimited capacities. Without such currents: None and the nodes of a cut that proves it.
    """
    flow: list = [0] * len(arcs)
    rest = list(need)
    around: list[list[tuple[int, int, int]]] = [[] for _ in range(n)]
    for e, (u, v, _) in enumerate(arcs):
        around[u].append((v, e, 1))
        around[v].append((u, e, -1))
    for sign in (1, -1):
        for start in range(n):
            while start not in free and rest[start] * sign > 0:
                via, end = augment(around, arcs, flow, rest, free, start, sign)
                if end is None:
                    return None, set(via)
                path, u = [], end
                while u != start:
                    path.append(via[u])
                    u = via[u][0]
                amount = abs(rest[start])
                if end not in free:
                    amount = min(amount, abs(rest[end]))
                amount = min([amount, *(flow[e] for _, e, along in path if along < 0 and not arcs[e][2])])
                for _, e, along in path:
                    flow[e] += amount * along
                rest[start] -= sign * amount
                rest[end] += sign * amount
    return flow, set()


def route(n: int, arcs: Sequence[tuple[int, int, bool]], need: Sequence, free: set[int]) -> list | None:
    """The currents of `route_or_cut`, or None."""
    return route_or_cut(n, arcs, need, free)[0]


def certain(n: int, carriers: Sequence[tuple[int, int, bool, Fraction]]) -> list[bool]:
    """For each carrier (u, v, both ways, current) whether no circulation of current can change it."""
    ahead: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    for e, (u, v, both, i) in enumerate(carriers):
        ahead[u].append((v, e))
        if both or i > 0:
            ahead[v].append((u, e))
    return [
        not (reaches(ahead, v, u, e) or ((both or i > 0) and reaches(ahead, u, v, e)))
        for e, (u, v, both, i) in enumerate(carriers)
    ]


def reaches(ahead: Sequence[Sequence[tuple[int, int]]], start: int, end: int, without: int) -> bool:
    """Whether extra current can get from ``start`` to ``end`` without one carrier."""
    seen, stack = {start}, [start]
    while stack and end not in seen:
        for v, e in ahead[stack.pop()]:
            if e != without and v not in seen:
                seen.add(v)
                stack.append(v)
    return end in seen


def elimination_order(nodes: Sequence[int], pairs: Sequence[tuple[int, int]]) -> list[int]:
    """Minimum-degree order; pairs may name nodes that are not eliminated."""
    around: dict[int, set[int]] = {u: set() for u in nodes}
    for u, w in pairs:
        if u != w and u in around and w in around:
            around[u].add(w)
            around[w].add(u)
    order = []
    while around:
        u = min(around, key=lambda node: (len(around[node]), node))
        near = around.pop(u)
        order.append(u)
        for w in near:
            around[w].discard(u)
            around[w] |= near - {w}
    return order


def solve_rows(rows: dict[int, dict[int, Fraction]], right: dict[int, Fraction]) -> dict[int, Fraction]:
    """Solution of a symmetric positive definite sparse system, by elimination of primitive integer rows."""
    whole: dict[int, dict[int, int]] = {}
    for u, row in rows.items():
        scale = math.lcm(right[u].denominator, *(x.denominator for x in row.values()))
        whole[u] = primitive({c: int(x * scale) for c, x in row.items() if x} | {-1: int(right[u] * scale)})
    pairs = [(u, c) for u, row in whole.items() for c in row if c >= 0]
    order = elimination_order(sorted(whole), pairs)
    for u in order:
        row = whole[u]
        for w in [c for c in row if c not in (u, -1) and u in whole[c]]:
            other = whole[w]
            factor, pivot = other.pop(u), row[u]
            common = math.gcd(factor, pivot)
            factor, pivot = factor // common, pivot // common
            other = {c: x * pivot for c, x in other.items()}
            for c, x in row.items():
                if c != u:
                    other[c] = other.get(c, 0) - factor * x
            whole[w] = primitive(other)
    top: dict[int, int] = {}
    bottom = 1
    for u in reversed(order):
        row = whole[u]
        value = row[-1] * bottom - sum(x * top[c] for c, x in row.items() if c not in (u, -1))
        common = math.gcd(value, row[u])
        pivot = row[u] // common
        if pivot != 1:
            bottom *= pivot
            top = {c: x * pivot for c, x in top.items()}
        top[u] = value // common
    return {u: Fraction(x, bottom) for u, x in top.items()}


def primitive(row: dict[int, int]) -> dict[int, int]:
    """The row without its common factor; the right-hand side is entry −1."""
    common = math.gcd(*row.values())
    return {c: x // common for c, x in row.items()} if common > 1 else row
