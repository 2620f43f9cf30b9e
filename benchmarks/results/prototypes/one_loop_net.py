"""Today's package as the one loop (`one_loop.py`) needs it: curves of its devices, its nodal matrix, its refinement."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from circuitsim.circuit import Circuit, CircuitArrays
from circuitsim.circuit.elements import CURRENT, DIODE, VOLTAGE
from circuitsim.engine.kkt import component_net_currents, resolved_voltages, voltages_between
from circuitsim.engine.network import Network
from circuitsim.engine.refinement import LinearPoint, solve_linear
from circuitsim.engine.spanning import grow
from circuitsim.models.limiter import Limiter
from circuitsim.models.smooth import SmoothDevice
from circuitsim.models.table import Table
from circuitsim.newton.kernels import newton_kernel
from circuitsim.newton.laws import numbered_rows
from circuitsim.program.components import component_labels
from circuitsim.program.structure import analyse_arrays
from circuitsim.solvers import laplacian

WEAK = 1e-9
"""Conductance to ground of a part that nothing ties, against the least of the circuit: proximal in its potential."""
WIDE = 1e16
"""Ratio of conductances beyond which potentials in doubles lose all digits of some drops."""
NOTHING = 1e-24
"""A current or voltage below this share of the largest is zero: a hundredth of what refinement promises."""
INFINITE = 1e100
"""Weights beyond are shorts."""


class Points(NamedTuple):
    """A point on each curve; the resistance of the tangent there, Ω, its voltage at no current and its current at no
    voltage; and the piece (0 for smooth curves)."""

    d: np.ndarray
    i: np.ndarray
    ohms: np.ndarray
    emf: np.ndarray
    beside: np.ndarray
    piece: np.ndarray


def knots(device):
    """Breakpoints (V, A) of a piecewise-linear curve and the resistances of its pieces, Ω."""
    if device is None:
        return [(0.0, 0.0)], [np.inf, 0.0]
    if isinstance(device, Limiter):
        upper, ohms = (device.imax * device.ron, device.imax * device.m), device.ron / device.m
        if device.irev is None:
            return [upper], [ohms, np.inf]
        return [(-device.irev * device.ron, -device.irev * device.m), upper], [np.inf, ohms, np.inf]
    if isinstance(device, Table):
        row = device.row()  # zero volts are a point, too
        points = [(row[2 * k + 2], row[2 * k + 3]) for k in range(int(row[1]))]
        around = zip(points, [points[0], *points], [*points[1:], points[-1]])
        points = [(v, i if v or abs(i) > 1e-15 * max(abs(j), abs(k)) else 0.0) for (v, i), (_, j), (_, k) in around]
        ohms = [(w - v) / (j - i) if j > i else np.inf for (v, i), (w, j) in pairwise(points)]
        return points, [ohms[0], *ohms, ohms[-1]]
    goff, cells = 1.0 / device.roff if device.roff else 0.0, device.n / device.m
    points, ohms = [(device.vfwd * device.n, device.vfwd * goff * device.m)], [np.inf, device.ron * cells]
    ohms[0] = cells / goff if goff else np.inf
    if device.vrev is not None:
        points.insert(0, (-device.vrev * device.n, -device.vrev * goff * device.m))
        ohms.insert(0, (device.ron if device.rrev is None else device.rrev) * cells)
    return points, ohms


class Curves:
    """The curves of all devices, as functions of w."""

    def __init__(self, devices) -> None:
        smooth = [isinstance(device, SmoothDevice) and not isinstance(device, Table) for device in devices]
        self.smooth, self.linear = np.flatnonzero(smooth), np.flatnonzero(~np.array(smooth, dtype=bool))
        self.rows = numbered_rows([devices[k] for k in self.smooth]) if self.smooth.size else np.zeros((0, 1))
        self.junction = np.zeros(self.smooth.size)
        found = [knots(devices[k]) for k in self.linear]
        self.width = max((len(points) for points, _ in found), default=1)
        self.v, self.i = np.full((2, len(found), self.width), np.inf)
        self.ohms = np.zeros((len(found), self.width + 1))
        for k, (points, ohms) in enumerate(found):
            self.v[k, : len(points)], self.i[k, : len(points)] = np.transpose(points)
            self.ohms[k, : len(ohms)] = ohms
        self.count = len(devices)
        self.line = np.arange(len(found))
        # Lines through the origin are so exactly: rounding of a knot is no source.
        number = np.arange(self.width + 1)
        v, i = self.v[:, np.maximum(number - 1, 0)], self.i[:, np.maximum(number - 1, 0)]
        with np.errstate(all="ignore"):
            self.emf, self.beside = v - self.ohms * i, i - v / self.ohms
        for values, scale in ((self.emf, v), (self.beside, i)):
            values[~(np.abs(values) > 1e-15 * np.abs(scale))] = 0.0

    def at(self, w, rho, piece=None) -> Points:
        """The points of w; piecewise-linear curves on the pieces given, continued as lines."""
        d, i, ohms, emf, beside = np.empty((5, self.count))
        pieces = np.zeros(self.count, dtype=np.int64)
        p, k, r = self.linear, self.line, rho[self.linear]
        edges = self.v + r[:, None] * self.i
        number = (w[p, None] > edges).sum(axis=1) if piece is None else piece[p]
        pieces[p] = number
        low, high = np.maximum(number - 1, 0), np.minimum(number, self.width - 1)
        anchor = np.where(np.abs(w[p] - edges[k, high]) < np.abs(w[p] - edges[k, low]), high, low)
        ohms[p] = here = self.ohms[k, number]
        along = w[p] - edges[k, anchor]
        share = np.where(here < np.inf, here / (here + r), 1.0)
        d[p] = self.v[k, anchor] + share * along
        i[p] = self.i[k, anchor] + np.where(here < np.inf, along / (here + r), 0.0)
        emf[p], beside[p] = self.emf[k, number], self.beside[k, number]
        if self.smooth.size:
            s, points = self.smooth, np.empty((4, self.smooth.size))
            project = newton_kernel("project", s.size)
            with np.errstate(all="ignore"):
                project(self.rows, w[s], np.zeros(s.size), rho[s], self.junction, points)
                d[s], i[s], ohms[s] = points[0], points[1], 1.0 / points[2]
                emf[s], beside[s] = points[0] - points[1] / points[2], points[1] - points[2] * points[0]
        return Points(d, i, ohms, emf, beside, pieces)

    def outside(self, d, i, ohms, piece):
        """How far a point of each piecewise-linear curve's tangent lies beyond the ends of its piece: volts (of pieces
        that are no shorts) and amperes (of shorts), and on which side (±1)."""
        volts, amperes = np.zeros((2, self.count))
        p, k, number = self.linear, self.line, piece[self.linear]
        low, high = np.maximum(number - 1, 0), np.minimum(number, self.width - 1)
        for edge, there, sign in ((low, number > 0, -1.0), (high, (number < self.width), 1.0)):
            v, a = self.v[k, edge], self.i[k, edge]
            there = there & (v < np.inf)
            flat = ohms[p] == 0.0
            far = np.where(flat, sign * (i[p] - a), sign * (d[p] - v))
            far[~there] = -1.0
            better = far > 0.0
            amperes[p] = np.where(better & flat, sign * far, amperes[p])
            volts[p] = np.where(better & ~flat, sign * far, volts[p])
        return volts, amperes


class Net:
    """A circuit as the loop sees it. Each curve is a row from its first node to one behind it; between that and its
    second node a source of the tangent's voltage, beside both one of its current. Ideal diodes need neither."""

    def __init__(self, circuit: Circuit) -> None:
        types = np.int8, np.int64, np.int64, np.float64
        kind, first, second, value = (np.asarray(c).view(t).copy() for c, t in zip(circuit.columns(), types))
        held = np.array(sorted(circuit.devices), dtype=np.int64)
        m, n, own = kind.size, len(circuit.node_names), np.arange(held.size)
        self.m, self.n_nodes = m, n
        kind[held] = DIODE
        self.row = np.flatnonzero(kind == DIODE)
        self.curves = Curves([circuit.devices.get(int(k)) for k in self.row])
        a, b, inner = first[held], second[held], n + own
        second[held] = inner
        nothing = np.zeros(held.size)
        self.kind = np.concatenate([kind, np.full(held.size, VOLTAGE), np.full(held.size, CURRENT)]).astype(np.int8)
        self.first = np.concatenate([first, inner, a])
        self.second = np.concatenate([second, b, b])
        self.value = np.concatenate([value, nothing, nothing])
        self.device = np.searchsorted(self.row, held)
        self.emf_row, self.beside = m + own, m + held.size + own
        self.ends = self.row.copy()
        self.ends[self.device] = self.beside
        arrays = CircuitArrays(self.kind, self.first, self.second, self.value, n + held.size)
        self.structure = analyse_arrays(arrays)
        self.coordinate, self.n = self.structure.coordinate, self.structure.n
        r = self.structure.resistors
        self.edge = np.concatenate([r, self.row])
        self.a, self.b = self.coordinate[self.first[self.edge]], self.coordinate[self.second[self.edge]]
        self.r = r.size
        self.apart = np.flatnonzero(self.a != self.b)
        self.whole = island = component_labels(self.n + 1, self.a[: self.r], self.b[: self.r])
        self.island = np.flatnonzero((island == np.arange(self.n + 1)) & (island != island[self.n]))
        ends_a = np.concatenate([self.a[self.apart], self.island])
        ends_b = np.concatenate([self.b[self.apart], np.full(self.island.size, self.n)])
        self.symbolic = laplacian.analyse(self.n, ends_a, ends_b)
        self.place = np.append(self.symbolic.pattern.order, self.n)
        self.rank = np.empty(self.n + 1, dtype=np.int64)
        self.rank[self.place] = np.arange(self.n + 1)
        self.factors, self._factor = 0, None
        self.take(self.value)

    def take(self, value) -> None:
        """Other values of the elements."""
        self.value = value.copy()
        self.g = 1.0 / value[self.structure.resistors]
        self.unit = float(self.g.max(initial=0.0)) or 1.0
        v = self.structure.voltage_edges
        emf = np.where(self.kind[v] == VOLTAGE, value[v], 0.0)
        self.offset = self.structure.forest.offsets(emf)[0]
        # Sums of sources are rounded to a share of the largest in their tree (beside `CLEAR`).
        largest, root = np.zeros(self.structure.arrays.n_nodes), self.structure.forest.root
        np.maximum.at(largest, root[self.first[v]], np.abs(emf))
        self.summed = 1e-6 * np.maximum(*(largest[root[end[self.row]]] for end in (self.first, self.second)))
        ends = self.offset[self.first[self.edge]], self.offset[self.second[self.edge]]
        self.held, self.offsets = ends[0] - ends[1], np.abs(ends[0]) + np.abs(ends[1])
        self.injected = np.zeros(self.n + 1)
        s = self.structure.currents
        np.subtract.at(self.injected, self.coordinate[self.first[s]], value[s])
        np.add.at(self.injected, self.coordinate[self.second[s]], value[s])
        a, b = self.whole[self.coordinate[self.first[s]]], self.whole[self.coordinate[self.second[s]]]
        fed = np.where(a == b, 0.0, value[s])
        self.fed = np.bincount(b, fed, self.n + 1) - np.bincount(a, fed, self.n + 1)
        self.size = np.bincount(self.coordinate[self.first[s]], abs(value[s]), self.n + 1)
        self.size += np.bincount(self.coordinate[self.second[s]], abs(value[s]), self.n + 1)
        self.wide = not self.curves.smooth.size and self.g.max(initial=0.0) > WIDE * self.g.min(initial=np.inf)
        self.weak = WEAK * float(self.g.min(initial=self.unit))
        self.usual = float(np.exp(np.mean(np.log(self.g)))) if self.r else 1.0
        self.rho = self.lines = self._load_lines()

    def _load_lines(self):
        """1/G + 1/G' with the conductances that meet at both ends, Ω; of nodes with none, those of neighbours."""
        a, b, r = self.a, self.b, self.r
        g = np.zeros(self.n + 1)
        np.add.at(g, a[:r], self.g)
        np.add.at(g, b[:r], self.g)
        g[self.n] = np.inf
        for _ in range(8):
            found = np.zeros(self.n + 1)
            np.maximum.at(found, a[r:], np.where(g[b[r:]] < np.inf, g[b[r:]], 0.0))
            np.maximum.at(found, b[r:], np.where(g[a[r:]] < np.inf, g[a[r:]], 0.0))
            g = np.where(g == 0.0, found, g)
        g[g == 0.0] = self.usual
        return np.where(a[r:] == b[r:], 1e-15, 1.0 / g[a[r:]] + 1.0 / g[b[r:]])

    def left(self, current):
        """What currents (r + d,) leave over at the coordinates, A.

        That of a part that resistors do not tie to ground is the sum of what crosses its border, whatever rounding of
        the currents inside it is: a leak of 1e-12 A places it.
        """
        need = self.injected - np.bincount(self.a, current, self.n + 1) + np.bincount(self.b, current, self.n + 1)
        if self.island.size:
            a, b = self.whole[self.a[self.r :]], self.whole[self.b[self.r :]]
            i = np.where(a == b, 0.0, current[self.r :])
            whole = self.fed - np.bincount(a, i, self.n + 1) + np.bincount(b, i, self.n + 1)
            need[self.island] += (whole - np.bincount(self.whole, need, self.n + 1))[self.island]
        return need

    def drops(self, x):
        """Voltages of resistors and curves, V."""
        return x[self.a] - x[self.b] + self.held

    def factored(self, siemens, short=None, weak=None):
        """The factor with conductances (d,), S, of the curves and the ``short`` (d,) ones among them.

        Parts that resistors do not tie to ground have a conductance ``weak``, S, to it: if not given, `WEAK` those that
        curves do not tie either.
        """
        self.factors += 1
        w = np.append(self.g, siemens) / self.unit
        if short is not None:
            w[self.r :][short] = laplacian.SHORT
        w = np.minimum(w, laplacian.SHORT)
        ground = np.full(self.island.size, (self.weak if weak is None else weak) / self.unit)
        if ground.size and weak is None:
            tied = np.flatnonzero(w > 0.0)
            self.part = component_labels(self.n + 1, self.a[tied], self.b[tied])
            ground[self.part[self.island] == self.part[self.n]] = 0.0
        w = np.append(w[self.apart], ground)
        self._factor = laplacian.factor(self.symbolic, w, self._factor, recycle=self._factor is not None)
        return self._factor

    def ties(self, siemens):
        """The sum of the conductances (d,), S, that meet at each part that resistors do not tie to ground."""
        found = np.zeros(self.n + 1)
        for end in (self.a, self.b):
            np.add.at(found, self.whole[end[self.r :]], siemens)
        return found[self.island]

    def balances(self, need, size) -> bool:
        """Whether no part that nothing ties to ground has a net current; what is left at other nodes is rounding."""
        if not self.island.size:
            return True
        net, scale = (np.bincount(self.part, amount, self.n + 1) for amount in (need, size))
        return bool((np.abs(net) <= 1e-12 * scale)[self.part != self.part[self.n]].all())

    def solve(self, factor, need):
        """Potentials of the coordinates (n + 1,), V."""
        return np.append(laplacian.solve(factor, need[:-1] / self.unit), 0.0)


