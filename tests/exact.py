"""An independent oracle: the steady states of a circuit in exact rational arithmetic.

Nothing is shared with circuitsim but the element letters. For a set S of diodes taken as shorts the circuit is linear
and is solved by elimination in integers; S is right iff its potentials satisfy every diode and the currents that are
missing at the nodes can flow forwards through S (an exact maximum flow). The problem is convex, so the first S that is
right proves the answer, whatever offered it (`Oracle.candidates`, or a caller's guess).
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from exact_graphs import Potentials, certain, parts, route, shortest, solve_rows

Edge = tuple[str, int, int, Fraction]  # letter, first, second, value (0 for diodes); node 0 is ground


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
        self.references = {self.part[u] for u in range(n)}
        # Parts without ground whose net current has no way out.
        net = {root: sum(self.injected[u] for u in range(n) if self.part[u] == root) for root in self.references - {0}}
        self.unbalanced = sorted(root for root, total in net.items() if total)

    def infeasible(self) -> bool:
        """Whether no potentials satisfy all sources and diodes: a negative cycle of difference constraints."""
        arcs = [(a, b, Fraction(0)) for _, a, b, _ in self.diodes]
        for edge in self.fixed:
            arcs += [(edge[1], edge[2], held(edge)), (edge[2], edge[1], -held(edge))]
        return shortest(self.n, arcs) is None

    def unbounded(self) -> bool:
        """Whether some net current has no way out: no flow through resistors, sources and forward diodes takes it."""
        if self.unbalanced:
            return True
        arcs = [(a, b, True) for _, a, b, _ in (*self.fixed, *self.resistors)]
        arcs += [(a, b, False) for _, a, b, _ in self.diodes]
        return route(self.n, arcs, self.injected, self.references) is None

    def contract(self, shorted: Sequence[int]) -> tuple[list[int], list[Fraction], bool]:
        """Super-node and offset (V) of each node with those diodes as shorts; whether all their voltages agree."""
        union = Potentials(self.n)
        agree = True
        for _, a, b, drop in (*((*edge[:3], held(edge)) for edge in self.fixed), *(self.diodes[k] for k in shorted)):
            agree = union.join(a, b, drop) and agree
        root, offset = zip(*(union.find(u) for u in range(self.n)))
        return list(root), list(offset), agree

    def groups(self, root: Sequence[int]) -> list[int]:
        """Smallest node of each node's group: super-nodes joined by resistors."""
        return parts(self.n, [*((u, root[u]) for u in range(self.n)), *((r[1], r[2]) for r in self.resistors)])

    def linear(self, shorted: Sequence[int]) -> list[Fraction] | None:
        """Node potentials with those diodes as shorts, floating groups shifted so that all diodes hold; or None."""
        root, offset, agree = self.contract(shorted)
        if not agree:
            return None
        group = self.groups(root)
        ground = {group[u]: u for u in sorted(self.references, reverse=True)}
        held_root = {root[u] for u in ground.values()}
        for g in sorted(set(group)):
            if g not in ground:
                if sum(self.injected[u] for u in range(self.n) if group[u] == g):
                    return None
                held_root.add(root[g])
        x = self.eliminate(root, offset, held_root)
        v = [x[root[u]] + offset[u] for u in range(self.n)]
        # v is right inside each group; difference constraints place the groups among each other.
        base = {g: (v[ground[g]] if g in ground else Fraction(0)) for g in set(group)}
        v = [v[u] - base[group[u]] for u in range(self.n)]
        grounded = {g: (0 if g in ground else g) for g in set(group)}
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

    def eliminate(
        self, root: Sequence[int], offset: Sequence[Fraction], held_root: set[int], more: Sequence[Edge] = ()
    ) -> dict[int, Fraction]:
        """Potentials of the super-nodes' roots, by elimination of the nodal equations with more resistors; held roots
        at 0."""
        unknown = [u for u in sorted(set(root)) if u not in held_root]
        row = {u: {} for u in unknown}
        right = dict.fromkeys(unknown, Fraction(0))
        for u in range(self.n):
            if root[u] in right:
                right[root[u]] += self.injected[u]
        for _, a, b, ohms in (*self.resistors, *more):
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
        return dict.fromkeys(root, Fraction(0)) | solve_rows(row, right)

    def rounding(self, shorted: Sequence[int]) -> list[float]:
        """Scale of the rounding of each potential in double arithmetic: the potentials if all sources added up.

        Potentials are sums over sources with coefficients ≥ 0 (the Laplacian is an M-matrix); here every term counts
        with its magnitude, so that a node at 0 V because 5 V cancel 5 V has the scale 5 V, not 0.
        """
        root, offset, _ = self.contract(shorted)
        group = self.groups(root)
        first_of = {group[u]: root[u] for u in sorted(range(self.n), key=lambda u: (u in self.references, -u))}
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

    def missing(self, v: Sequence[Fraction]) -> tuple[list[int], int]:
        """Current that each node must shed through sources, shorts and diodes: numerators, and one denominator."""
        volts = math.lcm(*(x.denominator for x in v))
        amperes = math.lcm(*(x.denominator for x in self.injected), *(r[3].numerator for r in self.resistors))
        scaled = [x.numerator * (volts // x.denominator) for x in v]
        need = [x.numerator * (amperes // x.denominator) * volts for x in self.injected]
        for _, a, b, ohms in self.resistors:
            i = (scaled[a] - scaled[b]) * (amperes // ohms.numerator * ohms.denominator)
            need[a] -= i
            need[b] += i
        return need, volts * amperes

    def flow(self, v: Sequence[Fraction], shorted: Sequence[int]) -> list[Fraction] | None:
        """Currents of the fixed edges, then of the shorted diodes (≥ 0), that balance every node; None if none do."""
        arcs = [(a, b, True) for _, a, b, _ in self.fixed]
        arcs += [(self.diodes[k][1], self.diodes[k][2], False) for k in shorted]
        need, scale = self.missing(v)
        flow = route(self.n, arcs, need, self.references)
        return None if flow is None else [Fraction(x, scale) for x in flow]

    def right(self, shorted: Sequence[int]) -> tuple[list[Fraction], list[Fraction]] | None:
        """Potentials and flow if exactly these diodes may be taken as conducting, else None."""
        v = None if self.unbalanced else self.linear(shorted)
        if v is None:
            return None
        flow = self.flow(v, shorted)
        return None if flow is None else (v, flow)

    def candidates(self, guess: Sequence[int]) -> Iterator[list[int]]:
        """Sets of conducting diodes of circuits closer and closer to this one.

        There a conducting diode is a resistance, and a large one ties each node to ground: one state fits, which
        Murty's least-index rule finds, changing the first diode in a wrong state again and again.
        """
        root, offset, _ = self.contract(())
        on, ohms = set(guess), Fraction(1, 2**200)
        while True:
            ties = [("R", u, 0, 1 / ohms) for u in set(root) - {0}]
            wrong = [0]
            while wrong:
                closed = [("R", a, b, ohms) for k, (_, a, b, _) in enumerate(self.diodes) if k in on]
                x = self.eliminate(root, offset, {0}, [*ties, *closed])
                v = [x[r] + lift for r, lift in zip(root, offset)]
                wrong = [k for k, (_, a, b, _) in enumerate(self.diodes) if (v[a] < v[b] if k in on else v[a] > v[b])]
                on ^= set(wrong[:1])
            yield sorted(on)
            ohms *= ohms

    def solve(self, guess: Sequence[int] = ()) -> Exact | None:
        """The steady states, or None if there is none (`infeasible` and `unbounded` tell which)."""
        found = self.right(guess)
        if found is None:
            if self.infeasible() or self.unbounded():
                return None
            guess, found = next((on, found) for on in self.candidates(guess) if (found := self.right(on)))
        return self.describe(found[0], tuple(guess), found[1])

    def describe(self, v: list[Fraction], shorted: tuple[int, ...], flow: list[Fraction]) -> Exact:
        """All about the set of steady states, from one of them."""
        through = dict(zip(shorted, flow[len(self.fixed) :]))
        tight, interval = self.intervals(v, through)
        carriers = [(a, b, True, i) for (_, a, b, _), i in zip(self.fixed, flow)]
        # A diode tight in every steady state may carry current in some of them.
        carriers += [(self.diodes[k][1], self.diodes[k][2], False, through.get(k, Fraction(0))) for k in tight]
        sure = iter(certain(self.n, carriers))
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

    def intervals(
        self, v: list[Fraction], through: dict[int, Fraction]
    ) -> tuple[list[int], list[tuple[Fraction | None, Fraction | None]]]:
        """Diodes without voltage in every steady state, and the range of every node.

        Potentials within an island never differ; islands may shift within what diodes leave as room, and a diode that
        carries current in one steady state has no voltage in any (complementary slackness).
        """
        held = {self.island[e] for e in self.references}
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
