"""Proven extremes of circuits with controlled sources, against nodal equations in numpy at corners and inside."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import circuitsim
from circuitsim.errors import UsageError

NODES, RESISTORS = 4, 6


def equations(ohms: np.ndarray, ends: np.ndarray, currents: np.ndarray, steered: list[tuple[int, ...]], gm: np.ndarray):
    """Nodal matrix and currents: resistors (r,), Ω, between ``ends`` (r, 2), sources into nodes (n,), A; each steered
    current flows from a to b and is gm times v(p) − v(m)."""
    matrix = np.zeros((NODES + 1, NODES + 1))
    for (a, b), r in zip(ends, ohms):
        matrix[[a, b, a, b], [a, b, b, a]] += np.array([1, 1, -1, -1]) / r
    for (a, b, p, m), g in zip(steered, gm):
        matrix[[a, a, b, b], [p, m, p, m]] += np.array([g, -g, -g, g])
    return matrix[1:, 1:], currents[1:]


def draw(seed: int) -> tuple[str, np.ndarray, tuple]:
    """A deck of resistors, current sources and two transconductances, and what makes its equations."""
    rng = np.random.default_rng(seed)
    chain = np.stack([np.arange(NODES), np.arange(1, NODES + 1)], axis=1)
    other = np.array([rng.choice(NODES + 1, 2, replace=False) for _ in range(RESISTORS - NODES)])
    ends = np.concatenate([chain, other])
    ohms = np.round(10.0 ** rng.uniform(2.0, 4.0, RESISTORS), 1)
    currents = np.concatenate([[0.0], np.round(rng.normal(size=NODES), 2) * 1e-3])
    steered = [tuple(rng.permutation(NODES + 1)[:4].tolist()) for _ in range(2)]
    gm = np.round(rng.normal(size=2), 2) * 4e-3
    cards = [f"R{k} {a} {b} {r}" for k, ((a, b), r) in enumerate(zip(ends, ohms))]
    cards += [f"I{k} 0 {k} {currents[k]}" for k in range(1, NODES + 1)]
    cards += [f"G{k} {a} {b} {p} {m} {g}" for k, ((a, b, p, m), g) in enumerate(zip(steered, gm))]
    return "\n".join(["t", *cards, ""]), ohms, (ends, currents, steered, gm)


def brute(ohms: np.ndarray, amount: float, circuit: tuple, rng: np.random.Generator) -> tuple[np.ndarray, bool]:
    """Node potentials (points, n), V, at corners and inside; whether the determinant keeps its sign."""
    corners = np.array(list(itertools.product((-1.0, 1.0), repeat=ohms.size)))
    points = ohms * (1.0 + amount * np.concatenate([corners, rng.uniform(-1.0, 1.0, (300, ohms.size))]))
    ends, currents, steered, gm = circuit
    made = [equations(at, ends, currents, steered, gm) for at in points]
    signs = np.array([np.linalg.slogdet(matrix)[0] for matrix, _ in made])
    return np.array([np.linalg.solve(*one) for one in made]), bool((signs == signs[0]).all())


def test_random_circuits_stay_inside_the_proven_interval() -> None:
    exact = poles = 0
    for seed in range(40):
        text, ohms, circuit = draw(seed)
        values, regular = brute(ohms, 0.1, circuit, np.random.default_rng(seed))
        low, high = values.min(axis=0), values.max(axis=0)
        names = " ".join(f"v({k})" for k in range(1, NODES + 1))
        found = circuitsim.worst_case(circuitsim.loads(text), ["R*=10%"], names, budget=400).ranges
        poles += not regular
        for q, one in enumerate(found):
            slack = 1e-9 * np.abs(values).max()
            assert one.least.bound <= low[q] + slack and high[q] <= one.most.bound + slack, seed
            assert regular or not one.exact, seed
            if one.exact:
                exact += 1
                # The determinant is affine in each conductance: extremes are at corners where it keeps its sign.
                assert (one.least.value, one.most.value) == pytest.approx((low[q], high[q]), abs=slack)
    assert exact >= 0.8 * 40 * NODES
    assert poles >= 1


def test_a_pole_in_the_box_has_no_bound() -> None:
    """v(a) = 1 mA / (1/R1 − 0.8/R2): finite at 10 %, not at 15 %."""
    deck = circuitsim.loads("t\nI1 0 a 1m\nR1 a 0 1k\nR2 a b 1k\nE1 b 0 a 0 1.8\n")
    found = circuitsim.worst_case(deck, ["R*=10%"], "v(a)")["v(a)"]
    assert found.exact
    assert found.most.value == pytest.approx(1e-3 / (1 / 1100 - 0.8 / 900))
    assert found.least.value == pytest.approx(1e-3 / (1 / 900 - 0.8 / 1100))
    wide = circuitsim.worst_case(deck, ["R*=15%"], "v(a)", budget=500)["v(a)"]
    assert wide.method == "no bound within the budget"
    assert wide.most.bound == np.inf


def test_constants_and_currents_of_controlled_sources() -> None:
    deck = circuitsim.loads("t\nV1 in 0 2\nR1 in 0 1k\nB1 out 0 V=1+3*v(in)\nR2 out a 1k\nF1 0 a V1 2\nR3 a 0 1k\n")
    found = circuitsim.worst_case(deck, ["R*=10%", "V1=5%"], "v(a) i(R3)")["v(a)"]

    def at(r1: float, r2: float, r3: float, v: float) -> float:
        return (2 * (-v / r1) + (1 + 3 * v) / r2) / (1 / r2 + 1 / r3)

    corners = [
        at(1e3 * a, 1e3 * b, 1e3 * c, 2 * d)
        for a, b, c in itertools.product((0.9, 1.1), repeat=3)
        for d in (0.95, 1.05)
    ]
    assert found.exact
    assert (found.least.value, found.most.value) == pytest.approx((min(corners), max(corners)))


@pytest.mark.parametrize(
    ("text", "tolerance", "message"),
    [
        ("t\nV1 s 0 1\nRS s a 1k\nRA a 0 1k\nE1 b 0 a 0 2\nD1 b c\nR1 c 0 1k\n", "R1=1%", "proven without diodes"),
        ("t\nV1 s 0 1\nRS s a 1k\nRA a 0 1k\nE1 b 0 a 0 2\nR2 b 0 1k\n", "E1=1%", "over resistances and sources"),
    ],
)
def test_refusals(text: str, tolerance: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        circuitsim.worst_case(circuitsim.loads(text), [tolerance], "v(b)")
