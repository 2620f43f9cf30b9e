"""Every random circuit ends in a certified solution that is exactly right, or in a refusal that is exactly right."""

from __future__ import annotations

from checks import complaints_about, complaints_about_refusal
from circuits import Sketch, bristling, examples, sketches
from exact import Oracle
from hypothesis import given, settings

import circuitsim
from circuitsim.errors import NoSteadyStateError


@settings(max_examples=examples(2000))
@given(sketches())
def test_solution_or_refusal(sketch: Sketch) -> None:
    """Potentials, ranges, currents, uniqueness, energy and witnesses agree with rational arithmetic."""
    circuit = sketch.circuit()
    try:
        op = circuitsim.solve(circuit)  # a ConvergenceError is a failure
    except NoSteadyStateError as error:
        assert complaints_about_refusal(sketch, error) == []
        return
    assert op.certificate.certified
    assert complaints_about(sketch, op) == []


@settings(max_examples=examples(300))
@given(bristling(max_nodes=12, max_diodes=10))
def test_groups_of_conducting_diodes(sketch: Sketch) -> None:
    """Where node-wise methods freeze: diodes between free nodes conduct, in chains, trees and loops."""
    op = circuitsim.solve(sketch.circuit())
    assert complaints_about(sketch, op) == []


@settings(max_examples=examples(150))
@given(bristling(max_nodes=40, max_diodes=60))
def test_larger_groups(sketch: Sketch) -> None:
    """Larger than what enumeration can do."""
    op = circuitsim.solve(sketch.circuit())
    assert complaints_about(sketch, op) == []


@settings(max_examples=examples(150))
@given(sketches(max_nodes=6, max_diodes=5))
def test_the_oracle_agrees_with_itself(sketch: Sketch) -> None:
    """All sets of diodes that are right tell the same story, and there is one iff neither reason for none holds."""
    oracle = Oracle(sketch.n, sketch.edges())
    answers = [oracle.describe(*found) for found in every_right_set(oracle)]
    assert bool(answers) == (not oracle.infeasible() and not oracle.unbounded())
    searched = oracle.solve()
    assert (searched is None) == (not answers)
    for answer in [*answers[1:], *([searched] if searched else [])]:
        assert answer.interval == answers[0].interval
        assert answer.unique == answers[0].unique
        assert answer.energy == answers[0].energy
        assert all(i == j for i, j, only in zip(answer.current, answers[0].current, answer.unique) if only)


def every_right_set(oracle: Oracle) -> list[tuple]:
    found = []
    for shorted in oracle.states():
        right = oracle.right(shorted)
        if right is not None:
            found.append((right[0], shorted, right[1]))
    return found
