"""The first linear circuit of the large driver, with a conductance in place of every diode."""

from __future__ import annotations

import numpy as np
import pytest

import circuitsim
from circuitsim.analysis.solve import prepared
from circuitsim.bench.families import make
from circuitsim.circuit.elements import DIODE, RESISTOR
from circuitsim.engine import steps
from circuitsim.solvers.linear import Supernodal


def with_conductances(circuit: circuitsim.Circuit, siemens: np.ndarray | None) -> circuitsim.Circuit:
    """The circuit with resistors in place of its diodes, or nothing."""
    kind, first, second, value, n_nodes = circuit.arrays()
    diode = kind == DIODE
    value, there = value.copy(), np.ones(kind.size, dtype=bool)
    if siemens is None:
        there = ~diode
    else:
        value[diode] = 1.0 / siemens
    kind = np.where(diode, RESISTOR, kind)
    return circuitsim.Circuit.from_arrays(kind[there], first[there], second[there], value[there], n_nodes)


@pytest.mark.parametrize("seed", [0, 1])
def test_its_drops_tell_more_states_than_those_while_all_diodes_block(seed: int) -> None:
    circuit = make("grid", 2000, seed)
    kind, first, second, _, _ = circuit.arrays()
    d = np.flatnonzero(kind == DIODE)
    net = prepared(circuit).resistances.network(prepared(circuit).structure)
    assert isinstance(net.laplacian, Supernodal)
    plan = net.resistances.wiring.topology
    siemens = np.empty(d.size)
    steps.conductances_between(plan, net.resistances.strength, siemens)
    conducting = circuitsim.solve(circuit).currents[d] > 0.0

    def wrong(other: circuitsim.Circuit) -> int:
        v = circuitsim.solve(other).voltages
        return int(((v[first[d]] > v[second[d]]) != conducting).sum())

    assert wrong(with_conductances(circuit, siemens)) < 0.9 * wrong(with_conductances(circuit, None))
    # The factor is that of this circuit: it carries the currents that its potentials demand.
    x = np.random.default_rng(seed).normal(size=net.structure.n)
    x0 = np.append(x, 0.0)
    g, ends = net.resistances.conductances, net.structure.derived.ends
    current = np.zeros(x0.size)
    for one, two, w in ((ends.a, ends.b, g), (ends.tail, ends.head, siemens[net.branch[d] >= 0])):
        flow = w * (x0[one] - x0[two])
        np.add.at(current, one, flow)
        np.add.at(current, two, -flow)
    found = net.laplacian.between(siemens[net.branch[d] >= 0]).solve(current[:-1])
    np.testing.assert_allclose(found, x0, rtol=0, atol=1e-9)
