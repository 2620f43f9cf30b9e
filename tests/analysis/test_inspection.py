"""What is said about a circuit before it is solved."""

from __future__ import annotations

import networkx
import numpy as np

from circuitsim import Circuit, InfeasibleError, UnboundedError, loads
from circuitsim.inspection import inspect_circuit


def test_report_of_a_mixed_circuit() -> None:
    c = Circuit()
    c.voltage_source("V1", "a", "b", 1.0)
    c.voltage_source("V2", "b", "0", 1.0)
    c.voltage_source("V3", "a", "0", 2.0)
    c.diode("D1", "a", "x")
    c.diode("D2", "x", "y")
    c.resistor("R1", "x", "z", 1.0)
    c.resistor("R2", "y", "0", 1.0)
    c.current_source("I1", "z", "0", 1e-3)
    c.resistor("R3", "p", "q", 0.0)
    report, lints, contradiction = inspect_circuit(c)
    assert report._asdict() == {
        "nodes": 8,
        "elements": 9,
        "parts": 2,
        "floating": 1,
        "super_nodes": 2,
        "unknowns": 3,
        "free_diodes": 1,
        "kinds": {"resistor": 3, "ideal diode": 2, "voltage source": 3, "current source": 1},
        "voltage_loops": 1,
        "islands": 3,
    }
    assert [lint.kind for lint in lints] == ["dangling", "dangling", "floating"]
    assert contradiction is None


def test_ground_with_one_connection_is_no_mistake() -> None:
    c = Circuit()
    c.resistor("R1", "a", "b", 1.0)
    c.voltage_source("V1", "a", "b", 1.0)
    c.resistor("R2", "b", "0", 1.0)
    assert inspect_circuit(c).lints == ()


def test_a_node_that_a_source_reads_is_no_mistake() -> None:
    deck = "t\nV1 in 0 1\nE1 out 0 {} p 2\nR1 out p 1k\nR2 p 0 1k\n"
    assert inspect_circuit(loads(deck.format("in"))).lints == ()
    assert [lint.kind for lint in inspect_circuit(loads(deck.format("out"))).lints] == ["dangling"]


def test_many_floating_nodes_are_counted() -> None:
    c = Circuit()
    c.voltage_source("V1", "g", "0", 1.0)
    c.resistor("Rg", "g", "0", 1.0)
    for k in range(12):
        c.resistor(f"R{k}", f"n{k}", f"n{(k + 1) % 12}", 1.0)
    (lint,) = inspect_circuit(c).lints
    nodes = "n0, n1, n2, n3, n4, n5, n6, n7 and 4 more"
    assert lint.message == f"no path to ground from {nodes}: potentials are relative to n0"
    assert len(lint.names) == 12


def test_contradictions() -> None:
    loop, cut = Circuit(), Circuit()
    loop.voltage_source("V1", "a", "0", 1.0)
    loop.voltage_source("V2", "a", "0", 2.0)
    cut.current_source("I1", "0", "a", 1.0)
    cut.diode("D1", "0", "a")
    assert isinstance(inspect_circuit(loop).contradiction, InfeasibleError)
    assert isinstance(inspect_circuit(cut).contradiction, UnboundedError)


def test_an_empty_circuit_has_an_empty_report() -> None:
    report, lints, contradiction = inspect_circuit(Circuit())
    assert (report.nodes, report.elements, report.kinds, report.parts) == (0, 0, {}, 0)
    assert lints == () and contradiction is None


def test_a_ring_of_diodes_is_a_short() -> None:
    c = Circuit()
    c.voltage_source("V1", "in", "0", 5.0)
    c.resistor("R1", "in", "a", 1.0)
    c.diode("D1", "a", "b")
    c.diode("D2", "b", "c")
    c.voltage_source("V2", "c", "d", 0.0)
    c.diode("D3", "d", "a")
    c.diode("D4", "a", "0")
    c.diode("D5", "a", "e")
    c.resistor("R2", "e", "0", 1.0)
    c.resistor("R3", "e", "0", 0.0)
    c.diode("D6", "0", "e")
    (lint,) = inspect_circuit(c).lints
    assert (lint.kind, lint.names) == ("diode-ring", ("D1", "D2", "D3", "a", "b", "c", "d"))
    assert lint.message == "ideal diodes around a loop short nodes a, b, c, d: D1, D2, D3"


def test_rings_of_diodes_are_strong_components_of_their_graph() -> None:
    rng = np.random.default_rng(5)
    rings = 0
    for _ in range(200):
        n = int(rng.integers(3, 12))
        arcs = rng.integers(0, n, (int(rng.integers(1, 2 * n)), 2))
        c, graph = Circuit(), networkx.MultiDiGraph()
        for node in range(1, n):
            c.resistor(f"R{node}", str(node), "0", 1.0)
        for k, (a, b) in enumerate(arcs[arcs[:, 0] != arcs[:, 1]].tolist()):
            c.diode(f"D{k}", str(a), str(b))
            graph.add_edge(str(a), str(b), f"D{k}")
        expected = {
            frozenset([*part, *(name for _, _, name in graph.subgraph(part).edges(keys=True))])
            for part in networkx.strongly_connected_components(graph)
            if len(part) > 1
        }
        found = [lint.names for lint in inspect_circuit(c).lints if lint.kind == "diode-ring"]
        assert {frozenset(names) for names in found} == expected and len(found) == len(expected)
        rings += len(found)
    assert rings > 50
