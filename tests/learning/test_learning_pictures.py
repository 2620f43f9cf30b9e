"""Pictures of trained circuits: the matrix of conductances, nodes in order, and runs without pictures."""

from __future__ import annotations

import numpy as np

import circuitsim
from circuitsim.blocks.circuit import CircuitBlock
from circuitsim.cli import main
from circuitsim.learning.pictures import SCHEMATIC, _between_nodes, _by_distance, draw_trained
from circuitsim.netlist.roles import make_roles

NET = "two layers\nV1 a 0 1\nR1 a b 2\nR2 a b 2\nR3 b c 4\nD1 b 0\nD2 c b\nI1 c 0 1\nR4 c out 5\nR5 a out 8\n"


def test_the_matrix_has_all_conductances_and_diodes() -> None:
    circuit = circuitsim.loads(NET)
    matrix, diodes = _between_nodes(circuit)
    at = circuit.node_index
    expected = np.zeros_like(matrix)
    for a, b, g in (("a", "b", 1.0), ("b", "c", 0.25), ("c", "out", 0.2), ("a", "out", 0.125)):
        expected[at(a), at(b)] = expected[at(b), at(a)] = g
    np.testing.assert_array_equal(matrix, expected)
    assert diodes == [(at("b"), 0), (at("c"), at("b"))]


def test_nodes_go_from_inputs_to_outputs() -> None:
    circuit = circuitsim.loads(NET)
    order = _by_distance(circuit, ["V1"], ["out"])
    assert [circuit.node_names[k] for k in order] == ["0", "a", "b", "out", "c"]


def test_large_circuits_are_drawn_as_a_matrix_at_once(tmp_path, monkeypatch) -> None:
    lines = ["dense", "V1 a 0 1"]
    lines += [f"R{k} a n{k % 9} {k + 1}" for k in range(SCHEMATIC)] + [f"Rg{k} n{k} 0 1" for k in range(9)]
    circuit = circuitsim.loads("\n".join([*lines, ""]))
    block = CircuitBlock(circuit, make_roles(circuit, "V1", "v(n0)", ["R* min=1m max=1k"]))
    monkeypatch.setattr("circuitsim.plotting.draw_circuit", None)  # no schematic is laid out
    path = draw_trained(block, np.ones(1), tmp_path / "circuit.png")
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" and path.stat().st_size > 5000


def test_a_run_without_pictures(tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / "net.cir").write_text("t\nV1 a 0 1\nR1 a b 1\nR2 b 0 1\n")
    (tmp_path / "data.csv").write_text("V1,v(b)\n1,0.3\n2,0.6\n")
    monkeypatch.chdir(tmp_path)
    words = ["train", "circuit", "net.cir", "--data", "data.csv", "--inputs", "V1", "--outputs", "v(b)", "--trainable"]
    words += ["R1 min=0.1 max=9", "--epochs", "1"]
    assert main([*words, "--out", "plain", "--no-pictures"]) == 0
    assert "trained.cir, history, checkpoint" in capsys.readouterr().out
    assert not list((tmp_path / "plain").glob("*.png")) and (tmp_path / "plain" / "trained.cir").is_file()
    assert main(["train", "resume", "--epochs", "2", "--out", "plain"]) == 0
    assert (tmp_path / "plain" / "learning.png").is_file()  # how a run is shown is not part of it
