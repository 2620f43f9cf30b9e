"""Bidirectional amplifiers: against the equations of controlled sources in exact arithmetic, and where a deck goes."""

import re
from pathlib import Path

import numpy as np
import pytest
from exact_controlled import all_points
from helpers import loaded, solved
from ngspice_runs import PROGRAM, run

import circuitsim
from circuitsim import Circuit, loads, solve, sweep
from circuitsim.errors import AmplifierError, InfeasibleError, TopologyError
from circuitsim.netlist.definitions import AMPLIFIER_DEFINITION, normal

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
"""


def drawn(seed: int) -> str:
    """Sections of two to four nodes in a chain or a tree, amplifiers between them, sometimes closing loops."""
    rng = np.random.default_rng([seed, 5])
    gains = np.exp(rng.uniform(-2, 2, rng.integers(2, 5)))
    nodes = [[f"n{s}_{k}" for k in range(rng.integers(2, 5))] for s in range(gains.size)]
    cards = [f"V source 0 {rng.normal() * 5}", "R source n0_0 1"]
    for members in nodes:
        for k, node in enumerate(members):
            cards.append(f"R {node} 0 {rng.uniform(0.5, 5)}")
            if k:
                cards.append(f"R {node} {members[rng.integers(k)]} {rng.uniform(0.5, 5)}")
            if rng.random() < 0.3:
                cards.append(f"I {node} {rng.choice([*members, '0'])} {rng.normal()}")
    places = [[*nodes[k], "0"] for k in rng.integers(len(nodes), size=rng.integers(0, 5))]
    cards += [f"D {' '.join(rng.choice(members, 2, replace=False))}" for members in places]
    pairs = [(int(rng.integers(s)), s) for s in range(1, gains.size)]
    ends = [(rng.choice(nodes[t][1:]), nodes[s][0], gains[s] / gains[t]) for t, s in pairs]
    ends = [(l, r, a) if rng.random() < 0.5 else (r, l, 1.0 / a) for l, r, a in ends]
    if rng.random() < 0.4:  # a loop: the last section also meets the first through its last node
        ends.append((nodes[0][-1], nodes[-1][-1], gains[-1] / gains[0]))
    cards += [f"X {left} {right} bidiramp gain={float(gain)!r}" for left, right, gain in ends]
    return "\n".join(card.replace(" ", f"{k} ", 1) for k, card in enumerate(cards))


def as_sources(cards: str) -> str:
    """Each amplifier as the two controlled sources of its definition."""
    return re.sub(
        r"^X(\d+) (\S+) (\S+) bidiramp gain=(\S+)$",
        lambda m: f"E{m[1]} {m[3]} 0 {m[2]} 0 {m[4]}\nF{m[1]} {m[2]} 0 E{m[1]} {-1.0 / float(m[4])!r}",
        cards,
        flags=re.MULTILINE,
    )


def test_it_solves_the_equations_of_controlled_sources() -> None:
    compared = 0
    for seed in range(60):
        circuit = loaded(drawn(seed))
        # Gains around a loop multiply to one but for rounding, which sources that hold one voltage twice do not bear.
        if sum(name[0] == "X" for name in circuit.names) >= len({n.split("_")[0] for n in circuit.node_names}) - 2:
            continue
        other, point = loaded(as_sources(drawn(seed))), solve(circuit)
        exact = all_points(other)
        assert exact is not None
        if exact.open:
            continue  # currents around loops of diodes
        assert len(exact.points) == 1, seed
        for name, volts in zip(other.node_names, exact.points[0][0]):
            assert point[name] == pytest.approx(float(volts), rel=1e-9, abs=1e-9), seed
        for name, amperes in zip(other.names, exact.points[0][1]):
            if name[0] != "E":
                k = circuit.element_index(name.replace("F", "X"))
                assert not point.unique[k] or point.currents[k] == pytest.approx(float(amperes), rel=1e-8, abs=1e-8)
        compared += 1
    assert compared >= 30


def test_laws_of_random_circuits() -> None:
    """Ratios of voltages, Tellegen's theorem with amplifiers included; written and read back it is the same circuit."""
    for seed in range(50):
        point = solved(drawn(seed))
        for element in point.circuit:
            if element.name[0] == "X":
                assert point[element.second] == pytest.approx(element.value * point[element.first], rel=1e-9, abs=1e-12)
        assert abs(point.powers.sum()) <= 1e-9 * np.abs(point.powers).sum()
        again = solve(loads(circuitsim.dumps(point.circuit)))
        np.testing.assert_allclose(again.voltages[1:], point.voltages[1:], rtol=1e-12, atol=1e-12)


@pytest.mark.ngspice
@pytest.mark.skipif(PROGRAM is None, reason="ngspice is not installed")
def test_ngspice_solves_what_the_definition_says() -> None:
    """Linear random circuits, as written."""
    for seed in range(5):
        circuit = loaded("\n".join(card for card in drawn(seed).splitlines() if card[0] != "D"))
        control = ".control\nset numdgt=15\nop\nprint all\nquit\n.endc\n.end\n"
        theirs, _ = run(circuitsim.dumps(circuit).replace(".op\n.end\n", control), {})
        point = solve(circuit)
        for name in circuit.node_names[1:]:
            assert theirs[name] == pytest.approx(point[name], rel=1e-9, abs=1e-12)


