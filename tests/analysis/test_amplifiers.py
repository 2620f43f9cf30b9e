"""Bidirectional amplifiers: against the equations of controlled sources, solved densely, and everywhere a deck goes."""

import itertools
import json
import re
import shutil
import subprocess

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import circuitsim
from circuitsim import Circuit, loads, solve, sweep
from circuitsim.circuit.elements import AMPLIFIER, CURRENT, DIODE, RESISTOR, VOLTAGE
from circuitsim.cli import main
from circuitsim.errors import AmplifierError, InfeasibleError, NetlistError, TopologyError

DECK = """two stages
.param a=4
V1 in 0 1
R1 in l1 1k
X1 l1 h1 bidiramp gain={a}
D1 h1 0
R2 h1 l2 1k
R3 h1 0 2k
X2 l2 out bidiramp gain=0.5
R4 out 0 3k
.print v(out) i(X1) p(X1)
"""


def dense(circuit: Circuit) -> tuple[np.ndarray, np.ndarray]:
    """Voltages and currents by modified nodal analysis in volts and amperes, every amplifier two controlled sources.

    Diodes by trying all sets of conducting ones.
    """
    kind, first, second, value, n = circuit.arrays()
    diodes = np.flatnonzero(kind == DIODE)
    for states in itertools.product((False, True), repeat=diodes.size):
        on = dict(zip(diodes.tolist(), states))
        branch = [k for k in range(kind.size) if kind[k] in (VOLTAGE, AMPLIFIER) or on.get(k)]
        size = n + len(branch)
        matrix, right = np.zeros((size, size)), np.zeros(size)
        for k in range(kind.size):
            a, b = first[k], second[k]
            if kind[k] == RESISTOR:
                g = 1 / value[k]
                matrix[a, a] += g
                matrix[b, b] += g
                matrix[a, b] -= g
                matrix[b, a] -= g
            elif kind[k] == CURRENT:
                right[a] -= value[k]
                right[b] += value[k]
        for row, k in enumerate(branch, n):
            a, b = first[k], second[k]
            gain = value[k] if kind[k] == AMPLIFIER else 1.0
            matrix[a, row] += 1.0
            matrix[b, row] -= gain
            matrix[row, b] += 1.0
            matrix[row, a] -= gain
            right[row] = -value[k] if kind[k] == VOLTAGE else 0.0
        matrix[0], right[0] = 0.0, 0.0
        matrix[0, 0] = 1.0
        try:
            solution = np.linalg.solve(matrix, right)
        except np.linalg.LinAlgError:
            continue  # a loop of conducting diodes
        v, i = solution[:n], np.zeros(kind.size)
        i[branch] = solution[n:]
        drop = v[first] - v[second]
        i[kind == RESISTOR] = (drop / value)[kind == RESISTOR]
        i[kind == CURRENT] = value[kind == CURRENT]
        if (drop[diodes] <= 1e-9).all() and (i[diodes] >= -1e-12).all():
            return v, i
    raise AssertionError("no set of conducting diodes fits")


