"""Operating points: currents and their uniqueness, intervals, prepared circuits, the certificate's own judgement."""

import json
from collections.abc import Callable

import numpy as np
import pytest

import circuitsim
from circuitsim.analysis import prepared
from circuitsim.certificate import certify
from circuitsim.errors import TopologyError, UsageError


def solve(text: str) -> circuitsim.OperatingPoint:
    return circuitsim.solve(circuitsim.loads("test\n" + text))


def test_intervals_of_nodes_between_blocking_diodes() -> None:
    op = solve("V1 t 0 5\nR1 t 0 1\nD1 x t\nD2 y x\nD3 0 y\nD4 0 z\n")
    assert op.intervals == {"x": (0.0, 5.0), "y": (0.0, 5.0), "z": (0.0, None)}
    assert 0.0 <= op["y"] <= op["x"] <= 5.0
    assert json.loads(json.dumps(op.to_dict(), allow_nan=False))["intervals"]["z"] == [0.0, None]


def test_prepared_circuits_solve_new_values_as_new_circuits() -> None:
    circuit = circuitsim.loads("t\nV1 a 0 1\nR1 a b 1\nD1 b c\nR2 c 0 1\nR3 b 0 5\nI1 0 c 0\n")
    ready = prepared(circuit)
    for values in ({"V1": 2.0}, {"V1": -3.0, "I1": 0.25}, {"R1": 0.0}, {"R3": 1e9}, {}):
        again, fresh = ready.solve(values), circuitsim.solve(circuit.with_values(values))
        assert again.voltages.tobytes() == fresh.voltages.tobytes()
        assert again.currents.tobytes() == fresh.currents.tobytes()
    with pytest.raises(TopologyError, match="no element is called 'V9'"):
        ready.solve({"V9": 1.0})


def test_accessors() -> None:
    op = solve("V1 a 0 2\nR1 a b 1\nD1 b 0\nR2 a 0 4\n")
    assert (op["A"], op.voltage("a", "b"), op.current("r1"), op.power("R1")) == (2.0, 2.0, 2.0, 4.0)
    assert op.state("D1") == "conducting"
    assert op.power() == 5.0 and op.power("V1") == -5.0
    assert op.energy == pytest.approx(0.5 * 4 + 0.5 * 1)
    with pytest.raises(TopologyError, match="R1 is a resistor; only diodes have a state"):
        op.state("R1")
    with pytest.raises(TopologyError, match="no node is called 'aa'; did you mean a"):
        op["aa"]
    frame = op.to_dataframe()
    assert frame.loc["D1", "state"] == "conducting" and frame.loc["R2", "current"] == 0.5
    assert repr(op) == "OperatingPoint('test': 3 nodes, 4 elements, certified: v(a) = 2 V, v(b) = 0 V)"


def test_the_certificate_uses_local_scales() -> None:
    """An error of a tenth of a picoampere is invisible beside a kiloampere, and wrong beside a nanoampere."""
    circuit = circuitsim.loads("t\nV1 k 0 1\nR1 k 0 1m\nV2 n 0 1\nR2 n m 1g\nR3 m 0 1g\n")
    op = circuitsim.solve(circuit)
    assert op.certificate.certified
    arrays = circuit.arrays()
    for name, harmless in (("R1", True), ("R2", False)):
        currents = op.currents.copy()
        currents[circuit.element_index(name)] += 1e-13
        assert certify(arrays, arrays.value, op.voltages, currents, op.drops).certified is harmless


@pytest.mark.parametrize(
    ("node", "element", "what"),
    [("b", None, "diode_drop"), (None, "D1", "diode_reverse"), ("a", None, "source"), (None, "R2", "kvl")],
)
def test_the_certificate_catches_every_kind_of_lie(node: str | None, element: str | None, what: str) -> None:
    circuit = circuitsim.loads("t\nV1 a 0 2\nR1 a b 1\nD1 b 0\nR2 a 0 4\nR3 a 0 1\nD2 0 c\nR4 c 0 1\n")
    op = circuitsim.solve(circuit)
    voltages, currents = op.voltages.copy(), op.currents.copy()
    if node:
        voltages[circuit.node_index(node)] += 1e-6
    if element:
        currents[circuit.element_index(element)] = -1e-6 if element == "D1" else 0.25
    drops = op.drops if node is None else voltages[circuit.arrays().first] - voltages[circuit.arrays().second]
    lie = certify(circuit.arrays(), circuit.arrays().value, voltages, currents, drops)
    assert not lie.certified
    assert lie.relative[what] > 1e-9


