"""What is said about a circuit before it is solved."""

from __future__ import annotations

from circuitsim import Circuit, InfeasibleError, UnboundedError, loads
from circuitsim.inspection import inspect_circuit


def test_report_of_a_mixed_circuit() -> None:
    c = loads("""t
V1 a b 1
V2 b 0 1
V3 a 0 2
D1 a x
D2 x y
R1 x z 1
R2 y 0 1
I1 z 0 0.001
R3 p q 0
""").circuit
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
    c = loads("t\nR1 a b 1\nV1 a b 1\nR2 b 0 1\n").circuit
    assert inspect_circuit(c).lints == ()


def test_a_node_that_a_source_reads_is_no_mistake() -> None:
    deck = "t\nV1 in 0 1\nE1 out 0 {} p 2\nR1 out p 1k\nR2 p 0 1k\n"
    assert inspect_circuit(loads(deck.format("in"))).lints == ()
    assert [lint.kind for lint in inspect_circuit(loads(deck.format("out"))).lints] == ["dangling"]


def test_many_floating_nodes_are_counted() -> None:
    c = loads("t\nV1 g 0 1\nRg g 0 1\n").circuit
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
    c = loads("""t
V1 in 0 5
R1 in a 1
D1 a b
D2 b c
V2 c d 0
D3 d a
D4 a 0
D5 a e
R2 e 0 1
R3 e 0 0
D6 0 e
""").circuit
    (lint,) = inspect_circuit(c).lints
    assert (lint.kind, lint.names) == ("diode-ring", ("D1", "D2", "D3", "a", "b", "c", "d"))
    assert lint.message == "ideal diodes around a loop short nodes a, b, c, d: D1, D2, D3"
