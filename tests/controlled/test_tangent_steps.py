"""Stages with smooth devices beside controlled sources, near another: as from zero volts, and as in certified steps."""

from __future__ import annotations

import numpy as np
import pytest
from random_controlled import random_circuit

import circuitsim
from circuitsim import Circuit
from circuitsim.analysis.controlled_system import ControlledSystem
from circuitsim.analysis.expanded import PreparedExpanded
from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.analysis.smooth_controlled import _Search
from circuitsim.circuit.elements import CURRENT, VOLTAGE
from circuitsim.controlled.law_arrays import law_arrays
from circuitsim.errors import CircuitError
from circuitsim.models.junction_diode import JunctionDiode

MODELS = ".model dj D(IS=1e-12 N=1 RS=0.01)\n.model dp D(VFWD=0.7 RON=0.05 ROFF=1meg)\n"

DECKS = {
    "transformer": "V1 in 0 5\nR1 in a 10\nH1 b x Vp 3\nVp a p 0\nRc p 0 40\nR2 x 0 0.5\nD1 b c dj\nR3 c 0 1k\n",
    "bridge": "V1 in 0 12\nRp in a 5\nE1 s t a 0 0.5\nF1 a 0 E1 -0.5\nD1 s out dj\nD2 t out dj\nD3 0 s dj\nD4 0 t dj\n"
    "R1 out 0 20\n",
    "ideal diodes too": "V1 in 0 12\nR1 in a 5\nE1 s 0 a 0 2\nD1 s b dj\nD2 b out ideal\nD3 0 b ideal\nR2 out 0 20\n"
    "D4 out x dp\nR3 x 0 7\n.model ideal D\n",
    "follower": "V1 in 0 2\nE1 o 0 in out 100k\nD1 o out dj\nR1 out 0 1k\nI1 0 out 1m\n",
}


def ready_for(circuit: Circuit) -> PreparedExpanded:
    ready = circuitsim.prepared(circuit)
    assert isinstance(ready, PreparedExpanded) and ready.controlled is not None
    return ready


def beside(ready: PreparedExpanded, value: np.ndarray, start: OperatingPoint) -> OperatingPoint | None:
    """The stage for values (m,), in steps that are held against the laws at their end only."""
    return search(ready).beside(column(ready, value), start)


def search(ready: PreparedExpanded) -> _Search:
    assert ready.controlled is not None and ready.smooth is not None
    return _Search(ready.controlled, ready.circuit, ready.smooth)


def column(ready: PreparedExpanded, value: np.ndarray) -> np.ndarray:
    found = ready.expansion.circuit.arrays().value.copy()
    np.copyto(found[: value.size], value, where=value == value)
    return found


def apart(one: OperatingPoint, other: OperatingPoint) -> float:
    """Largest difference of potentials and currents, of their largest."""
    pairs = (one.voltages, other.voltages), (one.currents, other.currents)
    return max(float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-100)) for a, b in pairs)


@pytest.mark.parametrize("name", DECKS)
def test_a_sweep_of_the_source(name: str) -> None:
    """Diodes of both kinds change their states on the way."""
    ready = ready_for(circuitsim.loads(f"a circuit\n{DECKS[name]}{MODELS}"))
    value, near = ready.circuit.arrays().value.copy(), None
    at = ready.circuit.element_index("V1")
    for volts in (*np.linspace(5.0, -5.0, 21).tolist(), 5.0, 5.0001):
        value[at] = volts
        found = None if near is None else beside(ready, value, near)
        near = search(ready).first(column(ready, value), None)
        if found is not None:
            assert found.certificate.certified and apart(found, near) < 1e-9
            assert found.elementary is not None and found.elementary.certificate.certified
            assert found.regions == near.regions
        assert found is not None or volts in (0.0, 5.0)


@pytest.mark.parametrize("seed", range(30))
def test_random_circuits(seed: int) -> None:
    circuit = random_circuit(seed, device=lambda random: JunctionDiode(**{"is": 1e-12, "rs": 0.1}))
    if not circuit.devices:
        return
    try:
        ready = ready_for(circuit)
        near = ready.solve()
    except CircuitError:
        return
    value = circuit.arrays().value.copy()
    source = (circuit.arrays().kind == VOLTAGE) | (circuit.arrays().kind == CURRENT)
    value[source] *= 1.01
    found = beside(ready, value, near)
    if found is not None:
        other = search(ready).newton(column(ready, value), search(ready)._start(found))
        assert found.certificate.certified and other is not None and apart(found, other) < 1e-9


def test_equations_of_other_resistances_and_gains() -> None:
    """From those of former values they have the bits of those made anew."""
    circuit = circuitsim.loads(f"a circuit\n{DECKS['bridge']}H1 q 0 V1 3\nR9 q 0 1\nG1 q 0 s t 0.1\n{MODELS}")
    elementary = ready_for(circuit).expansion.circuit
    arrays, laws = elementary.arrays(), law_arrays(elementary.laws)
    before = ControlledSystem(elementary, arrays, laws)
    value = np.where((arrays.kind != VOLTAGE) & (arrays.value != 0.0), 1.7 * arrays.value, arrays.value)
    after = elementary.with_column(value).arrays()
    made, anew = ControlledSystem(elementary, after, laws, before), ControlledSystem(elementary, after, laws)
    assert made.pattern._order is before.pattern._order
    for one, other in zip(made.eq, anew.eq):
        assert np.array_equal(one, other, equal_nan=True)