def test_loops_far_from_ground_are_judged_by_their_drops() -> None:
    """Potentials of 1e30 V hide 68 V; the source's 68 V beside a resistor without a drop do not cancel."""
    arrays = circuitsim.loads("t\nV1 a b 68\nR1 a b 1\nD1 a 0\n").arrays()
    far = np.array([0.0, -1e30, -1e30])
    for amperes in (68.0, 0.0):
        found = certify(arrays, arrays.value, far, np.array([-amperes, amperes, 0.0]), np.array([68.0, amperes, -1e30]))
        assert found.certified is (amperes > 0.0)


def test_complementarity_and_energy_gap() -> None:
    """A blocking diode that is said to carry current: 1 A against 1 V in reverse is a gap of 1 W."""
    circuit = circuitsim.loads("t\nV1 a 0 1\nD1 0 a\nR1 a 0 1\n")
    op = circuitsim.solve(circuit)
    lie = certify(circuit.arrays(), circuit.arrays().value, op.voltages, op.currents + [1.0, 1.0, 0.0], op.drops)
    assert lie.energy_gap == pytest.approx(1.0) and lie.complementarity == pytest.approx(1.0)
    assert lie.kcl == 0.0 and not lie.certified


def test_circuits_without_elements_and_silly_tolerances_are_refused() -> None:
    with pytest.raises(TopologyError, match="the circuit has no elements"):
        circuitsim.solve(circuitsim.Circuit())
    with pytest.raises(TopologyError, match="tolerance must be a number between 0 and 1, not -1"):
        circuitsim.solve(circuitsim.loads("t\nR1 a 0 1\n"), tolerance=-1)


@pytest.mark.parametrize(
    "call",
    [
        circuitsim.solve,
        circuitsim.prepared,
        lambda source: circuitsim.sweep(source, {"V1": [1.0]}),
        lambda source: circuitsim.montecarlo(source, ["R1=1%"], "v(a)"),
        lambda source: circuitsim.worst_case(source, ["R1=1%"], "v(a)"),
    ],
)
def test_a_text_in_place_of_a_circuit_names_the_readers(call: Callable[[str], object]) -> None:
    with pytest.raises(UsageError, match=r"circuitsim\.load\(path\) reads a file, circuitsim\.loads\(text\) a text"):
        call("V1 a 0 1\nR1 a 0 1k")


def test_shorts_with_drops_beyond_any_scale_are_judged_without_a_warning() -> None:
    """Two sources of 0 V with drops of 1e-300 V: infinite beside their scale of zero (a RuntimeWarning is an error)."""
    arrays = circuitsim.loads("test\nV1 a 0 0\nV2 b 0 0\nR1 a b 1\n").arrays()
    potentials, drops = np.array([0.0, 1e-300, 2e-300]), np.array([1e-300, 2e-300, -1e-300])
    found = certify(arrays, arrays.value, potentials, np.zeros(3), drops)
    assert not found.certified


def test_long_ladder_with_junction_diodes() -> None:
    """Behind 1,200 sections voltages are 1e-30 V, below the resolution of the currents that set them."""
    rungs = [f"R{k} n{k} n{k + 1} 5.5\nS{k} n{k + 1} 0 1k".replace("S", "RS") for k in range(1200)]
    diodes = [f"D{k} n{k} 0 junction" for k in range(20, 1200, 20)]
    deck = "\n".join(["* ladder", "V1 n0 0 5", *rungs, *diodes, ".model junction D(IS=1e-14)", ".end"])
    point = circuitsim.solve(circuitsim.loads(deck))
    assert point.certificate.certified
    assert 0.0 <= point.voltage("n1200") < 1e-25
