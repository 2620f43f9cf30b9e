"""The implicit method against the exact one, against integrators, and its order."""

import math
import random

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from circuitsim import Circuit
from circuitsim.errors import UsageError
from circuitsim.netlist import loads
from circuitsim.time_domain import (
    ImplicitResult,
    Sine,
    transient,
)
from circuitsim.time_domain.run import needs_implicit

ACCURACY = 1e-5


def resonant() -> Circuit:
    circuit = loads("t\nV1 in 0 1\nR1 in a 0.5\nL1 a out 1\nC1 out 0 0.2\n").circuit
    return circuit


def test_half_wave_rectifier_with_a_junction_diode() -> None:
    """Against scipy's Radau method on C v' = IS (exp((v_in − v) / N vt) − 1) − v / R."""
    thermal = 1.8 * 1.38064852e-23 * 300.15 / 1.6021766208e-19
    cards = "V1 in 0 SIN(0 5 50)\nD1 in out d\nC1 out 0 10u\nR1 out 0 1k\n.model d D(is=1n n=1.8)\n"
    found = transient(loads(f"t\n{cards}.tran 0.5m 30m\n"))

    def rate(t: float, v: np.ndarray) -> list[float]:
        current = 1e-9 * math.expm1((5.0 * math.sin(100.0 * math.pi * t) - v[0]) / thermal)
        return [(current - v[0] / 1e3) / 1e-5]

    theirs = solve_ivp(rate, (0.0, 0.03), [0.0], "Radau", found.times, rtol=1e-9, atol=1e-11)
    assert np.abs(found.voltage("out") - theirs.y[0]).max() < 10.0 * ACCURACY * 5.0
    assert found.certificate.certified and found.events == ()
    # At any time Kirchhoff's laws hold to rounding, and the diode's law to the accuracy.
    at = [0.00317]
    i, v = found.current("D1", times=at), found.voltage("in", "out", times=at)
    assert i == pytest.approx(found.current("C1", times=at) + found.current("R1", times=at), rel=1e-9)
    assert i == pytest.approx(1e-9 * np.expm1(v / thermal), rel=10.0 * ACCURACY)
    assert found.method == "implicit" and found.reason == "D1 is a junction diode"
    assert "implicit (D1 is a junction diode), certified" in repr(found)
    told = found.to_dict()
    assert (told["reason"], told["accuracy"], told["steps"]) == (found.reason, found.accuracy, found.steps)


def test_one_run_keeps_the_error_of_a_multiplier_within_the_accuracy() -> None:
    """A diode that begins to conduct between two stages is an error that no weights of the stages estimate."""
    cards = "Vin a 0 SIN(0 50 100k)\nRs a p 0.01\nCa p q 100n\nDa 0 p DM\nCb 0 m 100n\nDb p m DM\nCc p q 100n\n"
    cards += "Dc m q DM\nCd m out 100n\nDd q out DM\n.model DM D(IS=76.9p RS=42m N=1.45 BV=1k IBV=5u)\n"
    ends = list[float]()
    found = transient(loads(f"t\n{cards}.tran 1u 1.5m\n"), progress=lambda time, end: ends.append(time))
    assert found.voltage("out")[-1] == pytest.approx(138.752466, rel=1e-4)  # by steps of a hundredth of the accuracy
    assert found.difference is not None and found.difference <= 1e-4
    assert ends == sorted(ends)


MAINS = """*
V1 in 0 SINE(0 325 50)
D1 in out 1N4007
C1 out 0 47u IC=0
R1 out 0 1k
.model 1N4007 D(Is=14.11n N=1.984 Rs=33.89m Ikf=94.81 Xti=3 Eg=1.110 Cjo=25.89p M=.44 Vj=.3245 Fc=.5 Bv=1500 Ibv=10u)
.tran 1m 100m uic
"""


def test_the_first_charge_of_a_capacitor_at_the_mains() -> None:
    """Steps of the accuracy miss the energy balance that belongs to it: finer ones are taken."""
    found, finer = (transient(loads(MAINS), accuracy=accuracy) for accuracy in (1e-5, 1e-7))
    assert found.certificate.energy <= found.certificate.energy_tolerance == pytest.approx(1e-4)
    assert found.energies.imbalance == found.certificate.energy
    apart = np.abs(found.voltage("out") - finer.voltage("out")).max()
    assert apart < 1e-4 * np.abs(finer.voltage("out")).max()


CURVES = "VARISTOR(VNOM=18 INOM=1m ALPHA=25)", "SINH(G=1m V0=2)", "D(Ron=.1 Vfwd=.7 Ilimit=1)"


