"""The one loop (`one_loop.py`) beside `circuitsim.solve`: families of hard circuits, and the random ones of the tests.

    python benchmarks/results/prototypes/one_loop_families.py mesh-12 mesh-24 --count 20
    python benchmarks/results/prototypes/one_loop_families.py points smooth --count 20000

Each family is one row of `one_loop.md`. Differences are against bars as in `tests/properties/branch_checks.py`: 1e-9 of
the largest current at an element's ends or 1e-22 of the largest of all; 1e-9 of a potential or 1e-12 of the largest
drop. 1 is such a bar. Circuits of smooth devices are held to 1e-9 of the sizes too, the tolerance of certificates.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from array import array
from collections import Counter
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "contract"), str(Path(__file__).parent)]

import one_loop  # noqa: E402
from corpus import FAMILIES  # noqa: E402

import circuitsim  # noqa: E402
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR, VOLTAGE  # noqa: E402
from circuitsim.engine.active_set import solve_dual  # noqa: E402
from circuitsim.engine.network import network  # noqa: E402
from circuitsim.errors import ConvergenceError  # noqa: E402
from circuitsim.models.junction_diode import JunctionDiode  # noqa: E402
from circuitsim.models.piecewise_diode import PiecewiseLinearDiode  # noqa: E402
from circuitsim.program import analyse  # noqa: E402


class Sheet:
    """A circuit under construction; node 0 is ground."""

    def __init__(self, seed: int, nodes: int, decades: float) -> None:
        self.rng, self.nodes, self.decades = np.random.default_rng([46, seed, nodes]), nodes + 1, decades
        self.rows: list[tuple[int, int, int, float]] = []
        self.devices: dict[int, object] = {}

    def put(self, kind, a, b, value=np.nan, device=None):
        """Elements of a kind between arrays of nodes."""
        for u, v, x in zip(*(np.atleast_1d(k).tolist() for k in np.broadcast_arrays(a, b, value))):
            if device is not None and u != v:
                self.devices[len(self.rows)] = device
            if u != v:
                self.rows.append((kind, int(u), int(v), x))

    def ohms(self, count):
        """Resistances over the decades, 1 Ω in the middle."""
        return 10.0 ** self.rng.uniform(-0.5 * self.decades, 0.5 * self.decades, count)

    def diodes(self, a, b, kinds="i"):
        """Devices of random direction and kind: ideal, Zener, Shockley."""
        for u, v in zip(a.tolist(), b.tolist()):
            u, v = (u, v) if self.rng.random() < 0.5 else (v, u)
            device = None
            match str(self.rng.choice(list(kinds))):
                case "z":
                    device = PiecewiseLinearDiode(
                        vfwd=0.6, ron=0.1, vrev=float(self.rng.uniform(2, 8)), rrev=1.0, roff=1e9
                    )
                case "s":
                    device = JunctionDiode(**{"is": 10.0 ** self.rng.uniform(-15, -9), "n": 1.5, "rs": 0.01})
            self.put(DIODE, u, v, device=device)

    def circuit(self):
        """The finished circuit."""
        columns = tuple(array(code, column) for code, column in zip("bqqd", zip(*self.rows)))
        columns = *columns[:3], array("d", columns[3])
        names = [f"{'RDVI'[row[0]]}{k}" for k, row in enumerate(self.rows)]
        nodes = ["0", *(f"n{k}" for k in range(1, self.nodes))]
        return circuitsim.Circuit.from_columns("a hard circuit", columns, names, nodes, devices=self.devices)

    def drive(self, a, b, size):
        """Half current sources, half voltage sources behind resistors, of volts and amperes that suit 1 Ω."""
        self.put(CURRENT, a, b, self.rng.normal(size=a.size) * size)


def mesh(seed, side, decades, kinds="i", share=0.6, graph=False):
    """A square mesh, or a random graph of the same size; ``share`` devices a node; sources at a tenth of the nodes."""
    sheet = Sheet(seed, side * side, decades)
    n, rng = side * side, sheet.rng
    node = np.arange(1, n + 1).reshape(side, side)
    a = np.concatenate([node[:, :-1].ravel(), node[:-1].ravel()])
    b = np.concatenate([node[:, 1:].ravel(), node[1:].ravel()])
    if graph:
        a = np.arange(2, n + 1)
        b = np.array([rng.integers(1, k) for k in a])
        a, b = np.append(a, rng.integers(1, n + 1, n // 2)), np.append(b, rng.integers(1, n + 1, n // 2))
    sheet.put(RESISTOR, a, b, sheet.ohms(a.size))
    ground = rng.choice(n, max(1, n // 20), replace=False) + 1
    sheet.put(RESISTOR, ground, 0, sheet.ohms(ground.size))
    k = rng.integers(0, a.size, round(share * n))
    sheet.diodes(a[k], b[k], kinds)
    at = rng.choice(n, max(2, n // 10), replace=False) + 1
    sheet.drive(at, np.zeros(at.size, int), 1.0)
    return sheet.circuit()


def islands(seed, kinds="iiz"):
    """40 parts of 6 nodes, joined to ground and each other by devices alone; sources within parts and from ground into
    a few, which a diode lets out."""
    sheet = Sheet(seed, 240, 6.0)
    rng, part = sheet.rng, np.arange(1, 241).reshape(40, 6)
    for row in part:
        sheet.put(RESISTOR, row[:-1], row[1:], sheet.ohms(5))
        a, b = rng.choice(row, 2, replace=False)
        sheet.put(CURRENT, a, b, rng.normal())
    for _ in range(60):
        p, q = rng.choice(40, 2, replace=False)
        sheet.diodes(part[p, rng.integers(6, size=1)], part[q, rng.integers(6, size=1)], kinds)
    for p in rng.choice(40, 12, replace=False):
        sheet.put(DIODE, part[p, 0], 0), sheet.put(DIODE, 0, part[p, 1])
    for p in range(1, 40):  # a path out for every part
        sheet.put(DIODE, part[p, 2], part[rng.integers(p), 3])
    sheet.put(DIODE, part[0, 2], 0)
    at = part[rng.choice(40, 8, replace=False), 4]
    sheet.put(CURRENT, 0, at, rng.uniform(0.1, 1.0, at.size))
    return sheet.circuit()


def diode_loops(seed):
    """60 groups of 8 nodes joined by 24 ideal diodes each, with currents in and out and weak resistors between."""
    sheet = Sheet(seed, 480, 4.0)
    rng, part = sheet.rng, np.arange(1, 481).reshape(60, 8)
    for row in part:
        for _ in range(24):
            a, b = rng.choice(row, 2, replace=False)
            sheet.put(DIODE, a, b)
        sheet.put(RESISTOR, row, 0, sheet.ohms(8))
        a, b = rng.choice(row, (2, 4))
        sheet.put(CURRENT, a, b, rng.integers(-3, 4, 4).astype(float))
    a, b = rng.choice(480, (2, 120)) + 1
    sheet.put(RESISTOR, a, b, sheet.ohms(120))
    return sheet.circuit()


def source_loops(seed, shockley=0.0):
    """Nodes with hidden potentials in tenths of a volt; voltage sources and diodes that agree close loops; a share of
    the diodes are Shockley's."""
    sheet = Sheet(seed, 200, 4.0)
    rng, hidden = sheet.rng, np.append(0, sheet.rng.integers(-4, 5, 200))
    for _ in range(150):
        a, b = rng.choice(201, 2, replace=False)
        sheet.put(VOLTAGE, a, b, float(f"{0.1 * (hidden[a] - hidden[b]):.6g}"))
    for _ in range(300):
        a, b = rng.choice(201, 2, replace=False)
        a, b = (a, b) if hidden[a] <= hidden[b] else (b, a)
        device = JunctionDiode(**{"is": 1e-12, "n": 1.5, "rs": 0.01}) if rng.random() < shockley else None
        sheet.put(DIODE, a, b, device=device)
    a, b = rng.choice(201, (2, 200))
    sheet.put(RESISTOR, a, b, sheet.ohms(200))
    sheet.put(RESISTOR, np.arange(1, 201), 0, sheet.ohms(200))
    return sheet.circuit()


