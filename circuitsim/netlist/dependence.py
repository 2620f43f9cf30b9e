"""Which formulas of voltages and currents are in no loop of controls, and in which order they have values.

The quantities of a circuit form a directed graph: a quantity points to those that its value follows from.

- Voltage sources and shorts (at an operating point inductors too) from ground on hold their nodes: the voltage of a
  held node follows from the previous node on its path and from the control of the element between them.
- The other nodes fall into sections, connected by elements that are no current sources: all quantities of a section
  follow from each other, from the held nodes beside it, and from the controls of its elements.
- The current of an element that holds a node follows from the currents of all other elements at that node.

A formula has a value of its own if no path leads from it back to it; the sections it reads are then solved before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import networkx as nx

from circuitsim.circuit import GROUND, Circuit
from circuitsim.circuit.dynamics import Dynamics
from circuitsim.circuit.elements import CAPACITOR, CURRENT, INDUCTOR, RESISTOR, VOLTAGE
from circuitsim.circuit.laws import Quantity

Read = tuple[int, ...]
"""The two nodes of a voltage, or the position of the element of a current."""


def levels(
    circuit: Circuit, dynamics: Dynamics, formulas: Mapping[int, Sequence[Read]], steady: bool
) -> dict[int, int]:
    """The level of each formula in no loop: 1 + the highest level of those it depends on.

    Parameters
    ----------
    circuit : Circuit
        Sources by formulas are independent sources in it.
    dynamics : Dynamics
        Its switches and couplings.
    formulas : dict of int to sequence of Read
        What each formula reads, by position.
    steady : bool
        At an operating point: capacitors carry no current, inductors are shorts.

    Returns
    -------
    dict of int to int
    """
    if circuit.amplified:
        return {}
    graph = _Quantities(circuit, dynamics, formulas, steady).graph
    groups = nx.condensation(graph)
    own = {group: [k for what, k in data["members"] if what == "f"] for group, data in groups.nodes(data=True)}
    height, found = dict[int, int](), dict[int, int]()
    for group in reversed([*nx.topological_sort(groups)]):
        below = max((height[other] for other in groups.successors(group)), default=0)
        height[group] = below + bool(own[group])
        if len(groups.nodes[group]["members"]) == 1:
            found |= dict.fromkeys(own[group], height[group])
    return found


class _Quantities:
    """The graph of the quantities: ``("v", s)`` of a section or held node with this smallest node, ``("i", k)`` of the
    current of an element that holds a node, ``("f", k)`` of a formula.

    Attributes
    ----------
    graph : networkx.DiGraph
    """

    def __init__(
        self, circuit: Circuit, dynamics: Dynamics, formulas: Mapping[int, Sequence[Read]], steady: bool
    ) -> None:
        (kind, first, second, value), laws = circuit.columns(), circuit.laws
        self.reads: dict[int, list[Read]] = {
            k: [(one.plus, one.minus) for one in law.voltages] + [(one.element,) for one in law.currents]
            for k, law in laws.items()
        }
        for k, switch in dynamics.switches.items():
            control = switch.control
            self.reads[k] = [(circuit.element_index(control),) if isinstance(control, str) else control]
        self.formulas, self.ends, self.graph = formulas, [*zip(first, second)], nx.DiGraph()
        acts = [k for k in range(len(circuit)) if not (steady and kind[k] == CAPACITOR)]
        fixes = nx.Graph()
        for k in acts:
            law = laws.get(k)
            if (
                law.quantity is Quantity.VOLTAGE
                if law
                else kind[k] == VOLTAGE or (kind[k] == RESISTOR and value[k] == 0.0) or (kind[k] == INDUCTOR and steady)
            ):
                fixes.add_edge(*self.ends[k], element=k)
        held = {GROUND: -1}
        for node, before in nx.bfs_predecessors(fixes, GROUND) if GROUND in fixes else ():
            held[node] = fixes.edges[before, node]["element"]
        self.holds = {k: node for node, k in held.items() if k >= 0}
        self.at = defaultdict[int, list[int]](list)
        sources = {k for k in acts if (laws[k].quantity is Quantity.CURRENT if k in laws else kind[k] == CURRENT)}
        joined = nx.Graph([self.ends[k] for k in acts if k not in sources and not held.keys() & self.ends[k]])
        parts = ((min(part), part) for part in nx.connected_components(joined))
        self.section = {node: own for own, part in parts for node in part}
        for k in acts:
            for node in self.ends[k]:
                self.at[node].append(k)
        self.held, self.sources = held, sources
        for k in formulas:
            self.uses(("f", k), formulas[k])
        for k in acts:
            self.voltages(k)
        for pair in () if steady else dynamics.couplings:
            one, other = (self.ends[circuit.element_index(name)] for name in pair)
            for node, ends in ((own, b) for a, b in ((one, other), (other, one)) for own in a):
                self.uses(self.voltage(node), [ends])
        for k in laws:
            if laws[k].quantity is Quantity.NEITHER:  # its control determines its current, and that its control
                self.uses(("i", k), [self.ends[k], *self.reads[k]])
                for node in {node for read in self.reads[k] for node in read} - held.keys():
                    self.uses(self.voltage(node), [(k,)])
        open_, done = [k for what, k in self.graph if what == "i"], set[int]()
        while open_:
            if (k := open_.pop()) not in done:
                done.add(k)
                open_ += self.current(k)

    def voltage(self, node: int) -> tuple[str, int]:
        """The quantity of a node."""
        return "v", self.section.get(node, node)

    def uses(self, quantity: tuple[str, int], reads: Sequence[Read]) -> None:
        """Let a quantity follow from others."""
        self.graph.add_node(quantity)
        for read in reads:
            for used in [("i", *read)] if len(read) == 1 else map(self.voltage, read):
                self.graph.add_edge(quantity, used)

    def voltages(self, k: int) -> None:
        """The dependences of the voltages at one element's ends."""
        ends, by = self.ends[k], self.reads.get(k, [])
        if k in self.holds:
            nodes = [self.holds[k]]
        else:
            nodes = [node for node in ends if node not in self.held]
            if not by and k not in self.formulas and (k in self.sources or len({*map(self.voltage, ends)}) == 1):
                return
        for node in nodes:
            own = self.voltage(node)
            self.uses(own, by if k in self.sources else [ends, *by])
            if k in self.formulas:
                self.graph.add_edge(own, ("f", k))

    def current(self, k: int) -> list[int]:
        """The dependences of the current of one element; returns the elements whose currents it follows from."""
        current = ("i", k)
        if k in self.formulas:
            self.graph.add_edge(current, ("f", k))
        if k in self.holds:
            self.uses(current, [(other,) for other in self.at[self.holds[k]] if other != k])
        else:
            by = self.reads.get(k, [])
            self.uses(current, by if k in self.sources else [self.ends[k], *by])
        return [other for what, other in self.graph[current] if what == "i"]
