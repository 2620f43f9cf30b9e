"""Proven extremes against brute force, known corners, Rayleigh's cases, refusals."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from brute_force import compare, draw, extremes

import circuitsim
from circuitsim import Circuit
from circuitsim.cli import main
from circuitsim.errors import UsageError
from circuitsim.netlist import loads
from circuitsim.plotting.bars import plot_worst_case


@pytest.mark.parametrize("diodes", [False, True], ids=["linear", "diodes"])
def test_random_circuits_stay_inside_the_proven_interval(diodes: bool) -> None:
    exact = quantities = 0
    for seed in range(1000, 1006):
        found = compare(draw(seed, 1 + seed % 5, diodes), budget=100)
        assert found.outside == 0, seed
        assert found.short < 1e-3, seed
        exact += found.exact
        quantities += found.quantities
    assert exact >= 0.5 * quantities


def test_linear_circuits_are_exact() -> None:
    for seed in range(6):
        case = draw(seed, 7, False)
        case = case._replace(tolerances=[t for t in case.tolerances if "lot" not in t])
        low, high = extremes(case)
        for q, found in enumerate(circuitsim.worst_case(case.circuit, case.tolerances, case.observe).ranges):
            assert found.exact and found.method == "proven at corners"
            assert (found.least.value, found.most.value) == pytest.approx((low[q], high[q]), rel=1e-9, abs=1e-15)


def bridge() -> Circuit:
    """The gradient by R5 changes its sign inside the box."""
    c = Circuit("bridge")
    c.voltage_source("V1", "a", "0", 10.0)
    for k, (first, second) in enumerate((("a", "b"), ("b", "0"), ("a", "c"), ("c", "0"), ("b", "c"))):
        c.resistor(f"R{k + 1}", first, second, 1e3)
    return c


def test_a_bridge_whose_signs_change() -> None:
    found = circuitsim.worst_case(bridge(), ["R*=20%"], "v(b,c)")["v(b,c)"]
    assert found.exact and found.most.at == {"R1": 800.0, "R2": 1200.0, "R3": 1200.0, "R4": 800.0, "R5": 1200.0}
    assert found.least.value == pytest.approx(-found.most.value)


def test_an_extreme_inside_the_box() -> None:
    # v(p) is the larger of 1 V and V1, v(m) half of V1: their difference is least at the kink, at no corner.
    c = loads("t\nRA a m 1000\nRB m 0 1000\nV1 a 0 1\nI1 0 p 0.001\nR1 p 0 1000\nD1 a p\n").circuit
    found = circuitsim.worst_case(c, ["V1=50%"], "v(p,m)", gap=1e-4)["v(p,m)"]
    assert found.least.bound <= 0.5 <= found.least.value <= 0.5 + 1e-4
    assert found.least.at["V1"] == pytest.approx(1.0, abs=3e-4)
    assert found.most.value == pytest.approx(0.75)


def test_rayleigh_is_recognised() -> None:
    c = bridge()
    found = circuitsim.worst_case(c, ["R*=10%"], "i(V1) dissipation p(V1) v(b)")
    assert found["i(V1)"].method.startswith("Rayleigh: the port") and found["i(V1)"].solves == 3
    assert found["dissipation"].method.startswith("Rayleigh: the total")
    assert found["dissipation"].most.value == pytest.approx(0.1 / 0.9)
    assert found["v(b)"].method == "proven at corners"
    c.current_source("I1", "0", "b", 1e-3)
    with pytest.raises(UsageError, match="Rayleigh's monotonicity, which needs"):
        circuitsim.worst_case(c, ["R*=10%"], "dissipation")
    assert circuitsim.worst_case(c, ["R*=10%"], "i(V1)")["i(V1)"].method == "proven at corners"


def test_two_solves_take_all_resistances_up_or_down() -> None:
    """Where a draw lowers its resistance the ends change places; one that raises another too is not Rayleigh's case."""
    falling = loads("t\nV1 in 0 10\nR1 in 0 {1k-flat(300)}\nR2 in 0 1k tol=20\n")
    found = circuitsim.worst_case(falling, [], "dissipation i(V1)")
    assert "Rayleigh" in found["dissipation"].method
    assert found["dissipation"].least.value == pytest.approx(100 / 1300 + 100 / 1200)
    assert found["dissipation"].most.value == pytest.approx(100 / 700 + 100 / 800)
    assert found["i(V1)"].most.value == pytest.approx(-found["dissipation"].least.value / 10)
    opposite = loads("t\n.param d={flat(300)}\nV1 in 0 10\nR1 in 0 {1k+d}\nR2 in 0 {1k-d}\n")
    current = circuitsim.worst_case(opposite, [], "i(V1)")["i(V1)"]
    assert current.least.value == pytest.approx(-0.02 / (1 - 0.3**2))
    assert current.most.value == pytest.approx(-0.02)
    assert current.most.value <= current.most.bound < -0.01999
    with pytest.raises(UsageError, match="none of which raises one and lowers another"):
        circuitsim.worst_case(opposite, [], "dissipation")


def test_a_derivative_of_exactly_zero_at_the_centre_ends_no_search() -> None:
    """All numbers are sums of powers of two and both resistors are equal at the centre: nothing is rounded there."""
    deck = loads("t\n.param d={flat(256)}\nV1 in 0 8\nR1 in 0 {1024+d}\nR2 in 0 {1024-d}\n")
    current = circuitsim.worst_case(deck, [], "i(V1)")["i(V1)"]
    assert current.least.value == pytest.approx(-8 / 512 / (1 - 0.25**2))
    assert current.most.value == pytest.approx(-8 / 512)
    assert current.most.value <= current.most.bound < 0.9999 * current.most.value


