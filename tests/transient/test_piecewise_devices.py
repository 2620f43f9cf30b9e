"""Piecewise-linear devices in time, transients shorter than any node of a window, jumps of coupled currents."""

import math

import pytest
from helpers import cascade

from circuitsim.analysis.solve import solve
from circuitsim.netlist import loads
from circuitsim.time_domain import transient

ZENER = """Zener clamp
V1 a 0 SIN(0 10 50)
R1 a b 100
D1 b 0 dz
{storing}
.model dz D(Vfwd=0.6 Ron=0.1 Vrev=5 Rrev=2 Roff=1meg)
.tran 100u 40m
.end
"""


def test_without_storage_every_time_is_an_operating_point() -> None:
    deck = loads(ZENER.format(storing="R2 b 0 1k"))
    run = transient(deck)
    voltage, current = run.at(run.times)
    for k in range(0, run.times.size, 7):
        point = solve(deck.circuit.with_values({"V1": 10.0 * math.sin(100.0 * math.pi * run.times[k])}))
        assert run.voltage("b")[k] == pytest.approx(point.voltage("b"), abs=1e-11)
        assert current[k] == pytest.approx(point.currents, abs=1e-12)
        assert voltage[k, 2] == pytest.approx(point.drops[2], abs=1e-11)
    assert run.energies.delivered == pytest.approx(run.energies.dissipated, rel=1e-12)
    assert 0.0 < run.energies.delivered < 0.04 * 10.0**2 / 100.0


@pytest.mark.parametrize(("stages", "ron", "stop"), [(2, 0.01, 0.04), (5, 1.0, 0.01), (12, 0.01, 0.01)])
def test_a_cascade_whose_diodes_are_far_faster_than_its_source(stages: int, ron: float, stop: float) -> None:
    """Currents 1e-11 of what the sums behind them hold decide which diodes conduct; the last one begins by a term of
    high order. Each result is held to all laws; the wrong sets once ended in errors."""
    text = f"cascade\nV1 a 0 SIN(0 10 50)\nRs a t0 10\n{cascade(stages, '1u', 'd')}RL b{stages} 0 10meg\n"
    run = transient(loads(f"{text}.model d D(ron={ron} roff=10meg)\n.tran {stop / 100} {stop} uic\n"))
    assert run.certificate.certified
    assert len(run.events) > 2 * stages
    # Charge: what the diodes of the first stage let pass is on the capacitors above.
    assert 0.0 < run.voltage(f"b{stages}")[-1] < 20.0 * stages
