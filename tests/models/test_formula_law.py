"""Currents given by a formula of their own voltage: bisection by hand, enclosures, refusals, ngspice, round trips."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from bisection import device_voltage

import circuitsim
from circuitsim import netlist
from circuitsim.errors import NetlistError, UnboundedError
from circuitsim.models.formula_law import FormulaLaw
from circuitsim.models.formula_proof import enclose

Law = Callable[[float], float]


def softened(v: float) -> float:
    """A conditional law with a condition of two parts."""
    return 1e-3 * v if abs(v) < 1.0 else math.copysign(1e-3 * (2.0 * math.sqrt(abs(v)) - 1.0), v)


LAWS: dict[str, tuple[str, Law]] = {
    "sinh": ("1e-6*sinh(v(a,0)/0.3)", lambda v: 1e-6 * math.sinh(v / 0.3)),
    "other way round": ("-1e-6*sinh(v(0,a)/0.3)", lambda v: 1e-6 * math.sinh(v / 0.3)),
    "diode": ("1e-14*(exp(v(a)/0.02585)-1)", lambda v: 1e-14 * math.expm1(v / 0.02585)),
    "cubic": ("1m*v(a) + 2m*pow(v(a),3)", lambda v: 1e-3 * v + 2e-3 * v**3),
    "tanh": ("5m*tanh(v(a)/0.5) + v(a)/10k", lambda v: 5e-3 * math.tanh(v / 0.5) + v / 1e4),
    "root": ("1m*sgn(v(a))*sqrt(abs(v(a)))", lambda v: math.copysign(1e-3 * math.sqrt(abs(v)), v)),
    "condition": ("v(a) > -1 && v(a) < 1 ? 1m*v(a) : 1m*sgn(v(a))*(2*sqrt(abs(v(a)))-1)", softened),
    "limits": ("max(min(2m*v(a), 3m), -1m) + 1u*pow(v(a),3)", lambda v: max(min(2e-3 * v, 3e-3), -1e-3) + 1e-6 * v**3),
    "asinh": ("2m*asinh(4*v(a)) + 1m*atan(v(a)**2*v(a))", lambda v: 2e-3 * math.asinh(4 * v) + 1e-3 * math.atan(v**3)),
    "wave": ("1m*(v(a) + 0.9*sin(v(a)))", lambda v: 1e-3 * (v + 0.9 * math.sin(v))),
}


def circuit(formula: str, more: str = "") -> circuitsim.Circuit:
    """A source, a resistor, and the formula in parallel to nothing."""
    return netlist.loads(f"t\nV1 in 0 2\nR1 in a 100\nB1 a 0 I={{{formula}}}\n{more}\n")


@pytest.mark.parametrize("name", LAWS)
def test_bisection_by_hand(name: str) -> None:
    formula, law = LAWS[name]
    c = circuit(formula)
    assert isinstance(c.devices[2], FormulaLaw)
    for volts in (40.0, 2.5, 1e-3, -0.7, -20.0):
        for ohms in (0.5, 100.0, 1e6):
            point = circuitsim.solve(c.with_values({"V1": volts, "R1": ohms}))
            assert point["a"] == pytest.approx(device_voltage(law, volts, ohms), rel=2e-12, abs=1e-15 * abs(volts))
            assert point.certificate.relative["devices"] < 1e-9
    again = netlist.loads(netlist.dumps(c))
    for volts in (2.5, -0.7):
        points = [circuitsim.solve(one.with_values({"V1": volts})) for one in (c, again)]
        assert points[1]["a"] == pytest.approx(points[0]["a"], rel=1e-13)


@pytest.mark.parametrize("name", LAWS)
def test_slopes_and_enclosures(name: str) -> None:
    device = circuit(LAWS[name][0]).devices[2]
    assert isinstance(device, FormulaLaw)
    row = np.array(device.row())
    places = np.concatenate([np.geomspace(1e-6, 8.0, 40), -np.geomspace(1e-6, 8.0, 40)])
    found = enclose(device.tape, places - 0.01 * abs(places), places + 0.02 * abs(places))
    assert not found.undefined.any()
    for k, u in enumerate(places.tolist()):
        current, slope = device.junction(row, u)
        step = 1e-5 * abs(u)
        currents = [device.junction(row, u + side * step)[0] for side in (-1.0, 1.0)]
        if abs(abs(u) - 1.0) > 2.0 * step:
            assert slope == pytest.approx((currents[1] - currents[0]) / (2.0 * step), rel=1e-5, abs=1e-9)
        assert found.value.low[k] <= current <= found.value.high[k]
        assert found.slope.low[k] <= slope <= found.slope.high[k]


@pytest.mark.parametrize(
    ("formula", "wrong"),
    [
        ("v(a)*v(a)", r"falls from 1.20893e\+24 to 0 A between -1.09951e\+12 and 0 V"),
        ("v(a)*v(a)*v(a) - 2*v(a)*v(a) + v(a)", r"falls from 0.148148 to 0 A between 0.333333 and 1 V"),
        ("v(a)*exp(-4*v(a)) + 1m*v(a)", "falls from 0.0922202 to 0.00252765 A between 0.250681 and 2.24634 V"),
        ("1m*(v(a) + 1.5*sin(v(a)))", "falls from"),
        ("v(a) > 0.7 ? v(a) - 0.2 : 0", "jumps from 0 to 0.5 A at 0.7 V"),
        ("sgn(v(a)) + v(a)", "jumps from -1 to 1 A at 0 V"),
        ("v(a) - (v(a) > 1 ? 1 : 0)", "jumps from 1 to .* A at 1 V"),
        ("ln(1 + v(a))", "has no value below -1 V"),
        ("1/v(a)", "has no value at 0 V"),
        ("sqrt(v(a))", "has no value below"),
        ("v(a)/(1 + abs(v(a)))", "is not proven between .* limit"),
        ("int(v(a))", r"int\(\) is not supported"),
        ("v(a) ? v(a) : 2*v(a)", "a number as condition is not supported"),
        ("v(a)*i(R1)", "not affine"),
    ],
)
def test_refusals(formula: str, wrong: str) -> None:
    with pytest.raises(NetlistError, match=wrong):
        circuit(formula)


def test_limits_are_those_of_existence() -> None:
    deck = "t\nI1 0 a {i}\nR1 a b 10\nB1 b 0 I={{2m*tanh(v(b)/0.1)}}\n"
    point = circuitsim.solve(netlist.loads(deck.format(i="1.9m")))
    assert point["b"] == pytest.approx(0.1 * math.atanh(0.95), rel=1e-12)
    with pytest.raises(UnboundedError, match=r"B1 passes at least -0.002 A and at most 0.002 A"):
        circuitsim.solve(netlist.loads(deck.format(i="2.1m")))


def test_parameters_functions_multiples_and_sub_circuits() -> None:
    deck = """t
