"""Laws that need no oracle: what renaming, reordering, writing out and adding up must not change."""

import math
import random

import pytest
from circuits import NODES, Parts, Sketch, drawn, sketch_of
from exact import Oracle

import circuitsim
from circuitsim.errors import InfeasibleError, NoSteadyStateError
from circuitsim.netlist import dumps, loads

Outcome = circuitsim.OperatingPoint | type[NoSteadyStateError]


def outcome(circuit: circuitsim.Circuit) -> Outcome:
    """The operating point, or the kind of refusal."""
    try:
        return circuitsim.solve(circuit)
    except NoSteadyStateError as error:
        return type(error)


def rounding(sketch: Sketch) -> float:
    """The scale of rounding over the whole circuit, V: what its sources could add up to, all diodes shorts or open."""
    oracle = Oracle(sketch.n, sketch.edges())
    return max(*oracle.rounding([]), *oracle.rounding(range(len(oracle.diodes))))


def same_point(a: Outcome, b: Outcome, names: dict[str, str], noise: float) -> bool:
    """Whether two outcomes agree on every node (a's name → b's) that has a unique potential."""
    if isinstance(a, type) or isinstance(b, type):
        return a is b
    return set(map(names.__getitem__, a.intervals)) == set(b.intervals) and all(
        math.isclose(a[mine], b[other], rel_tol=1e-9, abs_tol=1e-12 * noise)
        for mine, other in names.items()
        if mine not in a.intervals
    )


SKETCHES = drawn(100)


def test_text_keeps_the_operating_point() -> None:
    """dumps → loads → solve: zero-ohm parts and coils come back as sources, everything else as it was."""
    for sketch in SKETCHES:
        circuit = sketch.circuit()
        back = loads(dumps(circuit))
        names = {node: node for node in NODES[1 : sketch.n]}
        assert sorted(map(str.lower, back.node_names)) == sorted(map(str.lower, circuit.node_names))
        assert same_point(outcome(circuit), outcome(back), names, rounding(sketch))
        assert dumps(back) == dumps(loads(dumps(back)))


def test_order_and_names_do_not_matter() -> None:
    """Elements in another order, other names for elements and nodes, V, I and R turned round: the same voltages."""
    for seed, sketch in enumerate(SKETCHES):
        chance = random.Random(seed)
        if Oracle(sketch.n, sketch.edges()).references != {0}:  # potentials depend on the node that is named first
            continue
        parts: Parts = []
        for letter, a, b, value in chance.sample(sketch.parts, len(sketch.parts)):
            turned = letter != "D" and chance.random() < 0.5
            parts.append((letter, b, a, -value if letter in "VI" else value) if turned else (letter, a, b, value))
        nodes = ["0", *chance.sample([f"n{k}" for k in range(20)], sketch.n - 1)]
        names = [f"{part[0]}_{k}" for k, part in enumerate(parts)]
        other = Sketch(sketch.n, parts).circuit(names, nodes)
        renamed = dict(zip(NODES[1 : sketch.n], nodes[1:]))
        assert same_point(outcome(sketch.circuit()), outcome(other), renamed, rounding(sketch)), seed


def test_superposition() -> None:
    """Without diodes the answer to the sum of two sets of sources is the sum of the answers."""
    compared = 0
    for seed, whole in enumerate(SKETCHES):
        chance, sketch = random.Random(seed), sketch_of([part for part in whole.parts if part[0] != "D"])
        if not sketch.parts:
            continue
        other = [(x, a, b, v * chance.choice((-2.0, 0.0, 1.0, 3.0)) if x in "VI" else v) for x, a, b, v in sketch.parts]
        both = [(x, a, b, v + w if x in "VI" else v) for (x, a, b, v), (*_, w) in zip(sketch.parts, other)]
        try:
            first, second, total = (
                circuitsim.solve(Sketch(sketch.n, p).circuit()) for p in (sketch.parts, other, both)
            )
        except NoSteadyStateError:
            continue
        compared += 1
        noise = sum(rounding(Sketch(sketch.n, p)) for p in (sketch.parts, other))
        for node in NODES[1 : sketch.n]:
            assert total[node] == pytest.approx(first[node] + second[node], rel=1e-9, abs=1e-12 * noise), seed
    assert compared > 25


def test_loops_close_but_for_rounding_only() -> None:
    """0.1 + 0.2 − 0.3 is not zero in binary and closes all the same; a part in 10⁹ too much does not."""
    for excess, closes in ((0.0, True), (3e-10, False)):
        parts: Parts = [("V", 1, 0, 0.1), ("V", 2, 1, 0.2), ("V", 2, 0, 0.3 + excess), ("R", 2, 0, 1.0)]
        assert (outcome(Sketch(3, parts).circuit()) is InfeasibleError) != closes
