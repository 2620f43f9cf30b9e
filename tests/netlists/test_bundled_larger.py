"""The generated decks: equal to what generate.py writes, and right by independent computations in plain numpy."""

from __future__ import annotations

import importlib.util
from itertools import product
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import circuitsim

NETLISTS = Path(__file__).parents[2] / "netlists"


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", NETLISTS / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LEARNING = ["learn-iris", "learn-digits", "learn-allostery"]


@pytest.mark.parametrize("name", ["mesh-10x10", "crossbar-1r", "crossbar-1d1r", "deep-resistive-network", *LEARNING])
def test_the_committed_deck_is_the_generated_one(name: str) -> None:
    assert (NETLISTS / f"{name}.cir").read_text(encoding="utf-8") == generator().DECKS[f"{name}.cir"]()


def nodal(
    n: int, conductances: list[tuple[int, int, float]], held: dict[int, float], injected: np.ndarray
) -> np.ndarray:
    """Node voltages of a linear network by dense nodal analysis; ``held`` nodes have given voltages."""
    laplacian = np.zeros((n, n))
    for u, v, g in conductances:
        laplacian[[u, v], [u, v]] += g
        laplacian[[u, v], [v, u]] -= g
    voltage = np.zeros(n)
    voltage[list(held)] = list(held.values())
    free = np.array([u not in held for u in range(n)])
    right = injected[free] - laplacian[np.ix_(free, ~free)] @ voltage[~free]
    voltage[free] = np.linalg.solve(laplacian[np.ix_(free, free)], right)
    return voltage


def test_mesh() -> None:
    """All 100 nodes; and the knight's move a little above the endless mesh's 4/π − 1/2."""
    op = circuitsim.solve(circuitsim.load(NETLISTS / "mesh-10x10.cir"))
    at = {(x, y): 10 * x + y for x in range(10) for y in range(10)}
    edges = [(at[x, y], at[x + 1, y], 1.0) for x, y in at if x < 9]
    edges += [(at[x, y], at[x, y + 1], 1.0) for x, y in at if y < 9]
    injected = np.zeros(100)
    injected[at[5, 3]] = 1.0
    expected = nodal(100, edges, {at[4, 5]: 0.0}, injected)
    assert [op[f"x{x}y{y}"] for x, y in at] == pytest.approx(list(expected), rel=1e-9)
    assert 4 / np.pi - 1 / 2 < op["x5y3"] < 0.81
    assert op.current("V0") == pytest.approx(1.0, rel=1e-9)


def memristance(row: int, column: int) -> float:
    return 1e3 if (3 * row + 5 * column + row * column) % 7 < 3 else 100e3


def test_crossbar() -> None:
    """128 wire nodes; the columns' currents are the product of voltages and conductances, a few percent low."""
    op = circuitsim.solve(circuitsim.load(NETLISTS / "crossbar-1r.cir"))
    rows = {(i, j): 8 * i + j for i in range(8) for j in range(8)}
    columns = {(i, j): 64 + 8 * i + j for i in range(8) for j in range(8)}
    edges, held = [], {}
    for i in range(8):
        held[128 + i], held[136 + i] = (i + 1) / 10, 0.0
        edges += [(128 + i, rows[i, 0], 0.4), (columns[7, i], 136 + i, 0.4)]
        edges += [(rows[i, j], rows[i, j + 1], 0.4) for j in range(7)]
        edges += [(columns[j, i], columns[j + 1, i], 0.4) for j in range(7)]
        edges += [(rows[i, j], columns[i, j], 1 / memristance(i, j)) for j in range(8)]
    v = nodal(144, edges, held, np.zeros(144))
    assert [op[f"r{i}_{j}"] for i, j in rows] == pytest.approx([v[k] for k in rows.values()], rel=1e-9)
    assert [op[f"c{i}_{j}"] for i, j in rows] == pytest.approx([v[k] for k in columns.values()], rel=1e-9)
    ideal = np.arange(1, 9) / 10 @ np.array([[1 / memristance(i, j) for j in range(8)] for i in range(8)])
    measured = np.array([op.current(f"Vcol{j}") for j in range(8)])
    assert ((0.9 * ideal < measured) & (measured < ideal)).all()


