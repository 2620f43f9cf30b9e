"""Mains rectifiers behind transformers by the implicit method: parts that float while ideal diodes block."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from circuitsim.netlist import loads
from circuitsim.time_domain import TransientResult, transient

RECTIFIERS = {
    "half wave": "D1 b out DM\nVt t 0 0",
    "bridge": "D1 b out DM\nD2 t out DM\nD3 0 b DM\nD4 0 t DM",
    "centre tap": "D1 b out DM\nD2 b2 out DM",
}
LOADS = {
    "RC": "C1 out 0 2200u\nR1 out 0 20",
    "C": "C1 out 0 2200u",
    "RL": "R1 out x 20\nLl x 0 50m",
    "LC": "Ll out x 10m\nC1 x 0 2200u\nR1 x 0 20",
}
MODELS = ("D(VFWD=0 RON=0)", "D(VFWD=0.7 RON=0)", "D(VFWD=0.7 RON=0.01)")
ACCURACY = 1e-4
DECKS = [
    (rectifier, load, MODELS[k % 3], factor)
    for k, (rectifier, load, factor) in enumerate(itertools.product(RECTIFIERS, LOADS, (1.0, 0.99)))
]
DECKS += [("bridge", "RL", model, factor) for model, factor in itertools.product(MODELS, (1.0, 0.999))]


def deck(rectifier: str, load: str, model: str, factor: float, stop: str = "13m", begin: str = "uic") -> str:
    coils = f"L1 a 0 10\nL2 s t 0.04\nK1 L1 L2 {factor}"
    if rectifier == "centre tap":
        coils = (
            f"L1 a 0 10\nL2 s 0 0.04\nL3 0 s2 0.04\nK12 L1 L2 {factor}\nK13 L1 L3 {factor}\n"
            f"K23 L2 L3 {factor}\nRs2 s2 b2 0.1"
        )
    return f"""{rectifier} with {load}
V1 in 0 SIN(0 325 50)
Rp in a 5
{coils}
Rs s b 0.1
{RECTIFIERS[rectifier]}
{LOADS[load]}
.model DM {model}
.tran 0.5m {stop} {begin}
.end
"""


def run(text: str, method: str) -> TransientResult:
    found = transient(loads(text), method=method, accuracy=ACCURACY)
    assert found.certificate.certified
    return found


def apart(one: TransientResult, other: TransientResult, column: str) -> float:
    kind, name = column[0], column[2:-1]
    a, b = ((r.voltage(name) if kind == "v" else r.current(name)) for r in (one, other))
    return float(np.abs(a - b).max() / np.abs(b).max())


@pytest.mark.parametrize(("rectifier", "load", "model", "factor"), DECKS)
def test_as_the_exact_method(rectifier: str, load: str, model: str, factor: float) -> None:
    """Ideal couplings, which the exact method refuses, beside those of 0.99999."""
    found = run(deck(rectifier, load, model, factor), "implicit")
    assert found.energies.imbalance < 10.0 * ACCURACY
    exact = run(deck(rectifier, load, model, min(factor, 0.99999)), "exact")
    within = 10.0 * ACCURACY if factor < 1.0 else 5e-3
    for column in ("v(out)", *(("i(Ll)",) if "L" in load else ()), *(("i(L1)",) if factor < 1.0 else ())):
        assert apart(found, exact, column) < within


def test_a_floating_winding_has_the_potential_that_equal_conductances_choose() -> None:
    """While all diodes of a bridge block, the sum of their voltages with signs at the winding is zero."""
    text = deck("bridge", "RC", "D(VFWD=0.7 RON=0.01)", 0.999)
    found = run(text, "implicit")
    v = {name: found.voltage(name) for name in ("b", "t", "out")}
    quiet = np.abs(found.current("Rs")) < 1e-9 * np.abs(found.current("Rs")).max()
    assert quiet.sum() >= 5
    assert np.abs(v["b"] + v["t"] - v["out"])[quiet].max() < 1e-9 * v["out"].max()


@pytest.mark.parametrize(("model", "factor"), [("D(VFWD=0.7 RON=0)", 0.9), ("D(VFWD=0.7 RON=0.02)", 0.99)])
def test_three_periods(model: str, factor: float) -> None:
    """Diodes turn on and off in pairs."""
    text = deck("bridge", "RC", model, factor, stop="60m")
    found, exact = run(text, "implicit"), run(text, "exact")
    assert apart(found, exact, "v(out)") < 10.0 * ACCURACY
    assert apart(found, exact, "i(L1)") < 10.0 * ACCURACY
    assert all(len(event.changed) == 2 for event in found.events) and len(found.events) >= 8


def test_a_transformer_by_hand() -> None:
    """Controlled sources of the deck in place of coupled inductors."""
    coils, factor, ratio = "L1 a 0 10\nL2 s t 0.04\nK1 L1 L2 1.0", 1.0, (0.04 / 10.0) ** 0.5
    text = deck("bridge", "RC", "D(VFWD=0.7 RON=0)", factor)
    by_hand = text.replace(coils, f"L1 a 0 10\nE1 s t a 0 {ratio!r}\nF1 a 0 E1 -{ratio!r}")
    assert by_hand != text
    assert apart(run(by_hand, "implicit"), run(text, "implicit"), "v(out)") < 2.0 * ACCURACY
