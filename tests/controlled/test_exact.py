"""Random circuits with controlled sources against enumeration of all states in exact arithmetic."""

from pathlib import Path

import pytest
from corpus import controlled, piecewise_model
from exact_controlled import Count, all_points
from helpers import loaded, solved
from judge import Answer, agrees, judged

import circuitsim
from circuitsim import loads
from circuitsim.analysis.operating_point import Uniqueness
from circuitsim.bench.families import GAIN, chain
from circuitsim.errors import NoSteadyStateError

FOUND = {
    text.split("\n")[0]: loads(text).circuit
    for text in (Path(__file__).parent / "found.cir").read_text(encoding="utf-8").split("\n.end\n")[:-1]
}
"""Random circuits on which the verdict that begins the title needs care."""


@pytest.mark.parametrize(
    ("deck", "count", "answer"),
    [
        ("R1 x y 1\nI1 x y 1\nE1 out 0 x 0 2\nR2 out 0 1\n", Count.CONTINUUM, Answer.UNKNOWN),
        (
            "I1 0 n1 1\nR1 n1 0 1\nR4 n4 n2 1\nR8 n1 n6 10\nR9 n6 n2 1\nR10 n1 n3 1\n"
            "V1 n6 n4 0\nEo1 n2 0 OPAMP n4 n6\n",
            Count.CONTINUUM,
            Answer.SINGULAR,
        ),
        (
            "R3 n3 n1 1\nR4 n4 0 .4m\nR7 n5 n7 300k\nR10 n5 n6 1\nR11 n7 0 1\nR12 n2 n7 1\nR14 n3 0 1\nR15 n5 0 1\n"
            "V1 n6 0 -.06\nD1 n4 n5\nD2 n3 n2\nE1 0 n2 n7 n1 40\n",
            Count.SEVERAL,
            Answer.SEVERAL,
        ),
        (
            "R2 n1 0 1\nV1 n1 0 1\nD1 n3 n2\nD2 n2 n1\nD3 n1 n3\n"
            "F1 n3 n2 V1 -1e5\nE1 n1 n2 n2 0 1\nG2 0 n2 n1 n2 -9e5\n",
            Count.NONE,
            Answer.NONE,
        ),
        (
            "R1 n1 n2 .359\nR2 n6 n2 .08\nR5 n1 n6 .007\nRX0 n4 n5 2\nV0 n1 n6 1\nI0 n2 n4 1m\nD0 n4 n5\nD1 n5 n3\n"
            "EU0 0 n2 OPAMP n2 0\n",
            Count.NONE,
            Answer.NONE,
        ),
        ("V1 a 0 1\nR1 a b 1k\nG1 b 0 a b 1m\n", Count.UNIQUE, Answer.SINGULAR),
        ("V1 a 0 .3\nV2 a b .1\nR1 b c 1\nD1 c d\nE1 d 0 a b 2\nG1 c 0 b 0 1\n", Count.UNIQUE, Answer.UNIQUE),
    ],
    ids=[
        "floating part",
        "op-amp with shorted inputs",
        "nine decades",
        "loop of diodes",
        "current into a floating part",
        "decimals",
        "loop in decimals",
    ],
)
def test_verdicts_of_circuits_that_were_judged_wrongly(deck: str, count: Count, answer: Answer) -> None:
    circuit = loaded(deck)
    exact = all_points(circuit)
    assert exact is not None and exact.count is count and judged(circuit) is answer


@pytest.mark.parametrize("title", FOUND)
def test_what_rounding_decides_is_no_proof(title: str) -> None:
    point = circuitsim.solve(FOUND[title])
    assert point.certificate.certified
    if title.startswith("several"):
        assert judged(FOUND[title]) is Answer.SEVERAL
    elif title.startswith("unknown"):
        assert point.uniqueness is Uniqueness.UNKNOWN and point.other is None and abs(point.voltages).max() == 5.0
    elif title.startswith("not unique"):
        assert point.uniqueness is not Uniqueness.UNIQUE
    elif title.startswith("far"):
        assert abs(point.voltages).max() == pytest.approx(379.786697)
    else:
        assert abs(point.voltages).max() == 2.0


@pytest.mark.parametrize("seed", [501, 831])
def test_tables_with_level_pieces(seed: int) -> None:
    """Of two op-amps with positive feedback through open devices, 1e97 and 1e107 V beside sources of 5 V were shown."""
    assert judged(loads(controlled(seed, piecewise_model)).circuit) is not Answer.MISSED


@pytest.mark.parametrize("seed", [9_000_223, 9_730_085, 12_000_079])
def test_a_start_of_newton_knows_the_states_of_ideal_diodes(seed: int) -> None:
    """Beside the tangents of tables no state of all ideal diodes but that of the start leads to the only point."""
    assert circuitsim.solve(loads(controlled(seed))).certificate.certified


