"""Which formulas depend on nothing but independent sources: their values are known before the circuit is solved, and
follow those of the sources."""

from __future__ import annotations

from collections.abc import Collection

from circuitsim.circuit.elements import CURRENT
from circuitsim.errors import TopologyError
from circuitsim.netlist.expression import Signal
from circuitsim.netlist.functional import FollowingSources, Formula


def fixed_formulas(sources: FollowingSources) -> set[int]:
    """Positions of the formulas whose signals independent sources fix, directly or through such formulas."""
    needs = _needs(sources)
    known: set[int] = set()
    while True:
        new = {
            k
            for k, signals in needs.items()
            if k not in known and all(s is not None and all(e in known or e not in needs for e in s) for s in signals)
        }
        if not new:
            return known
        known |= new


def followers(sources: FollowingSources, names: Collection[str] | None) -> list[int]:
    """Positions of the formulas that read some of the elements ``names``, directly or through such formulas; None: any
    source."""
    needs, index = _needs(sources), sources.circuit.element_index
    moved = None if names is None else {index(name) for name in names if name in sources.circuit}
    found: set[int] = set()
    while True:
        new = {
            k
            for k, signals in needs.items()
            if k not in found
            and any(s is None or any(moved is None or e in moved or e in found for e in s) for s in signals)
        }
        if not new:
            return sorted(found)
        found |= new


def _needs(sources: FollowingSources) -> dict[int, list[set[int] | None]]:
    """The sources that the signals of each formula are made of; None where one depends on the solution."""
    return {
        k: [_sources_of(sources, formula, signal) for signal in formula.code.signals]
        for k, formula in sources.formulas.items()
    }


def _sources_of(sources: FollowingSources, formula: Formula, signal: Signal) -> set[int] | None:
    """The sources that a signal is made of; None where it depends on the solution."""
    circuit = sources.circuit
    if signal.kind == "time":
        return set()
    try:
        if signal.kind != "v":
            k = circuit.element_index(formula.elements(signal.first))
            return {k} if circuit.columns()[0][k] == CURRENT else None
        ends = [circuit.node_index(formula.nodes(name)) for name in (signal.first, signal.second or "0")]
    except TopologyError:
        return None
    trails = [_trail(sources, node) for node in ends]
    meeting = next((node for node in trails[0] if node in trails[1]), None)
    return None if meeting is None else {k for trail in trails for k in trail[meeting] if k >= 0}


def _trail(sources: FollowingSources, node: int) -> dict[int, list[int]]:
    """Nodes on the way along voltage sources to the root, with the sources passed until there."""
    passed: list[int] = []
    trail = {node: passed}
    while (step := sources.step_towards_root(node)) is not None:
        node, own, _ = step
        passed = [*passed, own]
        trail[node] = passed
    return trail
