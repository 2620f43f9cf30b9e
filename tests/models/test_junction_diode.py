"""The junction diode: its law in decimal arithmetic, bisection by hand, limits, temperature, starts."""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from functools import cache

import numpy as np
import pytest

import circuitsim
from circuitsim import Circuit, loads
from circuitsim.errors import ConvergenceError, UnboundedError
from circuitsim.models.junction_diode import CJO, JunctionDiode

K_OVER_Q = Decimal("1.38064852e-23") / Decimal("1.6021766208e-19")
CASES: list[dict[str, float]] = [
    {},
    {"is": 1e-18, "n": 1.8},
    {"is": 1e-6, "rs": 0.3},
    {"bv": 5.1},
    {"bv": 100.0, "ibv": 1e-5, "nbv": 1.5, "rs": 2.0},
    {"is": 3e-12, "n": 1.3, "bv": 12.0, "m": 3.0, "area": 2.5, "rs": 0.1},
    {"isr": 1e-10, "nr": 2.0, "vj": 0.7, "mj": 0.33},
    {"ikf": 3e-3, "rs": 0.2},
    {"is": 1e-12, "isr": 1e-9, "nr": 1.8, "ikf": 1e-2, "bv": 5.1, "m": 2.0, "area": 1.5},
]


@pytest.fixture(autouse=True)
def _digits():
    with decimal.localcontext() as context:
        context.prec = 40
        yield


def exact_law(u: Decimal, case: dict[str, float]) -> Decimal:
    """The law in the head of the model at 27 °C, u: junction voltage."""
    current = shockley(u, case)
    cells = Decimal(case.get("m", 1.0)) * Decimal(case.get("area", 1.0))
    if "isr" in case:
        thermal = K_OVER_Q * Decimal("300.15")
        w = max(u, -3 * Decimal(case.get("n", 1.0)) * thermal)
        factor = (1 - w / Decimal(case.get("vj", 1.0))) ** 2 + Decimal("0.005")
        rise = (w / (Decimal(case.get("nr", 1.0)) * thermal)).exp() - 1
        current += Decimal(case["isr"]) * cells * rise * factor ** (Decimal(case.get("mj", 0.5)) / 2)
    if "ikf" in case and current > 0:
        current /= 1 + (current / (Decimal(case["ikf"]) * cells)).sqrt()
    return current


def shockley(u: Decimal, case: dict[str, float]) -> Decimal:
    """Without recombination and high injection."""
    cells = Decimal(case.get("m", 1.0)) * Decimal(case.get("area", 1.0))
    saturation, thermal = Decimal(case.get("is", 1e-14)) * cells, K_OVER_Q * Decimal("300.15")
    vt = Decimal(case.get("n", 1.0)) * thermal
    if u >= -3 * vt:
        return saturation * ((u / vt).exp() - 1)
    e = Decimal(1).exp()
    if "bv" not in case or u >= -knee(case):
        return -saturation * (1 - (3 * vt / (e * -u)) ** 3)
    vb = Decimal(case.get("nbv", case.get("n", 1.0))) * thermal
    return -saturation * ((-(u + knee(case)) / vb).exp() - (3 * vt / (e * knee(case))) ** 3)


def knee(case: dict[str, float]) -> Decimal:
    """xbv: IS (e^{(BV − xbv)/vb} − 1 + xbv/VT) = IBV m, by bisection."""
    return knee_of(tuple(sorted(case.items())))


@cache
def knee_of(items: tuple[tuple[str, float], ...]) -> Decimal:
    """`knee`, found once for each case."""
    case = dict(items)
    cells = Decimal(case.get("m", 1.0)) * Decimal(case.get("area", 1.0))
    saturation, thermal = Decimal(case.get("is", 1e-14)) * cells, K_OVER_Q * Decimal("300.15")
    vb = Decimal(case.get("nbv", case.get("n", 1.0))) * thermal
    bv, ibv = Decimal(case["bv"]), Decimal(case.get("ibv", 1e-3)) * Decimal(case.get("m", 1.0))
    low, high = bv - 80 * vb, bv
    for _ in range(120):
        middle = (low + high) / 2
        more = saturation * (((bv - middle) / vb).exp() - 1 + middle / thermal) > ibv
        low, high = (middle, high) if more else (low, middle)
    return low


def series(case: dict[str, float]) -> Decimal:
    return Decimal(case.get("rs", 0.0)) / Decimal(case.get("m", 1.0)) / Decimal(case.get("area", 1.0))


