"""An independent oracle: the steady states of a small circuit in exact rational arithmetic, by trying diode states.

Nothing is shared with circuitsim but the element letters. For each set S of diodes taken as shorts the circuit is
linear and is solved by Gaussian elimination over `fractions.Fraction`; S is right iff its potentials satisfy every
diode and the currents that are missing at the nodes can flow forwards through S (an exact maximum flow). The problem is
convex, so the first S that is right proves the answer, whatever the order in which sets are tried: a caller may offer
a first guess without weakening the proof.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations, islice
from typing import NamedTuple

Edge = tuple[str, int, int, Fraction]  # letter, first, second, value (0 for diodes); node 0 is ground
INF = None


class Exact(NamedTuple):
    """What the laws of physics say: every node's range and every current.

    ``voltage`` and ``current`` are one steady state; ``interval`` is the range of each node over all of them (None:
    open end); ``unique`` says of each element whether its current is the same in all of them.
    """

    voltage: list[Fraction]
    interval: list[tuple[Fraction | None, Fraction | None]]
    current: list[Fraction]
    unique: list[bool]
    energy: Fraction


def edges_of(elements: Iterable[tuple[str, int, int, float]]) -> list[Edge]:
    """Elements (letter, first node, second node, value) as exact edges; L and 0 Ω are sources of 0 V, C is dropped."""
    return [(letter, a, b, Fraction(0 if letter == "D" else value)) for letter, a, b, value in elements]


def is_fixed(edge: Edge) -> bool:
    """Whether the element holds a voltage."""
    return edge[0] in "VL" or (edge[0] == "R" and edge[3] == 0)


def held(edge: Edge) -> Fraction:
    """The voltage it holds."""
    return edge[3] if edge[0] == "V" else Fraction(0)


class Potentials:
    """Union–find whose members keep exact offsets: v(node) = v(root) + offset."""

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
        """Demand v(u) − v(v) = drop; False if that contradicts what was demanded before."""
        (ru, ou), (rv, ov) = self.find(u), self.find(v)
        if ru == rv:
            return ou - ov == drop
        if ru < rv:
            self.parent[rv], self.offset[rv] = ru, ou - ov - drop
        else:
            self.parent[ru], self.offset[ru] = rv, drop + ov - ou
        return True

    def copy(self) -> Potentials:
        twin = Potentials(0)
        twin.parent, twin.offset = self.parent[:], self.offset[:]
        return twin


def parts(n: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """Smallest node of each node's component."""
    union = Potentials(n)
    for u, v in pairs:
        union.join(u, v, Fraction(0))
    return [union.find(u)[0] for u in range(n)]


def shortest(n: int, arcs: Sequence[tuple[int, int, Fraction]]) -> list[Fraction] | None:
    """Potentials with x[u] ≤ x[v] + w for all arcs (u, v, w), or None where a negative cycle forbids them."""
    x = [Fraction(0)] * n
    for _ in range(n + 1):
        changed = False
        for u, v, w in arcs:
            if x[v] + w < x[u]:
                x[u], changed = x[v] + w, True
        if not changed:
            return x
    return None


def route(
    n: int, arcs: Sequence[tuple[int, int, bool]], need: Sequence[Fraction], free: set[int]
) -> list[Fraction] | None:
    """Currents on the arcs (u, v, both_ways) with out − in = need at every node but the ``free`` ones; None if none.

    One-way arcs carry ≥ 0. Augmenting paths, breadth first, in exact arithmetic; every arc's capacity is unlimited.
    """
    flow = [Fraction(0)] * len(arcs)
    rest = list(need)
    around: list[list[tuple[int, int, int]]] = [[] for _ in range(n)]
    for e, (u, v, _) in enumerate(arcs):
        around[u].append((v, e, 1))
        around[v].append((u, e, -1))
    for sign in (1, -1):
        for start in range(n):
            while start not in free and rest[start] * sign > 0:
                via: dict[int, tuple[int, int, int]] = {start: (start, -1, 1)}
                queue, end = deque([start]), None
                while queue and end is None:
                    u = queue.popleft()
                    for v, e, way in around[u]:
                        # Pushing demand from a node forwards; absorbing for a deficit goes against the arcs.
                        along = way * sign
                        if v in via or not (along > 0 or arcs[e][2] or flow[e] > 0):
                            continue
                        via[v] = (u, e, along)
                        if v in free or rest[v] * sign < 0:
                            end = v
                            break
                        queue.append(v)
                if end is None:
                    return None
                path, u = [], end
                while u != start:
                    path.append(via[u])
                    u = via[u][0]
                amount = abs(rest[start])
                if end not in free:
                    amount = min(amount, abs(rest[end]))
                for _, e, along in path:
                    if along < 0 and not arcs[e][2]:
                        amount = min(amount, flow[e])
                for _, e, along in path:
                    flow[e] += amount * along
                rest[start] -= sign * amount
                rest[end] += sign * amount
    return flow