@st.composite
def amplified(draw):
    """Sections of two to four nodes in a chain or a tree, amplifiers between them, sometimes closing loops."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    circuit = Circuit("random")
    gains = np.exp(rng.uniform(-2, 2, rng.integers(2, 5)))
    nodes = [[f"n{s}_{k}" for k in range(rng.integers(2, 5))] for s in range(gains.size)]
    circuit.voltage_source("V1", "source", "0", rng.normal() * 5)
    circuit.resistor("R1", "source", nodes[0][0], 1.0)
    names = (f"E{k}" for k in itertools.count())
    for members in nodes:
        for k, node in enumerate(members):
            circuit.resistor(f"R{next(names)}", node, "0", rng.uniform(0.5, 5))
            if k:
                circuit.resistor(f"R{next(names)}", node, members[rng.integers(k)], rng.uniform(0.5, 5))
            if rng.random() < 0.3:
                circuit.current_source(f"I{next(names)}", node, rng.choice([*members, "0"]), rng.normal())
    for _ in range(rng.integers(0, 5)):
        members = nodes[rng.integers(len(nodes))]
        ends = rng.choice([*members, "0"], 2, replace=False)
        circuit.diode(f"D{next(names)}", *ends)
    for s in range(1, gains.size):
        t = int(rng.integers(s))
        if rng.random() < 0.5:
            circuit.amplifier(f"X{next(names)}", rng.choice(nodes[t][1:]), nodes[s][0], gains[s] / gains[t])
        else:
            circuit.amplifier(f"X{next(names)}", nodes[s][0], rng.choice(nodes[t][1:]), gains[t] / gains[s])
    # A loop: the last section also meets the first through its last node.
    if rng.random() < 0.4:
        circuit.amplifier(f"X{next(names)}", nodes[0][-1], nodes[-1][-1], gains[-1] / gains[0])
    return circuit


@given(amplified())
def test_it_solves_the_equations_of_controlled_sources(circuit):
    point = solve(circuit)
    voltages, currents = dense(circuit)
    np.testing.assert_allclose(point.voltages, voltages, rtol=1e-9, atol=1e-9)
    certain = point.unique
    np.testing.assert_allclose(point.currents[certain], currents[certain], rtol=1e-8, atol=1e-8)
    kind, first, second, value, _ = circuit.arrays()
    amplifiers = kind == AMPLIFIER
    np.testing.assert_allclose(point.voltages[second[amplifiers]], (value * point.voltages[first])[amplifiers])
    # What all elements absorb adds up to nothing (Tellegen), amplifiers included.
    assert abs(point.powers.sum()) <= 1e-9 * np.abs(point.powers).sum()
    # Written as a deck and read back it is the same circuit.
    again = solve(circuitsim.loads(circuitsim.dumps(circuit)))
    np.testing.assert_allclose(again.voltages[1:], point.voltages[1:], rtol=1e-12, atol=1e-12)


def test_signs_and_powers():
    c = Circuit()
    c.current_source("I1", "0", "l", 1.0)
    c.amplifier("X1", "l", "r", 3.0)
    c.resistor("R1", "r", "0", 2.0)
    point = solve(c)
    # 1 A enters on the left, 3 A leave on the right: 6 V there, 2 V here.
    assert point["r"] == pytest.approx(6) and point["l"] == pytest.approx(2) and point.current("X1") == 1.0
    assert point.power("X1") == pytest.approx(2 * 1 - 6 * 3) and point.power("R1") == pytest.approx(18)


def test_an_amplifier_to_ground_pins_its_other_side_to_zero():
    c = loads("t\nV1 in 0 1\nR1 in l 1\n").circuit
    c.amplifier("X1", "l", "0", 5.0)
    point = solve(c)
    assert point["l"] == 0.0 and point.current("X1") == pytest.approx(1.0)


def test_currents_between_parallel_amplifiers_are_a_choice():
    c = Circuit()
    c.voltage_source("V1", "l", "0", 1.0)
    c.amplifier("X1", "l", "r", 2.0)
    c.amplifier("X2", "l", "r", 2.0)
    c.resistor("R1", "r", "0", 1.0)
    point = solve(c)
    assert point.current("X1") == pytest.approx(0.5) and not point.unique[c.element_index("X1")]


@pytest.mark.parametrize(
    "cards, message, names",
    [
        (
            "X1 a b bidiramp gain=2\nX2 b c bidiramp gain=3\nX3 c a bidiramp gain=1\nR1 a 0 1",
            "X3 closes the loop X3, X1, X2, whose gains multiply to 6 instead of one",
            ("X3", "X1", "X2"),
        ),
        (
            "X1 a b bidiramp gain=2\nX2 a b bidiramp gain=3\nR1 a 0 1",
            "X2 closes the loop X2, X1, whose gains multiply to 1.5 instead of one",
            ("X2", "X1"),
        ),
        (
            "X1 a b bidiramp gain=2\nR1 b c 1\nR2 c a 1\nR3 a 0 1",
            "R2 joins the nodes c and a, whose sections differ in gain by a factor of 0.5 (loop R2, X1, R1): an "
            "element between them has no energy function",
            ("R2", "X1", "R1"),
        ),
        (
            "D1 a b\nX1 a b bidiramp gain=2\nR3 a 0 1",
            "X1 closes the loop X1, D1, whose gains multiply to 2 instead of one",
            ("X1", "D1"),
        ),
        (
            "X1 a a bidiramp gain=2\nR1 a 0 1",
            "X1 closes the loop X1, whose gains multiply to 2 instead of one",
            ("X1",),
        ),
    ],
)
def test_contradicting_gains_are_refused_by_name_and_place(cards, message, names, tmp_path, capsys):
    deck = tmp_path / "wrong.cir"
    deck.write_text(f"t\n{cards}\n")
    with pytest.raises(NetlistError) as caught:
        circuitsim.load(deck)
    (problem,) = caught.value.problems
    assert problem.kind == "amplifier" and problem.message == message and problem.names == names
    assert problem.location.line == 2 + [card.split()[0] for card in cards.splitlines()].index(names[0])
    for command in ("solve", "check", "graph", "convert"):
        assert main([command, str(deck)]) == 2
        assert f"{deck}:{problem.location.line}:1: {message}" in "".join(capsys.readouterr())


def test_what_joins_sections_without_a_direct_current_or_through_ground_is_no_contradiction():
    text = "t\nX1 a b bidiramp gain=2\nC1 a b 1u\nR1 a 0 1\nR2 b 0 1\nV1 a 0 1\nX2 b c bidiramp gain=0.5\nR3 c a 1\n"
    assert solve(circuitsim.loads(text))["b"] == 2.0


def test_python_circuits_are_refused_too():
    c = Circuit()
    c.amplifier("X1", "a", "b", 2.0)
    c.resistor("R1", "a", "b", 1.0)
    with pytest.raises(AmplifierError, match="R1 joins the nodes a and b"):
        solve(c)
    for gain, words in ((0.0, "must be positive"), (-2.0, "must be positive"), (float("nan"), "must be finite")):
        with pytest.raises(TopologyError, match=words):
            c.amplifier("X2", "a", "c", gain)
    with pytest.raises(TopologyError, match=r"needs its gain$"):
        c.add("X", "X2", "a", "c")


@pytest.mark.parametrize(
    "card, message",
    [
        ("X1 a b bidiramp gain=0", "<deck>:2:17: X1: the gain must be positive (0)"),
        ("X1 a b bidiramp gain={1-3}", "<deck>:2:17: X1: the gain must be positive (-2)"),
        ("X1 a b c bidiramp", "X1 connects 3 nodes, bidiramp has 2 ports"),
        ("X1 a b bidiramp again=2", "X1: sub-circuit bidiramp has no parameter 'again'"),
        ("X1 a b bidiramp gain=2 m=3", "X1: an amplifier has no multiplier m"),
        ("X1 a b bidiramp gain={q}", "q"),
        (
            ".subckt bidiramp left right gain=1\nR1 left right 1\n.ends\nX1 a b bidiramp",
            "bidiramp is the bidirectional amplifier and cannot be defined otherwise",
        ),
        (".subckt bidiramp left right gain=1\nX1 a b bidiramp", ".subckt bidiramp has no .ends"),
    ],
)
def test_wrong_calls(card, message):
    with pytest.raises(NetlistError) as caught:
        circuitsim.loads(f"t\n{card}\nR9 a 0 1\n")
    assert message in str(caught.value)


def test_its_definition_may_stand_in_the_deck_and_is_the_one_that_ships():
    from circuitsim.netlist.definitions import AMPLIFIER_DEFINITION as DEFINITION
    from circuitsim.netlist.definitions import normal

    shipped = (circuitsim_root() / "netlists" / "parts" / "bidiramp.inc").read_text()
    cards = [normal(line) for line in shipped.splitlines() if not line.startswith("*")]
    assert cards == [normal(line) for line in DEFINITION.splitlines()]
    rest = DECK.split("\n", 1)[1]
    loud = DEFINITION.upper().replace(" ", "   ")
    for text in (f"{DECK}{DEFINITION}", f"t\n{DEFINITION}{rest}", f"t\n{loud}{rest}{DEFINITION}"):
        assert solve(circuitsim.loads(text))["out"] == solve(circuitsim.loads(DECK))["out"]


def circuitsim_root():
    from pathlib import Path

    return Path(__file__).parents[2]


def test_inside_sub_circuits():
    text = """t