def test_braess_bridge_is_not_rayleigh() -> None:
    """With drops, more conductance may mean less current: ANALYSES' bridge."""
    deck = "t\nV1 a 0 3\nR1 a b 1\nR4 c 0 1\nD1 a c d\nD2 b 0 d\nR5 b c 1k\n.model d D(ron=1m vfwd=1)\n"
    found = circuitsim.worst_case(circuitsim.loads(deck), ["R5=50%"], "i(V1)")["i(V1)"]
    assert "Rayleigh" not in found.method


def test_shares_in_common_cancel_in_a_divider() -> None:
    c = loads("t\nV1 a 0 2\nR1 a b 1000\nR2 b 0 1000\n").circuit
    found = circuitsim.worst_case(c, ["R*=10%,lot"], "v(b)", gap=1e-3)["v(b)"]
    assert found.least.value == pytest.approx(1.0) == found.most.value
    assert found.most.gap <= 1e-3


def test_specifications_and_workers() -> None:
    c = bridge()
    specs = ["-4<v(b,c)<4", "v(b)<5.5", "v(c)<9.99"]
    found = circuitsim.worst_case(c, ["R*=20%"], specifications=specs)
    assert [holds for _, holds in found.specifications] == [True, False, True]
    with ThreadPoolExecutor(2) as threads:
        again = circuitsim.worst_case(c, ["R*=20%"], specifications=specs, executor=threads)
    assert json.dumps(again.to_dict()) == json.dumps(found.to_dict())
    assert found.to_dataframe().shape == (3, 8)


def test_what_the_budget_leaves_is_stated() -> None:
    case = draw(5, 9, True)
    tolerances = ["R1=45%", "R2=45%", "V1=45%", "I1=45%"]
    found = circuitsim.worst_case(case.circuit, tolerances, "v(1)", budget=1)["v(1)"]
    assert found.exact or "within" in found.method
    low, high = extremes(case._replace(tolerances=tolerances, observe="v(1)"))
    assert found.least.bound <= low[0] + 1e-9 and high[0] - 1e-9 <= found.most.bound


@pytest.mark.parametrize(
    ("text", "tolerances", "observe", "message"),
    [
        ("R1 a 0 1k", ["R*=1%,normal"], "v(a)", "normal tolerances have no limits"),
        ("R1 a 0 1k\nD1 a 0 m\n.model m D(is=1e-12)", ["R*=1%"], "v(a)", "not with D1"),
        ("R1 a 0 1k\nD1 a 0 m\n.model m D(ron=1 vfwd=1)", ["D1.ron=1%"], "v(a)", "over resistances and sources"),
        ("R1 a 0 1k", ["R*=1%"], "p(R1)", "worst cases are proven of"),
        ("R1 a 0 1k", ["R*=1%"], "", "nothing is observed"),
    ],
)
def test_refusals(text: str, tolerances: list[str], observe: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        circuitsim.worst_case(circuitsim.loads(f"t\nV1 in 0 1\nR0 in a 1k\n{text}"), tolerances, observe)


def test_command(tmp_path, capsys) -> None:
    deck = tmp_path / "divider.cir"
    deck.write_text("divider\nV1 in 0 10\nR1 in out 1k\nR2 out 0 1k\n")
    words = ["worst-case", str(deck), "--tol", "R*=1%", "--spec", "4.9<v(out)<5.1"]
    assert main([*words, "--observe", "i(V1)"]) == 0
    said = capsys.readouterr().out
    assert "4.9<v(out)<5.1  yes" in said and "Rayleigh" in said and "4.95 V" in said
    assert main([*words, "--observe", "i(V1)", "--observe", "v(in) dissipation", "--format", "json"]) == 0
    assert list(json.loads(capsys.readouterr().out)["quantities"]) == ["i(V1)", "v(in)", "v(out)", "dissipation"]
    assert main([*words, "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("v(out),V,5.0,4.95")
    assert main([*words, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["quantities"]["v(out)"]["exact"] is True
    assert main(words[:4]) == 2
    assert main([*words, "--plot", str(tmp_path / "ranges.png")]) == 0
    assert (tmp_path / "ranges.png").read_bytes().startswith(b"\x89PNG")
    assert main([*words, "--plot", str(tmp_path / "ranges.txt")]) == 2


def test_the_picture_shows_the_ranges_the_bounds_and_the_limits() -> None:
    text = "clamp\nV1 in 0 3\nR1 in out 1k\nR2 out 0 2k\nD1 out x\nR3 x y 100\nV2 y 0 1.5\nD2 x z\nR4 z 0 1k\n"
    found = circuitsim.worst_case(
        circuitsim.loads(text), ["R*=30%", "V1=30%"], "v(out) v(z)", ["1.3<v(out)<1.7"], budget=40
    )
    first, second = plot_worst_case(found).axes
    one = found["v(out)"]
    (bar,) = first.patches
    assert (bar.get_x(), bar.get_x() + bar.get_width()) == pytest.approx((one.least.value, one.most.value))
    assert sorted(line.get_xdata()[0] for line in first.lines)[:2] == pytest.approx([1.3, one.nominal])
    assert first.collections[0].get_segments()[0][:, 0] == pytest.approx([one.least.bound, one.most.bound])
    assert len(second.lines) == 2
