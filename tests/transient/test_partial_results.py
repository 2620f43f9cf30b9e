"""Waveforms up to the time at which an error ends a run, against closed forms."""

import math

import numpy as np
import pytest

from circuitsim import loads
from circuitsim.errors import CircuitError, ConvergenceError, InfeasibleError
from circuitsim.time_domain import PiecewiseLinear, TransientResult, measure, transient

OFF = 1e9
END = -1e-3 / (1 + 1e3 / OFF) * math.log(1 - 0.5 * (1 + 1e3 / OFF))
"""The capacitor reaches 5 V through 1 kΩ beside 1 GΩ, s."""


def charged(times: np.ndarray) -> np.ndarray:
    """Its voltage before, V."""
    share = 1 / (1 + 1e3 / OFF)
    return 10 * share * (1 - np.exp(-times / (1e-3 * share)))


CHARGER = """charging to the threshold of a switch without hysteresis
V1 in 0 10
R1 in c 1k
C1 c 0 1u ic=0
S1 c 0 c 0 sw
.model sw SW(vt=5 vh=0 ron=1 roff=1g)
.tran 100u 10m uic
"""


def partial(error: CircuitError) -> TransientResult:
    assert isinstance(error.partial_result, TransientResult)
    assert error.partial_result.certificate.certified
    return error.partial_result


@pytest.mark.parametrize(("method", "accuracy", "within"), [("exact", 1e-5, 1e-12), ("implicit", 1e-6, 1e-4)])
def test_before_a_switch_without_hysteresis(method: str, accuracy: float, within: float) -> None:
    with pytest.raises(ConvergenceError, match="add a hysteresis") as caught:
        transient(loads(CHARGER), method=method, accuracy=accuracy)
    run = partial(caught.value)
    assert run.stop == pytest.approx(END, rel=within)
    assert run.times[:-1] == pytest.approx(1e-4 * np.arange(7), abs=1e-15)
    share = 1 / (1 + 1e3 / OFF)
    mean = 10 * share - 5 * 1e-3 * share / END
    assert measure(run, "m AVG v(c)").value == pytest.approx(mean, rel=3 * within)
    assert measure(run, "m MAX v(c)").value == pytest.approx(5.0, rel=within)
    assert run.times[-1] == run.stop
    assert run.voltage("c") == pytest.approx(charged(run.times), abs=10 * within)
    between = np.array([0.25, 0.75]) * END
    assert run.voltage("c", times=between) == pytest.approx(charged(between), abs=10 * within)


@pytest.mark.parametrize("method", ["exact", "implicit"])
def test_before_a_source_meets_a_diode(method: str) -> None:
    """A ramp from −1 V crosses zero after 1 ms: from then on an ideal diode across it is a contradiction."""
    circuit = loads("t\nV1 a 0 -1\nD1 a 0\nR1 a 0 2\nC1 a 0 1e-06\n").circuit
    with pytest.raises(InfeasibleError) as caught:
        transient(circuit, 3e-3, {"V1": PiecewiseLinear([0.0, 2e-3], [-1.0, 1.0])}, points=31, method=method)
    assert set(caught.value.elements) == {"V1", "D1"}
    run = partial(caught.value)
    assert run.stop == pytest.approx(1e-3, rel=1e-6)
    assert run.voltage("a") == pytest.approx(1e3 * run.times - 1.0, abs=1e-6)


def test_none_where_no_time_has_passed() -> None:
    circuit = loads("t\nV1 a 0 1\nD1 a 0\nC1 a 0 1e-06\n").circuit
    with pytest.raises(CircuitError) as caught:
        transient(circuit, 1e-3, {"V1": PiecewiseLinear([0.0, 1e-3], [1.0, 2.0])}, initial={})
    assert caught.value.partial_result is None
