"""Three and more coupled windings, ideal ones too: closed forms, hand-made transformers, the exact method, ngspice."""

from __future__ import annotations

import math
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from circuitsim import Circuit
from circuitsim.errors import UsageError
from circuitsim.netlist import loads
from circuitsim.time_domain import TransientResult, Value, transient, waveform_gradient

JUNCTION = "D(IS=1e-12 N=1 RS=0.01)"
STRAIGHT = "D(VFWD=0.7 RON=0.01)"
Numbers = dict[str, float]
Deck = Callable[[float, str], str]
LOADED: Numbers = {
    "L1": 0.1,
    "L2": 0.025,
    "L3": 0.4,
    "R1": 50.0,
    "R2": 20.0,
    "R3": 300.0,
    "V1": 5.0,
    "L1.ic": 0.02,
    "L2.ic": -0.03,
    "L3.ic": 0.005,
}


def couplings(count: int, factor: float) -> str:
    pairs = [(a, b) for a in range(1, count + 1) for b in range(a + 1, count + 1)]
    return "\n".join(f"K{a}{b} L{a} L{b} {factor!r}" for a, b in pairs)


def switched(title: str, coils: str, rest: str, diode: str, stop: str) -> str:
    return f"""{title}
Vg g 0 PULSE(0 5 0 20n 20n 4u 10u)
{coils}
S1 d 0 g 0 SW
.model SW SW(RON=0.05 ROFF=1meg VT=2.5 VH=0.1)
.model DM {diode}
{rest}
.tran 0.5u {stop}
.end
"""


def forward(factor: float, diode: str, stop: str = "25u", coils: str = "") -> str:
    """A forward converter, whose third winding returns the magnetising current to the source."""
    own = f"L1 in d 100u\nL2 s 0 25u\nL3 0 r 100u\n{couplings(3, factor)}"
    rest = "V1 in 0 24\nDr r in DM\nD1 s x DM\nD2 0 x DM\nLF x out 50u\nC1 out 0 10u\nR2 out 0 5"
    return switched("forward converter", coils or own, rest, diode, stop)


def flyback(factor: float, diode: str, stop: str = "25u") -> str:
    """A flyback converter with two outputs."""
    coils = f"L1 in d 100u\nL2 0 s 25u\nL3 0 t 50u\n{couplings(3, factor)}"
    rest = "V1 in 0 12\nD1 s out DM\nD2 t o2 DM\nC1 out 0 10u\nR1 out 0 10\nC2 o2 0 10u\nR2 o2 0 20"
    return switched("flyback converter", coils, rest, diode, stop)


def push_pull(factor: float, diode: str, stop: str = "25u") -> str:
    """Two switches in turn, two diodes: four windings."""
    coils = f"L1 in d 100u\nL2 e in 100u\nL3 s 0 100u\nL4 0 t 100u\n{couplings(4, factor)}"
    rest = """V1 in 0 12
Vh h 0 PULSE(0 5 5u 20n 20n 4u 10u)
S2 e 0 h 0 SW
D1 s x DM
D2 t x DM
LF x out 50u
C1 out 0 10u
R2 out 0 5"""
    return switched("push-pull converter", coils, rest, diode, stop)


@cache
def run(text: str, **options: object) -> TransientResult:
    """A certified run; several tests share some."""
    found = transient(loads(text), **options)  # type: ignore[arg-type]
    assert found.certificate.certified
    return found


def apart(one: TransientResult, other: TransientResult, column: str = "v(out)") -> float:
    """Largest difference of a waveform at the output times, of its largest value."""
    kind, name = column[0], column[2:-1]
    a, b = ((r.voltage(name) if kind == "v" else r.current(name)) for r in (one, other))
    return float(np.abs(a - b).max() / np.abs(b).max())


def loaded(numbers: Numbers) -> Circuit:
    """A source behind a resistance at the first of three ideally coupled windings, resistances at the others."""
    circuit = Circuit("loaded")
    circuit.voltage_source("V1", "in", "0", numbers["V1"])
    circuit.resistor("R1", "in", "a", numbers["R1"])
    for coil, node, load in (("L1", "a", ""), ("L2", "s", "R2"), ("L3", "t", "R3")):
        circuit.add("L", coil, node, "0", numbers[coil])
        if load:
            circuit.resistor(load, node, "0", numbers[load])
    return circuit


def closed_form(n: Numbers, time: float) -> dict[str, float]:
    """Ideal transformers of √(L / L₁) turns beside the magnetising inductance L₁."""
    turns = [math.sqrt(n[coil] / n["L1"]) for coil in ("L2", "L3")]
    siemens = 1.0 / n["R1"] + sum(t * t / n[load] for t, load in zip(turns, ("R2", "R3")))
    last, first = n["V1"] / n["R1"], n["L1.ic"] + turns[0] * n["L2.ic"] + turns[1] * n["L3.ic"]
    current = last + (first - last) * math.exp(-time / (n["L1"] * siemens))
    v = (last - current) / siemens
    return {
        "v(a)": v,
        "v(s)": turns[0] * v,
        "v(t)": turns[1] * v,
        "i(L1)": (n["V1"] - v) / n["R1"],
        "i(L2)": -turns[0] * v / n["R2"],
        "i(L3)": -turns[1] * v / n["R3"],
    }


