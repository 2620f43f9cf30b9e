"""Every random circuit ends in a certified solution that is exactly right, or in a refusal that is exactly right."""

from __future__ import annotations

import math

from branch_checks import complaints
from circuits import NODES, Sketch, bristling, examples, sketches
from exact import Oracle
from hypothesis import given, settings

import circuitsim
from circuitsim.errors import InfeasibleError, NoSteadyStateError, UnboundedError


@settings(max_examples=examples(2000))
@given(sketches())
def test_solution_or_refusal(sketch: Sketch) -> None:
    """Potentials, ranges, currents, uniqueness, energy and witnesses agree with rational arithmetic."""
    try:
        op = circuitsim.solve(sketch.circuit())  # a ConvergenceError is a failure
    except NoSteadyStateError as error:
        assert wrong_witness(sketch, error) == []
        return
    assert op.certificate.certified
    assert complaints(sketch, op) == []


@settings(max_examples=examples(300))
@given(bristling(max_nodes=12, max_diodes=10))
def test_groups_of_conducting_diodes(sketch: Sketch) -> None:
    """Where node-wise methods freeze: diodes between free nodes conduct, in chains, trees and loops."""
    assert complaints(sketch, circuitsim.solve(sketch.circuit())) == []


@settings(max_examples=examples(150))
@given(bristling(max_nodes=40, max_diodes=60))
def test_larger_groups(sketch: Sketch) -> None:
    """Larger than what enumeration can do."""
    assert complaints(sketch, circuitsim.solve(sketch.circuit())) == []


def wrong_witness(sketch: Sketch, error: NoSteadyStateError) -> list[str]:
    """What is wrong with the witness of a refusal, held up on its own."""
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
