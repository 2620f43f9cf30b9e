"""Coupled coils beside junction diodes, against circuits of coils without coupling that are equal to them."""

from __future__ import annotations

import numpy as np
import pytest

from circuitsim.netlist import loads
from circuitsim.time_domain import TransientResult, transient

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


def test_a_secondary_at_rest_stays_at_rest() -> None:
    """Nothing moves: what rounding leaves over in the secondary is no current."""
    for factor in (0.9, 0.99, 0.999, 1.0):
        found = run(deck(f"L1 a 0 10m\nL2 b 0 2m\nK1 L1 L2 {factor}", "DC 0.5"))
        assert np.abs(found.current("L2")).max() < 1e-15 * found.current("L1").max()
