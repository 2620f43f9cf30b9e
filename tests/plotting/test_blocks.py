"""Blocks of large circuits: complete, small, by the names of sub-circuits, joined where nodes are shared."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest

import circuitsim
from circuitsim import Circuit
from circuitsim.circuit import GROUND
from circuitsim.layered import DeepResistiveNetwork
from circuitsim.plotting import draw_circuit
from circuitsim.plotting.block_svg import block_svgs
from circuitsim.plotting.diagram import HALF, diagram
from circuitsim.plotting.division import MOST_ELEMENTS, MOST_PARTS, Block, common_nodes, division
from circuitsim.plotting.drawing import shown
from circuitsim.plotting.layout import Effort

CELLS = """chain
.subckt cell a b
R1 a m 1k
R2 m b 2k
R3 b 0 10k
X1 m b pair
.ends
.subckt pair p q
R1 p t 1k
R2 t q 1k
.ends
V1 n0 0 5
"""


def chain(count: int) -> Circuit:
    return circuitsim.loads(CELLS + "".join(f"X{k} n{k} n{k + 1} cell\n" for k in range(count)))


def tangle(nodes: int) -> Circuit:
    """A random tree with as many further resistors."""
    rng = np.random.default_rng(5)
    c = Circuit("tangle")
    for k in range(1, nodes):
        c.resistor(f"Rt{k}", f"n{rng.integers(k)}", f"n{k}", 1e3)
        c.resistor(f"R{k}", *(f"n{v}" for v in rng.choice(nodes, 2, replace=False)), 1e3)
    c.voltage_source("V1", "n0", "0", 1.0)
    return c


def leaves(block: Block) -> Iterator[Block]:
    for part in block.parts:
        yield from leaves(part)
    if not block.parts:
        yield block


def blocks(block: Block) -> Iterator[Block]:
    yield block
    for part in block.parts:
        yield from blocks(part)


@pytest.mark.parametrize("circuit", [chain(430), chain(60), tangle(1500), tangle(300)], ids=str)
def test_every_element_is_in_one_small_block(circuit: Circuit) -> None:
    whole = division(circuit)
    assert whole is not None
    assert sorted(k for leaf in leaves(whole) for k in leaf.elements) == list(range(len(circuit)))
    for block in blocks(whole):
        assert len(block.elements) <= MOST_ELEMENTS if not block.parts else 1 < len(block.parts) <= MOST_PARTS + 1
        assert not block.parts or sorted(k for p in block.parts for k in p.elements) == list(block.elements)
    names = [block.name for block in blocks(whole)]
    assert len(set(names)) == len(names)
    assert division(circuit) == whole


def test_sub_circuits_stay_whole() -> None:
    circuit = chain(430)
    whole = division(circuit)
    assert whole is not None
    for leaf in leaves(whole):
        own = {circuit.names[k].split(".")[0] for k in leaf.elements}
        for name in own - {"V1"}:
            assert sum(other.startswith(f"{name}.") for other in circuit.names) == 5
            assert sum(circuit.names[k].startswith(f"{name}.") for k in leaf.elements) == 5
    assert {"X0", "X429"} <= {block.name for block in blocks(whole)}


def test_legible_pictures_stay_whole() -> None:
    mesh = Circuit("mesh")
    for i in range(20):
        for j in range(20):
            mesh.resistor(f"Rh{i}_{j}", f"n{i}_{j}", f"n{i}_{j + 1}", 1.0)
            mesh.resistor(f"Rv{i}_{j}", f"n{i}_{j}", f"n{i + 1}_{j}", 1.0)
    assert division(mesh) is None
    assert division(chain(5)) is None
    network = DeepResistiveNetwork((40, 80, 20, 10), rng=0)
    assert division(network.to_circuit(np.linspace(0.0, 1.0, 40))) is None


def test_common_nodes_are_the_common_nodes() -> None:
    circuit = tangle(300)
    whole = division(circuit)
    assert whole is not None
    arrays = circuit.arrays()
    own = [{int(v) for k in p.elements for v in (arrays.first[k], arrays.second[k])} - {GROUND} for p in whole.parts]
    pairs = {(i, j): sorted(a & b) for i, a in enumerate(own) for j, b in enumerate(own) if i < j and a & b}
    assert common_nodes(circuit, whole.parts) == pairs and pairs


@pytest.mark.parametrize("circuit", [chain(60), tangle(300)], ids=str)
def test_boxes_and_labels_lie_apart(circuit: Circuit) -> None:
    whole = division(circuit)
    assert whole is not None
    found = diagram(shown(circuit), whole.parts, Effort(400, (1.3,), {}))
    boxes = [(*(c - HALF), *(c + HALF)) for c in found.centres]
    for line in found.lines:
        if line.label is not None:
            corners = line.label.corners()
            boxes.append((*corners.min(0), *corners.max(0)))
    for k, (left, low, right, high) in enumerate(boxes):
        for other in boxes[k + 1 :]:
            assert other[0] >= right or other[2] <= left or other[1] >= high or other[3] <= low


def test_pictures_have_every_element_once_and_their_numbers() -> None:
    circuit = chain(60)
    point = circuitsim.solve(circuit)
    whole = division(circuit)
    assert whole is not None
    pictures = list(block_svgs(point, whole, ["X7.R2"]))
    assert len(pictures) == len(list(blocks(whole)))
    text = "".join(pictures)
    assert sorted(map(int, re.findall(r'class="element[^"]*" data-element="(\d+)"', text))) == list(range(len(circuit)))
    assert [int(number) for number in re.findall(r'<svg[^>]* data-block="(\d+)"', text)] == list(range(len(pictures)))
    assert len(re.findall(r'class="block marked', pictures[0])) == 1
    opened = [int(number) for number in re.findall(r'<g class="block[^"]*" data-block="(\d+)"', text)]
    assert sorted(opened) == list(range(1, len(pictures)))
    assert sum(" hidden" in picture for picture in pictures) == len(pictures) - 1


@pytest.mark.parametrize("solved", [False, True])
def test_one_picture_of_a_large_circuit_shows_its_blocks(solved: bool) -> None:
    circuit = chain(430)
    source = circuitsim.solve(circuit) if solved else circuit
    whole = division(circuit)
    assert whole is not None
    texts = [text.get_text() for text in draw_circuit(source).axes[0].texts]
    assert {part.name for part in whole.parts} <= set(texts)
    counts = [text for text in texts if " element" in text]
    assert sum(int(text.split()[0]) for text in counts) == len(circuit)
    assert all(text.count("W") == solved for text in counts)
    svg = source.draw()._repr_svg_()
    assert svg.count('class="block') == len(whole.parts) and 'role="button"' not in svg and "<style>" in svg


def test_widths_of_ones_own_are_drawn_as_lines() -> None:
    circuit = chain(60)
    figure = draw_circuit(circuitsim.solve(circuit), np.ones(len(circuit)), "S")
    assert "blocks" not in figure.texts[0].get_text()
