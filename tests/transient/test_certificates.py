"""Certificates of waveforms: each column counts, and a number that is none is no proof."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from circuitsim.errors import ConvergenceError
from circuitsim.netlist import loads
from circuitsim.time_domain import Pulse, steady_state, transient
from circuitsim.time_domain import run as module
from circuitsim.time_domain.implicit import ImplicitCertificate
from circuitsim.time_domain.proof import TransientCertificate, Waves

EXACT = TransientCertificate(*[1e-16] * 9, tolerance=1e-9)
IMPLICIT = ImplicitCertificate(*[1e-16] * 7, tolerance=1e-9, energy_tolerance=1e-4)


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e-3])
@pytest.mark.parametrize(
    ("sound", "column"),
    [*((EXACT, name) for name in EXACT._fields[:-1]), *((IMPLICIT, name) for name in IMPLICIT._fields[:-2])],
)
def test_one_column_is_enough(sound: TransientCertificate | ImplicitCertificate, column: str, value: float) -> None:
    assert sound.certified
    wrong = sound._replace(**{column: value})
    assert not wrong.certified
    assert f"{value:.1e}" in wrong.violations


BACKWARDS = """a picofarad's voltage dies out through milliohms while an inductor keeps 79 mA
R1 n1 0 0.0129
R2 n2 n1 8.6k
R3 n3 n2 1.1meg
L1 0 n3 0.172
C1 0 n2 19.8p
I1 0 n2 PULSE(-79.4m 79.4m 10.5u 21u 5.3u 31.6u 105u)
D1 n3 n2
D2 n2 n3
D3 0 n3
D4 n1 n3
.tran 3u 3m uic
.end
"""


def test_no_diode_carries_a_small_current_backwards() -> None:
    """Behind 7 kV on the picofarad rounding of its voltage is 6 nA in a milliohm: the bound of the state's error dies
    out as the voltage does."""
    run = transient(loads(BACKWARDS))
    times = np.random.default_rng(0).uniform(0.0, 3e-3, 500)
    for name in ("D1", "D2", "D3", "D4"):
        assert run.current(name, times).min() > -1e-12


def backwards(waves: Waves) -> None:
    waves.current[[0, 9]] += -36.6e-9 * (np.abs(waves.current[3]) > 0.079)


def infinite(waves: Waves) -> None:
    waves.current[3, -1] = np.inf


OPENED = """source, switch, inductor, resistor
V1 in 0 10
S1 in a c 0 sm
Vc c 0 PULSE(1 0 0.5m 1u 1u 1 2)
.model sm sw(vt=0.5 ron=1 roff=1g)
L1 a d 1m
R2 d 0 5
.tran 10u 1m
.end
"""


def spoiled(monkeypatch: pytest.MonkeyPatch, change: Callable[[Waves], None]) -> None:
    """Let certificates read other waveforms than those of the run."""
    real = module._waves

    def other(*given: object) -> Waves:
        found = real(*given)  # type: ignore[arg-type]
        waves = found._replace(voltage=found.voltage.copy(), current=found.current.copy())
        change(waves)
        return waves

    monkeypatch.setattr(module, "_waves", other)


ELEMENTS = ("V1", "S1", "Vc", "L1", "R2")


@pytest.mark.parametrize(
    ("what", "volts", "amperes"),
    [
        (r"v = L di/dt or i = C dv/dt of L1 at 0\.000\d+ s by", {"S1": 1.0, "L1": -1.0}, {"S1": 1.0}),
        (r"v = L di/dt or i = C dv/dt of L1 at", {"L1": 1.0, "R2": -1.0}, {}),
        (r"Ohm's law of R2 at", {}, {"R2": 1e3}),
        (r"Kirchhoff's voltage law of", {"R2": 1.0}, {}),
        (r"Kirchhoff's current law of (d|0) at", {}, {"R2": 1.0}),
        (r"the source's waveform of V1 at", {"V1": 1.0, "S1": 1.0}, {}),
    ],
)
def test_each_law_is_held_between_events(
    what: str, volts: dict[str, float], amperes: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tenth of a volt beside 10 V, once the switch is open; its kick of 1.7 GV before that is no excuse."""

    def change(waves: Waves) -> None:
        between = waves.times[waves.outputs :]
        wave = 0.1 * np.sin(1e5 * between) * (between > 0.51e-3)
        for k, name in enumerate(ELEMENTS):
            waves.voltage[k, waves.outputs :] += volts.get(name, 0.0) * wave
            waves.current[k, waves.outputs :] += amperes.get(name, 0.0) * wave * 1e-9

    spoiled(monkeypatch, change)
    with pytest.raises(ConvergenceError, match=what):
        transient(loads(OPENED))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        # The circuit's largest voltage in its smallest resistance is no excuse.
        (backwards, "the signs of its current and voltage of D4"),
        # Nor is a capacitor at the same node, which is held to that law after the inductor.
        (infinite, "v = L di/dt or i = C dv/dt of L1 at .* s by inf"),
    ],
)
def test_wrong_waveforms_are_refused(
    change: Callable[[Waves], None], what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """37 nA beside 79 mA at the same node; a current that is infinite, so that its violation is no number."""
    spoiled(monkeypatch, change)
    with pytest.raises(ConvergenceError, match=what):
        transient(loads(BACKWARDS))


def test_energies_beyond_doubles_are_refused() -> None:
    with pytest.raises(ConvergenceError, match="certificate"):
        transient(loads("t\nV1 a 0 SIN(0 1e300 1k)\nR1 a b 1e-10\nL1 b 0 1e-10\n.tran 1u 1m uic\n"))


def test_a_period_in_which_all_voltages_vanish() -> None:
    """Diodes lead all of the source's current; what is left on the capacitor, 1e-30 V, is rounding."""
    circuit = loads(
        "*\nR1 n1 0 273.2972015825\nR2 n1 0 11.467045332973724\nR3 n2 n1 2519.7476827832666\nI1 n1 0 0\n"
        "L1 n2 n1 0.0003575734682249504\nC1 0 n1 2.6841134305610065e-08\nD1 n2 n1\nD2 n2 n1\nD3 n2 0\nD4 0 n1\n"
    )
    pulse = Pulse(0.0, 0.0206577346431892, 1e-4, 1e-5, 2e-5, 3e-4, 1e-3)
    run = steady_state(circuit, {"I1": pulse})
    assert run.certificate.certified
    assert np.abs(run.voltage("n1")).max() < 1e-15
    assert run.current("D4").max() == pytest.approx(0.0206577346431892, rel=1e-12)


def test_what_has_decayed_after_a_steep_edge() -> None:
    """A few ten-thousandths of a volt have the digits of their own, not those of the edge's time at 1 MV/s."""
    deck = "t\nV1 a 0 PULSE(0 1 0 1u 1u 1m 2m)\nR1 a b 100\nC1 b 0 1u\n.tran 10u 4m\n"
    found = transient(loads(deck)).at([2e-3])[0][0, 2]
    # One volt for 1.001 ms, each edge the mean over it.
    edge = 1e2 * math.expm1(1e-2)
    assert found == pytest.approx(edge * (math.exp(-9.99) - math.exp(-20.0)), rel=1e-9)


def test_rounding_does_not_gather_over_periods() -> None:
    """In each the voltages decay to 1e-12 of what they were."""
    deck = "t\nV1 a 0 PULSE(0 10 0.2u 0.7u 0.1n 0.2u 1.9u)\nR1 a b 80\nC1 b 0 47p\nR2 b c 12\nC2 c 0 64p\n"
    assert transient(loads(deck + ".tran 0.7u 74u\n")).certificate.kvl < 1e-10


def test_an_event_early_in_a_window() -> None:
    """The diode opens 0.1 ps after a ramp of 20 ns begins: until then currents are some nanoamperes."""
    deck = (
        "t\nV1 a 0 PULSE(0 1 30u 20n 3u 40u 300u)\nR1 a b 2934.62\nC1 b c 7.97449n\nD1 c d m\nD2 0 c m\n"
        "C2 d 0 5.14989n\nR2 d 0 347921\n.model m D(Ron=0 Vfwd=0)\n.tran 3u 600u\n"
    )
    assert transient(loads(deck)).certificate.reactances < 1e-10


@pytest.mark.parametrize(
    "cards",
    [
        "V1 a 0 PULSE(0 -3 0 0.008 0.02 0.06 0.2)\nR1 a b 6714.66\nC1 b c 1.17625e-07\nD1 c d dd\nD2 0 c dd\n"
        "C2 d 0 3.38961e-08\nR2 d 0 216144\n.tran 0.002 0.4\n",
        "V1 a 0 PULSE(0 5 5.68314e-07 3.44414927e-09 1.28212194e-12 4.448272e-07 5.68313866e-06)\nR1 a b 127.165\n"
        "D1 b c dd\nC1 c 0 8.31761e-11\nR2 c 0 1838.68\nD2 0 b dd\n.tran 1.13662773e-07 1.13662773e-05\n",
    ],
    ids=["a diode that turns off", "a diode that blocks"],
)
def test_what_has_decayed_below_the_rounding_of_the_states_keeps_its_sign(cards: str) -> None:
    """A current of 1e-38 A at a corner of the source; a capacitor discharged by 14 decades through its own resistor."""
    run = transient(loads(f"t\n{cards}.model dd D(Ron=0 Vfwd=0)\n"), method="exact")
    assert run.certificate.certified and run.stop == run.times[-1]
    assert min(run.current("D1").min(), run.current("D2").min()) >= -1e-15