.subckt unit in out a=2
XA in m bidiramp gain={a}
R1 m out 1k
.ends
V1 in 0 1
X1 in mid unit
X2 mid out unit a=3 m=2
R2 out 0 1k
"""
    circuit = circuitsim.loads(text)
    assert circuit["X2.XA"].value == 3.0 and circuit["X2.R1"].value == 500.0
    # Behind gain 6 and 1 kΩ + 500 Ω: 6 V · 1 / (1 + 1 + ½), by the coordinates in which it is a divider.
    assert solve(circuit)["out"] == pytest.approx(6 * 1 / 2.5)
    assert circuit.origin(circuit.element_index("X2.XA")) == ("<deck>", 3)


def test_sweeps_over_gains_parameters_and_sources(tmp_path, capsys):
    circuit = circuitsim.loads(DECK)
    gains = [1.0, 2.0, 8.0]
    found = sweep(circuit, {"X1": gains, "V1": [-1.0, 0.0, 1.0]}, "v(out) p(X1)")
    for row, (gain, volts) in enumerate(zip(*found.axes.values())):
        point = solve(circuit.with_values({"X1": gain, "V1": volts}))
        assert found["v(out)"][row] == pytest.approx(point["out"], rel=1e-12)
        assert found["p(X1)"][row] == pytest.approx(point.power("X1"), rel=1e-12)
    deck = circuitsim.netlist.loads(DECK)
    over = sweep(deck, {"a": gains}, "v(out)")
    np.testing.assert_allclose(over["v(out)"], found.grid("v(out)")[:, 2], rtol=1e-12)
    path = tmp_path / "deck.cir"
    path.write_text(DECK)
    assert main(["sweep", str(path), "--vary", "a=1,2,8", "--format", "csv"]) == 0
    assert capsys.readouterr().out.count("\n") == 4


def test_a_sweep_into_contradiction_is_an_error():
    circuit = circuitsim.loads("t\nX1 a b bidiramp gain=2\nX2 b a bidiramp gain=0.5\nR1 b 0 1\nV1 a 0 1\n")
    with pytest.raises(AmplifierError, match=r"X2 closes the loop X2, X1, whose gains multiply to 1\.5"):
        sweep(circuit, {"X1": [2.0, 3.0]})


def test_json_check_graph_and_convert(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "deck.cir"
    path.write_text(DECK)
    assert main(["solve", str(path), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    x1 = found["branches"]["X1"]
    expected = dense(circuitsim.loads(DECK))
    k = circuitsim.loads(DECK).element_index("X1")
    assert x1["current"] == pytest.approx(expected[1][k], rel=1e-12) and found["certificate"]["certified"]
    assert sum(b["power"] for b in found["branches"].values()) == pytest.approx(0, abs=1e-15)
    assert main(["check", str(path)]) == 0
    assert "2 bidirectional amplifiers" in capsys.readouterr().out
    assert main(["graph", str(path)]) == 0 and (tmp_path / "deck.png").stat().st_size > 1000
    capsys.readouterr()
    assert main(["convert", str(path)]) == 0
    text = capsys.readouterr().out
    assert "X1 l1 h1 bidiramp gain=4\n" in text and text.count(".subckt bidiramp") == 1


def test_no_steady_state_says_in_what_coordinates():
    text = "t\nV1 a 0 1\nX1 a b bidiramp gain=4\nV2 b 0 5\nR1 b 0 1\n"
    with pytest.raises(InfeasibleError, match=r"divided by the gain of their section") as caught:
        solve(circuitsim.loads(text))
    assert set(caught.value.elements) == {"V1", "X1", "V2"}


def test_intervals_are_in_volts():
    text = "t\nV1 a 0 1\nX1 a b bidiramp gain=4\nD1 b c\nD2 c d\nR1 b 0 1\nV2 d 0 12\n"
    point = solve(circuitsim.loads(text))
    assert point.intervals == {"c": (4.0, 12.0)}


@pytest.mark.ngspice
@pytest.mark.skipif(shutil.which("ngspice") is None, reason="ngspice is not installed")
@pytest.mark.parametrize("seed", range(5))
def test_against_ngspice(seed, tmp_path):
    """Linear random circuits, through `dumps`: ngspice solves the controlled sources that the definition says."""
    rng = np.random.default_rng(seed)
    c = Circuit("random")
    widths, gains = [3, 4, 2], rng.uniform(0.3, 5.0, 2)
    for k in range(3):
        c.voltage_source(f"V{k}", f"u0_{k}", "0", rng.normal())
    for layer in (1, 2):
        for k in range(widths[layer]):
            for j in range(widths[layer - 1]):
                c.resistor(f"R{layer}_{j}_{k}", f"u{layer - 1}_{j}", f"l{layer}_{k}", rng.uniform(100, 1000))
            c.amplifier(f"X{layer}_{k}", f"l{layer}_{k}", f"u{layer}_{k}", gains[layer - 1])
            c.current_source(f"I{layer}_{k}", "0", f"u{layer}_{k}", rng.normal() * 1e-3)
    deck = circuitsim.dumps(c).replace(".op\n.end\n", ".control\nset numdgt=15\nop\nprint all\nquit\n.endc\n.end\n")
    (tmp_path / "deck.cir").write_text(deck)
    done = subprocess.run(["ngspice", "-b", "deck.cir"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    theirs = dict(re.findall(r"^(\S+) = (\S+)$", done.stdout, re.MULTILINE))
    point = solve(c)
    for name in c.node_names[1:]:
        assert float(theirs[name]) == pytest.approx(point[name], rel=1e-9, abs=1e-12)


def test_gains_beyond_a_double_are_refused():
    chain = "t\nV1 a 0 1\nX1 a b bidiramp gain=1e200\nX2 b c bidiramp gain=1e200\nR1 c 0 1\n"
    with pytest.raises(NetlistError, match="X2: the gains of the amplifiers multiply to more or less than a double"):
        circuitsim.loads(chain)
    far = "t\nV1 a 0 1\nX1 a b bidiramp gain=1e-300\nV2 c 0 1e300\nR1 c b 1\n"
    with pytest.raises(AmplifierError, match="V2: the gains of the amplifiers multiply"):
        solve(circuitsim.loads(far))
