"""Alternating directions, which tell most conducting diodes before the first iteration."""

from __future__ import annotations

import numpy as np
import pytest
from dense_oracle import injections, linear, random_circuit, steady_state

import circuitsim
from circuitsim.bench.families import make
from circuitsim.circuit.elements import DIODE, RESISTOR, VOLTAGE
from circuitsim.engine import steps
from circuitsim.engine.network import Wiring
from circuitsim.engine.small.active_set import MANY
from circuitsim.program import analyse


def stepped(circuit: circuitsim.Circuit, count: int) -> tuple[np.ndarray, list[int]]:
    """Currents of the diodes, A, after so many steps, each linear circuit solved with dense matrices; how many diodes
    have changed their state in each."""
    kind, first, second, value, n_nodes = circuit.arrays()
    made = Wiring(analyse(circuit)).at(value)
    plan, d = made.wiring.topology, np.flatnonzero(kind == DIODE)
    siemens, w = np.empty(d.size), np.zeros(d.size)
    steps.conductances_between(plan, made.strength, siemens)
    beside = circuitsim.Circuit.from_arrays(
        np.where(kind == DIODE, RESISTOR, kind), first, second, np.where(kind == DIODE, 1.0, value), n_nodes
    )
    resistances, still, changes = value.copy(), np.zeros(n_nodes), []
    resistances[d] = 1.0 / siemens
    # Dense matrices have the potentials of all nodes; no node has an offset against its own.
    nodes = plan._replace(n=n_nodes, coordinate=np.arange(n_nodes))
    driven, sources = injections(circuit, value), np.zeros((n_nodes, 1))
    for _ in range(count):
        v = linear(beside, resistances, driven + sources, d[:0])[:n_nodes, 0]
        sources = np.zeros((n_nodes, 1))
        changes.append(steps.alternate(nodes, still, siemens, v, steps.RELAXED, w, sources[:, 0]))
    return siemens * np.maximum(w, 0.0), changes


@pytest.mark.parametrize("seed", range(4))
def test_steps_converge_to_the_currents_of_the_steady_state(seed: int) -> None:
    circuit = random_circuit(seed, nodes=30, diodes=12).circuit
    _, current = steady_state(circuit, circuit.arrays().value)
    found, changes = stepped(circuit, 400)
    assert sum(changes) >= np.count_nonzero(current > 0.0) > 0 and changes[-1] == 0
    assert found == pytest.approx(current, abs=1e-6)


def test_conductances_are_a_share_of_what_meets_at_the_weaker_end() -> None:
    circuit = random_circuit(1).circuit
    kind, first, second, value, n_nodes = circuit.arrays()
    wiring = Wiring(analyse(circuit))
    made, plan = wiring.at(value), wiring.topology
    found = np.empty(int((kind == DIODE).sum()))
    steps.conductances_between(plan, made.strength, found)
    meets = np.zeros(n_nodes)
    for e in np.flatnonzero(kind == RESISTOR):
        meets[first[e]] += 1.0 / value[e]
        meets[second[e]] += 1.0 / value[e]
    # Nodes that voltage sources join count together; ground takes any current.
    for e in np.flatnonzero(kind == VOLTAGE):
        together = np.inf if 0 in (first[e], second[e]) else meets[first[e]] + meets[second[e]]
        meets[first[e]] = meets[second[e]] = together
    meets[0] = np.inf
    d = kind == DIODE
    assert found == pytest.approx(steps.BETWEEN * np.minimum(meets[first[d]], meets[second[d]]), rel=1e-14)


@pytest.mark.parametrize("unknowns", [150, 400])
def test_few_iterations_follow(unknowns: int) -> None:
    circuit = make("grid", unknowns, 0)
    point = circuitsim.solve(circuit)
    assert (circuit.arrays().kind == DIODE).sum() >= MANY
    assert 2 <= int(str(point.solver["iterations"])) <= 5
