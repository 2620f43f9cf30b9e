"""A solution of circuitsim against the exact oracle: every complaint as a sentence."""

from __future__ import annotations

import math

from circuits import NODES, Sketch
from exact import Exact, Oracle

import circuitsim
from circuitsim.errors import InfeasibleError, NoSteadyStateError, UnboundedError

RELATIVE, ROUNDING = 1e-9, 1e-12


def exact_solution(sketch: Sketch, op: circuitsim.OperatingPoint) -> tuple[Oracle, Exact | None]:
    """The oracle and its answer; the diode states that ``op`` reports are only tried first, never believed."""
    oracle = Oracle(sketch.n, sketch.edges())
    on = [i > 0 for i, (letter, *_) in zip(op.currents, sketch.parts) if letter == "D"]
    return oracle, oracle.solve([k for k, conducts in enumerate(on) if conducts])


def complaints_about(sketch: Sketch, op: circuitsim.OperatingPoint) -> list[str]:
    """What is wrong with a solution: potentials, ranges, currents, uniqueness, energy."""
    oracle, exact = exact_solution(sketch, op)
    if exact is None:
        return ["a solution where none exists"]
    shorted = [k for k, d in enumerate(oracle.diodes) if diode_current(sketch, exact, k) > 0]
    # Islands that float to a bound carry the rounding of where they float to.
    found = [op[name] for name in NODES[: sketch.n]]
    noise = [max(scale, abs(float(v)), abs(x)) for scale, v, x in zip(oracle.rounding(shorted), exact.voltage, found)]
    flows = flow_noise(sketch, exact, noise)
    # Whether a current that drowns in rounding flows at all no double can tell: then ranges and flags are open.
    clear = all(i == 0 or abs(float(i)) > 1e-9 * scale for i, scale in zip(exact.current, flows))
    return [
        *wrong_potentials(sketch, op, exact, noise, clear),
        *wrong_currents(sketch, op, exact, noise, flows),
        *(wrong_flags(op, exact) if clear else []),
    ]


def diode_current(sketch: Sketch, exact: Exact, k: int) -> float:
    """Current of the k-th diode."""
    return float([i for i, part in zip(exact.current, sketch.parts) if part[0] == "D"][k])


def wrong_potentials(
    sketch: Sketch, op: circuitsim.OperatingPoint, exact: Exact, noise: list[float], clear: bool
) -> list[str]:
    """Potentials that are off, and ranges that are missing, wrong or too many."""
    wrong = []
    most = max(noise)
    for k in range(1, sketch.n):
        name = NODES[k]
        low, high = exact.interval[k]
        if low is not None and low == high:
            allowed = RELATIVE * abs(float(low)) + ROUNDING * (noise[k] or most)
            if abs(op[name] - float(low)) > allowed:
                wrong.append(f"v({name}) = {op[name]!r}, exactly {float(low)!r}")
            found = op.intervals.get(name)
            if clear and found and (None in found or found[1] - found[0] > 2 * allowed + ROUNDING * most):
                wrong.append(f"{name} has the range {found}, exactly {float(low)!r}")
            continue
        found = op.intervals.get(name)
        if found is None:
            if low is None or high is None or float(high - low) > ROUNDING * most:
                wrong.append(f"{name} has no range, exactly {(low, high)}")
            continue
        for mine, end in zip(found, (low, high)):
            if (mine is None) != (end is None):
                wrong.append(f"{name} has the range {found}, exactly {(low, high)}")
            elif mine is not None and abs(mine - float(end)) > RELATIVE * abs(float(end)) + ROUNDING * most:
                wrong.append(f"{name} has the range {found}, exactly ({low and float(low)}, {high and float(high)})")
    return wrong


def flow_noise(sketch: Sketch, exact: Exact, noise: list[float]) -> list[float]:
    """Scale of the rounding of each element's current: what its terminals' resistors and sources carry.

    Currents of sources, shorts and diodes are sums over all nodes that such elements join, so they share one scale.
    """
    at = [0.0] * sketch.n
    for (letter, a, b, value), i in zip(sketch.parts, exact.current):
        size = abs(float(i))
        if letter == "R" and value:
            size = (noise[a] + noise[b]) / value
        if letter in "RI" and not (letter == "R" and value == 0):
            at[a] += size
            at[b] += size
    total = math.fsum(at)
    return [(noise[a] + noise[b]) / v if letter == "R" and v else total for letter, a, b, v in sketch.parts]


def wrong_currents(
    sketch: Sketch, op: circuitsim.OperatingPoint, exact: Exact, noise: list[float], flows: list[float]
) -> list[str]:
    """Currents that are off where they are unique, and the energy."""
    wrong = []
    for k, (i, name) in enumerate(zip(exact.current, op.circuit.names)):
        if exact.unique[k] and abs(op.currents[k] - float(i)) > RELATIVE * abs(float(i)) + ROUNDING * flows[k]:
            wrong.append(f"i({name}) = {op.currents[k]!r}, exactly {float(i)!r}")
    size = math.fsum(abs(float(i)) * (noise[a] + noise[b]) for (_, a, b, _), i in zip(sketch.parts, exact.current))
    if abs(op.energy - float(exact.energy)) > RELATIVE * (abs(float(exact.energy)) + size):
        wrong.append(f"energy {op.energy!r}, exactly {float(exact.energy)!r}")
    return wrong


def wrong_flags(op: circuitsim.OperatingPoint, exact: Exact) -> list[str]:
    """Elements whose current is called unique and is not, or the other way round."""
    names = [n for n, mine, true in zip(op.circuit.names, op.unique.tolist(), exact.unique) if mine != true]
    return [f"unique is wrong for {names}"] if names else []


def complaints_about_refusal(sketch: Sketch, error: NoSteadyStateError) -> list[str]:
    """What is wrong with a refusal: its kind, and its witness held up on its own."""
    oracle = Oracle(sketch.n, sketch.edges())
    if isinstance(error, InfeasibleError):
        names = {name.lower() for name in error.elements}
        cycle = [part for k, part in enumerate(sketch.parts) if f"{part[0]}{k}".lower() in names]
        if len(cycle) != len(names) or not Oracle(sketch.n, Sketch(sketch.n, cycle).edges()).infeasible():
            return [f"the cycle {error.elements} is no contradiction"]
        return []
    assert isinstance(error, UnboundedError)
    if not oracle.unbounded():
        return ["refused as unbounded, but every current has a way"]
    inside = {NODES.index(name) for name in error.nodes}
    crossing = [part for part in sketch.parts if (part[1] in inside) != (part[2] in inside)]
    into = math.fsum(v if b in inside else -v for letter, a, b, v in crossing if letter == "I")
    leads = {"D": [(a in inside) == (into > 0) for letter, a, b, _ in crossing if letter == "D"]}["D"]
    wrong = []
    if not into or any(letter in "RVL" for letter, *_ in crossing) or any(leads):
        wrong.append(f"the cut {error.nodes} is no cut: {into} A into it, crossed by {crossing}")
    named = {f"I{k}" for k, part in enumerate(sketch.parts) if part in crossing and part[0] == "I" and part[3]}
    if named != set(error.elements):
        wrong.append(f"the sources across the cut are {named}, not {error.elements}")
    return wrong
