"""An operating point against the exact oracle, branch by branch: every complaint as a sentence.

Bars, each relative to what meets at the place in question:

- **Branch current** (where unique): off by more than the larger of 1e-9 of the largest |current| of any branch at
  either of its end nodes and 1e-22 of the largest in its biconnected component (of the graph of all elements).
  Currents are exact ones; at non-unique branches the reported ones. 1e-290 A and V count as zero.
- **Non-unique currents**: Kirchhoff's law at each node to the largest bar of its branches; none backwards.
- **Diode state**: *conducting* is a reported current > 0. A state can be wrong only with a current wrong by the bar.
- **Node voltage** (where unique): off by more than the larger of 1e-9 of its exact magnitude and 1e-12 of the largest
  |drop| in the biconnected components that a path from the reference to the node crosses: a potential is a sum of drops
  along such paths, in fundamental loops of these components. To a component's 1e-12 belongs the voltage of its largest
  resistor at the bar of 1e-22 of the component's largest current. A **drop of a blocking diode**: the same with its own
  magnitude and the larger scale of its two ends.
- **Interval**: ends off by more than 1e-9 of their magnitude and 1e-12 of the largest |drop| of all.
- **unique**: wrong where the currents that decide it exceed their bars: all diodes joined to the element through
  sources, shorts and diodes carry, and drop, more than the bar or exactly nothing.
- **Energy**: 1e-9 of the sum of the magnitudes of its terms, and the largest bar of a current times that of a voltage.
- **Values**: the circuit of binary values, or the one of values as written (0.3 is 3/10): they differ by half a unit in
  the last place, which decides ties of diodes in loops of decimal sources.
- **Refusal**: the exact circuit has the same reason (or another one) to have no steady state. Sums of sources around
  loops and cuts that are rounding: see `closing`. A `ConvergenceError` is always a complaint.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import networkx
from circuits import NODES, Sketch
from closing import closed_edges, decimal_edges, refused_by_rounding
from exact import Edge, Exact, Oracle
from exact_graphs import parts

import circuitsim
from circuitsim.errors import ConvergenceError, InfeasibleError, NoSteadyStateError

NEAR, FAR, POTENTIAL, TINY = 1e-9, 1e-22, 1e-12, 1e-290


class Scales(NamedTuple):
    """Bars of one circuit: (m,) currents in A, (n,) potentials in V, and the largest |drop| of all in V."""

    current: list[float]
    potential: list[float]
    largest_drop: float


def examine(sketch: Sketch, solve: Callable[[], circuitsim.OperatingPoint] | None = None) -> list[str]:
    """Solve a circuit, by ``solve`` if given, and compare all of the outcome with the exact answer."""
    try:
        op = solve() if solve else circuitsim.solve(sketch.circuit())
    except ConvergenceError as error:
        return [f"ConvergenceError: {error}"]
    except NoSteadyStateError as error:
        return complaints_about_refusal(sketch, error)
    return complaints(sketch, op)


def complaints_about_refusal(sketch: Sketch, error: NoSteadyStateError) -> list[str]:
    """What is wrong with a refusal."""
    oracle = Oracle(sketch.n, closed_edges(sketch))
    if oracle.infeasible() if isinstance(error, InfeasibleError) else oracle.unbounded():
        return []
    return [f"{type(error).__name__} without reason: {error}"]


def complaints(sketch: Sketch, op: circuitsim.OperatingPoint, sample: bool = False) -> list[str]:
    """What is wrong with a solution, by the values' binary numbers and also by the values as written; of the sample of
    a batch only currents, potentials and drops."""
    wrong = _complaints(sketch, op, closed_edges(sketch), sample)
    return wrong and _complaints(sketch, op, decimal_edges(sketch), sample) and wrong


def _complaints(sketch: Sketch, op: circuitsim.OperatingPoint, edges: list[Edge], sample: bool) -> list[str]:
    """What is wrong against the circuit of exact ``edges``; the reported states are only the oracle's first guess."""
    oracle = Oracle(sketch.n, edges)
    on = [i > 0 for i, (letter, *_) in zip(op.currents, sketch.parts) if letter == "D"]
    exact = oracle.solve([k for k, conducts in enumerate(on) if conducts])
    if exact is None:
        if refused_by_rounding(oracle):
            return []
        return ["a solution where none exists"]
    currents, drops = op.currents.tolist(), reported_drops(sketch, op)
    scales = scales_of(sketch, exact, currents)
    wrong = [*wrong_currents(sketch, op, exact, scales), *unbalanced(sketch, op, scales)]
    wrong += [*wrong_voltages(sketch, op, exact, scales), *wrong_drops(sketch, op, exact, scales, drops)]
    if sample:
        return wrong
    decided = decided_nodes(sketch, exact, scales)
    if all(decided):
        wrong += wrong_intervals(sketch, op, exact, scales)
    return [*wrong, *wrong_flags(sketch, op, exact, decided), *wrong_energy(sketch, op, exact, scales)]