def ladder(seed, kinds):
    """1,000 devices in a row, all forward, each node with a resistor to ground and every tenth with a source."""
    sheet = Sheet(seed, 1000, 3.0)
    node = np.arange(1, 1001)
    sheet.put(RESISTOR, node, 0, 1e3 * sheet.ohms(1000))
    for k in node[:-1]:
        sheet.diodes(np.array([k]), np.array([k + 1]), kinds)
    at = node[::10]
    sheet.put(CURRENT, np.zeros(at.size, int), at, 1e-2 * sheet.rng.normal(size=at.size))
    return sheet.circuit()


HARD = {
    "mesh-12": lambda s: mesh(s, 32, 12),
    "mesh-24": lambda s: mesh(s, 32, 24),
    "mesh-36": lambda s: mesh(s, 32, 36),
    "graph-12": lambda s: mesh(s, 32, 12, graph=True),
    "graph-24": lambda s: mesh(s, 32, 24, graph=True),
    "mesh-12-mixed": lambda s: mesh(s, 32, 12, "izs"),
    "mesh-24-mixed": lambda s: mesh(s, 32, 24, "izs"),
    "large-6-mixed": lambda s: mesh(s, 100, 6, "izs"),
    "large-2": lambda s: mesh(s, 100, 2),
    "large-12": lambda s: mesh(s, 100, 12),
    "large-24": lambda s: mesh(s, 100, 24),
    "many-2": lambda s: mesh(s, 32, 2, share=1.5),
    "many-6-mixed": lambda s: mesh(s, 32, 6, "izs", share=1.5),
    "islands": islands,
    "islands-mixed": lambda s: islands(s, "isz"),
    "diode-loops": diode_loops,
    "source-loops": source_loops,
    "source-loops-mixed": lambda s: source_loops(s, 0.5),
    "ladder": lambda s: ladder(s, "i"),
    "ladder-mixed": lambda s: ladder(s, "izs"),
}


