"""Which formulas of voltages and currents are in no loop of controls, and in which order they have values.

The quantities of a circuit form a directed graph: a quantity points to those that its value follows from.

- Voltage sources and shorts (at an operating point inductors too) from ground on hold their nodes: the voltage of a
  held node follows from the previous node on its path and from the control of the element between them, whose current
  follows from the currents of all other elements at that node.
- The voltage of any other node follows from the currents at it, and the current of any other element from its control
  and, except for a current source, from the voltages at its ends.

A formula has a value of its own if no path leads from it back to it; what it reads is then solved before.
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

Used = tuple[str, int]
"""A quantity: ``("v", node)``, ``("i", element)``, or ``("f", element)`` of a formula."""


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
    uses = _dependences(circuit, dynamics, formulas, steady)
    height, found = dict[Used, int](), dict[int, int]()
    # Tarjan's algorithm gives each component after those that it depends on.
    for group in nx.strongly_connected_components(nx.from_dict_of_lists(uses, nx.DiGraph)):
        own = [k for what, k in group if what == "f"]
        below = max((height.get(used, 0) for one in group for used in uses.get(one, ())), default=0)
        height |= dict.fromkeys(group, below + bool(own))
        if len(group) == 1:
            found |= dict.fromkeys(own, below + 1)
    return found


def _quantities(*reads: Read) -> list[Used]:
    """The quantities that are read."""
    return [("i" if len(read) == 1 else "v", one) for read in reads for one in read]


def _dependences(
    circuit: Circuit, dynamics: Dynamics, formulas: Mapping[int, Sequence[Read]], steady: bool
) -> dict[Used, list[Used]]:
    """The quantities that the value of each follows from."""
    (kind, first, second, value), laws = circuit.columns(), circuit.laws
    ends, reads = [*zip(first, second)], defaultdict[int, list[Read]](list)
    for k, law in laws.items():
        reads[k] = [(one.plus, one.minus) for one in law.voltages] + [(one.element,) for one in law.currents]
    for k, switch in dynamics.switches.items():
        control = switch.control
        reads[k] = [(circuit.element_index(control),) if isinstance(control, str) else control]
    for pair in () if steady else dynamics.couplings:
        one, other = map(circuit.element_index, pair)
        reads[one].append(ends[other])
        reads[other].append(ends[one])
    currents, fixes = defaultdict[int, set[Used]](set), nx.Graph()
    states: dict[int, Quantity | None] = {}  # what an element determines
    for k in range(len(circuit)):
        if steady and kind[k] == CAPACITOR:
            continue
        short = (kind[k] == RESISTOR and value[k] == 0.0) or (kind[k] == INDUCTOR and steady)
        own = Quantity.VOLTAGE if kind[k] == VOLTAGE or short else Quantity.CURRENT if kind[k] == CURRENT else None
        states[k] = laws[k].quantity if k in laws else own
        if states[k] is Quantity.VOLTAGE:
            fixes.add_edge(*ends[k], element=k)
        for node in ends[k]:
            currents[node].add(("i", k))
    paths = nx.bfs_predecessors(fixes, GROUND) if GROUND in fixes else ()
    held = {fixes.edges[before, node]["element"]: node for node, before in paths}
    free = currents.keys() - {GROUND, *held.values()}
    uses: dict[Used, list[Used]] = {("v", node): [*currents[node]] for node in free}
    uses |= {("f", k): _quantities(*read) for k, read in formulas.items()}
    for k, quantity in states.items():
        by = [*_quantities(*reads[k]), *[("f", k)] * (k in formulas)]
        if quantity is not Quantity.CURRENT:
            by += _quantities(ends[k])
        uses["i", k] = by
        if k in held:
            uses["v", held[k]], uses["i", k] = by, [*currents[held[k]] - {("i", k)}]
        if quantity is Quantity.NEITHER:  # its control determines its current, and that its control
            for node in free & {node for _, node in _quantities(*reads[k])}:
                uses["v", node].append(("i", k))
    return uses