.param g=2m
.func cell(x,s) {s*sinh(x/v0)}
.param v0=0.4
V1 in 0 1
R1 in a {r}
X1 a 0 part m=3
.subckt part p n
B1 p n I={cell(v(p,n), g)} m=2
.ends
"""
    for ohms in ("0", "10"):  # a value that the source fixes, and a device
        point = circuitsim.solve(netlist.loads(deck.replace("{r}", ohms)))
        assert point.current("X1.B1") == pytest.approx(6 * 2e-3 * math.sinh(point["a"] / 0.4), rel=1e-12)


@pytest.mark.skipif(shutil.which("ngspice") is None, reason="needs ngspice")
def test_ngspice_runs_what_is_written(tmp_path: Path) -> None:
    lines = ["t", ".options reltol=1e-12 abstol=1e-16 vntol=1e-14 gmin=1e-30"]
    for k, (formula, _) in enumerate(LAWS.values()):
        text = netlist.dumps(circuit(formula)).splitlines()[1:4]
        lines += [
            re.sub(r"\ba\b", f"a{k}", re.sub(r"^(\w+) ", rf"\1_{k} ", one)).replace(" in ", f" in{k} ") for one in text
        ]
    shown = " ".join(f"v(a{k})" for k in range(len(LAWS)))
    path = tmp_path / "all.cir"
    path.write_text("\n".join([*lines, ".control", "set numdgt=15", "op", f"print {shown}", ".endc", ".end", ""]))
    done = subprocess.run(["ngspice", "-b", path], capture_output=True, text=True, timeout=60, check=False)
    found = dict(re.findall(r"v\((a\d+)\) = (\S+)", done.stdout))
    for k, (formula, _) in enumerate(LAWS.values()):
        own = circuitsim.solve(circuit(formula))["a"]
        assert float(found[f"a{k}"]) == pytest.approx(own, rel=1e-8), formula