@pytest.mark.parametrize("model", CURVES)
@pytest.mark.parametrize("beside", ["", "D2 0 out d\n.model d D(is=1n cjo=1p)\n"])
def test_curves_that_have_no_charge(model: str, beside: str) -> None:
    """Their rows lack the entries of a junction's charge; beside a junction diode they carry no charge either."""
    deck = f"t\nV1 in 0 SIN(0 4 50)\nR1 in out 10\nD1 out 0 m\nC1 out 0 1u\n{beside}.model m {model}\n.tran 1m 20m\n"
    found = transient(loads(deck))
    assert found.certificate.certified and found.run.companion.charged_elements.size == bool(beside)


def test_a_wave_front_in_a_mesh_at_rest() -> None:
    """Currents far away are 1e-280 of the source's at first: the proof holds them against 1e-22 of that."""
    n, stop, farad, series = 20, 2e-3, 1e-3, 0.1
    circuit, laplacian = Circuit(), np.zeros((n * n, n * n))
    circuit.voltage_source("V1", "in", "0", 5.0)
    circuit.resistor("Rs", "in", "n0", series)
    for k in range(n * n):
        circuit.add("C", f"C{k}", f"n{k}", "0", farad)
        for other in ([k + 1] if (k + 1) % n else []) + ([k + n] if k + n < n * n else []):
            circuit.resistor(f"R{k}_{other}", f"n{k}", f"n{other}", 1.0)
            laplacian[[k, other], [k, other]] += 1.0
            laplacian[[k, other], [other, k]] -= 1.0
    for k in [n * j + 7 * j % n for j in range(n)]:  # conducting from the first instant on
        circuit.diode(f"D{k}", f"n{k}", f"d{k}")
        circuit.resistor(f"RD{k}", f"d{k}", "0", 10.0)
        laplacian[k, k] += 0.1
    laplacian[0, 0] += 1.0 / series
    rate, across = np.linalg.eigh(laplacian / farad)
    exact = across @ (-np.expm1(-rate * stop) / rate * across[0]) * (5.0 / series / farad)
    waveforms = {"V1": Sine(5.0, 0.0, 50.0)}
    run = transient(circuit, stop, waveforms, {}, points=21, method="implicit", accuracy=ACCURACY)
    found = run.at([stop])[0][0, [circuit.element_index(f"C{k}") for k in range(n * n)]]
    assert np.abs(found - exact).max() <= 50.0 * ACCURACY


def test_the_rule_and_what_is_refused() -> None:
    circuit = resonant()
    assert needs_implicit(circuit) == ""
    for k in range(60):
        circuit.add("C", f"C{k + 2}", "out", "0", 1e-3)
    assert needs_implicit(circuit) == "62 capacitors and inductors, more than 60"
    with pytest.raises(UsageError, match="use exact or implicit"):
        transient(resonant(), 1.0, method="euler")
    with pytest.raises(UsageError, match=r"waveforms must be a dict .* \(output times: points=, step=\), not 2"):
        transient(resonant(), 1.0, 2)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="accuracy must lie between"):
        transient(resonant(), 1.0, method="implicit", accuracy=0.0)
    found = transient(resonant(), 1.0, points=11, method="implicit", initial={})
    with pytest.raises(UsageError, match="exact"):
        _ = found.segments
    with pytest.raises(UsageError, match="times must lie"):
        found.voltage("out", times=[2.0])


OSCILLATOR = """an LC circuit that nothing damps
L1 a 0 {henry!r} IC={begin!r}
C1 a 0 {farad!r}
E1 b 0 a 0 2
R1 b 0 1k
.tran {step!r} {stop!r} UIC
"""


@pytest.mark.parametrize("seed", range(3))
def test_the_error_that_is_carried_forward(seed: int) -> None:
    """Against the cosine: what the result says of itself, and what it was asked for."""
    r = random.Random(seed)
    henry, farad, begin = 10.0 ** r.uniform(-6.0, 0.0), 10.0 ** r.uniform(-9.0, -3.0), r.uniform(0.1, 2.0)
    omega = 1.0 / math.sqrt(henry * farad)
    stop, points, accuracy = r.uniform(1.0, 60.0) / omega, r.choice((10, 100)), 10.0 ** r.randint(-7, -4)
    text = OSCILLATOR.format(henry=henry, farad=farad, begin=begin, step=stop / points, stop=stop)
    found = transient(loads(text), accuracy=accuracy)
    assert isinstance(found, ImplicitResult) and found.difference is not None
    times = np.linspace(0.0, stop, 3001)
    off = np.abs(found.current("L1", times=times) / begin - np.cos(omega * times)).max()
    assert found.difference / 10.0 < off < 3.0 * found.difference
    assert found.difference <= accuracy and not found.warnings