class Linear(NamedTuple):
    """Voltages and currents of all curves in one linear circuit, the scales of their rounding, and whether the nodes
    balance."""

    d: np.ndarray
    i: np.ndarray
    volts: np.ndarray
    amperes: np.ndarray
    balanced: bool


class Sources(NamedTuple):
    """Tangents as circuit elements: which are shorts; conductances, S; voltages, V, in a row; currents, A, beside."""

    short: np.ndarray
    siemens: np.ndarray
    emf: np.ndarray
    beside: np.ndarray


def sources(net: Net, p: Points) -> Sources:
    """Tangents, of the one form of source that loses fewer digits."""
    steep = p.ohms <= net.rho
    short = ~(p.ohms * net.unit > 1.0 / INFINITE)
    with np.errstate(divide="ignore", invalid="ignore"):
        g = np.where(short | (p.ohms > INFINITE), 0.0, 1.0 / p.ohms)
        emf = np.where(short, p.d, np.where(steep, p.emf, 0.0))
        beside = np.where(steep | short, 0.0, p.beside)
    return Sources(short, g, emf, beside)


def by_priority(p: Points, urgent, chosen):
    """Shorts in the order in which a forest takes them: those that enter by falling voltage, the others by current.

    Where a loop of sources and shorts does not close, what has just entered stays and another one gives way.
    """
    return chosen[np.lexsort((-p.i[chosen], -urgent[chosen]))]


