"""Samples that each have conducting diodes of their own: found on potentials, proven along one spanning tree.

The engine refines currents until each is right to twelve digits of its own. A sample of a batch needs what its
certificate asks for: one tree, the currents of its chords from the potentials of the last iteration, one correction of
them by the factor at hand, and a bound on the errors of all currents (`circuitsim.analysis.tree_proof`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.tree_proof import Sample, tree_kernel
from circuitsim.circuit import CircuitArrays
from circuitsim.circuit.elements import CURRENT, RESISTOR, VOLTAGE
from circuitsim.engine import nodal, steps
from circuitsim.engine.kernels import kernel
from circuitsim.engine.network import Network, Resistances
from circuitsim.engine.small.currents import ACCURATE
from circuitsim.engine.small.workspace import Walk
from circuitsim.program.components import component_labels
from circuitsim.solvers.linear import Factored, Supernodal, SupernodalFactored

CORRECTIONS = 3
"""Most corrections of the chords' currents by the factor; each gains some ten digits."""
ITERATIONS = 100
"""Most linear circuits to solve before the engine takes over."""
KEPT = 1 << 24
"""Most numbers in the factors that are kept for the adjoints of a batch."""


class Linear(NamedTuple):
    """The linear circuit of one set of conducting diodes.

    Attributes
    ----------
    closed : int array
        These diodes, ascending.
    factored : Factored
        Its nodal matrix.
    walk : Walk
        Its spanning tree.
    last : (n_nodes,) int array
        For each node the super-node whose potential stands for its group of shorted ones: the one that is eliminated
        last, which has the least rounding.
    """

    closed: np.ndarray
    factored: Factored
    walk: Walk
    last: np.ndarray


class Found(NamedTuple):
    """Potentials (n_nodes,), V, and branch currents (m,), A, with the largest relative violation and the linear
    circuits solved."""

    v: np.ndarray
    current: np.ndarray
    relative: float
    iterations: int
    linear: Linear


