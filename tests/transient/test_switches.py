"""Switches and coupled inductors against closed forms."""

import math

import pytest
from spice import NEEDED, spice

from circuitsim import solve
from circuitsim.errors import UsageError
from circuitsim.netlist import loads
from circuitsim.time_domain import Switch, transient


def test_what_is_refused() -> None:
    circuit = loads("t\nV1 s 0 10\nR1 s c 10k\nS1 c 0 c 0 sw\nC1 c 0 .1u\n.model sw SW\n").circuit
    with pytest.raises(UsageError, match="not a resistor"):
        transient(circuit, 1.0, switches={"C1": Switch(("c", "0"))})
    with pytest.raises(UsageError, match="positive resistances"):
        transient(circuit, 1.0, switches={"S1": Switch(("c", "0"), on=0.0)})
    with pytest.raises(UsageError, match="two inductors"):
        transient(circuit, 1.0, couplings={("C1", "R1"): 0.5})


def test_switches_of_a_circuit_operate_as_those_of_its_deck() -> None:
    deck = loads("state\nV1 s 0 3\nR1 s a 1k\nS1 a 0 0 s m ON\n.model m SW(VT=1 RON=500 ROFF=2k)\n")
    for source in (deck, deck.circuit):
        point = solve(source)
        assert point.voltage("a") == pytest.approx(2.0) and not point.warnings


CARDS = """transformer
V1 s 0 SIN(0 10 1k)
R1 s a 2
L1 a 0 1m ic=0
L2 b 0 4m ic=0
K1 L1 L2 0.8
S1 b c s 0 sm
R2 c 0 3
R3 b 0 50
.model sm SW(VT=1 VH=0.5 RON=0.1 ROFF=100k)
"""


class TestBesideNgspice:
    pytestmark = NEEDED

    def test_a_coil_that_a_switch_disconnects(self) -> None:
        """ngspice resolves the switch's times to its step of 0.1 µs."""
        asked = "tran 1u 2m 0 0.1u uic\nlinearize v(b)\nprint v(b)[400]\nprint v(b)[1100]\nprint v(b)[1900]"
        theirs, log = spice(f"{CARDS}.options reltol=1e-6", asked)
        ours = transient(loads(f"{CARDS}.tran 1u 2m uic\n")).voltage("b", times=[400e-6, 1100e-6, 1900e-6])
        assert ours == pytest.approx([theirs[f"v(b)[{k}]"][0] for k in (400, 1100, 1900)], abs=2e-3), log


@pytest.mark.parametrize("level", [0.0, 0.6])
def test_events_lie_within_their_stated_errors(level: float) -> None:
    deck = f"t\nV1 c 0 SIN(0 1 1)\nS1 a 0 c 0 w\nI1 0 a 1\nR1 a 0 1\nC1 a 0 0.1\n.model w SW(VT={level} RON=1)"
    events, early = transient(loads(deck), 3.2, method="implicit").events, math.asin(level) / (2.0 * math.pi)
    for event in events:
        late = min((event.time - time) % 1.0 for time in (early, 0.5 - early))
        assert late <= event.error + 1e-15 and event.error < 1e-5
    assert len(events) >= 6


def test_a_negative_hysteresis_is_none_over_time() -> None:
    """LTspice changes the resistance of such a switch gradually: a warning says that here it changes at once."""
    text = (
        "*\nV1 a 0 1\nVc c 0 SIN(0 1 50)\nR1 a b 1k\nS1 b 0 c 0 m\n.model m SW(vt=0.5 vh={h} ron=1 roff=1e6)\n"
        ".tran 1m 40m\n"
    )
    without, negative = (loads(text.replace("{h}", h)) for h in ("0", "-0.3"))
    assert not without.problems
    (warning,) = negative.problems
    assert warning.kind == "hysteresis" and "S1" in warning.message
    runs = [transient(deck) for deck in (without, negative)]
    assert [event.time for event in runs[1].events] == [event.time for event in runs[0].events]
    assert len(runs[1].events) == 4
    assert math.isclose(runs[1].events[0].time, 0.02 / 12.0, rel_tol=1e-12)
