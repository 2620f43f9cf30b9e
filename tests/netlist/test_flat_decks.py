"""``convert`` says what the deck says, or refuses it by name: sources over time, amplitudes, analyses, models."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from circuitsim import UsageError, dumps, loads, solve, sweep, transient
from circuitsim.errors import CircuitError, NetlistError
from circuitsim.netlist import load
from circuitsim.netlist.deck import ranges_of
from circuitsim.netlist.waveform import Grid
from circuitsim.netlist.writer import text_of

ROOT = Path(__file__).parents[2]
DECKS = [*sorted((ROOT / "netlists").glob("*.cir")), *sorted((ROOT / "tests/decks").glob("*/*.cir"))]
TIMES = np.linspace(0.0, 1e-2, 101)[1:]


def flat(deck, ngspice=False):
    """The text that ``convert`` writes."""
    return text_of(deck, ngspice=ngspice, strict=ngspice)


def told(deck):
    """What a deck says beside its elements, by positions in the circuit."""
    following, grid = deck.following, Grid(1e-5, 1e-2)
    waves = {
        k: [one.over(grid).value(t) for t in TIMES] for k, one in following.waves.items() if "noise" not in one.name
    }
    switches = {k: (one.numbers, one.closed) for k, one in following.switches.items()}
    phasors = {k: one for k, one in following.phasors.items() if one}
    kinds = {type(card).__name__ for card in deck.analyses} - {"OperatingPointRequest", "Temperature"}
    return waves, switches, phasors, dict(following.initials), list(following.couplings.values()), kinds


@pytest.mark.parametrize("first", range(6))
def test_a_flat_deck_says_what_its_deck_says(first):
    refused, same = [], 0
    for path in DECKS[first::6]:
        try:
            deck = load(path)
        except NetlistError:
            continue
        try:
            text = flat(deck)
        except UsageError as error:
            assert re.search(r"\.(dc|step|temp)|formula", str(error))
            refused.append(path.name)
            continue
        again = loads(text)
        for before, after in zip(told(deck), told(again)):
            if isinstance(before, dict):
                assert before.keys() == after.keys(), path
                for k, value in before.items():
                    if isinstance(value, tuple):
                        assert value == after[k], path
                    else:
                        np.testing.assert_allclose(after[k], value, rtol=1e-12, atol=1e-15, err_msg=str(path))
            else:
                assert before == after, path
        try:
            volts = np.sort(solve(deck.circuit).voltages)  # the flat deck has its nodes in another order
        except CircuitError:
            continue
        found = np.sort(solve(again.circuit).voltages)  # op-amps have a gain of 1e9 there
        np.testing.assert_allclose(found, volts, rtol=0, atol=1e-6 * abs(volts).max(), err_msg=str(path))
        same += 1
    assert same > 10 and len(refused) < 20


def test_what_acts_over_time_is_written():
    text = (
        "t\n.subckt cell a b f=1k\nV1 a 0 DC 2 AC 3 45 SIN(1 2 {f})\nR1 a b 1k\nC1 b 0 1u ic=.5\nD1 b 0 dm\n.ends\n"
        "X1 p q cell f=2k\nI1 0 q PULSE(0 1m 1u 1u 1u .1m .2m) m=2\nV2 q 0 PWL(0 0 1m 1 2m 0) r=0 td=1u\n"
        ".model dm D(is=1e-14 cjo=4p tt=5n)\n.tran 1u 1m\n.meas tran top MAX i(X1.R1)\n.print tran v(q) i(X1.R1)\n"
        ".ac dec 10 1 1k\n.tf v(q) I1\n.dc I1 0 1m .5m\n"
    )
    written = flat(loads(text))
    for line in (
        "V.X1.V1 p 0 DC 2 AC 3 45 SIN(1 2 2000)",
        "C.X1.C1 q 0 1e-06 ic=0.5",
        "I1 0 q PULSE(0 0.001 1e-06 1e-06 1e-06 0.0001 0.0002) m=2",
        "V2 q 0 PWL(0 0 0.001 1 0.002 0) r=0 td=1e-06",
        ".tran 1e-06 0.001 0",
        ".meas tran top MAX i(R.X1.R1)",
        ".print tran v(q) i(R.X1.R1)",
        ".ac dec 10 1 1000",
        ".tf v(q) I1",
        ".dc I1 0 0.001 0.0005",
    ):
        assert line in written.split("\n"), written
    assert re.search(r"\.model dm D\(.*cjo=4e-12 tt=5e-09.*\)", written)


@pytest.mark.parametrize(
    ("cards", "named"),
    [
        (".param r=1k\nR2 a 0 {r}\n.dc param r 1 2 1", ".dc r"),
        (".param r=1k\nR2 a 0 {r}\n.step param r 1 2 1", ".step r"),
        (".param k=2\nB1 b 0 V={k*v(a)*v(a)}\nR2 b 0 1", "B1 is a formula"),
        (".temp 0 27", ".temp of several"),
    ],
)
def test_what_a_flat_deck_does_not_have_is_refused_by_name(cards, named):
    deck = loads(f"t\nV1 a 0 1\nR1 a 0 1k\n{cards}\n")
    with pytest.raises(UsageError, match=re.escape(named)):
        flat(deck)


@pytest.mark.parametrize(
    "card", [".dc V1 1 3 1", ".dc R1 1k 3k 1k", ".dc I1 1m 3m 1m", ".dc I2 1m 3m 1m", ".dc dec R1 1k 100k 1"]
)
def test_sweeps_of_what_a_card_states(card):
    text = f"t\nV1 a 0 1\nR1 a b 1k tc=1m m=2\nI1 0 b 1m m=3\nI2 0 b SIN(0 1m 1k) m=4\nR2 b 0 1k\n.temp 127\n{card}\n"
    decks = loads(text), loads(flat(loads(text)))
    found = [sweep(deck, ranges_of(deck), "v(b)")["v(b)"] for deck in decks]
    np.testing.assert_allclose(found[1], found[0], rtol=1e-12)


def test_circuits_are_written_with_what_they_bring_along():
    text = "t\nV1 a 0 PULSE(0 1 1u 1u 1u 20u 50u) AC 1\nR1 a b 1k\nC1 b 0 10n\nS1 b 0 a 0 m\n.model m SW(vt=2)\n"
    circuit = loads(text)
    again = loads(dumps(circuit))
    np.testing.assert_array_equal(transient(again, 1e-4).voltage("b"), transient(circuit, 1e-4).voltage("b"))
    assert again.dynamics.phasors == circuit.dynamics.phasors


ASKED = {
    "clipper-1n4148": "v(out)",
    "lowpass-butterworth": "v(out)",
    "coupled-resonators": "v(out)",
    "lc-filter-dc": "v(out)",
    "wheatstone-unbalanced": "v(a)",
}


@pytest.mark.skipif(shutil.which("ngspice") is None, reason="ngspice is not installed")
@pytest.mark.parametrize("name", ASKED)
def test_ngspice_gives_the_same_on_the_flat_deck(name, tmp_path):
    path = ROOT / "netlists" / f"{name}.cir"
    original = re.sub(r"(?im)^\.end\s*$", "", path.read_text())
    converted = flat(load(path), ngspice=True).replace("\n.end\n", "\n")
    found = []
    for text in (original, converted):
        asked = f".control\nset numdgt=12\nrun\nprint mean({ASKED[name]}) maximum({ASKED[name]})\n.endc\n.end\n"
        (tmp_path / "a.cir").write_text(f"{text}\n{asked}")
        done = subprocess.run(["ngspice", "-b", "a.cir"], cwd=tmp_path, capture_output=True, text=True, check=False)
        found.append(
            [complex(*map(float, v.split(","))) for v in re.findall(r"^m\w+\(.*\) = (\S+)$", done.stdout, re.M)]
        )
    assert len(found[0]) == 2, done.stdout + done.stderr
    assert found[1] == pytest.approx(found[0], rel=1e-6)