def refined(net: Net, p: Points, urgent, guess, anchor) -> tuple[Linear, LinearPoint]:
    """The linear circuit of the tangents, with the package's refinement of branch currents."""
    t, m, r = sources(net, p), net.kind.size, net.structure.resistors
    value, ohms, emf, source = net.value.copy(), *np.zeros((3, m))
    ohms[r], resistive = value[r], t.siemens > 0.0
    ohms[net.row[resistive]] = p.ohms[resistive]
    held, fed = net.structure.voltage_edges, net.structure.currents
    emf[held] = np.where(net.kind[held] == VOLTAGE, value[held], 0.0)
    source[fed] = value[fed]
    emf[net.emf_row], source[net.beside] = t.emf[net.device], t.beside[net.device]
    branch = np.full(m, -1, dtype=np.int64)
    branch[net.edge[net.apart]] = np.arange(net.apart.size)
    closed = net.row[by_priority(p, urgent, np.flatnonzero(t.short))]
    made = SimpleNamespace(direct=True, order=net.place)
    made.factor = lambda chosen, previous: SimpleNamespace(solve=solver(net, t, chosen))
    resistors = np.concatenate([r, net.row[resistive]])
    network = Network(
        net.structure._replace(currents=np.array([-1])),
        SimpleNamespace(ascending=resistors[np.argsort(ohms[resistors], kind="stable")], wiring=None),
        net.first, net.second, ohms, emf, source, held.copy(), net.row,
        fed[(source[fed] != 0.0) & (net.first[fed] != net.second[fed])], made, branch, False,
    )  # fmt: skip
    point = solve_linear(network, closed, guess, anchor)
    d = voltages_between(network, point, net.ends)
    i = point.current[net.row] + t.beside
    on = point.closed[net.row]
    d[on] = t.emf[on]
    amperes = 4.0 * point.correction[net.row]
    inside = point.block[net.row] >= 0
    amperes[inside] += NOTHING * point.in_block[point.block[net.row[inside]]]
    a, b = net.first[net.ends], net.second[net.ends]
    joined = point.tree.root_of[a] == point.tree.root_of[b]
    volts = 2.0**-52 * np.maximum(np.abs(point.v[a]), np.abs(point.v[b]))
    volts[joined] = resolved_voltages(network, point, net.ends[joined])[1]
    balanced = not component_net_currents(network, point).any()
    return Linear(d, i, volts, amperes, balanced), point


