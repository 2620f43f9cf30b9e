"""What the implicit method shows does not depend on the output times, nor on who asks for a time."""

import random

import numpy as np
import pytest

from circuitsim import transient
from circuitsim.netlist import loads
from circuitsim.time_domain import TransientResult, measure

ACCURACY = 1e-5
RECTIFIER = """half-wave rectifier
V1 a 0 SIN(0 10 50)
R1 a b 1
D1 b c
C1 c 0 10u
R2 c 0 1k
.tran {} 40m
"""
PULSE = """a pulse of 5 ns, a second after the beginning
V1 a 0 PULSE(0 5 1 1n 1n {})
R1 a b 1
D1 b c
C1 c 0 0.1n
.tran {} 10
"""
ASTABLE = """astable of an operational amplifier
G1 0 y p n {gain}
Ry y 0 100MEG
Cy y 0 {pole}
D1 y h DL
D2 l y DL
VH h 0 10
VL l 0 -10
E1 q 0 y 0 1
Ro q o 10
R1 o p 10k
R2 p 0 {divider}
R3 o n {feedback}
C1 n 0 {farad} IC={begin}
.model DL D(Vfwd=0 Ron=1 Roff=1G)
.tran {step} {stop} UIC
"""


@pytest.mark.parametrize("step", [10.0, 5.0, 1.0, 0.3])
def test_pulses_however_short_beside_the_distance_of_output_times(step: float) -> None:
    found = transient(loads(PULSE.format("5n", step)), method="implicit")
    assert found.voltage("c")[-1] == pytest.approx(5.0, abs=1e-4) and found.voltage("c", times=[0.99]) == [0.0]
    # A hundredth of the time constant: the sum of four ramps' answers; times at 1 s are whole 0.2 fs.
    tiny = PULSE.replace("1n 1n", "1p 1p").replace("D1 b c", "R3 b c 1m").format("1p", step)
    after = transient(loads(tiny), method="implicit").voltage("c", times=[1.0 + 4e-12])[0]
    late, tau = 1e-12 * np.array([4.0, 3.0, 2.0, 1.0]), 1.001e-10
    ramps = 5e12 * (late + tau * np.expm1(-late / tau))
    assert after == pytest.approx(ramps @ [1.0, -1.0, -1.0, 1.0], rel=2e-3)


def astable(seed: int) -> TransientResult:
    r = random.Random(seed)
    feedback, farad = 10.0 ** r.uniform(3.0, 5.0), 10.0 ** r.uniform(-9.0, -7.0)
    stop = feedback * farad * r.uniform(0.5, 3.0)
    deck = ASTABLE.format(
        gain=10.0 ** r.uniform(-4.0, -2.0),
        pole=10.0 ** r.uniform(-12.0, -10.0),
        divider=10.0 ** r.uniform(3.5, 4.5),
        feedback=feedback,
        farad=farad,
        begin=r.uniform(-9.0, 9.0),
        step=stop / r.choice((2, 10, 37)),
        stop=stop,
    )
    return transient(loads(deck))


@pytest.mark.parametrize("seed", [0, 3])
def test_one_time_has_one_value(seed: int) -> None:
    """Positive feedback: a step has several operating points at its end; that of the run is found again."""
    found = astable(seed)
    for node in ("n", "o", "p"):
        table = found.voltage(node)
        assert found.voltage(node, times=found.times.copy()) == pytest.approx(table, abs=1e-9)
        for time, value in list(zip(found.times.tolist(), table.tolist()))[1::7]:
            assert measure(found, f"m FIND v({node}) AT={time!r}").value == pytest.approx(value, abs=1e-9)
    # Between the steps' ends what charges the capacitor has no jumps.
    times = np.linspace(0.0, found.stop, 400)
    ahead = np.abs(np.diff(found.voltage("n", times=times)))
    assert ahead.max() < 25.0 * found.stop / 400.0 / _constant(found)


def _constant(found: TransientResult) -> float:
    """R C at the inverting input, s."""
    value = found.circuit.arrays().value
    return float(value[found.circuit.element_index("R3")] * value[found.circuit.element_index("C1")])


@pytest.mark.parametrize("step", ["2m", "0.1m"])
def test_the_far_end_of_a_line_at_rest(step: str) -> None:
    """In the first instant a node has a billionth of the one before it: beyond the 32nd less than doubles hold."""
    text = "a line\nV1 in 0 PULSE(0 5 0 1u 1u 3m 10m)\nR0 in n0 0.1\n.model dd D(VFWD=0.7 RON=0.1 ROFF=1meg)\n"
    for k in range(40):
        text += f"C{k} n{k} 0 1u\nR{k + 1} n{k} n{k + 1} 1\nD{k} n{k} 0 dd\n"
    found = transient(loads(f"{text}R99 n40 0 1\n.tran {step} 2m\n"), method="implicit")
    assert found.certificate.certified and 0.3 < found.voltage("n0")[-1] < 5.0


def test_output_times_change_no_step() -> None:
    """3 and 3,001 of them: the same steps, and the same values at common times."""
    few, many = (transient(loads(RECTIFIER.format(0.04 / n)), method="implicit") for n in (2, 3000))
    assert np.array_equal(few.segment_starts(), many.segment_starts())
    assert few.voltage("c") == pytest.approx(many.voltage("c")[::1500], rel=1e-12)