def reported_drops(sketch: Sketch, op: circuitsim.OperatingPoint) -> list[float]:
    """Voltage over each element as reported."""
    return [op.voltage(NODES[a], NODES[b]) for _, a, b, _ in sketch.parts]


def scales_of(sketch: Sketch, exact: Exact, reported: list[float]) -> Scales:
    """The bars of currents, and of potentials (see the module)."""
    size = [abs(float(i)) if only else abs(x) for i, only, x in zip(exact.current, exact.unique, reported)]
    drop = [abs(float(exact.voltage[a] - exact.voltage[b])) for _, a, b, _ in sketch.parts]
    at = [0.0] * sketch.n
    graph = networkx.Graph()
    graph.add_nodes_from(range(sketch.n))
    for (letter, a, b, _), x in zip(sketch.parts, size):
        at[a], at[b] = max(at[a], x), max(at[b], x)
        if letter != "C" and a != b:
            graph.add_edge(a, b)
    block = {}
    for k, pairs in enumerate(networkx.biconnected_component_edges(graph)):
        block.update({frozenset(pair): k for pair in pairs})
    most_current, most_drop = [0.0] * (len(block) + 1), [0.0] * (len(block) + 1)
    place = [block.get(frozenset((a, b)), len(block)) for _, a, b, _ in sketch.parts]
    for k, x, d in zip(place, size, drop):
        most_current[k], most_drop[k] = max(most_current[k], x), max(most_drop[k], d)
    bar = [POTENTIAL * d for d in most_drop]
    for k, (letter, *_, value) in zip(place, sketch.parts):
        if letter == "R":
            bar[k] = max(bar[k], value * FAR * most_current[k])
    current = [
        max(NEAR * max(at[a], at[b]), FAR * (most_current[k] if k < len(block) else 0.0), TINY)
        for (_, a, b, _), k in zip(sketch.parts, place)
    ]
    potential = [0.0] * sketch.n
    reference = parts(sketch.n, graph.edges)
    for root in sorted(set(reference)):
        for a, b in networkx.bfs_edges(graph, root):
            potential[b] = max(potential[a], bar[block[frozenset((a, b))]])
    return Scales(current, potential, max(drop, default=0.0))


def wrong_currents(sketch: Sketch, op: circuitsim.OperatingPoint, exact: Exact, scales: Scales) -> list[str]:
    """Unique currents that are off, and diode states that these currents make wrong."""
    wrong = []
    for k, (name, x) in enumerate(zip(op.circuit.names, op.currents.tolist())):
        diode = sketch.parts[k][0] == "D"
        if diode and x < 0.0:
            wrong.append(f"i({name}) = {x!r} goes backwards through a diode")
        if not exact.unique[k] or abs(x - exact.current[k]) <= scales.current[k]:
            continue
        said = f"i({name}) = {x!r}, exactly {float(exact.current[k])!r}, bar {scales.current[k]:.1e}"
        if diode and (x > 0.0) != (exact.current[k] > 0):
            wrong.append(f"{name} is called {op.state(name)}: {said}")
        else:
            wrong.append(said)
    return wrong


def unbalanced(sketch: Sketch, op: circuitsim.OperatingPoint, scales: Scales) -> list[str]:
    """Nodes at which the reported currents do not add up."""
    net: list[list[float]] = [[] for _ in range(sketch.n)]
    allowed = [TINY] * sketch.n
    for (_, a, b, _), x, bar in zip(sketch.parts, op.currents.tolist(), scales.current):
        net[a].append(x)
        net[b].append(-x)
        allowed[a], allowed[b] = max(allowed[a], bar), max(allowed[b], bar)
    return [
        f"{math.fsum(xs)!r} A are missing at {NODES[u]}, bar {bar:.1e}"
        for u, (xs, bar) in enumerate(zip(net, allowed))
        if not abs(math.fsum(xs)) <= bar
    ]


