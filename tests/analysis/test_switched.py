"""Switches at operating points and in sweeps: by hand, against all states, and against ngspice."""

import json
import subprocess
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from spice import needed

from circuitsim import solve, sweep
from circuitsim.analysis.switching import controls_at, switches_of
from circuitsim.cli import main
from circuitsim.errors import ConvergenceError
from circuitsim.netlist import loads

HYSTERESIS = """hysteresis
Vc c 0 0
V1 a 0 10
R1 a b 1k
S1 b 0 c 0 m
.model m SW(vt=2.5 vh=0.5 ron=1 roff=1meg)
"""
RELAYS = """relays in a chain: a current closes the first, its voltage the second
V1 a 0 10
R1 a s 1k
Vs s t 0
R2 t 0 1k
W1 a p Vs mw
R3 p 0 100
S2 a q p 0 m
R4 q 0 100
.model mw CSW(it=1m ih=0.1m ron=1 roff=1g)
.model m SW(vt=5 vh=1 ron=1 roff=1g)
"""
LATCH = "latch\nV1 a 0 10\nS1 a b b 0 m {state}\nR1 b 0 1k\n.model m SW(vt=5 ron=1 roff=1meg)\n"
BUZZER = "buzzer\nV1 a 0 10\nR1 a b 1k\nS1 b 0 b 0 m\n.model m SW(vt=5 ron=1 roff=1meg)\n"
CLOSED, OPEN = 10.0 / 1001.0, 10.0 * 1e6 / 1.001e6


def test_a_control_that_sources_fix() -> None:
    """Closed above 3 V, open below 2 V, between them as on the card."""
    for volts, card, expected in [(3.2, "", CLOSED), (1.9, "ON", OPEN), (2.7, "", OPEN), (2.7, "ON", CLOSED)]:
        text = HYSTERESIS.replace("c 0 0\n", f"c 0 {volts}\n").replace("c 0 m", f"c 0 m {card}")
        assert solve(loads(text))["b"] == pytest.approx(expected, rel=1e-12)


def test_a_sweep_goes_through_the_hysteresis() -> None:
    deck = loads(HYSTERESIS)
    volts = [*np.arange(0.0, 5.1, 0.5).tolist(), *np.arange(4.5, -0.1, -0.5).tolist()]
    found = sweep(deck, {"Vc": volts}, "v(b)")["v(b)"]
    closed = [1.0 if v > 3.0 else 0.0 for v in volts[:11]] + [1.0 if v >= 2.0 else 0.0 for v in volts[11:]]
    assert found == pytest.approx(np.where(np.array(closed) > 0.5, CLOSED, OPEN), rel=1e-12)


def test_relays_in_a_chain() -> None:
    point = solve(loads(RELAYS))
    assert (point["p"], point["q"]) == pytest.approx((1000.0 / 101.0, 1000.0 / 101.0), rel=1e-12)
    assert not point.warnings


def test_two_states_of_a_latch_are_a_warning() -> None:
    for state, expected in [("", 10.0 / 1001.0), ("ON", 10.0 * 1000.0 / 1001.0)]:
        point = solve(loads(LATCH.format(state=state)))
        assert point["b"] == pytest.approx(expected, rel=1e-12)
        (warning,) = point.warnings
        assert warning.kind == "several" and "also S1" in warning.message


def test_a_start_chooses_the_state_of_a_latch(tmp_path: Path) -> None:
    high, low = tmp_path / "high.cir", tmp_path / "low.cir"
    high.write_text(LATCH.format(state="ON"), encoding="utf-8")
    low.write_text(LATCH.format(state="OFF"), encoding="utf-8")
    assert main(["solve", str(high), "--format", "json", "--output", str(tmp_path / "high.json")]) == 0
    words = ["solve", str(low), "--format", "json", "--output", str(tmp_path / "low.json")]
    assert main([*words, "--start", str(tmp_path / "high.json")]) == 0
    assert json.loads((tmp_path / "low.json").read_text())["nodes"]["b"] == pytest.approx(10000.0 / 1001.0)


def test_no_state_of_a_buzzer_is_an_error() -> None:
    with pytest.raises(ConvergenceError, match="S1: no state is consistent"):
        solve(loads(BUZZER))
    found = sweep(loads(BUZZER), {"V1": [1.0, 10.0]}, "v(b)")
    assert len(found.failures) == 1 and found["v(b)"][0] == pytest.approx(1e6 / 1.001e6)


