"""Voltages given by a formula of their own current: bisection by hand, refusals, series sources, ngspice."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from bisection import device_current

import circuitsim
from circuitsim import netlist
from circuitsim.errors import NetlistError
from circuitsim.models.formula_inverse import inverse
from circuitsim.models.formula_law import FormulaVoltage

DECK = "t\nV1 in 0 {volts}\nR1 in a 100\nB1 a 0 V={{{formula}}}\n"
SOURCES = (40.0, 2.5, 1e-3, -0.7, -20.0)

LAWS: dict[str, tuple[str, Callable[[float], float]]] = {
    "asinh": ("0.3*asinh(i(B1)/1u)", lambda i: 0.3 * math.asinh(i / 1e-6)),
    "cubic": ("10*i(B1) + 1k*pow(i(B1),3)", lambda i: 10 * i + 1e3 * i**3),
    "level at zero": ("1e6*pow(i(b1),3)", lambda i: 1e6 * i**3),
    "exponential": ("10*i(B1) + 0.1*sinh(i(B1)/10m)", lambda i: 10 * i + 0.1 * math.sinh(i / 1e-2)),
    "root": ("2*sgn(i(B1))*sqrt(abs(i(B1)))", lambda i: math.copysign(2.0 * math.sqrt(abs(i)), i)),
    "condition": (
        "abs(i(B1)) < 1m ? 1k*i(B1) : sgn(i(B1))*(0.5 + 500*abs(i(B1)))",
        lambda i: 1e3 * i if abs(i) < 1e-3 else math.copysign(0.5 + 500 * abs(i), i),
    ),
    "wave": ("100*i(B1) + 50m*sin(1k*i(B1))", lambda i: 100 * i + 0.05 * math.sin(1e3 * i)),
    "logarithm": (
        "25m*sgn(i(B1))*ln(1 + abs(i(B1))/1e-14)",
        lambda i: math.copysign(0.025 * math.log1p(abs(i) / 1e-14), i),
    ),
}


def made(formula: str, volts: float = 2.5) -> circuitsim.Circuit:
    """A source, a resistor, and the formula."""
    return netlist.loads(DECK.format(formula=formula, volts=volts))


@pytest.mark.parametrize("name", LAWS)
def test_bisection_by_hand(name: str) -> None:
    formula, law = LAWS[name]
    c = made(formula)
    assert isinstance(c.devices[2], FormulaVoltage)
    again = netlist.loads(netlist.dumps(c))
    ready = circuitsim.prepared(c)
    for volts in SOURCES:
        for ohms in (0.5, 100.0, 1e6):
            changes = {"V1": volts, "R1": ohms}
            point, own = circuitsim.solve(c.with_values(changes)), device_current(law, volts, ohms)
            assert point.current("B1") == pytest.approx(own, rel=1e-11, abs=1e-15 * abs(volts) / ohms)
            assert point["a"] == pytest.approx(law(own), rel=1e-11, abs=1e-15 * abs(volts))
            assert point.certificate.certified
            assert ready.solve(changes).current("B1") == pytest.approx(own, rel=1e-9)
        written = circuitsim.solve(again.with_values({"V1": volts}))
        assert written["a"] == pytest.approx(circuitsim.solve(c.with_values({"V1": volts}))["a"], rel=1e-12)


@pytest.mark.parametrize("name", LAWS)
def test_the_inverse_of_a_formula_and_its_slope(name: str) -> None:
    formula, law = LAWS[name]
    device = made(formula).devices[2]
    row = np.array(device.row())  # type: ignore[attr-defined]
    for i in [s * x for x in np.geomspace(1e-9, 0.9, 25).tolist() for s in (1.0, -1.0)]:
        found, ohms = inverse(row, law(i))
        assert law(found) == pytest.approx(law(i), rel=1e-13)
        step = 1e-5 * abs(i)
        if abs(abs(i) - 1e-3) > 2 * step:
            assert ohms == pytest.approx((law(i + step) - law(i - step)) / (2 * step), rel=1e-4)
        amperes, siemens = device.junction(row, law(i))  # type: ignore[attr-defined]
        assert (amperes, siemens) == (found, pytest.approx(1.0 / ohms))


@pytest.mark.parametrize(
    ("formula", "wrong"),
    [
        ("1k*i(B1)*i(B1)", r"voltage falls from 1.20893e\+27 to 0 V between -1.09951e\+12 and 0 A: no monotone law"),
        (
            "i(B1) - 3*i(B1)*i(B1) + 2*pow(i(B1),3)",
            "falls from 0.096225 to -0.096225 V between 0.211325 and 0.788675 A",
        ),
        ("tanh(i(B1)/1m)", "stays at -1 V between .* A: no law with one current at each voltage; add a resistance"),
        (
            "i(B1) > 1 ? pow(i(B1),2) : (i(B1) < 0 ? pow(i(B1),3) : (i(B1) > 0.5 ? 2*i(B1)-1 : 0))",
            "stays at 0 V between 0 and 0.5 A",
        ),
        ("sgn(i(B1)) + i(B1)", "jumps from -1 to 1 V at 0 A"),
        ("ln(1 + i(B1))", "has no value below -1 A"),
        ("i(B1)*i(V1)", "not affine"),
    ],
)
def test_refusals(formula: str, wrong: str) -> None:
    with pytest.raises(NetlistError, match=wrong):
        made(formula)


@pytest.mark.parametrize(("sense", "sign"), [("VS a c 0", ""), ("VS c a 0", "-")])
def test_a_source_in_series_senses_the_current(sense: str, sign: str) -> None:
    law = "B1 c 0 V={{0.3*asinh({}i(VS)/1u)}}"
    deck = f"t\nV1 in 0 2\nR1 in a 100\n{sense}\n{law.format(sign)}\n"
    own = circuitsim.solve(made(LAWS["asinh"][0], 2.0)).current("B1")
    turned = deck.replace("B1 c 0 V={0.3", "B1 0 c V={-0.3")
    for text in (deck, turned, deck.replace("B1", "E1").replace(" V=", " VALUE=")):
        point = circuitsim.solve(netlist.loads(text))
        assert abs(point.current(text.splitlines()[-1][:2])) == pytest.approx(own, rel=1e-12)
    with pytest.raises(NetlistError, match="falls from" if sign else "not affine"):
        netlist.loads(deck.replace("(-i", "(i") if sign else f"{deck}R2 c 0 1k\n")


def test_sub_circuits_and_multiples() -> None:
    deck = """t
