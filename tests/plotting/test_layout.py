"""Layouts: complete, without collisions, always the same, and straight where the circuit is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import circuitsim
from circuitsim import Circuit
from circuitsim.circuit import GROUND
from circuitsim.layered import DeepResistiveNetwork
from circuitsim.plotting.layout import place
from circuitsim.plotting.sketch import sketch

ROOT = Path(__file__).parents[2]


def ladder(rungs: int) -> Circuit:
    c = Circuit("ladder")
    c.voltage_source("V1", "n0", "0", 1.0)
    for k in range(rungs):
        c.resistor(f"Rs{k}", f"n{k}", f"n{k + 1}", 1e3)
        c.resistor(f"Rp{k}", f"n{k + 1}", "0", 2e3)
    return c


def mesh(size: int) -> Circuit:
    c = Circuit("mesh")
    for i in range(size):
        for j in range(size):
            if j + 1 < size:
                c.resistor(f"Rh{i}_{j}", f"n{i}_{j}", f"n{i}_{j + 1}", 1.0)
            if i + 1 < size:
                c.resistor(f"Rv{i}_{j}", f"n{i}_{j}", f"n{i + 1}_{j}", 1.0)
    return c


def lengths(circuit: Circuit) -> np.ndarray:
    """|Δx|, |Δy| of every bundle."""
    plan = sketch(circuit)
    where = place(plan).positions
    return np.abs(np.array([where[b.end] - where[b.start] for b in plan.bundles]))


@pytest.mark.parametrize("rungs", [1, 3, 7])
def test_a_ladder_is_drawn_with_straight_short_wires(rungs: int) -> None:
    assert (np.sort(lengths(ladder(rungs)), axis=1) == [0.0, 1.0]).all()


@pytest.mark.parametrize("size", [2, 3, 4, 6])
def test_a_mesh_is_drawn_as_a_mesh(size: int) -> None:
    assert (np.sort(lengths(mesh(size)), axis=1) == [0.0, 1.0]).all()


def test_ground_symbols_hang_below() -> None:
    plan = sketch(ladder(3))
    where = place(plan).positions
    for v, parent in enumerate(plan.parent):
        if parent >= 0:
            assert (where[v] - where[parent]).tolist() == [0.0, -1.0]


def test_the_first_source_is_on_the_left() -> None:
    c = ladder(4)
    plan = sketch(c)
    where = place(plan, [plan.node.index(c.node_index("n0"))]).positions
    assert where[0, 0] == where[:, 0].min()


def crossbar(rows: int, columns: int) -> Circuit:
    c = Circuit("crossbar")
    for i in range(rows):
        c.voltage_source(f"V{i}", f"r{i}", "0", 1.0)
        for j in range(columns):
            c.resistor(f"R{i}_{j}", f"r{i}", f"c{j}", 1e3)
    for j in range(columns):
        c.resistor(f"Rs{j}", f"c{j}", "0", 50.0)
    return c


@pytest.mark.parametrize(("rows", "columns"), [(4, 4), (3, 8), (8, 5)])
def test_a_crossbar_stands_in_two_columns_and_its_symbols_apart(rows: int, columns: int) -> None:
    c = crossbar(rows, columns)
    plan = sketch(c)
    placed = place(plan, [b.start for b in plan.bundles if c.names[b.elements[0]].startswith("V")])
    x = {c.node_names[node]: placed.positions[v, 0] for v, node in enumerate(plan.node) if node != GROUND}
    (left,), (right,) = {x[f"r{i}"] for i in range(rows)}, {x[f"c{j}"] for j in range(columns)}
    assert left < right
    symbols = np.array(
        [
            placed.positions[b.start] * (1 - share) + placed.positions[b.end] * share
            for b, share in zip(plan.bundles, placed.share)
        ]
    )
    apart = np.hypot(*(symbols[:, None] - symbols[None]).transpose(2, 0, 1))
    assert apart[np.triu_indices(len(symbols), 1)].min() > 0.15


BRIDGES = ("rectifier-bridge", "wheatstone-balanced", "wheatstone-unbalanced", "floating-bridge")


@pytest.mark.parametrize("name", BRIDGES)
def test_bridges_are_diamonds(name: str) -> None:
    """The sides level, the ends upright, every arm at 45° and as long as the others."""
    plan = sketch(circuitsim.load(ROOT / f"netlists/{name}.cir"))
    (diamond,) = plan.diamonds
    where = place(plan).positions
    left, right, top, bottom = where[list(diamond[:4])]
    centre = (left + right) / 2
    assert (left - centre).tolist() == [-1.0, 0.0] or (left - centre).tolist() == [1.0, 0.0]
    assert sorted((end - centre).tolist() for end in (top, bottom)) == [[0.0, -1.0], [0.0, 1.0]]
    for vertex in diamond.middle:
        assert where[vertex, 1] == centre[1]


def test_a_mesh_has_no_bridge() -> None:
    assert not any(sketch(mesh(size)).diamonds for size in (2, 3, 4, 6))


def test_equal_channels_are_drawn_alike() -> None:
    c = Circuit("three channels")
    for k in range(3):
        c.voltage_source(f"V{k}", f"a{k}", "0", 1.0)
        c.resistor(f"R{k}", f"a{k}", f"b{k}", 1e3 * (k + 1))
        c.diode(f"D{k}", f"b{k}", f"c{k}")
        c.resistor(f"RL{k}", f"c{k}", "0", 1e3)
        c.resistor(f"RF{k}", f"a{k}", f"c{k}", 1e5)
    plan = sketch(c)
    where = place(plan).positions
    own = [[plan.node.index(c.node_index(f"{letter}{k}")) for letter in "abc"] for k in range(3)]
    shapes = [(where[channel] - where[channel[0]]).round(9).tolist() for channel in own]
    assert shapes[0] == shapes[1] == shapes[2]


def test_three_thousand_elements_in_layers() -> None:
    """A layered network too large for symbols: one column a layer, in the order of the layers."""
    units = (40, 80, 20, 10)
    network = DeepResistiveNetwork(units, rng=0)
    c = network.to_circuit(np.linspace(0.0, 1.0, units[0]))
    assert len(c) > 3000
    plan = sketch(c)
    sources = [b.start for b in plan.bundles if c.names[b.elements[0]].startswith("V")]
    where = place(plan, sources).positions
    kept = np.array(plan.parent) < 0
    columns, sizes = np.unique(where[kept, 0], return_counts=True)
    assert len(columns) == 4 and sizes.tolist() == [2 * units[0], *units[1:]]


def test_a_dense_circuit_without_layers_is_drawn_on_the_grid() -> None:
    c = Circuit()
    for i in range(6):
        for j in range(i):
            c.resistor(f"R{i}{j}", f"n{i}", f"n{j}", 1.0)
    placed = place(sketch(c))
    assert (placed.positions == placed.positions.round()).all()
    assert (placed.share == 0.5).all()


def test_a_large_circuit_that_is_not_in_layers_gets_no_places() -> None:
    assert place(sketch(mesh(12))) is not None
    assert place(sketch(mesh(13))) is None


@st.composite
def circuits(draw: st.DrawFn) -> Circuit:
    c = Circuit()
    nodes = st.sampled_from(["0", *"abcdefgh"])
    for k in range(draw(st.integers(1, 14))):
        c.resistor(f"R{k}", draw(nodes), draw(nodes), 1.0)
    return c


@given(circuits())
def test_every_element_is_somewhere_once(circuit: Circuit) -> None:
    plan = sketch(circuit)
    drawn = [k for bundle in plan.bundles for k in bundle.elements] + plan.loops
    assert sorted(drawn) == list(range(len(circuit)))
    _, first, second, _, _ = circuit.arrays()
    for bundle in plan.bundles:
        for k in bundle.elements:
            assert {plan.node[bundle.start], plan.node[bundle.end]} == {int(first[k]), int(second[k])}
    assert all(plan.node[v] == GROUND for v, parent in enumerate(plan.parent) if parent >= 0)


@given(circuits())
def test_no_two_vertices_share_a_place(circuit: Circuit) -> None:
    plan = sketch(circuit)
    where = place(plan).positions
    assert len({tuple(xy) for xy in where.round(6).tolist()}) == len(plan.node)


@settings(max_examples=25)  # random starts or unordered sets would show in each of them
@given(circuits())
def test_the_layout_repeats(circuit: Circuit) -> None:
    assert (place(sketch(circuit)).positions == place(sketch(circuit)).positions).all()