def test_a_switch_in_a_sweep_of_itself_is_a_resistor() -> None:
    found = sweep(loads(HYSTERESIS), {"S1": [1e3, 3e3]}, "v(b)")
    assert found["v(b)"] == pytest.approx([5.0, 7.5])


def test_a_control_inside_a_negative_hysteresis_is_an_error() -> None:
    smooth = HYSTERESIS.replace("vh=0.5", "vh=-0.5")
    assert solve(loads(smooth))["b"] == pytest.approx(OPEN)
    with pytest.raises(ConvergenceError, match="negative hysteresis"):
        solve(loads(smooth.replace("c 0 0\n", "c 0 2.6\n")))


def random_deck(rng: np.random.Generator) -> str:
    """A ladder of resistors with up to four switches, each controlled by a voltage or by the current of the source."""
    nodes = [f"n{k}" for k in range(5)]
    lines = [
        "random switches",
        "V1 n0 x 10",
        "Vs x 0 0",
        ".model m SW(vt=3 vh=0.5 ron=10 roff=100k)",
        ".model w CSW(it=-5m ih=1m ron=10 roff=100k)",
    ]
    lines += [f"R{k} {a} {b} {rng.integers(1, 20) * 100}" for k, (a, b) in enumerate(pairwise(nodes))]
    lines += [f"Rg{k} {a} 0 {rng.integers(1, 20) * 100}" for k, a in enumerate(nodes)]
    for k in range(int(rng.integers(1, 5))):
        a, b, plus, minus = (str(rng.choice([*nodes, "0"])) for _ in range(4))
        state = str(rng.choice(["", "ON"]))
        current = rng.random() < 0.3
        lines.append(f"W{k} {a} {b} Vs w {state}" if current else f"S{k} {a} {b} {plus} {minus} m {state}")
    return "\n".join(lines) + "\n"


def agreeing(text: str) -> list[tuple[bool, ...]]:
    """All states of the switches that agree with their controls, found by solving each as resistors."""
    deck = loads(text)
    switches = switches_of(deck.circuit, deck.following)
    found = []
    for states in product((False, True), repeat=len(switches)):
        ohms = {name: s.on if closed else s.off for (name, s), closed in zip(switches.items(), states)}
        controls = controls_at(solve(deck.circuit.with_values(ohms)), tuple(switches.values()))
        at = [s.threshold + (-s.hysteresis if s.closed else s.hysteresis) for s in switches.values()]
        if all((c >= t if s.closed else c > t) == own for c, t, s, own in zip(controls, at, switches.values(), states)):
            found.append(states)
    return found


@pytest.mark.parametrize("seed", range(40))
def test_random_switches_against_all_their_states(seed: int) -> None:
    text = random_deck(np.random.default_rng(seed))
    deck, expected = loads(text), agreeing(text)
    switches = switches_of(deck.circuit, deck.following)
    if not expected:
        with pytest.raises(ConvergenceError, match="no state is consistent"):
            solve(deck)
        return
    point = solve(deck)
    states = tuple(point.circuit[name].value == s.on for name, s in switches.items())
    assert states in expected
    assert bool(point.warnings) == (len(expected) > 1)


@needed
@pytest.mark.parametrize("text", [RELAYS, HYSTERESIS.replace("c 0 0\n", "c 0 3.2\n"), LATCH.format(state="")])
def test_ngspice_has_the_same_operating_point(text: str, tmp_path: Path) -> None:
    path = tmp_path / "deck.cir"
    path.write_text(text + ".control\nop\nprint all\n.endc\n.end\n", encoding="utf-8")
    out = subprocess.run(["ngspice", "-b", str(path)], capture_output=True, text=True, timeout=60, check=False).stdout
    rows = [line.split(" = ") for line in out.splitlines() if " = " in line and line[:1].islower()]
    point = solve(loads(text))
    volts = {name.strip(): float(value) for name, value in rows if name.strip() in point.circuit.node_names}
    assert len(volts) >= 2
    assert {name: point[name] for name in volts} == pytest.approx(volts, rel=2e-6)
