"""Circuits that were wrong once, every branch against the exact oracle; random ones by the driver of large circuits, by
general solvers, and refused. `benchmarks/campaign.py` draws others."""

import math

import numpy as np
import pytest
from branch_checks import examine
from circuits import NODES, Parts, Regime, Sketch, decks, draw, drawn, examples, sketch_of
from corpus import REGIMES
from exact import Oracle
from repeated_checks import examine_batch, examine_starts, values_of

import circuitsim
from circuitsim import InfeasibleError, UnboundedError
from circuitsim.analysis.convex import Prepared

FOUND, REPEATED = decks("found.cir"), decks("repeated.cir")
"""Circuits that search found and an earlier solver got wrong, many shrunk by hand: their titles say why; sets of values
of one circuit, solved one after the other or as a batch."""


@pytest.mark.parametrize("regime", REGIMES)
def test_every_branch_of_the_large_driver(regime: Regime) -> None:
    for seed in range(1000, 1000 + examples(15)):
        sketch = draw(regime, seed)
        large = Prepared(sketch.circuit(), "active-set", 1e-9, "asked for")
        assert examine(sketch, large.solve) == [], seed


@pytest.mark.parametrize("title", FOUND)
def test_circuits_that_were_wrong(title: str) -> None:
    assert examine(FOUND[title]) == []


@pytest.mark.parametrize("seed", range(20))
def test_cancelling_sources_in_any_order(seed: int) -> None:
    parts = FOUND["cancelling sources in any order"].parts
    order = np.random.default_rng(seed).permutation(len(parts))
    assert examine(sketch_of([parts[k] for k in order])) == []


@pytest.mark.parametrize("regime", REGIMES)
def test_refusals_name_a_contradiction(regime: Regime) -> None:
    """The loop or the cut that an error names has no steady state by itself."""
    for seed in range(examples(200)):
        sketch = draw(regime, 5000 + seed, (2, 12))
        try:
            circuitsim.solve(sketch.circuit())
        except InfeasibleError as error:
            names = {name.lower() for name in error.elements}
            loop = [part for k, part in enumerate(sketch.parts) if f"{part[0]}{k}".lower() in names]
            assert len(loop) == len(names) and Oracle(sketch.n, Sketch(sketch.n, loop).edges()).infeasible()
        except UnboundedError as error:
            inside = {NODES.index(name) for name in error.nodes}
            crossing = {k: x for k, x in enumerate(sketch.parts) if (x[1] in inside) != (x[2] in inside)}
            into = math.fsum(v if b in inside else -v for letter, a, b, v in crossing.values() if letter == "I")
            assert into and not any(letter in "RVL" for letter, *_ in crossing.values())
            assert not any((a in inside) == (into > 0) for letter, a, b, _ in crossing.values() if letter == "D")
            assert {f"I{k}" for k, x in crossing.items() if x[0] == "I" and x[3]} == set(error.elements)


@pytest.mark.parametrize("name", sorted({title.rsplit(" ", 1)[0] for title in REPEATED}))
def test_values_that_were_wrong(name: str) -> None:
    samples = [sketch for title, sketch in REPEATED.items() if title.rsplit(" ", 1)[0] == name]
    if name.startswith("batch"):
        assert examine_batch(samples[0], samples[1:]) == []
    ready, last = circuitsim.prepared(samples[0].circuit()), []
    for sample in samples:

        def solve(sample: Sketch = sample) -> circuitsim.OperatingPoint:
            last.append(ready.solve(values_of(sample), start=last[-1] if last else None))
            return last[-1]

        assert examine(sample, solve) == []


def test_currents_over_many_decades() -> None:
    """A mesh with resistances over twelve decades, from starts."""
    for seed in range(3):
        rng, side = np.random.default_rng(seed), 5
        node = np.arange(1, side * side + 1).reshape(side, side)
        pairs = [*zip(node[:, :-1].ravel(), node[:, 1:].ravel()), *zip(node[:-1].ravel(), node[1:].ravel())]
        parts: Parts = [("R", int(a), int(b), 10.0 ** rng.uniform(-3.0, 9.0)) for a, b in pairs]
        for a, b in pairs[::3]:
            parts.append(("D", int(a), int(b), 0.0) if rng.random() < 0.5 else ("D", int(b), int(a), 0.0))
        parts += [("V", side * side + 1, 0, 1.0), *(("R", side * side + 1, int(a), 1.0) for a in node[:, 0])]
        parts += [("R", int(a), 0, 1.0) for a in node[:, -1]]
        parts += [("I", 0, int(a), rng.uniform(-0.1, 0.1)) for a in rng.permutation(node.ravel())[:2]]
        assert examine_starts(sketch_of(parts), rng, 3) == []


def test_both_general_backends_find_the_same_energy() -> None:
    """Wherever what they return is a steady state to six digits: they stop at tolerances of the whole circuit."""
    agree, missed = 0, 0
    for k, sketch in enumerate(drawn(60, (2, 9))):
        circuit, solver = sketch.circuit(), f"cvxpy:{('CLARABEL', 'OSQP')[k % 2]}"
        try:
            point = circuitsim.solve(circuit)
        except (InfeasibleError, UnboundedError) as error:
            with pytest.raises(type(error)):
                circuitsim.solve(circuit, solver=solver)
            continue
        try:
            other = circuitsim.solve(circuit, solver=solver, tolerance=1e-6)
        except circuitsim.ConvergenceError:
            missed += 1
            continue
        agree += 1
        terms = sum(abs(i * point.voltage(e.first, e.second)) for e, i in zip(circuit, point.currents.tolist()))
        assert other.energy == pytest.approx(point.energy, rel=1e-5, abs=1e-5 * terms)
    # The comparison must not be empty.
    assert agree >= (agree + missed) / 4
