"""Stages in one kernel: its equations and certificates as those of the classes, its steps as stage by stage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import circuitsim
from circuitsim.analysis import stage_equations
from circuitsim.analysis.controlled_system import ControlledSystem
from circuitsim.analysis.smooth_controlled_proof import proof
from circuitsim.circuit.couplings import UNCOUPLED
from circuitsim.controlled.linear import Scaled
from circuitsim.time_domain.companion import Companion, StagePoint, StagesAtOnce, found_of
from circuitsim.time_domain.implicit_step import Step, euler_step, runge_kutta_step
from circuitsim.time_domain.stage_kernels import stage_kernel

MODELS = ".model dj D(IS=1n N=1.5 RS=10m)\n.model dp D(VFWD=0.7 RON=0.05 ROFF=1meg)\n.model ideal D\n"
DECKS = {
    "flyback": "V1 in 0 24\nL1 in sw 100u\nL2 0 d 25u\nR9 sw 0 1k\nD1 d out dj\nC1 out 0 47u\nR1 out 0 10\n"
    "Rs sw s1 100\nCs s1 0 1n\n",
    "windings": "V1 in 0 5\nR1 in a 1\nL1 a 0 100u\nL2 b 0 100u\nL3 c 0 25u\nD1 b x dj\nD2 c y dj\nC1 x 0 1u\n"
    "C2 y 0 1u\nR2 x 0 50\nR3 y 0 50\n",
    "rectifier with an amplifier": "V1 in 0 0.5\nR1 in m 10k\nE1 o 0 0 m 100k\nD1 m o dj\nD2 o x dj\nR2 x m 10k\n"
    "C1 x 0 1n\n",
    "controls of all kinds": "V1 in 0 2\nR1 in a 5\nVs a p 0\nC1 p 0 1u\nF1 0 q Vs 2\nR2 q 0 3\nD1 q r dj\nR3 r 0 7\n"
    "G1 r 0 p 0 0.01\nH1 s 0 I1 2\nI1 0 t 0.1\nR4 t 0 2\nL1 s t 1m\nC2 r 0 2u\n",
    "boost converter": "V1 in 0 5\nL1 in x 100u\nR9 x 0 1k\nD1 x out dj\nC1 out 0 47u\nR1 out 0 50\n",
    "bridge": "V1 s t 12\nD1 s out dj\nD2 t out dj\nD3 0 s dj\nD4 0 t dj\nRg t 0 1meg\nC1 out 0 1m\nR1 out 0 50\n",
    "ideal diodes too": "V1 in 0 12\nR1 in a 5\nE1 s 0 a 0 2\nD1 s b dj\nD2 b out ideal\nD3 0 b ideal\nR2 out 0 20\n"
    "D4 out x dp\nR3 x 0 7\nC1 out 0 1u\nC2 a 0 1n\n",
}
COUPLINGS = {
    "flyback": {("L1", "L2"): 1.0},
    "windings": {("L1", "L2"): 0.99, ("L1", "L3"): 0.98, ("L2", "L3"): 0.97},
}
G = 1e-7


def companion_of(name: str) -> Companion:
    return Companion(circuitsim.loads(f"a circuit\n{DECKS[name]}{MODELS}"), COUPLINGS.get(name, UNCOUPLED), 1e-9)


def stages_of(companion: Companion) -> StagesAtOnce:
    found = companion._stages
    assert found is not None
    return found


def steps(companion: Companion, count: int = 4) -> Iterator[Step]:
    """A short step and some longer ones, with a source that falls."""
    own, x = companion.own, np.linspace(0.1, 0.3, companion.storing.size)
    at, level = np.array([own.element_index("V1")]), float(own["V1"].value or 0.0)
    companion.size[:] = 1.0

    def moving(time: float) -> list[tuple[np.ndarray, np.ndarray]]:
        return [(at, np.array([level * (1.0 - 1e3 * time)]))]

    first = euler_step(companion, moving, 0.0, x, 1e-3 * G, None)
    step = euler_step(companion, moving, G, first.end.x, G, first.end.solved)
    yield step
    for k in range(1, count):
        begin = step.end.time, step.end.x, step.end.slope, step.end.solved
        length = G * (1.0 + 0.4 * (k // 2))
        step = runge_kutta_step(companion, moving, begin, length, step.end.time + length)
        yield step


def each_form(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for form in (stage_kernel.plain, stage_kernel.compiled):
        monkeypatch.setattr("circuitsim.time_domain.companion.stage_kernel", lambda kernel, _, form=form: form(kernel))
        yield


@pytest.mark.parametrize("name", DECKS)
def test_interpreted_and_compiled_the_same_bits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = (list(steps(companion_of(name))) for _ in each_form(monkeypatch))
    at_once = 0
    for a, b in zip(one, other, strict=True):
        assert np.array_equal(a.error, b.error)
        for p, q in zip(a.stages, b.stages, strict=True):
            for mine, theirs in zip(p[:5], q[:5]):
                assert np.array_equal(mine, theirs)
            assert p.solved.certificate == q.solved.certificate
            at_once += isinstance(p.solved, StagePoint)
    assert at_once >= (7 if "ideal" in name else 10)


@pytest.mark.parametrize("name", DECKS)
def test_as_stage_by_stage(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In steps of Newton's method one by one, in operating points of their own."""
    ours = list(steps(companion_of(name)))
    monkeypatch.setattr(Companion, "solve_stages", lambda *_: [])
    for a, b in zip(ours, steps(companion_of(name)), strict=True):
        for p, q in zip(a.stages, b.stages, strict=True):
            assert not isinstance(q.solved, StagePoint) and p.solved.certificate.certified
            pairs = [*zip(p[1:5], q[1:5]), (p.solved.voltages, q.solved.voltages), (p.solved.drops, q.solved.drops)]
            for mine, theirs in [*pairs, (p.solved.currents, q.solved.currents)]:
                assert mine == pytest.approx(theirs, rel=1e-9, abs=1e-11 * np.abs(theirs).max(initial=0.0))
            assert p.solved.regions == q.solved.regions
            assert [*p.solved.junctions.values()] == pytest.approx([*q.solved.junctions.values()], rel=1e-9)


