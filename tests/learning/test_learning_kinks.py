"""Kinks between the phases: counts worked out by hand, and an automatic β that keeps them few."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import circuitsim
from circuitsim.blocks.circuit import CircuitBlock
from circuitsim.blocks.hopfield import DeepHopfieldBlock, Sweeps
from circuitsim.blocks.protocol import Nudge
from circuitsim.cli import main
from circuitsim.errors import UsageError
from circuitsim.ffebm import Chain, Chaining, Linear, Readout
from circuitsim.learning import (
    CoupledLearning,
    EquilibriumPropagation,
    FrequencyPropagation,
    GradientProblem,
    ImplicitDifferentiation,
    Learner,
    SquaredError,
)
from circuitsim.netlist.roles import make_roles

CLAMP = "clamp at 1 V\nV1 in 0 0\nR1 in out 1\nVref ref 0 1\nD1 out ref\n"
"""The output follows the input up to 1 V; beyond, the diode takes x − 1 A. A nudge draws β (out − y) A."""


def problem_of(x: list[float], y: float = 0.0) -> GradientProblem:
    circuit = circuitsim.loads(CLAMP)
    block = CircuitBlock(circuit, make_roles(circuit, "V1", "v(out)", ["R1"]))
    rows = np.array(x)[:, None]
    free = block.relax(rows)
    return GradientProblem(block, rows, np.full((len(x), 1), y), SquaredError(), free, np.full(len(x), 1 / len(x)))


@pytest.mark.parametrize(
    ("scheme", "beta", "kinks"),
    [
        # x = 1.05: 0.05 A through the diode, error 1 V; x = 0.97: 0.03 V below the clamp, error 0.97 V; x = 0.5: far.
        ("centred", 0.02, [0, 0, 0]),
        ("centred", 0.04, [0, 1, 0]),
        ("centred", 0.06, [1, 1, 0]),
        ("positive", 0.06, [1, 0, 0]),
        ("negative", 0.06, [0, 1, 0]),
        ("negative", 1.2, [0, 1, 1]),
    ],
)
def test_kinks_of_equilibrium_propagation(scheme: str, beta: float, kinks: list[int]) -> None:
    problem = problem_of([1.05, 0.97, 0.5])
    found = EquilibriumPropagation(beta, scheme).estimate(problem).kinks
    assert found.changes.tolist() == kinks and found.switches == 1
    assert found.share == pytest.approx(sum(kinks) / 3)


def test_kinks_of_other_rules() -> None:
    problem = problem_of([1.05, 0.97, 0.5])
    assert FrequencyPropagation(0.06).estimate(problem).kinks.changes.tolist() == [1, 1, 0]
    # The clamped output lies η · out below the free one: the diode blocks.
    assert CoupledLearning(0.1).estimate(problem).kinks.changes.tolist() == [1, 0, 0]


def test_implicit_differentiation_counts_the_kinks_it_stands_on() -> None:
    problem = problem_of([1.0, 1.0 + 1e-6, 1.0 - 1e-6, 1.05])
    assert ImplicitDifferentiation().estimate(problem).kinks.changes.tolist() == [1, 0, 0, 0]
    # The derivative by the input: 1 below the clamp, 0 above; at the kink one of the two.
    inputs = ImplicitDifferentiation().estimate(problem).inputs[:, 0]
    np.testing.assert_allclose(inputs[1:], [0.0, 1.0 - 1e-6, 0.0], atol=1e-9)
    assert min(abs(inputs[0]), abs(inputs[0] - 1.0)) < 1e-9


def test_an_automatic_beta_keeps_below_the_share() -> None:
    problem = problem_of([1.05, 0.97, 0.5, 1.0 + 1e-4])
    exact = ImplicitDifferentiation().estimate(problem).parameters["conductance"]
    for share, kinks in ((0.0, 0), (0.25, 1), (0.5, 2)):
        found = EquilibriumPropagation("auto", kink_share=share).estimate(problem)
        assert found.kinks.changes.sum() <= kinks
        above = EquilibriumPropagation(4 * found.beta).estimate(problem)
        first = 0.1 * problem.block.stiffness_limit()
        assert found.beta == pytest.approx(first) or above.kinks.changes.sum() > kinks
        if share == 0.0:
            np.testing.assert_allclose(found.parameters["conductance"], exact, rtol=1e-9)
    fixed = EquilibriumPropagation(0.06).estimate(problem)
    assert np.abs(fixed.parameters["conductance"] - exact).max() > 0.05 * np.abs(exact).max()
    with pytest.raises(UsageError, match="a share of diodes"):
        EquilibriumPropagation("auto", kink_share=2.0)


def test_the_history_has_them() -> None:
    problem = problem_of([1.05, 0.97, 0.5])
    learner = Learner(problem.block, EquilibriumPropagation(0.06), SquaredError())
    _, metrics = learner.gradient((problem.x, problem.target), np.random.default_rng(0))
    assert metrics["kinks"] == metrics["kink_share"] == pytest.approx(2 / 3)
    automatic = Learner(problem.block, EquilibriumPropagation("auto", kink_share=0.4), SquaredError())
    _, metrics = automatic.gradient((problem.x, problem.target), np.random.default_rng(0))
    assert metrics["kink_share"] <= 0.4 and 0.0 < metrics["beta"] < 0.05


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "clamp.cir").write_text(CLAMP)
    (tmp_path / "samples.csv").write_text("V1,v(out)\n1,0\n1.05,0\n0.97,0\n0.5,0\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


WORDS = ["clamp.cir", "--data", "samples.csv", "--inputs", "V1", "--outputs", "v(out)"]
WORDS += ["--trainable", "R1 min=0.1 max=9"]


def test_the_commands_tell(folder, capsys) -> None:
    assert main(["train", "circuit", *WORDS, "--beta", "0.06", "--compare", "json"]) == 0
    out = capsys.readouterr()
    assert "note: implicit is the derivative on one side: 1 diodes of 1 samples are at a kink" in out.err
    kinks = {row["method"]: row["kinks"] for row in json.loads(out.out)["methods"]}
    assert kinks["implicit"] == 1 and kinks["ep centred"] == 3  # x = 1 too: conducting at one sign only
    assert main(["train", "circuit", *WORDS, "--kink-share", "0", "--compare", "json"]) == 0
    methods = {row["method"]: row["kinks"] for row in json.loads(capsys.readouterr().out)["methods"]}
    assert methods["ep centred"] == 1 and "frequency" in methods  # x = 1 is at the kink at every strength
    assert main(["train", "circuit", *WORDS, "--epochs", "2", "--kink-share", "0.25", "--out", "run"]) == 0
    with open("run/history.csv") as file:
        rows = list(csv.DictReader(file))
    assert all(float(row["kink_share"]) <= 0.25 and 0.0 < float(row["beta"]) < 1.0 for row in rows)
    assert main(["train", "circuit", *WORDS, "--kink-share", "0.25", "--beta", "0.1"]) == 2
    assert "--kink-share chooses beta" in capsys.readouterr().err


def test_layered_blocks() -> None:
    """One unit after another: s = clip(x), so the bound is left or reached where the pull says so."""
    block = DeepHopfieldBlock([3], clamped=True, sweeps=Sweeps(3, 3))
    free = block.relax(np.array([[0.5, 0.02, -0.01], [0.0, 1.0, 1.5]]))
    assert free.active.tolist() == [[0, 0, -1], [-1, 1, 1]]
    nudged = block.relax(np.array([[0.5, 0.02, -0.01], [0.0, 1.0, 1.5]]), Nudge(np.full((2, 3), 0.05)), free)
    assert nudged.active.tolist() == [[0, -1, -1], [-1, 0, 1]]
    changes, switches = block.kinks(free)
    assert changes.tolist() == [0, 2] and switches == 3  # 0 and 1 are the minima without bounds, too


def test_chains_count_them() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, 4)), rng.integers(3, size=20)
    shares = []
    for beta in (1e-7, 0.5):
        block = DeepHopfieldBlock([12, 6], clamped=False, sweeps=Sweeps(200, 100))
        chain = Chain([Linear(4, 12), block, Readout(6, 3)], rule=Chaining(beta=beta), seed=3, dtype=np.float64)
        _, metrics = chain.gradient((x, y), rng)
        shares.append(metrics["kink_share"])
    assert shares[0] == 0.0 and 0.0 < shares[1] < 1.0