def bisected(volts: float, ohms: float, case: dict[str, float]) -> tuple[float, float]:
    """Voltage and current of a diode behind a source and a resistance, by bisection of the junction's voltage."""
    source, total = Decimal(volts), Decimal(ohms) + series(case)
    low, high = min(source, Decimal(0)), max(source, Decimal(0))
    for _ in range(130):
        middle = (low + high) / 2
        low, high = (low, middle) if middle + total * exact_law(middle, case) > source else (middle, high)
    current = exact_law(low, case)
    return float(low + series(case) * current), float(current)


def behind(volts: float, ohms: float, case: dict[str, float]) -> Circuit:
    c = loads(f"one diode\nV1 in 0 {volts}\nR1 in a {ohms}\n").circuit
    c.device("D1", "a", "0", JunctionDiode(**case))
    return c


@pytest.mark.parametrize("case", CASES, ids=str)
def test_bisection_by_hand(case: dict[str, float]) -> None:
    for volts in (100.0, 5.0, 0.65, 1e-3, -1e-6, -0.05, -2.0, -5.2, -20.0, -103.0):
        for ohms in (1e-2, 1e3, 1e8):
            voltage, current = bisected(volts, ohms, case)
            point = circuitsim.solve(behind(volts, ohms, case))
            assert point["a"] == pytest.approx(voltage, rel=1e-12, abs=0.0)
            # A small share of the source's voltage lies across the resistor where the diode blocks.
            assert point.current("D1") == pytest.approx(current, rel=1e-12, abs=1e-15 * abs(volts) / ohms)
            assert point.certificate.relative["devices"] <= 1e-11


@pytest.mark.parametrize("case", CASES, ids=str)
def test_law_and_energy_at_a_voltage(case: dict[str, float]) -> None:
    device = JunctionDiode(**case)
    for u in (0.7, 0.3, 0.0, -0.05, -0.2, -3.0, -5.05, -5.5):
        if "bv" in case and u < -float(case["bv"]) - 0.1:
            continue
        current = exact_law(Decimal(u), case)
        voltage = float(Decimal(u) + series(case) * current)
        assert device.law(voltage)[0] == pytest.approx(float(current), rel=2e-12)
        steps = np.linspace(0.0, voltage, 4001)
        integral = np.trapezoid([device.law(v)[0] for v in steps.tolist()], steps)
        assert device.energy(voltage) == pytest.approx(integral, rel=1e-3)


def test_regions() -> None:
    names = {5.0: "forward", 0.001: "off", -3.0: "off", -20.0: "reverse breakdown"}
    for volts, state in names.items():
        assert circuitsim.solve(behind(volts, 1e3, {"bv": 5.1})).state("D1") == state


def test_temperature() -> None:
    """IS (T) of SPICE: at 127 °C by the ratio of temperatures, gap and exponent."""
    kelvin, nominal = 400.15, 300.15
    vt = float(K_OVER_Q) * kelvin
    growth = math.exp((kelvin / nominal - 1.0) * 1.2 / (1.5 * vt)) * (kelvin / nominal) ** (2.0 / 1.5)
    device = JunctionDiode(**{"is": 1e-13, "n": 1.5, "eg": 1.2, "xti": 2.0, "temp": 127.0})
    assert device.law(0.4)[0] == pytest.approx(1e-13 * growth * math.expm1(0.4 / (1.5 * vt)), rel=1e-12)
    assert device.counts() == {"temp": 127.0}


RECOMBINING = {"is": 1e-12, "isr": 1e-9, "nr": 1.9, "vj": 0.6, "mj": 0.4, "ikf": 1e-3, "n": 1.1, "tnom": 40.0}


def test_recombination_and_high_injection_over_temperature() -> None:
    """ISR as IS with NR, VJ by the gap of silicon, IKF by the area: the values that ngspice 39 prints."""
    for temp, amperes in ((-20.0, 3.181656072518e-07), (27.0, 6.473342408115e-06), (80.0, 1.266861610928e-04)):
        device = JunctionDiode(**RECOMBINING, temp=temp, area=2.0)
        assert device.law(0.45)[0] == pytest.approx(amperes, rel=1e-12)


@pytest.mark.parametrize("voltage", [0.9, 0.62, 0.3, 1e-3, -0.05, -0.2, -5.3])
def test_derivatives_by_the_entries_of_the_law(voltage: float) -> None:
    row = JunctionDiode(**RECOMBINING, bv=5.1).row()
    out = np.empty(len(row))
    JunctionDiode.by_parameters(row, voltage, out)
    for k in range(1, CJO):
        step = 1e-6 * row[k]
        up, down = ((*row[:k], row[k] + sign * step, *row[k + 1 :]) for sign in (1.0, -1.0))
        ends = [JunctionDiode.junction(p, voltage)[0] for p in (up, down)]
        slope = (ends[0] - ends[1]) / (2.0 * step)
        assert out[k] == pytest.approx(slope, rel=1e-6, abs=1e-9 * max(map(abs, ends)) / row[k]), k