class Oracle:
    """A circuit prepared for exact questions.

    Parameters
    ----------
    n : int
        Number of nodes, ground (0) included.
    edges : sequence of Edge
    """

    def __init__(self, n: int, edges: Sequence[Edge]) -> None:
        self.n, self.edges = n, list(edges)
        self.fixed = [e for e in self.edges if is_fixed(e)]
        self.resistors = [e for e in self.edges if e[0] == "R" and e[3] != 0]
        self.diodes = [e for e in self.edges if e[0] == "D"]
        self.sources = [e for e in self.edges if e[0] == "I"]
        self.injected = [Fraction(0)] * n
        for _, a, b, value in self.sources:
            self.injected[a] -= value
            self.injected[b] += value
        self.part = parts(n, ((a, b) for letter, a, b, _ in self.edges if letter not in "IC"))
        self.island = parts(n, ((e[1], e[2]) for e in (*self.fixed, *self.resistors)))
        # The lowest node of every part without ground is its reference, at 0 V like ground.
        self.earths = {self.part[u] for u in range(n)}

    def infeasible(self) -> bool:
        """Whether no potentials satisfy all sources and diodes: a negative cycle of difference constraints."""
        arcs = [(a, b, Fraction(0)) for _, a, b, _ in self.diodes]
        for edge in self.fixed:
            arcs += [(edge[1], edge[2], held(edge)), (edge[2], edge[1], -held(edge))]
        return shortest(self.n, arcs) is None

    def unbounded(self) -> bool:
        """Whether some net current has no way out: no flow through resistors, sources and forward diodes takes it."""
        for root in self.earths - {0}:
            if sum(self.injected[u] for u in range(self.n) if self.part[u] == root):
                return True
        arcs = [(a, b, True) for _, a, b, _ in (*self.fixed, *self.resistors)]
        arcs += [(a, b, False) for _, a, b, _ in self.diodes]
        return route(self.n, arcs, self.injected, self.earths) is None

    def linear(self, shorted: Sequence[int]) -> list[Fraction] | None:
        """Node potentials with those diodes as shorts, groups that float shifted so that all diodes hold; or None."""
        union = Potentials(self.n)
        for edge in self.fixed:
            if not union.join(edge[1], edge[2], held(edge)):
                return None
        for k in shorted:
            if not union.join(self.diodes[k][1], self.diodes[k][2], Fraction(0)):
                return None
        root, offset = zip(*(union.find(u) for u in range(self.n)))
        group = parts(self.n, [*((u, root[u]) for u in range(self.n)), *((r[1], r[2]) for r in self.resistors)])
        earth = {group[u]: u for u in sorted(self.earths, reverse=True)}
        held_root = {root[u] for u in earth.values()}
        for g in sorted(set(group)):
            if g not in earth:
                if sum(self.injected[u] for u in range(self.n) if group[u] == g):
                    return None
                held_root.add(root[g])
        x = self.eliminate(root, offset, held_root)
        v = [x[root[u]] + offset[u] for u in range(self.n)]
        # v is right inside each group; difference constraints place the groups among each other.
        base = {g: (v[earth[g]] if g in earth else Fraction(0)) for g in set(group)}
        v = [v[u] - base[group[u]] for u in range(self.n)]
        grounded = {g: (0 if g in earth else g) for g in set(group)}
        arcs = []
        for _, a, b, _ in self.diodes:
            ga, gb = grounded[group[a]], grounded[group[b]]
            if ga == gb:
                if v[a] > v[b]:
                    return None
            else:
                arcs.append((ga, gb, v[b] - v[a]))
        shift = shortest(self.n, arcs)
        if shift is None:
            return None
        return [v[u] + shift[grounded[group[u]]] - shift[0] for u in range(self.n)]

    def eliminate(self, root: Sequence[int], offset: Sequence[Fraction], held_root: set[int]) -> dict[int, Fraction]:
        """Potentials of the super-nodes' roots, by Gaussian elimination of the nodal equations; held roots at 0."""
        unknown = [u for u in sorted(set(root)) if u not in held_root]
        row = {u: {} for u in unknown}
        right = dict.fromkeys(unknown, Fraction(0))
        for u in range(self.n):
            if root[u] in right:
                right[root[u]] += self.injected[u]
        for _, a, b, ohms in self.resistors:
            ra, rb = root[a], root[b]
            if ra == rb:
                continue
            g, e = 1 / ohms, (offset[a] - offset[b]) / ohms
            for u, w, sign in ((ra, rb, -1), (rb, ra, 1)):
                if u in row:
                    row[u][u] = row[u].get(u, 0) + g
                    right[u] += sign * e
                    if w in row:
                        row[u][w] = row[u].get(w, 0) - g
        for i, u in enumerate(unknown):
            pivot = row[u][u]
            for w in unknown[i + 1 :]:
                factor = row[w].pop(u, None)
                if factor:
                    factor /= pivot
                    for c, entry in row[u].items():
                        if c != u:
                            row[w][c] = row[w].get(c, 0) - factor * entry
                    right[w] -= factor * right[u]
        x = dict.fromkeys(root, Fraction(0))
        for u in reversed(unknown):
            x[u] = (right[u] - sum(entry * x[c] for c, entry in row[u].items() if c != u)) / row[u][u]
        return x

    def rounding(self, shorted: Sequence[int]) -> list[float]:
        """Scale of the rounding of each potential in double arithmetic: the potentials if all sources added up.

        Potentials are sums over sources with coefficients ≥ 0 (the Laplacian is an M-matrix); here every term counts
        with its magnitude, so that a node at 0 V because 5 V cancel 5 V has the scale 5 V, not 0.
        """
        union = Potentials(self.n)
        for edge in self.fixed:
            union.join(edge[1], edge[2], held(edge))
        for k in shorted:
            union.join(self.diodes[k][1], self.diodes[k][2], Fraction(0))
        root, offset = zip(*(union.find(u) for u in range(self.n)))
        group = parts(self.n, [*((u, root[u]) for u in range(self.n)), *((r[1], r[2]) for r in self.resistors)])
        first_of = {group[u]: root[u] for u in sorted(range(self.n), key=lambda u: (u in self.earths, -u))}
        net, self.injected = self.injected, [Fraction(0)] * self.n
        for _, a, b, value in self.sources:
            self.injected[a] += abs(value)
            self.injected[b] += abs(value)
        for _, a, b, ohms in self.resistors:
            lift = (abs(offset[a]) + abs(offset[b])) / ohms
            self.injected[a] += lift
            self.injected[b] += lift
        x = self.eliminate(root, [Fraction(0)] * self.n, set(first_of.values()))
        self.injected = net
        return [float(x[root[u]] + abs(offset[u])) for u in range(self.n)]

    def missing(self, v: Sequence[Fraction]) -> list[Fraction]:
        """Current that each node must shed through sources, shorts and diodes."""
        need = list(self.injected)
        for _, a, b, ohms in self.resistors:
            i = (v[a] - v[b]) / ohms
            need[a] -= i
            need[b] += i
        return need

    def flow(self, v: Sequence[Fraction], shorted: Sequence[int]) -> list[Fraction] | None:
        """Currents of the fixed edges, then of the shorted diodes (≥ 0), that balance every node; None if none do."""
        arcs = [(a, b, True) for _, a, b, _ in self.fixed]
        arcs += [(self.diodes[k][1], self.diodes[k][2], False) for k in shorted]
        return route(self.n, arcs, self.missing(v), self.earths)

    def right(self, shorted: Sequence[int]) -> tuple[list[Fraction], list[Fraction]] | None:
        """Potentials and flow if exactly these diodes may be taken as conducting, else None."""
        v = self.linear(shorted)
        if v is None:
            return None
        flow = self.flow(v, shorted)
        return None if flow is None else (v, flow)

    def states(self, guess: Sequence[int] = ()) -> Iterator[tuple[int, ...]]:
        """All sets of conducting diodes, in the order of their distance from the guess."""
        for changes in range(len(self.diodes) + 1):
            for flipped in combinations(range(len(self.diodes)), changes):
                yield tuple(sorted(set(guess).symmetric_difference(flipped)))

    def solve(self, guess: Sequence[int] = (), tries: int | None = None) -> Exact | None:
        """The steady states, or None if there is none (`infeasible` and `unbounded` tell which).

        With ``tries``, only that many sets of diodes are tried: then None proves nothing.
        """
        for shorted in islice(self.states(guess), tries):
            found = self.right(shorted)
            if found is not None:
                return self.describe(found[0], shorted, found[1])
        return None

    def describe(self, v: list[Fraction], shorted: tuple[int, ...], flow: list[Fraction]) -> Exact:
        """All about the set of steady states, from one of them."""
        through = dict(zip(shorted, flow[len(self.fixed) :]))
        tight, interval = self.freedom(v, through)
        carriers = [(a, b, True, i) for (_, a, b, _), i in zip(self.fixed, flow)]
        # A diode tight in every steady state may carry current in some of them.
        carriers += [(self.diodes[k][1], self.diodes[k][2], False, through.get(k, Fraction(0))) for k in tight]
        sure = iter(certain(carriers))
        fixed_sure = [next(sure) for _ in self.fixed]
        diode_sure = dict(zip(tight, sure))
        fixed, diode = iter(zip(flow, fixed_sure)), iter(range(len(self.diodes)))
        current, unique = [], []
        energy = Fraction(0)
        for edge in self.edges:
            letter, a, b, value = edge
            drop, i, only = v[a] - v[b], Fraction(0), True
            if is_fixed(edge):
                i, only = next(fixed)
            elif letter == "D":
                k = next(diode)
                i, only = through.get(k, Fraction(0)), diode_sure.get(k, True)
            elif letter == "R":
                i = drop / value
                energy += drop * i / 2
            elif letter == "I":
                i = value
                energy += value * drop
            current.append(i)
            unique.append(only)
        return Exact(v, interval, current, unique, energy)

    def freedom(
        self, v: list[Fraction], through: dict[int, Fraction]
    ) -> tuple[list[int], list[tuple[Fraction | None, Fraction | None]]]:
        """Diodes without voltage in every steady state, and the range of every node.

        Potentials within an island never differ; islands may shift within what diodes leave as room, and a diode that
        carries current in one steady state has no voltage in any (complementary slackness).
        """
        held = {self.island[e] for e in self.earths}
        place = [0 if island in held else island for island in self.island]
        far: dict[tuple[int, int], Fraction] = {(p, p): Fraction(0) for p in place}
        for k, (_, a, b, _) in enumerate(self.diodes):
            tail, head, room = place[a], place[b], v[b] - v[a]
            for key, w in (((tail, head), room), *((((head, tail), Fraction(0)),) if through.get(k) else ())):
                if key not in far or w < far[key]:
                    far[key] = w
        nodes = sorted(set(place))
        for m in nodes:
            for a in nodes:
                if (a, m) in far:
                    for b in nodes:
                        if (m, b) in far and ((a, b) not in far or far[a, m] + far[m, b] < far[a, b]):
                            far[a, b] = far[a, m] + far[m, b]
        # shift(a) − shift(b) ≤ far[a, b]
        tight = [k for k, (_, a, b, _) in enumerate(self.diodes) if v[a] == v[b] and far.get((place[b], place[a])) == 0]
        interval = []
        for u in range(self.n):
            down, up = far.get((0, place[u])), far.get((place[u], 0))
            interval.append((None if down is None else v[u] - down, None if up is None else v[u] + up))
        return tight, interval


def certain(carriers: Sequence[tuple[int, int, bool, Fraction]]) -> list[bool]:
    """For each carrier (u, v, both ways, current) whether no circulation of current can change it."""
    sure = []
    for e, (u, v, both, i) in enumerate(carriers):
        others = [c for k, c in enumerate(carriers) if k != e]
        changes = reaches(others, v, u) or ((both or i > 0) and reaches(others, u, v))
        sure.append(not changes)
    return sure


def reaches(carriers: Sequence[tuple[int, int, bool, Fraction]], start: int, end: int) -> bool:
    """Whether extra current can get from ``start`` to ``end``: forwards, or backwards against a current."""
    seen, stack = {start}, [start]
    while stack:
        node = stack.pop()
        for u, v, both, i in carriers:
            for here, there, allowed in ((u, v, True), (v, u, both or i > 0)):
                if here == node and allowed and there not in seen:
                    seen.add(there)
                    stack.append(there)
    return end in seen
