"""What is said about a circuit before it is solved."""

from __future__ import annotations

from circuitsim import Circuit, InfeasibleError, UnboundedError
from circuitsim.analysis.inspection import inspect_circuit


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
        "nodes": 8, "elements": 9, "parts": 2, "floating": 1, "super_nodes": 2, "unknowns": 3, "free_diodes": 1,
        "kinds": {"resistor": 3, "ideal diode": 2, "voltage source": 3, "current source": 1}, "voltage_loops": 1,
        "islands": 3,
    }  # fmt: skip
    assert [lint.kind for lint in lints] == ["dangling", "dangling", "floating"]
    assert contradiction is None


def test_ground_with_one_connection_is_no_mistake() -> None:
    c = Circuit()
    c.resistor("R1", "a", "b", 1.0)
    c.voltage_source("V1", "a", "b", 1.0)
    c.resistor("R2", "b", "0", 1.0)
    assert inspect_circuit(c).lints == ()


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
