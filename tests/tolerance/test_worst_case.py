"""Proven extremes against brute force, known corners, poles, Rayleigh's cases, refusals."""

import itertools
import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from brute_force import draw, extremes
from helpers import loaded

import circuitsim
from circuitsim import loads

BRIDGE = "t\nV1 a 0 10\nR1 a b 1k\nR2 b 0 1k\nR3 a c 1k\nR4 c 0 1k\nR5 b c 1k\n"


def test_linear_circuits_are_exact() -> None:
    for seed in range(6):
        case = draw(seed, 7, False)
        case = case._replace(tolerances=[t for t in case.tolerances if "lot" not in t])
        low, high = extremes(case)
        for q, found in enumerate(circuitsim.worst_case(case.circuit, case.tolerances, case.observe).ranges):
            assert found.exact and found.method == "proven at corners"
            assert (found.least.value, found.most.value) == pytest.approx((low[q], high[q]), rel=1e-9, abs=1e-15)


def steered(seed: int) -> tuple[str, np.ndarray, bool]:
    """Cards of four nodes, six resistors, current sources and two transconductances; potentials (points, 4), V, by
    nodal equations at corners and inside of 10 %; whether the determinant keeps its sign."""
    rng, nodes = np.random.default_rng(seed), 4
    ends = [(k, k + 1) for k in range(nodes)] + [tuple(rng.choice(nodes + 1, 2, replace=False)) for _ in range(2)]
    ohms, currents = np.round(10.0 ** rng.uniform(2.0, 4.0, 6), 1), np.round(rng.normal(size=nodes), 2) * 1e-3
    gains = [(*rng.permutation(nodes + 1)[:4].tolist(), round(rng.normal() * 4e-3, 5)) for _ in range(2)]
    corners = np.array(list(itertools.product((-1.0, 1.0), repeat=6)))
    points = ohms * (1.0 + 0.1 * np.concatenate([corners, rng.uniform(-1.0, 1.0, (300, 6))]))
    matrix = np.zeros((len(points), nodes + 1, nodes + 1))
    terms = [(a, b, a, b, 1.0 / points[:, k]) for k, (a, b) in enumerate(ends)]
    for a, b, p, m, g in [*terms, *gains]:
        for row, column, sign in ((a, p, 1), (a, m, -1), (b, p, -1), (b, m, 1)):
            matrix[:, row, column] += sign * g
    signs = np.linalg.slogdet(matrix[:, 1:, 1:])[0]
    cards = [f"R{k} {a} {b} {r}" for k, ((a, b), r) in enumerate(zip(ends, ohms))]
    cards += [f"I{k} 0 {k + 1} {i}" for k, i in enumerate(currents)]
    cards += [f"G{k} {a} {b} {p} {m} {g}" for k, (a, b, p, m, g) in enumerate(gains)]
    return "\n".join(cards), np.linalg.solve(matrix[:, 1:, 1:], currents), bool((signs == signs[0]).all())


def test_circuits_with_controlled_sources_stay_inside_the_proven_interval() -> None:
    """The determinant is affine in each conductance: extremes are at corners where it keeps its sign."""
    exact = poles = 0
    for seed in range(40):
        cards, values, regular = steered(seed)
        low, high, slack = values.min(axis=0), values.max(axis=0), 1e-9 * np.abs(values).max()
        found = circuitsim.worst_case(loaded(cards), ["R*=10%"], "v(1) v(2) v(3) v(4)", budget=400).ranges
        poles += not regular
        for q, one in enumerate(found):
            assert one.least.bound <= low[q] + slack and high[q] <= one.most.bound + slack, seed
            assert regular or not one.exact, seed
            if one.exact:
                exact += 1
                assert (one.least.value, one.most.value) == pytest.approx((low[q], high[q]), abs=slack)
    assert exact >= 0.8 * 160 and poles >= 1


def divider(r1: float, r2: float, r3: float, v: float) -> float:
    """v(a) of the circuit with B1 and F1 below."""
    return (-2 * v / r1 + (1 + 3 * v) / r2) / (1 / r2 + 1 / r3)


