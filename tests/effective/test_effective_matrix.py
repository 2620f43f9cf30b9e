"""Effective matrices against exact elimination; their derivatives against differences of exact matrices."""

from fractions import Fraction

import numpy as np
import pytest
from linear_oracle import exact_matrix, random_circuit

from circuitsim import Circuit, ConvergenceError, CrossbarLayer, TopologyError, UsageError, effective_matrix, loads
from circuitsim.engine.port_network import WEAK


def _asked(circuit: Circuit, rng: np.random.Generator) -> tuple[list[str], list[str | tuple[str, str]]]:
    sources = [name for name in circuit.names if name[0] in "VI"]
    inputs = [str(name) for name in rng.permutation(sources)[: rng.integers(1, len(sources) + 1)]]
    nodes, volts = circuit.node_names, [name for name in sources if name[0] == "V"]
    outputs: list[str | tuple[str, str]] = [str(rng.choice(nodes)), (str(rng.choice(nodes)), str(rng.choice(nodes)))]
    return inputs, outputs[: rng.integers(1, 3)] + [f"i({name})" for name in volts[: rng.integers(0, len(volts) + 1)]]


@pytest.mark.parametrize("decades", [0.0, 3.0])
def test_every_entry_is_within_its_bound_of_the_exact_one(decades: float) -> None:
    rng, checked, refused = np.random.default_rng(7), 0, 0
    for _ in range(120):
        circuit = random_circuit(rng, decades)
        inputs, outputs = _asked(circuit, rng)
        try:
            found = effective_matrix(circuit, inputs, outputs)
        except ConvergenceError:
            refused += 1
            continue
        want = np.array([[float(x) for x in row] for row in exact_matrix(circuit, inputs, outputs)])
        have = np.column_stack([found.matrix, found.offset])
        assert (np.abs(have - want) <= found.error).all()
        assert found.relative_error <= found.tolerance
        checked += 1
    assert refused <= 2
    assert checked >= 110


def test_bounds_are_not_empty_promises() -> None:
    """They are within the tolerance of the largest entry of a row (column), also where the offset is asked for."""
    circuit = loads("ladder\nV1 a 0 1\nI1 0 c 2m\nR1 a b 1\nR2 b c 1meg\nR3 c 0 10k\nR4 b 0 3\n.end\n")
    found = effective_matrix(circuit, ["V1"], ["c", "v(b,c)", "i(V1)"])
    want = exact_matrix(circuit, ["V1"], ["c", ("b", "c"), "i(V1)"])
    assert np.column_stack([found.matrix, found.offset]) == pytest.approx(np.array(want, dtype=float), rel=1e-12)
    assert found.error[:, 0].max() < 1e-12 * np.abs(found.matrix).max() / WEAK
    assert found(np.array([2.0])) == pytest.approx(2.0 * found.matrix[:, 0] + found.offset)
    assert found(np.zeros((4, 1))).shape == (4, 3)


def test_derivatives_are_those_of_exact_differences() -> None:
    rng = np.random.default_rng(11)
    for _ in range(12):
        circuit = random_circuit(rng, 1.0)
        inputs, outputs = _asked(circuit, rng)
        found = effective_matrix(circuit, inputs, outputs)
        weight = rng.normal(size=(len(outputs), len(inputs) + 1))
        gradient = found.vjp(weight[:, :-1], weight[:, -1])
        names = [name for name in circuit.names if name[0] == "R" and circuit[name].value]
        assert not np.delete(gradient, [circuit.element_index(name) for name in names]).any()
        for name in names[:5]:
            g = 1.0 / float(circuit[name].value or 0.0)
            ends = []
            for step in (1e-6, -1e-6):
                changed = circuit.with_values({name: 1.0 / (g * (1.0 + step))})
                rows = exact_matrix(changed, inputs, outputs)
                ends.append(sum(Fraction(w) * x for row, own in zip(rows, weight.tolist()) for x, w in zip(row, own)))
            want = float(ends[0] - ends[1]) / (2e-6 * g)
            assert gradient[circuit.element_index(name)] == pytest.approx(want, rel=1e-5, abs=1e-9)