def solver(net: Net, t: Sources, chosen):
    """Solutions with the shorts at the places ``chosen``."""
    short = np.zeros(net.edge.size, dtype=bool)
    short[net.apart[chosen]] = True
    factor = net.factored(t.siemens, short[net.r :])
    return lambda current, accuracy=0.0: net.solve(factor, np.append(current, 0.0))


def without_loops(net: Net, p: Points) -> Points:
    """The points with currents of shorts that flow on a forest: around each loop the least current is taken out."""
    short = np.flatnonzero((p.ohms == 0.0) & (net.a[net.r :] != net.b[net.r :]))
    short = short[np.argsort(-p.i[short], kind="stable")]
    a, b = net.a[net.r :], net.b[net.r :]
    if grow(net.n + 1, a, b, np.array([net.n]), short).inside.sum() == short.size:
        return p
    flow, at = np.maximum(p.i, 0.0), [dict[int, int]() for _ in range(net.n + 1)]
    for k in short.tolist():
        loop = path(at, a, int(b[k]), int(a[k]))
        if loop is not None:
            around = [(k, 1.0), *loop]
            for sign in (1.0, -1.0):
                falling = [(flow[e], e) for e, way in around if way * sign < 0.0]
                if falling:
                    least, leaving = min(falling)
                    for e, way in around:
                        flow[e] += sign * way * least
                    break
            flow[leaving] = 0.0
            if leaving == k:
                continue
            del at[a[leaving]][leaving], at[b[leaving]][leaving]
        at[a[k]][k], at[b[k]][k] = int(b[k]), int(a[k])
    i = p.i.copy()
    i[short] = flow[short]
    return p._replace(i=i)


def path(at, a, start, end):
    """The edges of a forest from one node to another with their directions, or None."""
    before, queue = {start: (-1, -1)}, [start]
    for u in queue:
        for e, v in at[u].items():
            if v not in before:
                before[v] = u, e
                queue.append(v)
    if end not in before:
        return None
    found = []
    while end != start:
        u, e = before[end]
        found.append((e, 1.0 if a[e] == u else -1.0))
        end = u
    return found
