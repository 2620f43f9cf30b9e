"""Piecewise-linear functions in E, G and B sources: by hand, in ngspice, and in loops by enumeration of all states."""

from collections import Counter

import numpy as np
import pytest
from judge import Answer, judged
from spice import needed

import circuitsim
from circuitsim.analysis.operating_point import Uniqueness
from circuitsim.netlist import loads

NUMBERS = (-2.0, -0.5, 0.25, 1.0, 3.0)
MEANING = {
    "limit": lambda x, a, b: min(max(x, min(a, b)), max(a, b)),
    "table": lambda x, *points: float(np.interp(x, points[::2], points[1::2])),
    "uramp": lambda x: max(x, 0.0),
}
"""Of functions that Python has not."""


def meant(text: str, point: circuitsim.OperatingPoint) -> float:
    """The value of an expression of v(a), v(a,b) and i(V1), by Python."""
    names = {**MEANING, "v": point.voltage, "i": point.current, "a": "a", "b": "b", "V1": "V1"}
    return eval(text.replace("1k", "1e3").replace("{", "(").replace("}", ")"), names)


def drawn(random: np.random.Generator, depth: int) -> str:
    """A random piecewise-linear expression."""
    if depth == 0:
        return str(random.choice(["v(a)", "v(a,b)", "1k*i(V1)"]))
    one, other = (drawn(random, depth - 1) for _ in range(2))
    low, high = random.choice(NUMBERS, 2, replace=False)
    places, heights = np.sort(random.choice(NUMBERS, 3, replace=False)), random.choice(NUMBERS, 3)
    points = ",".join(f"{p},{h}" for p, h in zip(places, heights))
    return str(
        random.choice(
            [
                f"max({one},{other},{low})",
                f"min({one},{other})",
                f"abs({one})",
                f"limit({one},{low},{high})",
                f"table({one},{points})",
                f"uramp({one}-{high})",
                f"({one}-{low}*({other}))",
                f"({low}*({one})+{high})",
            ]
        )
    )


@pytest.mark.parametrize("seed", range(20))
def test_random_expressions_have_their_values(seed: int) -> None:
    random = np.random.default_rng(seed)
    text = drawn(random, int(random.integers(1, 4)))
    circuit = circuitsim.loads(
        "t\nV1 in 0 1\nR1 in a 1k\nR2 a b 2k\nI1 0 b 1m\nR3 b 0 1k\n"
        f"B1 x 0 V={{{text}}}\nG1 0 y value={{1m*({text})}}\nRX x 0 1k\nRY y 0 1k\n"
    )
    for volts in random.normal(scale=4.0, size=3):
        point = circuitsim.solve(circuit.with_values({"V1": volts, "I1": 1e-3 * volts**2}))
        wanted = meant(text, point)
        scale = 1e-12 * (1.0 + abs(wanted) + abs(volts) ** 2) * 30.0
        assert point["x"] == pytest.approx(wanted, abs=scale) and point["y"] == pytest.approx(wanted, abs=scale)
        assert point.certificate.certified and point.uniqueness is Uniqueness.UNIQUE


def looped(seed: int) -> circuitsim.Circuit:
    """A resistive circuit in which piecewise-linear sources read nodes that they act on."""
    random = np.random.default_rng([seed, 7])

    def ohms() -> float:
        return float(random.choice([1e3, 2e3, 5e3]))

    gain = float(random.choice([-20.0, -2.0, -0.5, 0.5, 2.0, 20.0]))
    law = random.choice(
        [
            f"limit({gain}*v(b,a),-3,2)",
            f"table(v(b),-1,{-gain},0.5,{gain})",
            f"abs({gain}*v(b)-v(a))",
            f"max({gain}*v(b),1)+min(v(a),0)",
        ]
    )
    current = random.choice(["1m*max(v(c,b),0.5)", "0.2m*abs(v(b)-1)", "-0.5m*uramp(v(a))"])
    return circuitsim.loads(
        f"loop {seed}\nV1 in 0 {random.choice([-2, 1, 3])}\nR1 in a {ohms()}\nR2 a b {ohms()}\nR3 b 0 {ohms()}\n"
        f"B1 c 0 V={{{law}}}\nR4 c b {ohms()}\nG1 b a value={{{current}}}\nD1 a d\nR5 d 0 {ohms()}\n"
    )