def test_a_recombination_current_that_falls_with_the_voltage_is_refused() -> None:
    with pytest.raises(ValueError, match=r"would fall as the voltage rises: VJ must be at least 0.32\d* V"):
        JunctionDiode(isr=1e-9, nr=2.0, vj=0.2, mj=0.9)


def test_words_of_capacitance_alone_state_no_junction() -> None:
    """VJ and M belong to the recombination current and to the capacitance: a card with these alone is ideal."""
    deck = "t\nV1 a 0 1\nR1 a b 1k\nD1 b 0 X\n.model X D(CJO=2p VJ=.7 M=.4{0})\n"
    with pytest.warns(Warning):
        ideal, real = circuitsim.loads(deck.format("")), circuitsim.loads(deck.format(" ISR=1n"))
    assert not ideal.devices
    found = real.device_of("D1")
    assert isinstance(found, JunctionDiode) and (found.vj, found.mj, found.isr) == (0.7, 0.4, 1e-9)
    assert "mj=0.4" in circuitsim.dumps(real) and " m=0.4" not in circuitsim.dumps(real)


def test_no_way_for_a_reverse_current_names_the_device_and_its_limit() -> None:
    c = Circuit("t")
    c.current_source("I1", "0", "a", -1e-3)
    c.device("D1", "a", "b", JunctionDiode())
    c.resistor("R1", "b", "0", 1.0)
    with pytest.raises(UnboundedError, match="D1 passes at least -1e-14 A") as error:
        circuitsim.solve(c)
    assert set(error.value.elements) == {"I1", "D1"} and "a" in error.value.nodes
    point = circuitsim.solve(c.with_values({"D1.bv": 6.2}))
    assert point.state("D1") == "reverse breakdown" and point.current("D1") == pytest.approx(-1e-3, rel=1e-12)
    assert circuitsim.solve(c.with_values({"I1": 9.9e-15, "D1.rs": 1.0})).current("D1") == pytest.approx(9.9e-15)


def test_beyond_the_range_of_doubles() -> None:
    c = Circuit("t")
    c.voltage_source("V1", "a", "0", 5.0)
    c.device("D1", "a", "0", JunctionDiode())
    assert circuitsim.solve(c).current("D1") == pytest.approx(1e-14 * math.exp(5.0 / (float(K_OVER_Q) * 300.15)))
    with pytest.raises(
        ConvergenceError, match="D1 would carry more current than a double can hold at 50 V: give its model"
    ):
        circuitsim.solve(c.with_values({"V1": 50.0}))


def test_leakage_beside_kiloamperes() -> None:
    c = loads("t\nI1 0 a 3000\nR1 a 0 0.001\n").circuit
    c.device("D1", "b", "a", JunctionDiode(**{"is": 1e-18}))
    c.resistor("R2", "b", "0", 1e3)
    assert circuitsim.solve(c).current("D1") == pytest.approx(-1e-18, rel=1e-3)


def test_ideal_and_piecewise_linear_diodes_stay_exact_in_each_step() -> None:
    c = behind(5.0, 1e3, {})
    c.diode("D2", "a", "k")
    c.resistor("R2", "k", "0", 20.0)
    point = circuitsim.solve(c)
    assert point.state("D2") == "conducting" and point["k"] == point["a"]
    assert point["a"] == pytest.approx(0.0980393, abs=1e-6)  # 5 V · 20/1020, the junction leaks 1e-13 A


def test_starts_and_new_values() -> None:
    ready = circuitsim.prepared(behind(5.0, 1e3, {"bv": 5.1}))
    cold = ready.solve({"V1": 5.001})
    warm = ready.solve({"V1": 5.001}, start=ready.solve())
    assert warm["a"] == pytest.approx(cold["a"], rel=1e-12)
    assert warm.solver["newton_steps"] <= cold.solver["newton_steps"]
    assert ready.solve({"V1": -9.0, "D1.bv": 4.0}).state("D1") == "reverse breakdown"
    swept = circuitsim.sweep(behind(5.0, 1e3, {}), {"V1": [1.0, 2.0], "D1.n": [1.0, 2.0]}, "v(a)")["v(a)"]
    expected = [bisected(v, 1e3, {"n": n})[0] for v in (1.0, 2.0) for n in (1.0, 2.0)]
    assert sorted(swept) == pytest.approx(sorted(expected), rel=1e-12)
