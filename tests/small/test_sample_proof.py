"""The certificate of eight samples along one spanning tree: equal bits in both forms, true bounds, wrong answers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from dense_oracle import random_circuit

from circuitsim.analysis import linear_batch as batches
from circuitsim.analysis.linear_batch import LinearBatch, Samples, linear_batch
from circuitsim.analysis.port_network import PortNetwork
from circuitsim.certificate import WEAK
from circuitsim.circuit import CircuitArrays
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR, VOLTAGE
from circuitsim.engine.network import Wiring
from circuitsim.engine.small import kernels
from circuitsim.engine.small.proof import prove_branches
from circuitsim.engine.small.workspace import Walk
from circuitsim.program.structure import analyse_arrays

SEEDS = range(5)


def batch_of(arrays: CircuitArrays, closed: list[int], signed: bool = False) -> LinearBatch:
    """The linear circuit in which some diodes conduct."""
    made = linear_batch(Wiring(analyse_arrays(arrays)), arrays, np.array(closed, dtype=np.int64), signed)
    assert made is not None
    return made


def columns(seed: int, decades: float, nodes: int = 30) -> CircuitArrays:
    """A random circuit."""
    return random_circuit(seed, nodes, decades, 8).circuit.arrays()


def solved(made: LinearBatch, drive: np.ndarray, aim: float = 1e-9) -> Samples:
    """All samples of these source values."""
    count, arrays = drive.shape[1], made.network.arrays
    into = Samples(
        np.zeros((count, arrays.n_nodes)),
        np.zeros((count, arrays.kind.size)),
        np.empty((count, 7)),
        np.empty((count, 8)),
    )
    made.solve(drive, into, aim=aim)
    return into


def drives(made: LinearBatch, count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(made.network.sources.size, count))


@pytest.mark.parametrize("seed", SEEDS)
def test_interpreted_and_compiled_give_the_same_bits(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = columns(seed, 6.0)
    closed = np.flatnonzero(arrays.kind == DIODE)[::2].tolist()
    found = []
    for find in (kernels.small_kernel.plain, kernels.small_kernel.compiled):
        monkeypatch.setattr(batches, "small_kernel", lambda name, size, find=find: find(name))
        made = batch_of(arrays, closed, signed=True)
        found.append(solved(made, drives(made, 11, seed)))
    for one, other in zip(*found, strict=True):
        assert one.tobytes() == other.tobytes()


def exact_currents(arrays: CircuitArrays, closed: list[int], drive: dict[int, float]) -> dict[int, Fraction]:
    """Branch currents, A, of the linear circuit by elimination with fractions."""
    kind, first, second, value, n = arrays
    held = [e for e in range(kind.size) if kind[e] == VOLTAGE or e in closed]
    size = n + len(held)
    rows = [[Fraction(0)] * (size + 1) for _ in range(size)]
    for e in range(kind.size):
        a, b = int(first[e]), int(second[e])
        if kind[e] == RESISTOR:
            g = 1 / Fraction(float(value[e]))
            for p, q, sign in ((a, a, 1), (b, b, 1), (a, b, -1), (b, a, -1)):
                rows[p][q] += sign * g
        elif kind[e] == CURRENT:
            rows[a][size] -= Fraction(drive[e])
            rows[b][size] += Fraction(drive[e])
    for k, e in enumerate(held, start=n):
        for node, sign in ((int(first[e]), 1), (int(second[e]), -1)):
            rows[k][node] += sign
            rows[node][k] += sign
        rows[k][size] = Fraction(drive.get(e, 0.0))
    rows[0] = [Fraction(int(k == 0)) for k in range(size)] + [Fraction(0)]
    for k in range(size):
        pivot = next(r for r in range(k, size) if rows[r][k])
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for r in range(size):
            if r != k and rows[r][k]:
                share = rows[r][k] / rows[k][k]
                rows[r] = [x - share * y if y else x for x, y in zip(rows[r], rows[k], strict=True)]
    x = [rows[k][size] / rows[k][k] for k in range(size)]
    found = {e: x[n + k] for k, e in enumerate(held)}
    for e in range(kind.size):
        if kind[e] == RESISTOR:
            found[e] = (x[first[e]] - x[second[e]]) / Fraction(float(value[e]))
    return found


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("decades", "aim"), [(2.0, np.inf), (12.0, np.inf), (12.0, 1e-9)])
def test_errors_are_within_their_bound(seed: int, decades: float, aim: float) -> None:
    arrays = columns(seed, decades, 12)
    closed = np.flatnonzero(arrays.kind == DIODE)[:3].tolist()
    made = batch_of(arrays, closed)
    drive = drives(made, 3, seed)
    into = solved(made, drive, aim)
    if aim < 1.0:
        assert (into.relative <= aim).all()
    inside = set(made.paths.edge[1:].tolist())
    for s in range(3):
        given = dict(zip(made.network.sources.tolist(), drive[:, s].tolist(), strict=True))
        exact = exact_currents(arrays, closed, given)
        size = np.abs(into.current[s])
        largest = np.zeros(arrays.n_nodes)
        np.maximum.at(largest, arrays.first, size)
        np.maximum.at(largest, arrays.second, size)
        for e, current in exact.items():
            local = max(largest[arrays.first[e]], largest[arrays.second[e]])
            scale = size[e] if e in inside and size[e] < WEAK * local else local
            rounding = 2.0**-52 * size[e]
            assert abs(Fraction(float(into.current[s, e])) - current) <= into.relative[s, 7] * scale + rounding


@pytest.mark.parametrize("seed", SEEDS)
def test_violations_are_those_of_the_proof_of_one_sample(seed: int) -> None:
    """`prove_branches` on the same currents finds violations of the same size."""
    arrays = columns(seed, 4.0)
    made = batch_of(arrays, [])
    drive = drives(made, 8, seed)
    into = solved(made, drive)
    kind, first, second, value, n = arrays
    fixed = np.flatnonzero(kind == VOLTAGE)
    walk = Walk(*kernels.small_kernel.plain("spanning_tree")(kind, first, second, value, fixed, n)[0])
    for s in range(8):
        own, worst, relative = value.copy(), np.empty(7), np.empty(7)
        own[made.network.sources] = drive[:, s]
        present = kind != DIODE
        element = np.cumsum(present) - 1
        own_walk = walk._replace(edge=np.where(walk.edge >= 0, element[walk.edge], -1), chord=element[walk.chord])
        m = int(present.sum())
        prove_branches(
            own_walk,
            kind[present],
            first[present],
            second[present],
            own[present],
            into.current[s, present].copy(),
            np.zeros(m),
            np.empty(n),
            np.empty(m),
            np.empty((2, n)),
            worst,
            relative,
        )
        assert relative.max() <= 1e-9 and into.relative[s].max() <= 1e-9
        assert into.relative[s, 0] == pytest.approx(relative[0], rel=1.0, abs=1e-15)


def off(monkeypatch: pytest.MonkeyPatch, share: float) -> None:
    """Let every first answer of the linear solver be off by this share."""
    respond = PortNetwork.respond
    noise = np.random.default_rng(0)

    def wrong(network: PortNetwork, drive: np.ndarray) -> object:
        found = respond(network, drive)
        return found._replace(x=found.x * (1.0 + share * noise.normal(size=found.x.shape)))

    monkeypatch.setattr(PortNetwork, "respond", wrong)


def test_wrong_potentials_are_not_certified(monkeypatch: pytest.MonkeyPatch) -> None:
    off(monkeypatch, 1e-6)
    monkeypatch.setattr(batches, "CORRECTIONS", 0)
    made = batch_of(columns(0, 2.0), [])
    into = solved(made, drives(made, 8, 0))
    assert (into.relative[:, 1] > 1e-8).all() and (into.relative[:, 7] > 1e-8).all()


def test_corrections_mend_potentials(monkeypatch: pytest.MonkeyPatch) -> None:
    made = batch_of(columns(0, 2.0), [])
    right = solved(made, drives(made, 8, 0))
    off(monkeypatch, 1e-4)
    into = solved(made, drives(made, 8, 0))
    assert (into.relative[:, :7] <= 1e-12).all() and (into.relative[:, 7] <= 1e-9).all()
    assert into.v == pytest.approx(right.v, rel=1e-12)
