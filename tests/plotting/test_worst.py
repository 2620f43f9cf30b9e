"""Circuits too large for a drawing: layers stay pictures, a grid gets its map, all others tables."""

from pathlib import Path

import numpy as np
import pytest

import circuitsim
from circuitsim import Circuit
from circuitsim.cli import main
from circuitsim.layered import DeepResistiveNetwork
from circuitsim.plotting import draw_circuit
from circuitsim.plotting.circuit import circuit_svg


def tangle(nodes: int) -> Circuit:
    """A random tree with as many further resistors."""
    rng = np.random.default_rng(5)
    c = Circuit("tangle")
    for k in range(1, nodes):
        c.resistor(f"Rt{k}", f"n{rng.integers(k)}", f"n{k}", 1e3)
        c.resistor(f"R{k}", *(f"n{v}" for v in rng.choice(nodes, 2, replace=False)), 1e3)
    c.voltage_source("V1", "n0", "0", 1.0)
    c.current_source("I1", "0", f"n{nodes - 1}", 0.1)
    return c


def grid(side: int) -> Circuit:
    c = Circuit("grid")
    for i in range(side):
        for j in range(side):
            c.resistor(f"Rh{i}_{j}", f"n1_{i}_{j}", f"n1_{i + 1}_{j}", 1.0)
            c.resistor(f"Rv{i}_{j}", f"n1_{i}_{j}", f"n1_{i}_{j + 1}", 1.0)
    c.voltage_source("V1", "n1_0_0", "0", 1.8)
    c.current_source("I1", f"n1_{side - 1}_{side - 1}", "0", 1e-3)
    return c


@pytest.mark.parametrize("nodes", [300, 12_000])
def test_a_tangle_gets_a_table_with_its_worst_nodes_and_elements(nodes: int) -> None:
    point = circuitsim.solve(tangle(nodes))
    (text,) = (text.get_text() for text in draw_circuit(point).axes[0].texts)
    highest = point.circuit.node_names[int(np.abs(point.voltages).argmax())]
    hottest = point.circuit.names[int(np.abs(point.powers).argmax())]
    words = text.split()
    assert highest in words and hottest in words and f"{nodes + 1:,} nodes" in text
    assert circuit_svg(point) == "" and "<svg" in point.draw()._repr_svg_()
    (text,) = (text.get_text() for text in draw_circuit(point.circuit).axes[0].texts)
    assert f"{2 * nodes - 2:,}" in text and "resistor" in text


def test_a_grid_gets_its_map() -> None:
    figure = draw_circuit(circuitsim.solve(grid(13)))
    assert figure.axes[0].images and "worst" not in "".join(text.get_text() for text in figure.axes[0].texts)


def test_layers_stay_a_picture() -> None:
    network = DeepResistiveNetwork((40, 80, 20, 10), rng=0)
    c = network.to_circuit(np.linspace(0.0, 1.0, 40))
    assert 'data-element="0"' in circuit_svg(c)


def test_the_commands_draw_a_large_deck(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deck = tmp_path / "large.cir"
    deck.write_text(circuitsim.dumps(tangle(300)), encoding="utf-8")
    for words in (["graph", str(deck), "--output"], ["solve", str(deck), "--plot"]):
        picture = tmp_path / f"{words[0]}.png"
        assert main([*words, str(picture)]) == 0
        assert picture.read_bytes().startswith(b"\x89PNG")
