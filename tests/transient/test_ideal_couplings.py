"""Ideally coupled inductors by the exact method: converters, jumps, the periodic steady state, contradictions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test_converters import CONVERTERS

from circuitsim import loads, steady_state, transient, waveform_gradient
from circuitsim.errors import InfeasibleError, UnboundedError, UsageError
from circuitsim.time_domain import Value

DIODES = {"ideal": "D(VFWD=0)", "1 TOhm": "D(VFWD=0.5 RON=10m ROFF=1t)"}


def converter(name: str, diode: str, stop: str = "200u") -> str:
    return f"""{name}
{CONVERTERS[name].format(k=1)}
Vg g 0 PULSE(0 5 0 10n 10n 4u 10u)
Vh h 0 PULSE(0 5 5u 10n 10n 4u 10u)
.model SW SW(VT=2.5 VH=0.5 RON=10m ROFF=1meg)
.model DM {DIODES[diode]}
.tran 1u {stop} uic
.end
"""


@pytest.mark.parametrize("diode", DIODES)
@pytest.mark.parametrize("name", CONVERTERS)
def test_converters(name: str, diode: str) -> None:
    found = transient(loads(converter(name, diode)), method="exact")
    assert found.certificate.certified and found.energies.imbalance < 1e-9
    assert len(found.events) >= 40


def test_a_flyback_converter_hands_its_flux_on() -> None:
    """Ampere turns go on when the switch opens, without a loss: there is no stray inductance."""
    text = converter("flyback", "ideal").replace("Cc c 0 100n\nRc c in 2k", "Rc c in 2k")
    found = transient(loads(text))
    opened = [event for event in found.events if "-S1" in event.changed]
    assert opened and all(abs(event.energy_lost) < 1e-15 for event in opened)
    for event in opened[:5]:
        before, after = (found.at([event.time + shift])[1][0] for shift in (-1e-13, 1e-13))
        k1, k2 = (found.circuit.element_index(name) for name in ("L1", "L2"))
        turns = before[k1] + 0.5 * before[k2], after[k1] + 0.5 * after[k2]
        assert turns[1] == pytest.approx(turns[0], abs=1e-6)


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
