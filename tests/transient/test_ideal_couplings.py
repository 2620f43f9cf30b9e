"""Ideally coupled inductors by the exact method: converters, jumps, the periodic steady state, contradictions."""

from pathlib import Path

import numpy as np
import pytest

from circuitsim import loads, steady_state, transient, waveform_gradient
from circuitsim.errors import InfeasibleError, UnboundedError, UsageError
from circuitsim.time_domain import Value

FLYBACK = """flyback converter
V1 in 0 24
Vg g 0 PULSE(0 5 0 10n 10n 4u 10u)
L1 in d 100u
L2 0 s 25u
L3 t 0 400u
K1 L1 L2 1
K2 L1 L3 1
K3 L2 L3 1
S1 d 0 g 0 sw
D1 s out ideal
C1 out 0 10u
R1 out 0 10
R3 t 0 300
.model sw SW(VT=2.5 VH=0.5 RON=10m ROFF=1meg)
.model ideal D
.tran 10u 5m"""


def test_a_flyback_converter_hands_its_flux_on() -> None:
    """Ampere turns go on when the switch opens, without a loss: there is no stray inductance."""
    found = transient(loads(FLYBACK), 2e-4)
    opened = [event for event in found.events if "-S1" in event.changed]
    assert opened and all(abs(event.energy_lost) < 1e-15 for event in opened)
    for event in opened[:5]:
        before, after = (found.at([event.time + shift])[1][0] for shift in (-1e-13, 1e-13))
        windings = [found.circuit.element_index(name) for name in ("L1", "L2", "L3")]
        assert after[windings] @ [1.0, 0.5, 2.0] == pytest.approx(before[windings] @ [1.0, 0.5, 2.0], abs=1e-6)


def test_a_winding_turned_around() -> None:
    """The flyback deck becomes a forward converter, whose magnetising current is interrupted into 10 megohms."""
    text = (Path(__file__).parents[2] / "netlists/flyback-converter.cir").read_text().replace("L1 L2 1", "L1 L2 -1")
    assert transient(loads(text)).energies.imbalance < 1e-11


@pytest.mark.parametrize("name", ["L1", "L2", "k(L1,L2)"])
def test_gradients_by_turns_are_of_the_implicit_method(name: str) -> None:
    with pytest.raises(UsageError, match="ideally coupled"):
        waveform_gradient(transient(loads(FLYBACK), 2e-5), [Value("v(out)", 1e-5)], [name])


def test_the_periodic_steady_state() -> None:
    steady, late = steady_state(loads(FLYBACK)), transient(loads(FLYBACK), points=3)
    times = np.linspace(0.0, 9.9e-6, 23)
    assert steady.voltage("out", times=times) == pytest.approx(late.voltage("out", times=4.99e-3 + times), abs=1e-6)


@pytest.mark.parametrize(
    ("cards", "error", "said"),
    [
        # 1 A leaves a node that only a blocking diode and, behind that, an inductor of 3 A lead to.
        (
            "I1 a 0 1\nD1 a b\nL1 b 0 1m ic=3\n.tran 1m 10m uic",
            UnboundedError,
            "after 0 s I1, D1 drive a net current that has no path",
        ),
        (
            "V1 a 0 1\nL1 a 0 1m ic=0\nL2 b 0 1m ic=0\nK1 L1 L2 1\nV2 c 0 PWL(0 2 1m 0)\nD1 b c\n.tran 1u 1m uic",
            InfeasibleError,
            "0.0005 s",
        ),
    ],
)
def test_what_sources_windings_and_diodes_contradict(cards: str, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        transient(loads(f"contradiction\n{cards}"))


def test_a_small_current_between_two_coils_keeps_its_digits() -> None:
    """Two coils meet at 100 MOhm alone. Of v = (v(a) + v(b)) / 2 - L / 2 di/dt with i = v / R the last term is 5e-8."""
    text = """two coils
V1 a 0 SIN(0 10 1k)
L1 a x 1m
R1 x 0 100meg
L2 x b 1m
R2 b 0 2
C2 b 0 1n
.tran 10u 2m uic
.end
"""
    found = transient(loads(text))
    a, b, x = (found.voltage(node)[1:] for node in "abx")
    w = 2e3 * np.pi
    slope = 0.5 * (10.0 * w * np.cos(w * found.times[1:]) + 2.0 * (x - b) / 1e-3)
    np.testing.assert_allclose(x, 0.5 * (a + b) - 0.5e-3 / 1e8 * slope, rtol=0.0, atol=1e-11)