def wrong_voltages(sketch: Sketch, op: circuitsim.OperatingPoint, exact: Exact, scales: Scales) -> list[str]:
    """Unique node voltages that are off."""
    wrong = []
    for u in range(1, sketch.n):
        low, high = exact.interval[u]
        if low is None or low != high:
            continue
        allowed = max(NEAR * abs(float(low)), scales.potential[u], TINY)
        if not abs(op[NODES[u]] - low) <= allowed:
            said = f"v({NODES[u]}) = {op[NODES[u]]!r}, exactly {float(low)!r}, bar {allowed:.1e}"
            wrong.append(said)
    return wrong


def wrong_drops(
    sketch: Sketch, op: circuitsim.OperatingPoint, exact: Exact, scales: Scales, drops: list[float]
) -> list[str]:
    """Diodes with a wrong drop: positive, or not the exact one where that is unique."""
    wrong = []
    for k, (letter, a, b, _) in enumerate(sketch.parts):
        if letter != "D":
            continue
        true = exact.voltage[a] - exact.voltage[b]
        allowed = max(NEAR * abs(float(true)), scales.potential[a], scales.potential[b], TINY)
        fixed = exact.interval[a][0] is not None and exact.interval[a][0] == exact.interval[a][1]
        fixed = fixed and exact.interval[b][0] is not None and exact.interval[b][0] == exact.interval[b][1]
        if drops[k] > max(allowed, POTENTIAL * scales.largest_drop if not fixed else 0.0):
            said = f"{op.circuit.names[k]} has the drop {drops[k]!r}, more than nothing by the bar {allowed:.1e}"
            wrong.append(said)
        elif fixed and not abs(drops[k] - true) <= allowed:
            said = f"{op.circuit.names[k]} has the drop {drops[k]!r}, exactly {float(true)!r}, bar {allowed:.1e}"
            wrong.append(said)
    return wrong


def decided_nodes(sketch: Sketch, exact: Exact, scales: Scales) -> list[bool]:
    """For each node whether all diodes joined to it through sources, shorts and diodes are clear of their bars."""
    joined = [(a, b) for letter, a, b, value in sketch.parts if letter in "VLD" or (letter == "R" and value == 0)]
    group = parts(sketch.n, joined)
    open_groups = set()
    for (letter, a, b, _), i, bar in zip(sketch.parts, exact.current, scales.current):
        if letter == "D":
            drop = abs(float(exact.voltage[a] - exact.voltage[b]))
            if 0 < i <= 2 * bar or 0 < drop <= 2 * max(scales.potential[a], scales.potential[b], TINY):
                open_groups.add(group[a])
    return [g not in open_groups for g in group]


def wrong_intervals(sketch: Sketch, op: circuitsim.OperatingPoint, exact: Exact, scales: Scales) -> list[str]:
    """Ranges that are missing, wrong or too many."""
    wrong = []
    for u in range(1, sketch.n):
        name, (low, high) = NODES[u], exact.interval[u]
        given = op.intervals.get(name)
        found = given or ((low, low) if low == high else (op[name], op[name]))
        noise = max(2 * POTENTIAL * scales.largest_drop, scales.potential[u], TINY)
        for mine, end in zip(found, (low, high)):
            same = (mine is None) == (end is None)
            if not same or (mine is not None and not abs(mine - end) <= NEAR * abs(float(end)) + noise):
                shown = tuple(None if end is None else float(end) for end in (low, high))
                wrong.append(f"{name} has the range {given}, exactly {shown}")
                break
    return wrong


def wrong_flags(sketch: Sketch, op: circuitsim.OperatingPoint, exact: Exact, decided: list[bool]) -> list[str]:
    """Elements with a wrong `unique` flag, where exact currents and drops decide it."""
    return [
        f"unique is {mine} for {name}, exactly {true}"
        for name, mine, true, part in zip(op.circuit.names, op.unique.tolist(), exact.unique, sketch.parts)
        if mine != true and decided[part[1]]
    ]


def wrong_energy(sketch: Sketch, op: circuitsim.OperatingPoint, exact: Exact, scales: Scales) -> list[str]:
    """The energy, if it is off by more than 1e-9 of the magnitudes of its terms."""
    size = math.fsum(
        abs(float(i)) * max(abs(float(exact.voltage[a] - exact.voltage[b])), POTENTIAL * abs(float(exact.voltage[a])))
        for (letter, a, b, _), i in zip(sketch.parts, exact.current)
        if letter in "RI"
    )
    least = max(scales.current) * max(scales.potential)
    if abs(op.energy - exact.energy) <= NEAR * (size + abs(float(exact.energy))) + max(least, TINY):
        return []
    return [f"energy {op.energy!r}, exactly {float(exact.energy)!r}"]
