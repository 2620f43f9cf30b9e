"""Circuits built by hand and from arrays: names, values, copies, views, and every refusal."""

import numpy as np
import pytest

from circuitsim.circuit import BY_LETTER, ELEMENTS, Circuit
from circuitsim.circuit.elements import DIODE, RESISTOR
from circuitsim.errors import TopologyError


def divider() -> Circuit:
    circuit = Circuit("divider")
    circuit.voltage_source("V1", "in", "0", 6.0)
    circuit.resistor("R1", "in", "out", 1e3)
    circuit.resistor("R2", "out", "gnd", 2e3)
    circuit.diode("D1", "out", "in")
    circuit.current_source("I1", "0", "out", 1e-3)
    return circuit


def test_names_keep_their_case_and_are_found_in_any() -> None:
    circuit = divider()
    assert circuit.names == ["V1", "R1", "R2", "D1", "I1"] and list(circuit.node_names) == ["0", "in", "out"]
    assert circuit["r2"] == ("R2", "resistor", "out", "0", 2000.0)
    assert circuit["D1"].value is None and "d1" in circuit and "R9" not in circuit and 3 not in circuit
    assert circuit.node_index("GND") == circuit.node_index("0") == 0
    assert repr(circuit) == "Circuit('divider': 3 nodes, 5 elements: 2 R, 1 D, 1 V, 1 I)"


def test_arrays_are_read_only_snapshots() -> None:
    circuit = divider()
    arrays = circuit.arrays()
    assert arrays is circuit.arrays() and arrays.n_nodes == 3
    with pytest.raises(ValueError, match="read-only"):
        arrays.value[0] = 1.0
    circuit.resistor("R3", "out", "new", 1.0)
    assert circuit.arrays().kind.size == 6 and arrays.kind.size == 5


def test_circuits_grow_while_arrays_of_them_are_in_use() -> None:
    circuit = divider()
    held = [circuit.arrays()]
    circuit.node("later")
    held.append(circuit.arrays())
    other = circuit.with_values({"R1": 5.0})
    held.append(other.arrays())
    for grown in (circuit, other):
        grown.resistor("R3", "later", "out", 7.0)
        held.append(grown.arrays())
    assert [arrays.kind.size for arrays in held] == [5, 5, 5, 6, 6]
    assert [arrays.value[1] for arrays in held] == [1e3, 1e3, 5.0, 1e3, 5.0]
    assert [arrays.n_nodes for arrays in held] == [3, 4, 4, 4, 4]
    assert Circuit().arrays().kind.size == 0


def test_copies_with_other_values_leave_the_original_alone() -> None:
    circuit = divider()
    copy = circuit.with_values({"v1": 3.0, "R1": 0.0})
    copy.resistor("R3", "in", "0", 1.0)
    assert (circuit["V1"].value, copy["V1"].value, copy["R1"].value) == (6.0, 3.0, 0.0)
    assert len(circuit) == 5 and len(copy) == 6 and "R3" not in circuit


def test_a_circuit_that_grows_leaves_its_copies_alone() -> None:
    circuit = divider()
    copies = circuit.with_values({"V1": 3.0}), circuit.with_column(2.0 * circuit.arrays().value)
    again = copies[0].with_values({"V1": 4.0})
    circuit.resistor("R3", "out", "new", 1.0)
    assert len(circuit) == 6 and circuit.node_index("new") == len(copies[0].node_names)
    for copy in (*copies, again):
        assert len(copy) == len(copy.names) == 5 and "new" not in copy.node_names and copy.arrays().kind.size == 5
    again.diode("D9", "out", "elsewhere")
    assert len(again) == 6 and len(copies[0]) == 5 and "elsewhere" not in copies[0].node_names