IDEAL = {("L1", "L2"): 1.0, ("L1", "L3"): 1.0, ("L2", "L3"): 1.0}


def test_gradients_of_ideal_windings() -> None:
    initial = {name[:2]: LOADED[name] for name in ("L1.ic", "L2.ic", "L3.ic")}
    found = transient(
        loaded(LOADED), 0.01, initial=initial, couplings=IDEAL, points=3, accuracy=1e-7, method="implicit"
    )
    names, time = list(LOADED), 0.0073
    for column in ("v(t)", "i(L1)", "i(L2)"):
        gradient = waveform_gradient(found, [Value(column, time)], names).gradient
        relative = [LOADED[name] * gradient[name] for name in names]
        difference = [
            (
                closed_form({**LOADED, name: 1.001 * LOADED[name]}, time)[column]
                - closed_form({**LOADED, name: 0.999 * LOADED[name]}, time)[column]
            )
            / 0.002
            for name in names
        ]
        scale = max(abs(own) for own in difference)
        assert relative == pytest.approx(difference, abs=1e-5 * scale)
    with pytest.raises(UsageError, match="ideal coupling"):
        waveform_gradient(found, [Value("v(s)", time)], ["k(L1,L2)"])


@pytest.mark.parametrize("diode", [JUNCTION, STRAIGHT])
def test_a_forward_converter_as_with_transformers_by_hand(diode: str) -> None:
    """One magnetising inductance, controlled sources of the turns 1 : 0.5 and 1 : 1; straight diodes: two methods."""
    by_hand = "L1 in d 100u\nE2 s 0 in d 0.5\nF2 in d E2 -0.5\nE3 0 r in d 1\nF3 in d E3 -1"
    found, equal = run(forward(1.0, diode)), run(forward(1.0, diode, coils=by_hand))
    assert apart(found, equal) < 1e-4
    magnetising = found.current("L1") + 0.5 * found.current("L2") + found.current("L3")
    assert np.abs(magnetising - equal.current("L1")).max() < 1e-4 * np.abs(magnetising).max()
    ratio = found.voltage("s") - 0.5 * (found.voltage("in") - found.voltage("d"))
    assert np.abs(ratio).max() < 1e-9 * 24.0


@pytest.mark.parametrize("factor", [0.999, 0.99999])
@pytest.mark.parametrize("deck", [forward, flyback, push_pull])
def test_as_the_exact_method(deck: Deck, factor: float) -> None:
    text = deck(factor, STRAIGHT)
    found, exact = run(text, method="implicit"), run(text, method="exact")
    assert apart(found, exact) < 2e-4
    if factor == 0.99999:
        assert apart(run(deck(1.0, STRAIGHT), method="implicit"), exact) < 5e-4
        assert apart(run(deck(1.0, STRAIGHT), method="implicit"), run(deck(1.0, STRAIGHT), method="exact")) < 2e-4


@pytest.mark.ngspice
@pytest.mark.skipif(shutil.which("ngspice") is None, reason="ngspice is not installed")
@pytest.mark.parametrize("deck", [forward, flyback])
def test_against_ngspice(deck: Deck, tmp_path: Path) -> None:
    """ngspice takes factors below 1 only: 0.99999 there, 1 here; its steps resolve the switch's flanks."""
    text = deck(0.99999, JUNCTION).replace(".tran 0.5u 25u", ".tran 0.5u 25u 0 2n")
    data = tmp_path / "out.txt"
    control = f".control\nset wr_singlescale\nrun\nlinearize v(out)\nwrdata {data} v(out)\n.endc\n.end"
    path = tmp_path / "deck.cir"
    path.write_text(text.replace(".end\n", control + "\n"))
    subprocess.run(["ngspice", "-b", str(path)], capture_output=True, text=True, check=False, timeout=120)
    theirs = np.loadtxt(data)
    ours = run(deck(1.0, JUNCTION)).voltage("out", times=theirs[1:-1, 0])
    assert np.abs(ours - theirs[1:-1, 1]).max() < 2e-3 * np.abs(ours).max()


def test_what_stores_negative_energy_is_named() -> None:
    text = forward(1.0, STRAIGHT).replace("K23 L2 L3 1.0", "K23 L2 L3 0.5")
    with pytest.raises(UsageError, match="couplings of L1, L2, L3 store negative energy"):
        run(text)


def test_windings_that_are_ideal_together() -> None:
    """Factors of −½ between three: no flux where all currents are equal. No pair of them is ideal."""
    circuit = loaded(LOADED)
    pairs = {("L1", "L2"): -0.5, ("L1", "L3"): -0.5, ("L2", "L3"): -0.5}
    found = transient(circuit, 0.02, initial={}, couplings=pairs, points=21, method="implicit")
    exact = transient(circuit, 0.02, initial={}, couplings=pairs, points=21, method="exact")
    near = transient(circuit, 0.02, initial={}, couplings=dict.fromkeys(pairs, -0.49999), points=21, method="exact")
    for coil in ("L1", "L2", "L3"):
        # At time 0 the currents that store no energy change at once; those of the other circuit take 0.1 µs.
        ours, theirs = found.current(coil)[1:], near.current(coil)[1:]
        assert np.abs(ours - theirs).max() < 2e-4 * np.abs(theirs).max()
        assert np.abs(exact.current(coil)[1:] - theirs).max() < 5e-5 * np.abs(theirs).max()