@dataclass(frozen=True, eq=False)
class SingleSamples:
    """A circuit at the resistances of a batch.

    Attributes
    ----------
    resistances : Resistances
    arrays : CircuitArrays
        At values with these resistances.
    kept : dict
        Linear circuits of the latest batch, by their conducting diodes, `KEPT` numbers of them at most.
    """

    resistances: Resistances
    arrays: CircuitArrays
    kept: dict[bytes, Linear] = field(default_factory=dict, init=False)

    def __getstate__(self) -> dict[str, object]:
        """Copies make their factors themselves."""
        return {**self.__dict__, "kept": {}}

    @cached_property
    def _network(self) -> Network:
        """The network at the values of ``arrays``."""
        return self.resistances.network(self.resistances.wiring.structure._replace(arrays=self.arrays), direct=True)

    @cached_property
    def _independent(self) -> tuple[np.ndarray, np.ndarray]:
        """Voltage sources, and current sources between different nodes."""
        kind, first, second, _, _ = self.arrays
        return np.flatnonzero(kind == VOLTAGE), np.flatnonzero((kind == CURRENT) & (first != second))

    @cached_property
    def suits(self) -> bool:
        """Whether all nodes have a path to ground, no fixed voltages form a loop, and there are diodes."""
        structure, (kind, first, second, _, _) = self.resistances.wiring.structure, self.arrays
        whole = structure.derived.grounded and not (structure.forest.closing.size or structure.references.size)
        looped = ((kind == CURRENT) & (first == second)).any()
        return bool(whole and structure.resistors.size and not looped and nodal.suits(self._network))

    @cached_property
    def tells(self) -> bool:
        """Whether `likely` can be asked for."""
        return isinstance(self._network.laplacian, Supernodal)

    def likely(self, values: np.ndarray) -> tuple[np.ndarray, int]:
        """Diodes that are likely to conduct (samples, d) at element values (samples, m), Ω, V, A, by alternating
        directions, and how many changed their state in the last step."""
        from circuitsim.solvers.laplacian.alternate import conducting

        net, plan = self._network, self.resistances.wiring.topology
        assert isinstance(net.laplacian, Supernodal)
        tail, head = plan.coordinate[plan.anode], plan.coordinate[plan.cathode]
        siemens = np.empty(tail.size)
        kernel(steps.conductances_between, tail.size)(plan, self.resistances.strength, siemens)
        between = net.laplacian.between(siemens[net.branch[net.diodes] >= 0])
        held, drive = np.empty((tail.size, len(values))), np.empty((plan.n, len(values)))
        for s, value in enumerate(values):
            offset, amperes = self._sources(self._at(value))
            held[:, s], drive[:, s] = offset[plan.anode] - offset[plan.cathode], amperes[:-1]
        return conducting(between.factor, tail, head, siemens / between.unit, held, drive / between.unit)

    def _sources(self, net: Network) -> tuple[np.ndarray, np.ndarray]:
        """Potentials (n_nodes,), V, that sources set where those of super-nodes are zero, and the currents (n + 1,), A,
        into these then."""
        plan, size = self.resistances.wiring.topology, net.first.size
        offset, need, scale, total = np.zeros(net.n_nodes), *np.empty((2, net.n_nodes)), np.empty(plan.n + 1)
        kernel(steps.offsets, plan.tree_node.size)(plan, net.structure.arrays.kind, net.first, net.emf, offset)
        kernel(steps.demands, size)(plan, self.resistances.siemens, offset, np.zeros(net.n_nodes), need, scale)
        kernel(steps.gather, size)(plan, need, total)
        np.subtract.at(total, plan.coordinate[net.first[net.sources]], net.source[net.sources])
        np.add.at(total, plan.coordinate[net.second[net.sources]], net.source[net.sources])
        return offset, total

    def _at(self, value: np.ndarray) -> Network:
        """The network with the sources of the element values (m,), V, A."""
        net, (volts, amperes) = self._network, self._independent
        emf, source = net.emf.copy(), net.source.copy()
        emf[volts], source[amperes] = value[volts], value[amperes]
        return net._replace(emf=emf, source=source, sources=amperes[value[amperes] != 0.0])

    def solve(self, value: np.ndarray, closed: np.ndarray, before: Linear | None, tolerance: float) -> Found | None:
        """The operating point at element values (m,), Ω, V, A; None where it is not proven.

        Parameters
        ----------
        value : (m,) float array
        closed : int array
            Diodes to start with.
        before : Linear or None
            Of another sample; if its factor is not among those that are kept, it is used up.
        tolerance : float
            Largest relative violation.
        """
        net = self._at(value)
        start = nodal.iterate(net, closed, ITERATIONS, None if before is None else before.factored)
        linear = self._linear(np.sort(start.closed), start.factored)
        if linear is None:
            return None
        chords = start.currents(net)[linear.walk.chord]
        return self._proven(linear, self.arrays.kind, value, chords, tolerance, start.iterations)

    def respond(
        self, closed: np.ndarray, sources: np.ndarray, amperes: np.ndarray, before: Linear | None, tolerance: float
    ) -> Found | None:
        """The response to currents of the current sources ``sources``, A: all other sources at zero, the diodes
        ``closed`` as shorts, all others absent; None where it is not proven."""
        linear = self.kept.get(closed.tobytes())
        if linear is None:
            linear = self._linear(closed, None if before is None else before.factored)
        if linear is None:
            return None
        structure, (kind, first, second, value, _) = self.resistances.wiring.structure, self.arrays
        injected = np.zeros(structure.n + 1)
        np.subtract.at(injected, structure.coordinate[first[sources]], amperes)
        np.add.at(injected, structure.coordinate[second[sources]], amperes)
        x = linear.factored.solve(injected[:-1])[linear.last]
        kinds, values = kind.copy(), np.where(kind == RESISTOR, value, 0.0)
        kinds[structure.diodes], values[structure.diodes] = RESISTOR, np.inf
        values[closed], values[sources] = 0.0, amperes
        chord = linear.walk.chord
        chords = (x[first[chord]] - x[second[chord]]) / value[chord]
        return self._proven(linear, kinds, values, chords, tolerance, 0)

    def keep(self, linear: Linear) -> Linear:
        """The linear circuit, kept for responses if there is room; its factor then serves no later one."""
        factored = linear.factored
        if not isinstance(factored, SupernodalFactored):
            return linear
        if (len(self.kept) + 1) * factored.factor.values.size <= KEPT:
            linear = linear._replace(factored=replace(factored, kept=True))
            self.kept[linear.closed.tobytes()] = linear
        return linear

    # ------------------------------------------------------------------ parts of a solution
    def _linear(self, closed: np.ndarray, before: Factored | None) -> Linear | None:
        """The linear circuit with these diodes, ascending; None where the tree does not reach all nodes, or they close
        loops. ``before``, a factor at another set or the same, is used up."""
        wiring, (kind, first, second, value, n_nodes) = self.resistances.wiring, self.arrays
        shorts, coordinate = wiring.branch[closed], wiring.structure.coordinate
        if (shorts < 0).any():
            return None
        preferred = np.concatenate([wiring.structure.voltage_edges, closed])
        walk, joined = tree_kernel("sample_tree", n_nodes)(
            kind, first, second, value, preferred, self.resistances.ascending, n_nodes
        )
        if not joined:
            return None
        solver = self.resistances.direct
        # Exchanges in trees of conducting diodes may end with others than those that were factored.
        if before is None or not np.array_equal(shorts, before.closed):
            before = solver.factor(shorts, before)
        last = np.arange(solver.order.size)
        group = component_labels(last.size, coordinate[first[closed]], coordinate[second[closed]])
        last[group[solver.order]] = solver.order
        return Linear(closed, before, Walk(*walk), last[group][coordinate])

    def _proven(
        self, linear: Linear, kind: np.ndarray, value: np.ndarray, chords: np.ndarray, tolerance: float, iterations: int
    ) -> Found | None:
        """Currents and potentials from those of the chords, A, which are corrected; None where they are not proven.

        Without ``iterations`` a response, of which the signs of diodes and the bound on errors do not count; it is
        corrected where its certificate asks for it.
        """
        _, first, second, _, n_nodes = self.arrays
        structure, walk, signed = self.resistances.wiring.structure, linear.walk, iterations > 0
        loops, correct, prove = (tree_kernel(f"{name}_sample", n_nodes) for name in ("close", "correct", "prove"))
        sample = Sample(
            value,
            np.zeros(value.size),
            np.zeros(value.size),
            np.empty(n_nodes),
            np.empty(chords.size),
            np.empty(structure.n + 1),
            np.empty(7),
        )
        sample.current[walk.chord] = chords
        for corrections in range(CORRECTIONS + 1):
            if corrections > 0:
                loops(walk, kind, first, second, structure.coordinate, sample)
                x = linear.factored.solve(sample.injected[:-1])
                correct(walk, first, second, linear.last, x, sample)
            elif signed:
                continue  # the bound on the errors asks for a correction in nearly all circuits
            bound = prove(walk, kind, first, second, signed, sample)
            relative = float(sample.relative.max())
            if relative <= tolerance and (bound <= ACCURATE or not signed):
                return Found(sample.v, sample.current, relative, iterations, linear)
        return None