def test_copies_with_a_column_of_values_are_those_with_the_values_by_name() -> None:
    circuit = divider()
    own = circuit.arrays().value
    column = np.where(np.isnan(own), 7.0, 2.0 * own)  # what stands for a diode is ignored
    copy = circuit.with_column(column)
    named = circuit.with_values({e.name: 2.0 * e.value for e in circuit if e.value is not None})
    assert [e.value for e in copy] == [e.value for e in named]
    assert copy.arrays().value.tobytes() == named.arrays().value.tobytes()
    assert circuit.with_column(np.where(np.isnan(own), 7.0, own)) is circuit
    copy.resistor("R3", "in", "0", 1.0)
    assert len(circuit) == 5 and len(copy) == 6 and copy["R3"].value == 1.0
    k = circuit.element_index("R1")
    for wrong, message in ((-1.0, "not be negative"), (np.nan, "be finite")):
        column[k] = wrong
        with pytest.raises(TopologyError, match=f"R1: the resistance must {message}"):
            circuit.with_column(column)


@pytest.mark.parametrize(
    ("letter", "name", "value", "message"),
    [
        ("Q", "Q1", 1.0, "Q1: no element kind 'Q'; known: R, D, V, I, L, C"),
        ("R", "r1", 1.0, "r1: the name is taken already"),
        ("R", "R9", None, "R9: resistor needs its resistance in Ω"),
        ("R", "R9", -1.0, r"R9: the resistance must not be negative \(-1 Ω\)"),
        ("V", "V9", float("nan"), "V9: the voltage must be finite, not nan"),
        ("I", "I9", float("inf"), "I9: the current must be finite, not inf"),
        ("D", "D9", 1.0, "D9: ideal diode takes no value"),
    ],
)
def test_elements_that_cannot_be(letter: str, name: str, value: float | None, message: str) -> None:
    circuit = divider()
    with pytest.raises(TopologyError, match=message):
        circuit.add(letter, name, "a", "b", value)
    assert len(circuit) == 5


def test_unknown_names_come_with_near_ones() -> None:
    with pytest.raises(TopologyError, match=r"no element is called .R11.; did you mean .*r1"):
        divider().element_index("R11")
    with pytest.raises(TopologyError, match="no node is called 'outt'; did you mean out"):
        divider().node_index("outt")


def test_circuits_from_arrays_number_their_names_on_demand() -> None:
    kind, first, second = np.array([RESISTOR, DIODE]), np.array([1, 2]), np.array([0, 1])
    circuit = Circuit.from_arrays(kind, first, second, np.array([5.0, 0.0]), 3, "columns")
    assert [tuple(element) for element in circuit] == [
        ("R1", "resistor", "n1", "0", 5.0),
        ("D2", "ideal diode", "n2", "n1", None),
    ]
    circuit.resistor("R7", "n2", "extra", 1.0)
    assert list(circuit.node_names) == ["0", "n1", "n2", "extra"] and circuit.element_index("d2") == 1
    value = np.array([5.0, 0.0])
    named = Circuit.from_arrays(kind, first, second, value, 3, names=["Ra", "Db"], node_names=["0", "x", "y"])
    assert named["db"].first == "y"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"first": np.array([1])}, "must be vectors of one length"),
        ({"kind": np.array([0, 9])}, "element kinds must lie in 0…6"),
        ({"second": np.array([0, 3])}, "node indices must lie in 0…2"),
        ({"value": np.array([-5.0, 0.0])}, "R1: the resistance must not be negative"),
        ({"names": ["A", "a"]}, "element names are repeated"),
        ({"names": ["A"]}, "as many names as elements"),
        ({"node_names": ["0"]}, "as many node names as nodes"),
    ],
)
def test_columns_that_cannot_be(change: dict[str, object], message: str) -> None:
    columns = {"kind": np.array([0, 1]), "first": np.array([1, 2]), "second": np.array([0, 1]), "value": np.ones(2)}
    with pytest.raises(TopologyError, match=message):
        Circuit.from_arrays(**(columns | {"n_nodes": 3} | change))


def test_networkx_view_has_an_edge_an_element() -> None:
    graph = divider().to_networkx()
    assert graph.edges["in", "out", "R1"] == {"kind": "resistor", "value": 1000.0}
    assert (graph.number_of_nodes(), graph.number_of_edges()) == (3, 5)


def test_the_element_table_is_complete() -> None:
    assert "".join(BY_LETTER) == "RDVILCX" and all(len(row.terminals) == 2 and row.law for row in ELEMENTS)
