"""The piecewise-linear diode: its documented law, circuits against an independent reference, decks, sweeps, batches."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from exact_controlled import Count, all_points

import circuitsim
from circuitsim import Circuit, netlist, sweep
from circuitsim.analysis.explain import explain
from circuitsim.errors import InfeasibleError, NetlistError, TopologyError, UsageError
from circuitsim.inspection import inspect_circuit
from circuitsim.models.piecewise_diode import PiecewiseLinearDiode

CASES: list[dict[str, float]] = [
    {},
    {"vfwd": 0.7},
    {"vfwd": 0.7, "ron": 0.0},
    {"vfwd": 0.7, "ron": 0.3, "roff": 1e6},
    {"vfwd": 0.6, "ron": 2.0, "vrev": 5.1},
    {"vfwd": 0.6, "ron": 2.0, "vrev": 5.1, "rrev": 0.0},
    {"vfwd": 0.0, "ron": 0.5, "vrev": 0.0, "rrev": 4.0},
    {"vfwd": 0.65, "ron": 1e-3, "vrev": 4.7, "rrev": 8.0, "roff": 1e7},
    {"vfwd": 1.0, "ron": 3.0, "vrev": 2.0, "rrev": 7.0, "roff": 7.0},
]
CELLS = [(1.0, 1.0), (3.0, 1.0), (1.0, 2.0), (2.5, 3.0)]


def documented(v: float, case: dict[str, float], m: float = 1.0, n: float = 1.0) -> float:
    """The law of DEVICES.md §2 as written there, without vertical pieces; v in V, the result in A."""
    vfwd, ron = case.get("vfwd", 0.0), case.get("ron", 1.0)
    vrev, rrev = case.get("vrev", math.inf), case.get("rrev", ron)
    goff = 1.0 / case["roff"] if "roff" in case else 0.0
    v /= n
    if v >= vfwd:
        return m * ((v - vfwd) / ron + vfwd * goff)
    if v < -vrev:
        return m * ((v + vrev) / rrev - vrev * goff)
    return m * v * goff


def at_voltage(volts: float, device: PiecewiseLinearDiode) -> circuitsim.OperatingPoint:
    c = Circuit("one diode")
    c.voltage_source("V1", "a", "0", volts)
    c.device("D1", "a", "0", device)
    return circuitsim.solve(c)


def voltages(case: dict[str, float], n: float) -> list[float]:
    """In all regions, at and around the knees; not beyond a knee without a resistance."""
    vfwd, vrev = case.get("vfwd", 0.0), case.get("vrev", math.inf)
    found = [-0.5 * min(vrev, 8.0), 0.5 * vfwd, 0.0]
    if case.get("ron", 1.0) > 0.0:
        found += [vfwd, vfwd * (1 + 1e-9) + 1e-9, vfwd + 0.01, vfwd + 30.0]
    if vrev < math.inf and case.get("rrev", 1.0) > 0.0:
        found += [-vrev, -vrev - 1e-9, -vrev - 0.02, -vrev - 40.0]
    return [v * n for v in found]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("cells", CELLS, ids=str)
def test_the_documented_law(case: dict[str, float], cells: tuple[float, float]) -> None:
    m, n = cells
    device = PiecewiseLinearDiode(**case, m=m, n=n)
    for v in voltages(case, n):
        expected = documented(v, case, m, n)
        point = at_voltage(v, device)
        # At a knee v − Vfwd cancels: a unit in the last place of v is an error of the current.
        steepest = m / n / min(r for r in (case.get("ron", 1.0), case.get("rrev", math.inf)) if r > 0.0)
        assert abs(point.current("D1") - expected) <= 1e-12 * abs(expected) + 4e-16 * abs(v) * steepest
        low, high = device.law(v)
        assert low - 1e-12 * abs(low) <= expected <= high + 1e-12 * abs(high)
        assert point.power("D1") == v * point.current("D1")


@pytest.mark.parametrize("cells", CELLS, ids=str)
def test_a_drop_without_resistance(cells: tuple[float, float]) -> None:
    m, n = cells
    for amperes, drop, state in ((2.0, 0.7, "forward"), (-3.0, -5.1, "reverse breakdown")):
        c = Circuit("a current into a drop")
        c.current_source("I1", "0", "a", amperes)
        c.device("D1", "a", "0", PiecewiseLinearDiode(vfwd=0.7, ron=0.0, vrev=5.1, m=m, n=n))
        point = circuitsim.solve(c)
        assert point["a"] == pytest.approx(drop * n, rel=1e-15)
        assert point.current("D1") == amperes and point.state("D1") == state


def test_states_and_the_energy() -> None:
    case = CASES[7]
    device = PiecewiseLinearDiode(**case)
    for v, state in ((-9.0, "reverse breakdown"), (-4.0, "off"), (0.0, "off"), (0.6, "off"), (2.0, "forward")):
        point = at_voltage(v, device)
        assert point.state("D1") == state
        steps = np.linspace(0.0, v, 200_001)
        integral = np.trapezoid([documented(u, case) for u in steps.tolist()], steps)
        assert point.energy == pytest.approx(integral, rel=1e-6) and device.energy(v) == pytest.approx(point.energy)


@pytest.mark.parametrize("seed", range(25))
def test_random_circuits_against_exact_arithmetic(seed: int) -> None:
    rng = random.Random(seed)
    n = rng.randint(2, 5)
    ohmic = [(k, rng.randrange(k), 10.0 ** rng.uniform(-1, 3)) for k in range(1, n + 1)]
    driven = [(rng.randint(1, n), rng.uniform(-5.0, 5.0)) for _ in range(2)]
    devices = []
    for _ in range(rng.randint(1, 4)):
        a, b = rng.sample(range(n + 1), 2)
        devices.append(
            (
                a,
                b,
                {
                    "vfwd": rng.uniform(0.0, 2.0),
                    "ron": 10.0 ** rng.uniform(-2, 2),
                    "vrev": rng.uniform(0.0, 5.0),
                    "rrev": 10.0 ** rng.uniform(-2, 2),
                    "roff": 10.0 ** rng.uniform(3, 7),
                },
            )
        )
    c = Circuit(f"random {seed}")
    for k in range(1, n + 1):
        c.node(str(k))
    for k, (a, b, ohms) in enumerate(ohmic):
        c.resistor(f"R{k}", str(a), str(b), ohms)
    for k, (node, amperes) in enumerate(driven):
        c.current_source(f"I{k}", "0", str(node), amperes)
    for k, (a, b, d) in enumerate(devices):
        c.device(f"D{k}", str(a), str(b), PiecewiseLinearDiode(**d))
    exact, point = all_points(c), circuitsim.solve(c)
    assert exact is not None and exact.count is Count.UNIQUE
    expected = [float(v) for v in exact.points[0][0]]
    assert [point[str(k)] for k in range(n + 1)] == pytest.approx(
        expected, rel=1e-9, abs=1e-9 * max(map(abs, expected))
    )


def test_text_comes_back() -> None:
    text = (
        "decks\n.param v=5.1\n.subckt s a k z=3\nD1 a k own m=2 n={z}\n.model own D(Vrev={z} Vfwd=0.5)\n.ends\n"
        "X1 a 0 s m=3\nX2 a 0 s z=4\nD2 a b outer\nD3 a b outer\nD4 a b\nR1 b 0 1k\n"
        ".model outer D(Vrev={v} Rrev=2 Ron=0 Roff=1g Vfwd={v/10} is=1e-14)\n"
    )
    deck = netlist.loads(text)
    assert [problem.message for problem in deck.problems] == ["model outer is a piecewise-linear diode; not used: is"]
    own = {"vfwd": 0.5, "ron": 1.0}
    c = deck.circuit
    assert c.device_of("X1.D1") == PiecewiseLinearDiode(**own, vrev=3.0, m=6, n=3)
    assert c.device_of("X2.D1") == PiecewiseLinearDiode(**own, vrev=4.0, m=2, n=4)
    ideal = {"ron": 0.0, "rrev": 2.0, "roff": 1e9}
    assert c.device_of("D3") == PiecewiseLinearDiode(**ideal, vfwd=0.51, vrev=5.1) and c["D4"].kind == "ideal diode"
    again = netlist.loads(netlist.dumps(c))
    assert list(again.devices.values()) == list(c.devices.values()) and not again.notes
    assert netlist.dumps(again) == netlist.dumps(c)
    assert deck.elaborate({"v": 7.5}).device_of("D2") == PiecewiseLinearDiode(**ideal, vfwd=0.75, vrev=7.5)


@pytest.mark.parametrize(
    ("cards", "message"),
    [
        ("D1 a 0 z\n.model z D(Vfwd=0.6 Ilimit=0)", "model z: the forward limit Ilimit must be positive (0 A)"),
        ("D1 a 0 z\n.model z D(Vrev=-5)", "model z: the breakdown voltage Vrev must not be negative (-5 V)"),
        ("D1 a 0 z\n.model z D(Roff=0)", "model z: the off resistance Roff must be positive (0 Ω)"),
        ("D1 a 0 z\n.model z D(Ron=10 Roff=1)", "model z: Ron (10 Ω) must not be above Roff (1 Ω)"),
        ("D1 a 0 z\n.model z D(Ron=0 Vrev=0)", "model z: without drops and resistances it is a short"),
        ("D1 a 0 z\n.model z D(Ron)", "model z: Ron needs a value"),
        ("D1 a 0 z\n.model z D(Ron={none})", "no parameter is called 'none'"),
        ("D1 a 0 z n=0\n.model z D(Ron=1)", "D1: the number n in series must be positive, not 0"),
        ("D1 a 0 z n=2\n.model z D(is=1f)", "D1 has no parameter 'n'"),
    ],
)
def test_what_a_deck_cannot_say(cards: str, message: str) -> None:
    with pytest.raises(NetlistError) as error:
        netlist.loads(f"t\n{cards}\nR1 a 0 1\n")
    assert message in str(error.value)


def test_sweeps_through_all_regions() -> None:
    c = netlist.loads("sweep\nV1 in 0 0\nR1 in a 10\nD1 a 0 z\n.model z D(Vfwd=0.7 Ron=2 Vrev=5 Rrev=3)\n")
    volts = np.linspace(-20.0, 20.0, 81)
    found = sweep(c, {"V1": volts}, "i(D1)")["i(D1)"]
    expected = np.where(volts >= 0.7, (volts - 0.7) / 12, np.where(volts < -5, (volts + 5) / 13, 0.0))
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-15)
    drops = sweep(c.with_values({"V1": 9.0}), {"D1.vfwd": [0.0, 0.7, 20.0], "D1.ron": [0.0, 2.0]}, "i(D1) v(a)")
    assert drops.units["D1.vfwd"] == "V"
    assert drops["i(D1)"] == pytest.approx([0.9, 0.83, 0.0, 0.75, 8.3 / 12, 0.0], rel=1e-13)
    with pytest.raises(UsageError, match="D1 is a piecewise-linear diode: it has no value to vary; what can vary is"):
        sweep(c, {"D1": [1.0]})
    with pytest.raises(TopologyError, match="D1: the forward drop Vfwd must not be negative"):
        sweep(c, {"D1.vfwd": [-1.0]})


def test_new_values_and_a_start() -> None:
    c = netlist.loads("t\nV1 in 0 9\nR1 in a 10\nD1 a 0 z\n.model z D(Vfwd=0.7 Ron=2)\n")
    ready = circuitsim.prepared(c)
    first = ready.solve()
    second = ready.solve({"V1": -9.0, "D1.vrev": 4.0, "D1.rrev": 5.0}, start=first)  # consists of more elements now
    assert second.current("D1") == pytest.approx(-5 / 15) and second.state("D1") == "reverse breakdown"
    third = ready.solve([3.0, 20.0, math.nan], start=second)
    assert third.current("D1") == pytest.approx(2.3 / 22, rel=1e-13) and third.circuit["R1"].value == 20.0
    assert c.device_of("D1").parameters() == {"vfwd": 0.7, "ron": 2.0}


def test_with_an_amplifier() -> None:
    c = netlist.loads("t\nV1 in 0 1\nR1 in l 1k\nX1 l r bidiramp gain=4\nD1 r 0 z\n.model z D(Vfwd=2 Ron=100)\n")
    point = circuitsim.solve(c)
    # With v_R = 4 v_L and i_R = 4 i_L the diode sees a source of 4 V behind 1 kΩ.
    assert point.current("D1") == pytest.approx(2.0 / 1100, rel=1e-12) and point.state("D1") == "forward"


def test_what_is_left_open_names_the_circuits_own_nodes() -> None:
    c = netlist.loads("t\nI1 0 a 0\nD1 a 0 z\n.model z D(Vfwd=2 Vrev=3)\n")
    point = circuitsim.solve(c)
    assert point.intervals == {"a": (-3.0, 2.0)} and point.warnings[0].names == ("a",)
    with pytest.raises(InfeasibleError) as error:
        circuitsim.solve(netlist.loads("t\nV1 a 0 5\nD1 a 0 z\n.model z D(Vfwd=2 Ron=0)\n"))
    assert set(error.value.elements) == {"V1", "D1"}
    report = inspect_circuit(c)
    assert report.report.kinds == {"current source": 1, "piecewise-linear diode": 1} and report.report.nodes == 2
    assert explain(point)[0] == "devices: 1, solved as the elements that they consist of"