def test_loops_against_enumeration_in_exact_arithmetic() -> None:
    found = Counter(judged(looped(seed)) for seed in range(60))
    assert found[Answer.UNIQUE] >= 20 and found[Answer.SEVERAL] >= 1
    assert not found[Answer.MISSED]


def test_limits_and_tables_where_they_saturate() -> None:
    cards = "t\nV1 in 0 {}\nR0 in a 1k\nE1 x 0 TABLE {{v(a)}} = (-1u,-12.3) (1u,12.3)\n"
    cards += "B1 y 0 V=limit(1e7*v(a),-0.7,0.1)"
    for volts, table, limit in ((5.0, 12.3, 0.1), (-5.0, -12.3, -0.7)):
        point = circuitsim.solve(circuitsim.loads(cards.format(volts)))
        assert point["x"] == table and point["y"] == pytest.approx(limit, rel=1e-15, abs=1e-15)


TRIGGER = "t\nV1 in 0 0\nE1 out 0 TABLE {v(p,in)} = (-0.1m,-10) (0.1m,10)\nR1 out p 1k\nR2 p 0 1k\n"


def test_verdicts_sweeps_and_batches() -> None:
    trigger = circuitsim.loads(TRIGGER)
    assert circuitsim.solve(trigger.with_values({"V1": 6.0})).uniqueness is Uniqueness.UNIQUE
    several = circuitsim.solve(trigger.with_values({"V1": 1.0}))
    assert several.uniqueness is Uniqueness.SEVERAL and several.other is not None
    swept = circuitsim.sweep(trigger, {"V1": [-6, 0, 4, 6, 4, 0, -6]}, "v(out)")
    assert swept["v(out)"].tolist() == [10.0, 10.0, 10.0, -10.0, -10.0, -10.0, 10.0]
    assert any("jumps there" in warning.message for warning in swept.warnings)
    found = circuitsim.batched(trigger, ["V1"], [("out", "0")]).solve(np.array([[-6.0], [6.0]]))
    assert found["out"].tolist() == [10.0, -10.0]


def test_parameters_and_names_that_are_taken() -> None:
    text = "t\n.param top=2\nV1 a 0 3\nR1 a E1.u1 1k\nR2 E1.u1 0 1k\nE1 x 0 value={min(v(E1.u1),top)}\nRX x 0 1k\n"
    deck = loads(text)
    assert circuitsim.solve(deck.circuit)["x"] == 1.5
    assert len(set(deck.circuit.node_names)) == len(deck.circuit.node_names)
    swept = circuitsim.sweep(deck, {"top": [0.5, 1.0, 4.0]}, "v(x)")
    assert swept["v(x)"].tolist() == [0.5, 1.0, 1.5]


CHOICES = """
if(v(a)>0, v(a), 0) | max(x, 0)
v(a)<0 ? 0 : v(a) | max(x, 0)
if(v(a)>1, 1, if(v(a)<-1, -1, v(a))) | max(-1, min(1, x))
v(a)>=0.7 ? (v(a)-0.7)/10 : 0 | max(x - 0.7, 0) / 10
v(a)*(v(a)>0) | max(x, 0)
3*u(v(a)-1)*(v(a)-1) + stp(v(a))*v(a) | 3 * max(x - 1, 0) + max(x, 0)
sgn(v(a))*max(abs(v(a))-1,0) | x/abs(x or 1)*max(abs(x)-1, 0)
v(a)>0 && v(a)<1 ? min(v(a),1-v(a)) : 0 | max(min(x, 1 - x), 0)
v(a)>0 || v(a)<-1 ? max(v(a),-v(a)-1) : 0 | max(x, -x - 1, 0)
!(v(a)>0) ? -v(a) : v(a) | abs(x)
abs(v(a))>1 ? abs(v(a))-1 : 0 | max(abs(x) - 1, 0)
(v(a)>1)==0 ? v(a) : 1 | min(x, 1)
ternary_fcn(v(a)>v(b), 3*v(a,b), 0) | max(1.5 * x, 0)
if(v(a,b)>1, v(a)-1, v(b)) | x - 1 if x > 2 else x / 2
"""