ENDED = "plain", "plain, refined", "safeguard", "safeguard, refined", "refined safeguard", "again"


def deck(name, seed):
    """A circuit of the tests' corpus."""
    read = circuitsim.loads(FAMILIES[name].deck(seed))
    return getattr(read, "circuit", read)


def compare(circuit, net, point, found):
    """The largest differences of unique currents and potentials, over their bars."""
    m, old = net.m, np.asarray(point.currents)
    first, second, value = (np.array(list(column)) for column in circuit.columns()[1:])
    at = np.zeros(net.n_nodes)
    np.maximum.at(at, first, np.abs(old))
    np.maximum.at(at, second, np.abs(old))
    largest, ohms = np.abs(old).max(), value[net.kind[:m] == RESISTOR].max(initial=1.0)
    bar = np.maximum(1e-9 * np.maximum(at[first], at[second]), 1e-22 * largest) + 1e-290
    off = (np.abs(found.current[:m] - old) / bar)[np.asarray(point.unique)]
    v, names = np.asarray(point.voltages), list(circuit.node_names)
    fixed = np.ones(v.size, dtype=bool)
    fixed[[names.index(name) for name in point.intervals or {}]] = False
    bar = np.maximum(1e-9 * np.abs(v), max(1e-12 * np.nanmax(np.abs(point.drops)), 1e-22 * largest * ohms)) + 1e-290
    return off.max(initial=0.0), (np.abs(found.v[: net.n_nodes] - v) / bar)[fixed].max(initial=0.0)


def dual(circuit, net, found):
    """Linear circuits that the dual active-set method needs from where the loop has stopped; None where it fails."""
    at = network(analyse(circuit), direct=True)
    closed = net.row[found.current[net.row] > 0.0]
    try:
        return solve_dual(at, closed, found.current[: net.m], 400)[1]
    except ConvergenceError:
        return None


def family(name, start, count, warm):
    """One row of the table."""
    ways, factors, off, seconds, bad = Counter(), [], [], [0.0, 0.0], []
    for seed in range(start, start + count):
        if name == "smooth" and seed % 4 == 3:  # controlled sources
            continue
        circuit = HARD[name](seed) if name in HARD else deck(name, seed)
        try:
            began = time.perf_counter()
            point = circuitsim.solve(circuit)
            seconds[0] += time.perf_counter() - began
        except ConvergenceError:
            ways["today's solve does not end"] += 1
            point = None
        except circuitsim.errors.NoSteadyStateError:
            ways["no operating point"] += 1
            continue
        began = time.perf_counter()
        with np.errstate(all="ignore"):
            net = one_loop.Net(circuit)
            found = one_loop.operating_point(net)
            if warm:
                value = net.value.copy()
                fed = np.flatnonzero(net.kind[: net.m] == CURRENT)
                chosen = fed if warm > 0 else fed[:1]
                value[chosen] *= 1.0 + abs(warm)
                net.take(value)
                began = time.perf_counter()
                found = one_loop.operating_point(net, found)
                circuit = circuit.with_values({circuit.names[k]: value[k] for k in chosen})
                point = circuitsim.solve(circuit)
        seconds[1] += time.perf_counter() - began
        ways[found.way] += 1
        factors.append(found.factors[-1])
        if point is not None and found.way in ENDED:
            off.append(compare(circuit, net, point, found))
            if not max(off[-1]) < 1.0:
                bad.append((seed, *(f"{x:.1e}" for x in off[-1])))
        elif found.way not in ENDED:
            more = None if circuit.devices else dual(circuit, net, found)
            bad.append((seed, found.way, found.factors, f"dual method: {more} circuits"))
    share = np.percentile(factors, [50, 99, 99.9, 100]).round().astype(int) if factors else []
    worst = np.max(off, axis=0) if off else (0.0, 0.0)
    other = {way: k for way, k in ways.items() if way not in ENDED}
    print(
        f"| {name} | {len(factors)} | {' | '.join(str(ways[way]) for way in ENDED)} | {other or 0} |"
        f" {' / '.join(map(str, share))} | {seconds[1]:.2f} / {seconds[0]:.2f} |"
        f" {worst[0]:.1e}, {worst[1]:.1e} | {len(bad)} |",
        flush=True,
    )
    print(*bad[:8], sep="\n", file=sys.stderr, flush=True)


def main() -> None:
    """The rows asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*", default=list(HARD))
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--warm", type=float, default=0.0, help="change of sources; below 0: of the first one alone")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in options.families:
        family(name, options.start, options.count, options.warm)


if __name__ == "__main__":
    main()
