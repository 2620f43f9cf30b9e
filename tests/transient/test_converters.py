"""Switched converters with transformers, diodes of large reverse resistances: currents that are all but cancelled."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from circuitsim.netlist import loads
from circuitsim.time_domain import TransientResult, transient

CONVERTERS = {
    "flyback": """V1 in 0 24
L1 in d 100u
L2 0 s 25u
K1 L1 L2 {k}
S1 d 0 g 0 SW
D1 s out DM
C1 out 0 100u
R1 out 0 10
Dc d c DM
Cc c 0 100n
Rc c in 2k""",
    "forward": """V1 in 0 48
L1 in d 1m
L2 s 0 250u
L3 0 r 1m
K12 L1 L2 {k}
K13 L1 L3 {k}
K23 L2 L3 {k}
S1 d 0 g 0 SW
D3 r in DM
D1 s x DM
D2 0 x DM
Lo x out 100u
C1 out 0 100u
R1 out 0 4
Dc d c DM
Cc c 0 10n
Rc c in 2k""",
    "half bridge": """V1 p 0 48
V2 0 m 48
S1 p a g 0 SW
S2 a m h 0 SW
Da a p DM
Db m a DM
L1 a 0 1m
L2 s t 100u
K1 L1 L2 {k}
D1 s x DM
D2 t x DM
D3 0 s DM
D4 0 t DM
Lo x out 47u
C1 out 0 47u
R1 out 0 3""",
    "resonant": """V1 in 0 400
S1 in a g 0 SW
S2 a 0 h 0 SW
D1 a in DM
D2 0 a DM
Cr a b 22n
Lr b c 100u
Lp c 0 500u
Ls1 s1 0 5u
Ls2 0 s2 5u
K1 Lp Ls1 {k}
K2 Lp Ls2 {k}
K3 Ls1 Ls2 {k}
D3 s1 out DM
D4 s2 out DM
C1 out 0 100u
R1 out 0 5""",
    "three phases": """V1 a 0 SIN(0 325 50k)
V2 b 0 SIN(0 325 50k 0 0 120)
V3 c 0 SIN(0 325 50k 0 0 240)
L1 a x 10u
L2 b y 10u
L3 c z 10u
D1 x p DM
D2 y p DM
D3 z p DM
D4 m x DM
D5 m y DM
D6 m z DM
L4 p q 1m
C1 q m 100u
R1 q m 5
Rm m 0 1meg""",
}
DRIVE = """Vg g 0 PULSE(0 5 0 10n 10n 4u 10u)
Vh h 0 PULSE(0 5 5u 10n 10n 4u 10u)
.model SW SW(VT=2.5 VH=0.5 RON=10m ROFF=1meg)
.tran 1u 60u uic
.end
"""


def run(converter: str, reverse: str, factor: float) -> TransientResult:
    """60 us with diodes of this reverse resistance."""
    model = f".model DM D(VFWD=0.5 RON=10m ROFF={reverse})\n"
    return transient(loads(f"{converter}\n{CONVERTERS[converter].format(k=factor)}\n{model}{DRIVE}"))


@pytest.mark.parametrize(
    ("converter", "reverse", "factor"), [*itertools.product(CONVERTERS, ("1meg", "1g", "1t"), (0.98, 0.999))]
)
def test_converters_are_certified(converter: str, reverse: str, factor: float) -> None:
    """The currents of two coils differ by what a blocking diode between them takes, down to picoamperes."""
    found = run(converter, reverse, factor)
    assert found.certificate.kvl < 1e-11
    assert found.energies.imbalance < 1e-10
    assert len(found.events) > 20


@pytest.mark.parametrize("converter", CONVERTERS)
def test_large_reverse_resistances_are_all_the_same_outside(converter: str) -> None:
    """A thousand times less current through blocking diodes: below 1e-6 of any coil's current."""
    one, other = run(converter, "1g", 0.98), run(converter, "1t", 0.98)
    for name in (line.split()[0] for line in CONVERTERS[converter].splitlines() if line.startswith("L")):
        a, b = one.current(name), other.current(name)
        assert np.abs(a - b).max() < 1e-6 * np.abs(a).max()


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