DECKS = {
    "a gain of 1e5 beside an open device": "V1 n1 0 5\nR2 n2 n1 1k\nR3 n3 R3x 100k\nR4 n4 n3 1k\nR5 n5 0 100k\n"
    "D0 n4 n3 m0\nD1 n1 n4 m1\nD2 n2 n5 m2\nD4 n5 n4 m3\nE0 n2 0 n4 n3 -1e5\nVR3 R3x 0 0\nH1 n3 0 VR3 -50\n"
    ".model m0 D(vfwd=1.774 ron=25.28 vrev=47.04 rrev=0.012)\n.model m1 D(vfwd=0.772 ron=0.0191)\n"
    ".model m2 PWL(1.01883 0 1.18295 0 3.95946 0.3359m)\n.model m3 D(vfwd=0.72 ron=0.00127)\n",
    "level up to a breakpoint, rising behind it": "V1 n1 0 1\nR2 n2 n1 4.7k\nR3 n3 0 100k\nR4 n4 R4x 1k\nR5 n5 n2 100\n"
    "R7 n7 n1 1k\nR10 n10 n7 10k\nR11 n11 R11x 1k\nRX0 n7 n3 4.7k\nD0 n10 n5 m0\nD1 n5 n4 m1\nVR4 R4x 0 0\n"
    "F0 n10 n11 VR4 -1e5\nE1 n7 0 n5 n11 -10\nVR11 R11x 0 0\nH2 n10 0 VR11 -200\n"
    ".model m0 PWL(-8.618 0 -3.14 0.05553 -2.9 0.05553 1.943 0.05556)\n"
    ".model m1 PWL(-0.651 0 -0.373 0 6.378 87.7u 10.78 87.7u)\n",
    "an op-amp that holds a device at its breakpoint": "V1 n1 0 -5\nR2 n2 0 4.7k\nR3 n3 0 10k\nR4 n4 n2 10k\n"
    "D1 n4 0 m1\nD2 n3 n2 m2\nI1 n3 n1 -1m\nE0 n3 0 OPAMP n2 0\n.model m1 D(vfwd=0.8435 ron=6.776)\n"
    ".model m2 PWL(-6.04 -0.0844 -4.64 -1.11u -4.40692 0)\n",
    "no current anywhere": "V1 n1 0 5\nR2 n2 n1 100k\nR3 n3 0 10k\nR4 n4 n1 10k\nD0 n4 n2 m0\nD1 n2 n3 m1\n"
    "E0 n3 0 n3 0 -0.5\n.model m0 PWL(-6.25 0 -4.85 0)\n.model m1 PWL(-6.6 0 -6.3 0 -5.4 0 -5 0)\n",
}


@pytest.mark.parametrize("name", DECKS)
def test_currents_of_level_pieces_are_exact(name: str) -> None:
    """Currents of 1e-25 A, and of 1e-90 A, are noise beside amperes and beside volts over kiloohms."""
    circuit = loaded(DECKS[name])
    exact, point = all_points(circuit), circuitsim.solve(circuit)
    assert exact is not None and exact.count is Count.UNIQUE and point.certificate.certified
    assert agrees(point, *exact.points[0])


def test_a_chain_by_hand_with_all_diodes_changing_state() -> None:
    count = 60
    ready = circuitsim.prepared(chain(count))
    for volts in (1.0, -2.0, 0.25, 0.0):
        point, v = ready.solve({"V0": volts}), volts
        assert point.uniqueness is circuitsim.Uniqueness.UNIQUE and point.certificate.certified
        for k in range(1, count + 1):
            share = 1.0 + 0.1 * (k % 3 - 1)  # R2 / R1
            v *= -share / (1.0 + (1.0 + share) / GAIN)
            assert point[f"o{k}"] == pytest.approx(v, rel=1e-9)
            assert point[f"d{k}"] == pytest.approx(max(v, 0.0), rel=1e-9)


def test_a_thousand_buffered_sections_need_no_solve_each() -> None:
    section = "RA{1} o{0} m{1} 1k\nRB{1} m{1} 0 1k\nD{1} m{1} d{1}\nRC{1} d{1} 0 500\nE{1} o{1} 0 m{1} 0 -3"
    point, v = solved("\n".join(["V0 o0 0 1", *(section.format(k, k + 1) for k in range(1000))])), 1.0
    assert point.uniqueness is Uniqueness.UNIQUE
    for k in range(1, 1001):
        v *= -3.0 * (0.25 if v > 0.0 else 0.5)
        assert point[f"o{k}"] == pytest.approx(v, rel=1e-9)


BUFFERED = """three sections, one of them with a loop of diodes and a floating node
V1 in 0 2
R1 in a 1k
R2 a 0 1k
D1 a b
D2 b c
R3 b 0 2k
C1 c 0 1u
E1 p 0 a 0 3
R4 p q 1k
D3 q 0
D4 q 0
G1 q 0 b 0 1m
E2 r p q b -2
R5 r s 1k
R6 s 0 1k
H1 t 0 R5 100
R7 t r 1k
"""


def test_sections_are_solved_one_after_the_other() -> None:
    point = circuitsim.solve(loads(BUFFERED))
    assert point.certificate.certified
    a = 2.0 * (2e3 * 1e3 / 3e3) / (1e3 + 2e3 * 1e3 / 3e3)
    assert point["a"] == point["b"] == pytest.approx(a)
    assert point["p"] == pytest.approx(3.0 * a) and point["q"] == 0.0
    assert point["r"] == pytest.approx(3.0 * a + 2.0 * a)
    assert point["t"] == pytest.approx(100.0 * point["r"] / 2e3)
    assert not point.unique[point.circuit.element_index("D3")]
    assert point.uniqueness is Uniqueness.UNKNOWN


def test_a_section_without_steady_state_names_its_own_elements() -> None:
    with pytest.raises(NoSteadyStateError) as caught:
        solved("V1 a 0 1\nE1 b 0 a 0 1\nI1 0 c 1m\nD1 b c")
    assert {"I1"} <= set(caught.value.elements) and "c" in caught.value.nodes