CORNERS = [
    divider(1e3 * a, 1e3 * b, 1e3 * c, 2 * d)
    for a, b, c, d in itertools.product((0.9, 1.1), (0.9, 1.1), (0.9, 1.1), (0.95, 1.05))
]


@pytest.mark.parametrize(
    ("text", "tolerances", "observe", "least", "most"),
    [
        # The gradient by R5 changes its sign inside the box.
        (BRIDGE, ["R*=20%"], "v(b,c)", None, {"R1": 800.0, "R2": 1200.0, "R3": 1200.0, "R4": 800.0, "R5": 1200.0}),
        # v(a) = 1 mA / (1/R1 − 0.8/R2): finite at 10 %, not at 15 %.
        (
            "t\nI1 0 a 1m\nR1 a 0 1k\nR2 a b 1k\nE1 b 0 a 0 1.8\n",
            ["R*=10%"],
            "v(a)",
            1e-3 / (1 / 900 - 0.8 / 1100),
            1e-3 / (1 / 1100 - 0.8 / 900),
        ),
        (
            "t\nV1 in 0 2\nR1 in 0 1k\nB1 out 0 V=1+3*v(in)\nR2 out a 1k\nF1 0 a V1 2\nR3 a 0 1k\n",
            ["R*=10%", "V1=5%"],
            "v(a)",
            min(CORNERS),
            max(CORNERS),
        ),
        (BRIDGE, ["R*=10%"], "dissipation", 0.1 / 1.1, 0.1 / 0.9),
        # Where a draw lowers its resistance the ends of Rayleigh's two solves change places.
        (
            "t\nV1 in 0 10\nR1 in 0 {1k-flat(300)}\nR2 in 0 1k tol=20\n",
            [],
            "dissipation",
            100 / 1300 + 100 / 1200,
            100 / 700 + 100 / 800,
        ),
        (
            "t\nV1 in 0 10\nR1 in 0 {1k-flat(300)}\nR2 in 0 1k tol=20\n",
            [],
            "i(V1)",
            -10 / 700 - 10 / 800,
            -10 / 1300 - 10 / 1200,
        ),
        # A draw in common that raises one resistance and lowers another.
        (
            "t\n.param d={flat(300)}\nV1 in 0 10\nR1 in 0 {1k+d}\nR2 in 0 {1k-d}\n",
            [],
            "i(V1)",
            -0.02 / (1 - 0.3**2),
            -0.02,
        ),
        # A derivative of exactly zero at the centre: all numbers are sums of powers of two.
        (
            "t\n.param d={flat(256)}\nV1 in 0 8\nR1 in 0 {1024+d}\nR2 in 0 {1024-d}\n",
            [],
            "i(V1)",
            -8 / 512 / (1 - 0.25**2),
            -8 / 512,
        ),
        ("t\nV1 a 0 2\nR1 a b 1000\nR2 b 0 1000\n", ["R*=10%,lot"], "v(b)", 1.0, 1.0),
    ],
)
def test_known_extremes(text: str, tolerances: list[str], observe: str, least: float | None, most: object) -> None:
    found = circuitsim.worst_case(loads(text), tolerances, observe, gap=1e-3)[observe]
    if least is None:
        assert found.exact and found.most.at == most and found.least.value == pytest.approx(-found.most.value)
        return
    assert (found.least.value, found.most.value) == pytest.approx((least, most))
    slack = (0.06 if "+d" in text else 1e-3) * abs(least)  # what the budget leaves of a draw in common, or the gap
    assert least - slack <= found.least.bound <= least + 1e-12 and found.most.bound <= found.most.value + slack


def test_a_pole_in_the_box_has_no_bound() -> None:
    deck = loads("t\nI1 0 a 1m\nR1 a 0 1k\nR2 a b 1k\nE1 b 0 a 0 1.8\n")
    wide = circuitsim.worst_case(deck, ["R*=15%"], "v(a)", budget=500)["v(a)"]
    assert wide.method == "no bound within the budget" and wide.most.bound == np.inf