def test_signs_powers_ground_and_choices() -> None:
    point = solved("I1 0 l 1\nX1 l r bidiramp gain=3\nR1 r 0 2")
    # 1 A enters on the left, 3 A leave on the right: 6 V there, 2 V here.
    assert point["r"] == pytest.approx(6) and point["l"] == pytest.approx(2) and point.current("X1") == 1.0
    assert point.power("X1") == pytest.approx(2 * 1 - 6 * 3) and point.power("R1") == pytest.approx(18)
    pinned = solved("V1 in 0 -1\nR1 in l 1\nX1 l 0 bidiramp gain=5")
    assert pinned["l"] == 0.0 and pinned.current("X1") == pytest.approx(-1.0)
    parallel = solved("V1 l 0 1\nX1 l r bidiramp gain=2\nX2 l r bidiramp gain=2\nR1 r 0 1")
    assert parallel.current("X1") == pytest.approx(0.5) and not parallel.unique[1:3].any()
    # No contradiction: what joins sections without a direct current, or through ground.
    text = "X1 a b bidiramp gain=2\nC1 a b 1u\nR1 a 0 1\nR2 b 0 1\nV1 a 0 1\nX2 b c bidiramp gain=0.5\nR3 c a 1"
    assert solved(text)["b"] == 2.0
    intervals = solved("V1 a 0 1\nX1 a b bidiramp gain=4\nD1 b c\nD2 c d\nR1 b 0 1\nV2 d 0 12").intervals
    assert intervals == {"c": (4.0, 12.0)}


def test_python_circuits_are_refused_too() -> None:
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
    with pytest.raises(AmplifierError, match=r"V2: the product of the amplifiers.* gains"):
        solved("V1 a 0 1\nX1 a b bidiramp gain=1e-300\nV2 c 0 1e300\nR1 c b 1")
    with pytest.raises(InfeasibleError, match=r"divided by the gain of their section") as caught:
        solved("V1 a 0 1\nX1 a b bidiramp gain=4\nV2 b 0 5\nR1 b 0 1")
    assert set(caught.value.elements) == {"V1", "X1", "V2"}
    with pytest.raises(AmplifierError, match=r"X2 closes the loop X2, X1, whose gains multiply to 1\.5"):
        sweep(loaded("X1 a b bidiramp gain=2\nX2 b a bidiramp gain=0.5\nR1 b 0 1\nV1 a 0 1"), {"X1": [2.0, 3.0]})


def test_its_definition_may_stand_in_the_deck_and_is_the_one_that_ships() -> None:
    shipped = (Path(__file__).parents[2] / "netlists" / "parts" / "bidiramp.inc").read_text()
    cards = [normal(line) for line in shipped.splitlines() if not line.startswith("*")]
    assert cards == [normal(line) for line in AMPLIFIER_DEFINITION.splitlines()]
    rest, loud = DECK.split("\n", 1)[1], AMPLIFIER_DEFINITION.upper().replace(" ", "   ")
    for text in (f"{DECK}{AMPLIFIER_DEFINITION}", f"t\n{AMPLIFIER_DEFINITION}{rest}", f"t\n{loud}{rest}{loud}"):
        assert solve(loads(text))["out"] == solve(loads(DECK))["out"]
    assert "X1 l1 h1 bidiramp gain=4\n" in circuitsim.dumps(loads(DECK))


def test_inside_sub_circuits() -> None:
    circuit = loads(
        "t\n.subckt unit in out a=2\nXA in m bidiramp gain={a}\nR1 m out 1k\n.ends\nV1 in 0 1\nX1 in mid unit\n"
        "X2 mid out unit a=3 m=2\nR2 out 0 1k\n"
    ).circuit
    assert circuit["X2.XA"].value == 3.0 and circuit["X2.R1"].value == 500.0
    # Behind gain 6 and 1 kΩ + 500 Ω: 6 V · 1 / (1 + 1 + ½), by the coordinates in which it is a divider.
    assert solve(circuit)["out"] == pytest.approx(6 * 1 / 2.5)
    assert circuit.origin(circuit.element_index("X2.XA"))[:2] == ("<deck>", 3)


def test_sweeps_over_gains_parameters_and_sources() -> None:
    circuit, gains = loads(DECK).circuit, [1.0, 2.0, 8.0]
    found = sweep(circuit, {"X1": gains, "V1": [-1.0, 0.0, 1.0]}, "v(out) p(X1)")
    for row, (gain, volts) in enumerate(zip(*found.axes.values())):
        point = solve(circuit.with_values({"X1": gain, "V1": volts}))
        assert found["v(out)"][row] == pytest.approx(point["out"], rel=1e-12)
        assert found["p(X1)"][row] == pytest.approx(point.power("X1"), rel=1e-12)
    over = sweep(loads(DECK), {"a": gains}, "v(out)")
    np.testing.assert_allclose(over["v(out)"], found.grid("v(out)")[:, 2], rtol=1e-12)