def test_crossbar_with_diodes() -> None:
    """One loop: 1 V over six wires of row 3, the cell, five wires of column 5; all other cells block."""
    op = circuitsim.solve(circuitsim.load(NETLISTS / "crossbar-1d1r.cir"))
    current = 1 / (6 * 2.5 + memristance(3, 5) + 5 * 2.5)
    assert op.current("Vcol5") == pytest.approx(current, rel=1e-9)
    cells = {(i, j) for i in range(8) for j in range(8)}
    assert {(i, j) for i, j in cells if op.state(f"Ds{i}_{j}") == "conducting"} == {(3, 5)}
    for j in range(8):
        assert op[f"r3_{j}"] == pytest.approx(1 - 2.5 * current * (min(j, 5) + 1), rel=1e-9)
    for i in range(8):
        assert op[f"c{i}_5"] == pytest.approx(2.5 * current * (8 - max(i, 3)), rel=1e-9)
        assert op[f"c{i}_4"] == pytest.approx(1.0, rel=1e-9)


def test_deep_resistive_network() -> None:
    """Of the 2⁸ states of the hidden units' diodes exactly one obeys every diode; its voltages are the answer."""
    op = circuitsim.solve(circuitsim.load(NETLISTS / "deep-resistive-network.cir"))
    sizes, unit = (6, 4, 4, 2), {}
    for layer, size in enumerate(sizes):
        for k in range(size):
            unit[layer, k] = len(unit)
    edges = [
        (unit[layer, j], unit[layer + 1, k], ((7 * j + 11 * k + 5 * layer + 3 * j * k) % 10) / 10)
        for layer in range(3)
        for j in range(sizes[layer])
        for k in range(sizes[layer + 1])
    ]
    injected = np.zeros(16)
    for (layer, k), u in unit.items():
        injected[u] = ((3 * k + layer) % 5 - 2) / 10 if layer else 0.0
    inputs = {unit[0, j]: 8 * x for j, x in enumerate((0.3, -0.3, -0.7, 0.7, 0.5, -0.5))}
    hidden = [unit[layer, k] for layer in (1, 2) for k in range(4)]
    side = np.array([1, 1, -1, -1] * 2)  # +: held above ground, −: below
    laplacian = np.zeros((16, 16))
    for u, v, g in edges:
        laplacian[[u, v], [u, v]] += g
        laplacian[[u, v], [v, u]] -= g
    right = []
    for clamped in product([False, True], repeat=8):
        held = {**inputs, **{u: 0.0 for u, on in zip(hidden, clamped) if on}}
        v = nodal(16, edges, held, injected)
        diode = (laplacian @ v - injected)[hidden] * side  # what the diodes of clamped units must deliver
        if (v[hidden] * side >= -1e-12).all() and (diode >= -1e-12).all():
            right.append(v)
    assert len(right) == 1
    assert [op[f"u{layer}_{k}"] for layer, k in unit] == pytest.approx(list(right[0]), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("name", LEARNING)
def test_circuits_that_learn(name: str) -> None:
    """With the nodes of conducting diodes made one, nodal analysis gives the same voltages; blocking ones block."""
    op = circuitsim.solve(circuitsim.load(NETLISTS / f"{name}.cir"))
    elements = list(op.circuit)
    one = {node: node for node in op.circuit.node_names}

    def group(node: str) -> str:
        while one[node] != node:
            node = one[node]
        return node

    diodes = [e for e in elements if e.kind == "ideal diode"]
    for e in diodes:
        if op.state(e.name) == "conducting":
            assert op.current(e.name) > 0
            one[group(e.first)] = group(e.second)
        else:
            assert op[e.first] < op[e.second]
    # A source between two nodes that are not ground: the drop across it is its value, the current one unknown more.
    number = {node: k for k, node in enumerate(sorted({group(n) for n in op.circuit.node_names} | {"0"}))}
    sources = [e for e in elements if e.kind == "voltage source"]
    n = len(number)
    matrix, right = np.zeros((n + len(sources), n + len(sources))), np.zeros(n + len(sources))
    for e in elements:
        if e.kind == "resistor":
            u, v = number[group(e.first)], number[group(e.second)]
            matrix[[u, v], [u, v]] += 1 / e.value
            matrix[[u, v], [v, u]] -= 1 / e.value
    for k, e in enumerate(sources, start=n):
        u, v = number[group(e.first)], number[group(e.second)]
        matrix[k, [u, v]] = matrix[[u, v], k] = [1.0, -1.0]
        right[k] = e.value
    ground = number["0"]
    matrix[ground], right[ground] = 0.0, 0.0
    matrix[ground, ground] = 1.0
    v = np.linalg.solve(matrix, right)
    for node in op.circuit.node_names:
        assert op[node] == pytest.approx(v[number[group(node)]], rel=1e-9, abs=1e-12)
    assert len(diodes) == {"learn-iris": 10, "learn-digits": 20, "learn-allostery": 0}[name]
