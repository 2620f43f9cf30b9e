"""Stages of large circuits: against exact fractions, and a mesh with diodes against an integrator."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
from exact import Oracle, edges_of
from scipy.integrate import solve_ivp
from scipy.sparse import csr_array, diags_array

from circuitsim import Circuit
from circuitsim.analysis import small_circuit
from circuitsim.analysis.convex import Prepared
from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.analysis.solve import prepared
from circuitsim.circuit.elements import DIODE
from circuitsim.time_domain import Pulse, Sine, transient
from circuitsim.time_domain.large_stages import INFO, LargeStages, dead_ends

Parts = list[tuple[str, int, int, float]]


def drawn(seed: int) -> Parts:
    """A grounded circuit of R over six decades, trees of sources, current sources and diodes."""
    random = np.random.default_rng(seed)
    n, parts = int(random.integers(4, 14)), Parts()
    for k in range(1, n):
        kind = "V" if random.random() < 0.25 else "R"
        value = float(random.integers(-9, 10)) if kind == "V" else 2.0 ** float(random.integers(-10, 11))
        parts.append((kind, k, int(random.integers(0, k)), value))
    for kind in random.choice(list("RRRDDDI"), 2 * n).tolist():
        a, b = random.choice(n, 2, replace=False).tolist()
        value = float(random.integers(-9, 10)) / 16.0 if kind == "I" else 2.0 ** float(random.integers(-10, 11))
        parts.append((kind, a, b, value))
    return parts


def made(parts: Parts) -> Circuit:
    circuit = Circuit()
    for k, (letter, a, b, value) in enumerate(parts):
        ends = [f"n{node}" if node else "0" for node in (a, b)]
        circuit.add(letter, f"{letter}{k}", *ends, None if letter == "D" else value)
    return circuit


def moved(parts: Parts, seed: int) -> Parts:
    """The same circuit with other sources and resistances."""
    random = np.random.default_rng(1000 + seed)
    factor, more = 2.0 ** random.integers(-2.0, 3.0, len(parts)), random.integers(-3, 4, len(parts)).astype(float)
    return [
        (letter, a, b, value * float(factor[k]) if letter == "R" else value + float(more[k]))
        for k, (letter, a, b, value) in enumerate(parts)
    ]


def test_stages_as_exact_fractions() -> None:
    """Currents and potentials from those of other sources and resistances, each against its own scale."""
    beside = 0
    for seed in range(150):
        parts = drawn(seed)
        other, circuit = moved(parts, seed), made(parts)
        oracle = Oracle(1 + max(max(part[1:3]) for part in parts), edges_of(other))
        exact, start_exists = oracle.solve(), Oracle(oracle.n, edges_of(parts)).solve() is not None
        if exact is None or not start_exists or not all(exact.unique):
            continue
        ready = prepared(circuit, "coordinate-descent")
        assert isinstance(ready, Prepared)
        stages = LargeStages.of(ready)
        start = prepared(circuit).solve()
        point = stages.solve(made(other).arrays().value, start)
        beside += point.solver["why"] == INFO["why"]
        arrays = circuit.arrays()
        current, volts = np.array([float(i) for i in exact.current]), np.array([float(v) for v in exact.voltage])
        numbers = [int(str(name).removeprefix("n")) for name in circuit.node_names]
        at_node = np.zeros(arrays.n_nodes)
        np.maximum.at(at_node, arrays.first, np.abs(current))
        np.maximum.at(at_node, arrays.second, np.abs(current))
        local = np.maximum(at_node[arrays.first], at_node[arrays.second])
        assert (np.abs(point.currents - current) <= 1e-9 * local).all(), seed
        assert np.abs(point.voltages - volts[numbers]).max() <= 1e-9 * np.abs(volts).max(initial=1e-300), seed
    assert beside >= 40


def test_dead_ends() -> None:
    """The elements that disappear where leaves are taken away again and again."""
    found = 0
    for seed in range(60):
        random = np.random.default_rng(seed)
        n, m = int(random.integers(3, 12)), int(random.integers(2, 14))
        first, second = random.integers(0, n, (2, m))
        edges, sources = np.arange(m - 1), np.array([m - 1])
        graph = networkx.MultiGraph()
        graph.add_nodes_from(range(n))
        graph.add_edges_from((a, b, e) for e, (a, b) in enumerate(zip(first.tolist(), second.tolist())) if a != b)
        held, expected = {0, int(first[-1]), int(second[-1])}, set[int]()
        while leaves := [k for k in graph if graph.degree(k) == 1 and k not in held]:
            expected |= {e for _, _, e in graph.edges(leaves[0], keys=True)}
            graph.remove_node(leaves[0])
        dead = np.zeros(m, dtype=bool)
        dead_ends(first, second, edges, sources, *np.zeros((2, n), dtype=np.int64), dead)
        assert set(np.flatnonzero(dead).tolist()) == expected
        found += len(expected)
    assert found > 30


SIDE, FARAD, OHM, SERIES = 24, 1e-9, 1e3, 100.0


@pytest.fixture
def mesh(monkeypatch: pytest.MonkeyPatch) -> tuple[Circuit, dict[str, Pulse | Sine], list[int]]:
    """An RC mesh with two sources and 24 diodes in series with resistors, half of them each way; taken as large."""
    monkeypatch.setattr(small_circuit, "UPDATES", 1000)
    circuit, nodes = Circuit(), SIDE * SIDE
    spots = np.random.default_rng(5).permutation(nodes)[:26].tolist()
    for k in range(nodes):
        circuit.add("C", f"C{k}", f"n{k}", "0", FARAD)
        for other in _beside(k):
            circuit.resistor(f"R{k}_{other}", f"n{k}", f"n{other}", OHM)
    for j in range(2):
        circuit.voltage_source(f"V{j}", f"s{j}", "0", 0.0)
        circuit.resistor(f"RS{j}", f"s{j}", f"n{spots[j]}", SERIES)
    for j, k in enumerate(spots[2:]):
        circuit.resistor(f"RD{j}", f"n{k}", f"d{j}", SERIES)
        circuit.diode(f"D{j}", *((f"d{j}", "0") if j % 2 else ("0", f"d{j}")))
    return circuit, {"V0": Sine(0.0, 5.0, 2e4), "V1": Pulse(0.0, 5.0, 1e-5, 1e-6, 1e-6, 3e-5)}, spots


def _beside(k: int) -> list[int]:
    return ([k + 1] if (k + 1) % SIDE else []) + ([k + SIDE] if k + SIDE < SIDE * SIDE else [])


def test_mesh_with_diodes_as_an_integrator(mesh: tuple[Circuit, dict[str, Pulse | Sine], list[int]]) -> None:
    """Against BDF of scipy on C v' = −G v + (source − v) / R − max(±v, 0) / R."""
    circuit, waves, spots = mesh
    accuracy, stop = 1e-5, 6e-5
    run = transient(circuit, stop, waves, {}, points=13, method="implicit", accuracy=accuracy)
    pairs = np.array([(k, other) for k in range(SIDE * SIDE) for other in _beside(k)])
    ends, ones = np.concatenate([pairs, pairs[:, ::-1]]), np.ones(2 * len(pairs)) / OHM
    links = csr_array((ones, (ends[:, 0], ends[:, 1])), shape=(SIDE * SIDE,) * 2)
    matrix = links - diags_array(links.sum(axis=1))
    sign = np.where(np.arange(24) % 2, 1.0, -1.0)
    diodes, driven = np.array(spots[2:]), np.array(spots[:2])

    def rate(t: float, v: np.ndarray) -> np.ndarray:
        into = matrix @ v
        source = 5.0 * np.sin(4e4 * np.pi * t), 5.0 * np.interp(t, [1e-5, 1.1e-5, 4.1e-5, 4.2e-5], [0.0, 1.0, 1.0, 0.0])
        into[driven] += (np.array(source) - v[driven]) / SERIES
        into[diodes] -= sign * np.maximum(sign * v[diodes], 0.0) / SERIES
        return into / FARAD

    def jacobian(t: float, v: np.ndarray) -> csr_array:
        own = np.zeros(SIDE * SIDE)
        own[driven] = 1.0 / SERIES
        own[diodes] += (sign * v[diodes] > 0.0) / SERIES
        return csr_array((matrix - diags_array(own)) / FARAD)

    state, times = np.zeros((1, SIDE * SIDE)), [0.0]
    # From corner to corner of the pulse, which an integrator steps over.
    for begin, end in zip([0.0, 1e-5, 1.1e-5, 4.1e-5, 4.2e-5], [1e-5, 1.1e-5, 4.1e-5, 4.2e-5, stop]):
        at = np.append(run.times[(run.times > begin) & (run.times < end - 1e-12)], end)
        part = solve_ivp(rate, (begin, end), state[-1], "BDF", at, jac=jacobian, rtol=1e-7, atol=1e-9)
        state, times = np.concatenate([state, part.y.T]), [*times, *at.tolist()]
    places = [int(np.argmin(np.abs(np.array(times) - t))) for t in run.times]
    own = [circuit.element_index(f"C{k}") for k in range(SIDE * SIDE)]
    assert np.abs(run.at(run.times)[0][:, own] - state[places]).max() <= 50.0 * accuracy
    assert run.certificate.certified and len(run.events) >= 15


def test_most_stages_are_found_beside_another(
    mesh: tuple[Circuit, dict[str, Pulse | Sine], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine takes the first one and few others, and its answers are the same."""
    stages, engine, worst = 0, 0, 0.0
    solve = LargeStages.solve

    def compared(self: LargeStages, value: np.ndarray, start: OperatingPoint | None) -> OperatingPoint:
        nonlocal stages, engine, worst
        point = solve(self, value, start)
        stages, engine = stages + 1, engine + (point.solver["why"] != INFO["why"])
        if stages % 50 == 0 and value.max() < 1e9:  # shorter stages span more than the engine holds
            other = Prepared.solve(self, value)
            on = self.circuit.arrays().kind == DIODE
            assert (other.currents[on] > 0.0).tolist() == (point.currents[on] > 0.0).tolist()
            worst = max(worst, float(np.abs(point.currents - other.currents).max() / np.abs(other.currents).max()))
        return point

    monkeypatch.setattr(LargeStages, "solve", compared)
    circuit, waves, _ = mesh
    transient(circuit, 3e-5, waves, {}, points=4, method="implicit", accuracy=1e-3)
    assert stages >= 150 and engine <= 0.1 * stages and worst <= 1e-10