@pytest.mark.parametrize("name", DECKS)
def test_waves_and_certificates(name: str) -> None:
    """Of a stage, as from its operating point."""
    companion = companion_of(name)
    stages, seen = stages_of(companion), 0
    for step in steps(companion):
        for point in step.stages:
            if not isinstance(point.solved, StagePoint):
                continue
            seen += 1
            for mine, theirs in zip((point.voltage, point.current), companion.waves(point.solved.whole, point.x)):
                assert mine == pytest.approx(theirs, rel=1e-14, abs=1e-15 * np.abs(theirs).max())
            tangents = point.solved.tangents
            arrays = stages.ready.expansion.circuit.arrays()._replace(value=tangents.column)
            theirs = proof(found_of(tangents), arrays, stages.smooth, stages.laws, 1e-9)
            assert point.solved.certificate == theirs
            (v, i), own = companion.diode_waves(point.solved), point.solved.whole.elementary
            assert own is not None
            assert np.array_equal(v, own.drops[companion.diodes]) and np.array_equal(i, own.currents[companion.diodes])
    assert seen >= (7 if "ideal" in name else 10)


def solved(name: str) -> Iterator[tuple[StagesAtOnce, Any, np.ndarray]]:
    """Stages with their matrices and the values of all elements."""
    companion = companion_of(name)
    stages = stages_of(companion)
    for step in steps(companion):
        for point in step.stages:
            if isinstance(point.solved, StagePoint):
                conducting = point.solved.tangents.branch[0, stages._matrices.diode] > 0.0
                column = point.solved.tangents.column.copy()
                made = stages._matrices.of(column, conducting)
                assert made is not None
                yield stages, made.pinned.members, column


@pytest.mark.parametrize("name", DECKS)
def test_the_matrix(name: str) -> None:
    """As one that is made anew from the values, with its scales."""
    for stages, made, column in solved(name):
        stage_equations.put_matrix(made, column)
        column[stages.smooth.touch] = column[stages.smooth.rest] = 0.0
        arrays = stages.ready.expansion.circuit.arrays()._replace(value=column)
        varying = np.concatenate([stages.smooth.slope, stages.companion.storing])
        system = ControlledSystem(stages.ready.expansion.circuit, arrays, stages.laws, None, varying)
        terms = system.tied_terms(made.conducting)
        assert np.array_equal(made.row, terms.row) and np.array_equal(made.column, terms.column)
        tied = (terms.gain < 0) & (terms.under < 0)
        assert np.array_equal(made.value[~tied], terms.value[~tied])
        anew = Scaled.of(terms._replace(value=made.value).dense())
        for mine, theirs in zip((made.matrix, made.left, made.right), anew):
            assert np.array_equal(mine, theirs)


@pytest.mark.parametrize("name", DECKS)
def test_sources_and_nodes_of_one_potential(name: str) -> None:
    for stages, made, column in solved(name):
        smooth, laws = stages.smooth, stages.laws
        column[smooth.slope], column[smooth.touch], column[smooth.rest] = 1.0, 0.0, 0.0
        circuit = stages.ready.expansion.circuit
        system = ControlledSystem(
            circuit,
            circuit.arrays()._replace(value=column),
            laws,
            None,
            np.concatenate([smooth.slope, stages.companion.storing]),
        )
        right, same = np.empty(system.eq.size + 1), np.empty(circuit.arrays().n_nodes, dtype=np.int64)
        stage_equations.put_sources(made, laws, column, right)
        theirs = system.sources.of(column)
        assert right[:-1] == pytest.approx(theirs, rel=1e-14, abs=1e-15 * np.abs(theirs).max())
        column[smooth.touch] = 1.0
        for zero in (np.zeros(0, dtype=np.int64), stages.companion.base):
            column[zero] = 0.0
            stage_equations.put_lowest(made, column, same)
            assert np.array_equal(same, system.one_potential.lowest(column, system.eq.diode[made.conducting]))


def test_powers_of_two() -> None:
    rng = np.random.default_rng(2)
    nearest: Callable[[float], float] = stage_equations.power_of_two
    for x in np.exp(rng.uniform(-600.0, 600.0, 300)).tolist():
        assert nearest(x) == np.exp2(np.round(np.log2(x)))
    assert [nearest(x) for x in (1.0, 0.5, 1.41, 1.42, 3.0)] == [1.0, 0.5, 1.0, 2.0, 4.0]