@pytest.mark.parametrize("row", CHOICES.strip().split("\n"))
def test_continuous_choices_have_their_values(row: str) -> None:
    """Of v(a) = x, beside the same in words of Python; v(b) is half of it."""
    text, meaning = row.split(" | ")
    circuit = circuitsim.loads(
        f"t\nV1 in 0 1\nR0 in a 1\nR1 a b 1k\nR2 b 0 1k\nB1 x 0 V={{{text}}}\nRX x 0 1k\n"
        f"G1 0 y value={{1m*({text})}}\nRY y 0 1k\n"
    )
    for volts in (-2.5, -1.0, -0.2, 0.0, 0.1, 0.7, 1.0, 1.3, 2.0, 3.1):
        point = circuitsim.solve(circuit.with_values({"V1": volts}))
        wanted = eval(meaning, {"x": point["a"]})
        assert point["x"] == pytest.approx(wanted, rel=1e-12, abs=1e-13)
        assert point["y"] == pytest.approx(wanted, rel=1e-12, abs=1e-13)


def test_a_choice_in_a_loop_is_the_one_written_with_max() -> None:
    cards = "t\nV1 in 0 2\nR1 in a 1k\nR2 a 0 1k\nG1 a 0 value={{1m*{}}}\n.func over(x,y) {{x > y ? x - y : 0}}\n"
    chosen, largest = (
        circuitsim.solve(circuitsim.loads(cards.format(text))) for text in ("over(v(a),0.25)", "max(v(a)-0.25,0)")
    )
    assert chosen["a"] == largest["a"] == pytest.approx(0.75, rel=1e-15)
    assert chosen.uniqueness is Uniqueness.UNIQUE


def test_over_time() -> None:
    """A full-wave rectifier written as abs(): its mean over a period is 2 / π of the peak."""
    deck = loads("t\nV1 in 0 SIN(0 1 1k)\nR1 in a 1k\nB1 b 0 V={abs(v(a))}\nRB b 0 1k\n.tran 1u 1m\n")
    found = circuitsim.transient(deck)
    assert np.mean(found.voltage("b")) == pytest.approx(2.0 / np.pi, rel=2e-3)
    assert found.voltage("b").min() >= -1e-12


IN_NGSPICE = (
    "t\nV1 in 0 {volts}\nR1 in a 1k\nR2 a b 2k\nR3 b 0 1k\nB1 x 0 V=max(v(a),min(2*v(b),0.5))\n"
    "B2 y 0 V=abs(v(a,b)-1)+uramp(1k*i(V1))\nB3 0 z I=1m*max(-1,min(2,50*(v(a)-v(z))))\n"
    "B4 w 0 V=v(a)>0.25 ? 2*v(a)-0.5 : 0\nB5 q 0 V=u(v(b))*v(b)\nRW w 0 1k\nRQ q 0 1k\n"
    "RX x 0 1k\nRY y 0 1k\nRZ z 0 1k\n"
)


@needed
@pytest.mark.parametrize("volts", [-3.0, 0.4, 5.0])
def test_ngspice_agrees_on_the_deck_and_on_its_conversion(volts: float) -> None:
    from test_against_ngspice import CONTROL, OPTIONS, in_ngspice, run

    text = IN_NGSPICE.format(volts=volts)
    circuit = circuitsim.loads(text)
    ours, own, converted = circuitsim.solve(circuit), run(f"{text}{OPTIONS}\n{CONTROL}", {})[0], in_ngspice(circuit)
    for node in ("a", "b", "x", "y", "z", "w", "q"):
        assert own[node] == pytest.approx(ours[node], abs=1e-6), node
        assert converted[node] == pytest.approx(ours[node], abs=1e-4), node