.param v0=0.4
V1 in 0 1
R1 in a 10
X1 a 0 part m=3
.subckt part p n
B1 p n V={v0*asinh(i(B1)/2m)}
.ends
"""
    point = circuitsim.solve(netlist.loads(deck))
    assert point["a"] == pytest.approx(0.4 * math.asinh(point.current("X1.B1") / 3 / 2e-3), rel=1e-12)


@pytest.mark.skipif(shutil.which("ngspice") is None, reason="needs ngspice")
def test_ngspice_runs_what_is_written(tmp_path: Path) -> None:
    names = [name for name in LAWS if name != "level at zero"]  # ngspice begins at its slope of zero
    lines = ["t", ".options reltol=1e-12 abstol=1e-16 vntol=1e-14 gmin=1e-30"]
    for k, name in enumerate(names):
        text = netlist.dumps(made(LAWS[name][0])).splitlines()[1:4]
        lines += [re.sub(r"\b(a|in)\b", rf"\g<1>{k}", re.sub(r"\b(V1|R1|B1)\b", rf"\1_{k}", one)) for one in text]
    path = tmp_path / "all.cir"
    shown = " ".join(f"v(a{k})" for k in range(len(names)))
    path.write_text("\n".join([*lines, ".control", "set numdgt=15", "op", f"print {shown}", ".endc", ".end", ""]))
    done = subprocess.run(["ngspice", "-b", path], capture_output=True, text=True, timeout=60, check=False)
    found = dict(re.findall(r"v\((a\d+)\) = (\S+)", done.stdout))
    for k, name in enumerate(names):
        assert float(found[f"a{k}"]) == pytest.approx(circuitsim.solve(made(LAWS[name][0]))["a"], rel=1e-8), name