def test_an_extreme_inside_the_box() -> None:
    # v(p) is the larger of 1 V and V1, v(m) half of V1: their difference is least at the kink, at no corner.
    c = loaded("RA a m 1000\nRB m 0 1000\nV1 a 0 1\nI1 0 p 0.001\nR1 p 0 1000\nD1 a p")
    found = circuitsim.worst_case(c, ["V1=50%"], "v(p,m)", gap=1e-4)["v(p,m)"]
    assert found.least.bound <= 0.5 <= found.least.value <= 0.5 + 1e-4
    assert found.least.at["V1"] == pytest.approx(1.0, abs=3e-4) and found.most.value == pytest.approx(0.75)


def test_rayleigh_is_recognised() -> None:
    found = circuitsim.worst_case(loads(BRIDGE), ["R*=10%"], "i(V1) dissipation v(b)")
    assert found["i(V1)"].method.startswith("Rayleigh: the port") and found["i(V1)"].solves == 3
    assert found["dissipation"].method.startswith("Rayleigh: the total")
    assert found["v(b)"].method == "proven at corners"
    driven = loads(f"{BRIDGE}I1 0 b 1m\n")
    assert circuitsim.worst_case(driven, ["R*=10%"], "i(V1)")["i(V1)"].method == "proven at corners"
    # Braess: with drops, more conductance may mean less current.
    braess = "V1 a 0 3\nR1 a b 1\nR4 c 0 1\nD1 a c d\nD2 b 0 d\nR5 b c 1k\n.model d D(ron=1m vfwd=1)"
    assert "Rayleigh" not in circuitsim.worst_case(loaded(braess), ["R5=50%"], "i(V1)")["i(V1)"].method


def test_specifications_and_workers() -> None:
    specs = ["-4<v(b,c)<4", "v(b)<5.5", "v(c)<9.99"]
    found = circuitsim.worst_case(loads(BRIDGE), ["R*=20%"], specifications=specs)
    assert [holds for _, holds in found.specifications] == [True, False, True]
    with ThreadPoolExecutor(2) as threads:
        again = circuitsim.worst_case(loads(BRIDGE), ["R*=20%"], specifications=specs, executor=threads)
    assert json.dumps(again.to_dict()) == json.dumps(found.to_dict())
    assert found.to_dataframe().shape == (3, 8)


def test_what_the_budget_leaves_is_stated() -> None:
    case = draw(5, 9, True)
    tolerances = ["R1=45%", "R2=45%", "V1=45%", "I1=45%"]
    found = circuitsim.worst_case(case.circuit, tolerances, "v(1)", budget=1)["v(1)"]
    assert found.exact or "within" in found.method
    low, high = extremes(case._replace(tolerances=tolerances, observe="v(1)"))
    assert found.least.bound <= low[0] + 1e-9 and high[0] - 1e-9 <= found.most.bound


def test_the_picture_shows_the_ranges_the_bounds_and_the_limits() -> None:
    text = "V1 in 0 3\nR1 in out 1k\nR2 out 0 2k\nD1 out x\nR3 x y 100\nV2 y 0 1.5\nD2 x z\nR4 z 0 1k"
    found = circuitsim.worst_case(loaded(text), ["R*=30%", "V1=30%"], "v(out) v(z)", ["1.3<v(out)<1.7"], budget=40)
    first, second = found.plot().axes
    one, (bar,) = found["v(out)"], first.patches
    assert (bar.get_x(), bar.get_x() + bar.get_width()) == pytest.approx((one.least.value, one.most.value))
    assert sorted(line.get_xdata()[0] for line in first.lines)[:2] == pytest.approx([1.3, one.nominal])
    assert first.collections[0].get_segments()[0][:, 0] == pytest.approx([one.least.bound, one.most.bound])
    assert len(second.lines) == 2