def test_both_sides_give_the_same_matrix() -> None:
    """Responses to five outputs or to two inputs: reciprocity."""
    rng = np.random.default_rng(3)
    circuit = random_circuit(rng, 1.0)
    for k in range(2):
        circuit.current_source(f"Iin{k}", "0", str(k + 1), 0.0)
    many = effective_matrix(circuit, ["Iin0", "Iin1"], ["1", "2", "1", "2", "1"])
    few = effective_matrix(circuit, ["Iin0", "Iin1"], ["1", "2"])
    assert many.matrix[:2] == pytest.approx(few.matrix, rel=1e-13)
    assert few.matrix == pytest.approx(few.matrix.T, rel=1e-13)


def test_other_values_share_the_analysis() -> None:
    circuit = loads("divider\nV1 a 0 1\nV2 d 0 2\nR1 a b 1k\nR2 b 0 1k\nR3 d b 1k\nR4 b c 0\n.end\n")
    first = effective_matrix(circuit, ["V1"], ["c"])
    other = first.at({"R2": 2e3, "V2": 3.0})
    assert other.matrix[0, 0] == pytest.approx(0.4)
    assert other.offset[0] == pytest.approx(1.2)
    assert first.matrix[0, 0] == pytest.approx(1 / 3)
    with pytest.raises(TopologyError, match="make a new"):
        first.at({"R4": 1.0})


@pytest.mark.parametrize(
    ("deck", "inputs", "outputs", "error", "message"),
    [
        ("V1 a 0 1\nR1 a b 1\nD1 b 0\n", ["V1"], ["b"], TopologyError, "diodes"),
        ("V1 a 0 1\nV2 a 0 1\nR1 a 0 1\n", ["V1"], ["a"], TopologyError, "V2 closes a loop"),
        ("V1 a 0 1\nR1 a 0 1\nR2 x y 1\n", ["V1"], ["a"], TopologyError, "no path .* from node x"),
        ("V1 a 0 1\nR1 a b 1\nR2 b 0 1\n", ["R1"], ["b"], UsageError, "R1 is not a source"),
        ("V1 a 0 1\nR1 a b 1\nR2 b 0 1\n", ["V1"], ["i(R2)"], UsageError, "currents are read from voltage sources"),
        ("V1 a 0 1\nR1 a b 1\nR2 b 0 1\n", ["V1"], ["p(R2)"], UsageError, "not an output of a matrix"),
        ("V1 a 0 1\nR1 a b 1\nR2 b 0 1\n", [], ["b"], UsageError, "at least one input"),
        ("V1 a 0 1\nR1 a b 1\nE1 c 0 b 0 2\nR2 b 0 1\n", ["V1"], ["c"], TopologyError, "controlled"),
    ],
)
def test_what_is_no_matrix_is_refused(
    deck: str, inputs: list[str], outputs: list[str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        effective_matrix(loads(f"deck\n{deck}.end\n"), inputs, outputs)


def test_a_tolerance_below_what_doubles_hold_is_refused() -> None:
    circuit = loads("divider\nV1 a 0 1\nR1 a b 3\nR2 b 0 7\n.end\n")
    with pytest.raises(ConvergenceError, match="with circuitsim"):
        effective_matrix(circuit, ["V1"], ["b"], tolerance=1e-18)


def test_wrong_widths_are_refused() -> None:
    found = effective_matrix(loads("divider\nV1 a 0 1\nR1 a b 3\nR2 b 0 7\n.end\n"), ["V1"], ["b"])
    with pytest.raises(UsageError, match="1 input values"):
        found(np.zeros((2, 3)))
    with pytest.raises(UsageError, match="cotangents of shape"):
        found.vjp(np.zeros((2, 1)))


def test_inputs_that_are_one_name_stand_twice_or_are_no_numbers() -> None:
    circuit = loads("two\nV1 a 0 0\nV2 b 0 0\nR1 a o 1k\nR2 b o 2k\nR3 o 0 1k\n")
    found = effective_matrix(circuit, "V1", "v(o)")
    assert found.inputs == ("V1",) and found.matrix == pytest.approx(np.array([[0.4]]))
    with pytest.raises(UsageError, match="V1 is an input twice"):
        effective_matrix(circuit, ["V1", "v1"], ["o"])
    with pytest.raises(UsageError, match="outputs are not finite"):
        found(np.array([np.nan]))
    layer = CrossbarLayer(np.full((3, 2), 1e-4), word_wire=1.0, bit_wire=1.0)
    with pytest.raises(UsageError, match=r"of one length are needed, not \(4, 3\) and \(5, 2\)"):
        layer.gradient(np.ones((4, 3)), np.ones((5, 2)))
