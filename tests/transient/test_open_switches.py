"""Inductors and capacitors behind open switches of 1 kΩ to 1 TΩ, against closed forms and exponentials in 50 digits."""

from pathlib import Path

import numpy as np
import pytest

from circuitsim import load, loads, transient

DECK = """source, switch, inductor, resistor
V1 in 0 10
S1 in a c 0 sm
Vc c 0 PULSE(1 0 0.5m 1u 1u 1 2)
.model sm sw(vt=0.5 ron=1 roff={roff:g})
L1 a d 1m
R2 d 0 5
.tran 10u 1m
.end
"""
DIGITS = np.load(Path(__file__).parent / "open_switches" / "digits.npz")
"""By name of a deck: at times in its run (n), for its elements (m) time, voltage, current, and what both change by
where the time changes by rounding (n, m, 5), by matrix exponentials in ball arithmetic of 500 bits."""


@pytest.mark.parametrize("decade", range(3, 13))
def test_an_inductor_behind_an_open_switch(decade: int) -> None:
    """It kicks with up to 1.7 TV for a picosecond; what is left is the current through the open switch."""
    run = transient(loads(DECK.format(roff=10.0**decade)))
    times = np.random.default_rng(decade).uniform(0.52e-3, 1e-3, 50)
    left = 10.0 / (10.0**decade + 5.0)
    late = (10.0 / 6.0 - left) * np.exp(-(times - 0.5005e-3) * (10.0**decade + 5.0) / 1e-3)
    assert run.current("L1", times) == pytest.approx(left + late, rel=1e-12)
    assert run.voltage("d", times=times) == pytest.approx(5.0 * (left + late), rel=1e-12)
    assert run.voltage("a", times=times)[late == 0.0] == pytest.approx(5.0 * left, abs=1e-14)


@pytest.mark.parametrize("name", DIGITS.files)
def test_against_50_digits(name: str) -> None:
    """Random circuits, at random times, many of them soon after switches change.

    Voltages count against the largest one in the circuit at that time, currents against the largest ones at the
    element's nodes, no less than a thousandth of the voltages in resistances there. 5787: a capacitor at 10 V beside a
    node that has been at 1 GV; 5033: v = L di/dt is judged where it varies in picoseconds.
    """
    deck = load(Path(__file__).parent / "open_switches" / f"{name}.cir")
    run, arrays = transient(deck, points=11), deck.arrays()
    switches = {line.split()[1][1:]: line for line in deck_models(name)}
    ohms = arrays.value.copy()
    for switch, line in switches.items():
        ohms[deck.element_index(switch)] = float(line.split("RON=")[1].split()[0])
    resistive = np.array([own[0] in "RS" for own in deck.names])
    for exact in DIGITS[name]:
        found = np.stack([x[0] for x in run.at([exact[0, 0]])], axis=1)
        volts, met = np.abs(exact[:, 1]).max(), np.zeros(arrays.n_nodes)
        carried = np.maximum(
            np.abs(exact[:, 2]), np.where(resistive, 1e-3 * volts / np.where(resistive, ohms, 1.0), 0.0)
        )
        for ends in (arrays.first, arrays.second):
            np.maximum.at(met, ends, carried)
        scale = np.stack([np.full(len(exact), volts), np.maximum(met[arrays.first], met[arrays.second])], axis=1)
        off = np.maximum(np.abs(found - exact[:, 1:3]) - exact[:, 3:], 0.0)
        off[off < 1e-19] = 0.0  # V and A, beside 20 V and 0.1 A of the sources
        assert (off <= 1e-9 * np.maximum(scale, 1e-30)).all()


def deck_models(name: str) -> list[str]:
    text = (Path(__file__).parent / "open_switches" / f"{name}.cir").read_text()
    return [line for line in text.splitlines() if line.startswith(".model")]
