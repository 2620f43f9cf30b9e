"""Coupled coils beside junction diodes, against circuits of coils without coupling that are equal to them."""

from __future__ import annotations

import numpy as np
import pytest

from circuitsim.errors import UsageError
from circuitsim.netlist import loads
from circuitsim.time_domain import ImplicitResult, TransientResult, transient

ACCURACY = 1e-5
SOURCES = ("SIN(1 5 1k)", "PULSE(2 -5 0.1m 10u 10u 0.4m 1m)", "PWL(0 3 1m 3 1.1m -4 2m 5)")


def deck(coils: str, source: str, rest: str = "", models: str = "") -> str:
    return f"""coupled coils
V1 in 0 {source}
R1 in a 10
{coils}
D1 b c DM
.model DM D(IS=1e-14 N=1)
C1 c 0 1u
R2 c 0 1k
{rest}
{models}
.tran 20u 2m
.end
"""


def run(text: str, **options: object) -> TransientResult:
    return transient(loads(text), **options)  # type: ignore[arg-type]


def apart(one: TransientResult, other: TransientResult, node: str = "c") -> float:
    """Largest difference of a voltage, of its largest value."""
    a, b = one.voltage(node), other.voltage(node)
    return float(np.abs(a - b).max() / np.abs(b).max())


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("factor", [0.5, 0.9, 0.999, 1.0])
def test_a_junction_diode_at_the_secondary(factor: float, source: str) -> None:
    """The tee of three coils: L₁ − M, M, L₂ − M; the run begins with a current in the primary and none beyond."""
    coils = f"L1 a 0 1m\nL2 b 0 1m\nK1 L1 L2 {factor}"
    leak = 1e-3 * (1.0 - factor)
    tee = f"L1 a m {leak}\nL2 m b {leak}\nL3 m 0 {1e-3 * factor}"
    if factor == 1.0:
        tee = "Rs a b 0\nL3 a 0 1m"
    found, equal = run(deck(coils, source)), run(deck(tee, source))
    assert apart(found, equal) < 20.0 * ACCURACY
    assert found.certificate.certified and found.energies.imbalance < 10.0 * ACCURACY


def test_full_wave_with_a_centre_tap() -> None:
    """Two equal secondaries, ideally coupled, as two sources behind the resistance and coil of one side."""
    rest = "L3 0 d 1m\nK2 L1 L3 1\nK3 L2 L3 1\nD2 d c DM"
    found = run(deck("L1 a 0 1m\nL2 b 0 1m\nK1 L1 L2 1", SOURCES[0], rest))
    equal = run(deck("Rs a b 0\nL2 b 0 1m\nE1 d 0 0 b 1\nF1 b 0 E1 1", SOURCES[0], "D2 d c DM"))
    assert apart(found, equal) < 20.0 * ACCURACY


def test_a_flyback_converter_hands_over_its_current() -> None:
    """Ideal coupling: the primary's current leaves in no time, the ampere turns do not."""
    text = """flyback
V1 in 0 12
Vg g 0 PULSE(0 5 0 10n 10n 4u 10u)
L1 in d 100u
L2 0 b 25u
K1 L1 L2 1
S1 d 0 g 0 SW
.model SW SW(RON=0.1 ROFF=1meg VT=2.5 VH=0)
D1 b c DM
.model DM D(IS=1e-14 N=1)
C1 c 0 10u
R2 c 0 10
.tran 0.1u 20u
.end
"""
    found = run(text)
    opened = next(event.time for event in found.events if "-S1" in event.changed)
    before, after = opened - 1e-9, opened + 1e-9
    flux = [
        1e-4 * i1 + 5e-5 * i2 for i1, i2 in zip(*(found.current(name, times=[before, after]) for name in ("L1", "L2")))
    ]
    assert flux[1] == pytest.approx(flux[0], rel=1e-3)
    assert found.current("L2", times=[before])[0] == pytest.approx(0.0, abs=1e-9)
    handed = 2.0 * found.current("L1", times=[before])[0]
    assert found.current("L2", times=[after])[0] == pytest.approx(handed, rel=1e-3)


def test_a_secondary_at_rest_stays_at_rest() -> None:
    """Nothing moves: what rounding leaves over in the secondary is no current."""
    for factor in (0.9, 0.99, 0.999, 1.0):
        found = run(deck(f"L1 a 0 10m\nL2 b 0 2m\nK1 L1 L2 {factor}", "DC 0.5"))
        assert np.abs(found.current("L2")).max() < 1e-15 * found.current("L1").max()


def test_ideal_coupling_of_both_methods() -> None:
    text = deck("L1 a 0 1m\nL2 b 0 1m\nK1 L1 L2 1", SOURCES[0])
    ideal = text.replace("IS=1e-14 N=1", "VFWD=0")
    exact, implicit = run(ideal), run(ideal, method="implicit")
    assert not isinstance(exact, ImplicitResult)
    for element in ("L1", "L2", "D1"):
        ours, theirs = exact.current(element), implicit.current(element)
        assert np.abs(ours - theirs).max() < 2e-4 * np.abs(theirs).max()
    with pytest.raises(UsageError, match="between -1 and 1"):
        run(text.replace("K1 L1 L2 1", "K1 L1 L2 1.01"))
