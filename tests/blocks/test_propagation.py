"""One rule of equilibrium propagation: networks, chains and `learning` give one gradient; diverged samples leave it."""

from __future__ import annotations

import numpy as np
import pytest

from circuitsim.blocks import Nudge
from circuitsim.blocks.hopfield import DeepHopfieldBlock, Sweeps
from circuitsim.blocks.propagation import VARIANTS, contrast, strengths
from circuitsim.ffebm import Chain, Chaining
from circuitsim.hopfield import DeepHopfieldNetwork, HopfieldLearning
from circuitsim.learning import EquilibriumPropagation, GradientProblem, ResistorNudge, SquaredError

SWEEPS = Sweeps(400, 400, 1e-13)
BETA = 0.05


def block_of(inputs: int | None = 6) -> DeepHopfieldBlock:
    return DeepHopfieldBlock([5, 4, 3], clamped=False, inputs=inputs, sweeps=SWEEPS, rng=3)


@pytest.mark.parametrize("variant", VARIANTS)
def test_network_and_estimator_agree(variant: str) -> None:
    rng = np.random.default_rng(0)
    pixels, labels = rng.integers(0, 256, (7, 6), dtype=np.uint8), rng.integers(0, 3, 7)
    block = block_of()
    network = DeepHopfieldNetwork(block, HopfieldLearning(BETA, variant=variant), 7)
    found, _ = network.gradient((pixels, labels), rng)
    x, target = pixels / 255, np.eye(3)[labels]
    problem = GradientProblem(block, x, target, SquaredError(), block.relax(x), np.full(7, 1 / 7))
    estimate = EquilibriumPropagation(BETA, variant, ResistorNudge()).estimate(problem)
    assert found is not None
    for name, array in estimate.parameters.items():
        np.testing.assert_allclose(found[name], array, atol=1e-9, err_msg=name)
        assert np.abs(array).max() > 0, name


def test_chain_and_estimator_agree() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(7, 5)), rng.normal(size=(7, 3))
    block = block_of(None)
    rule = Chaining("ep", BETA, last="elastic", scale_errors=False)
    found, _ = Chain([block], "mse", rule, seed=None, dtype=np.float64).gradient((x, y), rng)
    problem = GradientProblem(block, x, y, SquaredError(), block.relax(x), np.full(7, 1 / 7))
    estimate = EquilibriumPropagation(BETA, "centred", ResistorNudge()).estimate(problem)
    assert found is not None
    for name, array in estimate.parameters.items():
        np.testing.assert_allclose(found[name], array, atol=1e-9, err_msg=name)


def test_a_diverged_sample_leaves_the_gradient_to_the_others() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(4, 6)), rng.normal(size=(4, 3))
    stiff = np.array([0.1, 0.1, 0.1, 3.0])[:, None]

    def parts(rows: slice) -> tuple[dict[str, np.ndarray], np.ndarray]:
        block = block_of()
        block.sweeps = Sweeps(400, 4000)
        free = block.relax(x[rows])

        def relax(betas: tuple[float, ...]) -> list[object]:
            """Nudges that follow the outputs: those of the last sample grow threefold with each sweep."""
            laws = [lambda o, b=b: b * stiff[rows] * (o - y[rows]) for b in betas]
            return [block.relax(x[rows], Nudge(law(free.output), follow=law), free) for law in laws]

        with np.errstate(over="ignore", invalid="ignore"):
            found = contrast(block, x[rows], free, "centred", 1.0, relax)  # type: ignore[arg-type]
            return found.parameters(np.full(len(x[rows]), 0.25), found.finite), found.finite

    some, finite = parts(slice(0, 3))
    assert finite.all()
    whole, finite = parts(slice(0, 4))
    assert finite.tolist() == [True, True, True, False]
    for name, array in some.items():
        np.testing.assert_allclose(whole[name], array, atol=1e-12, err_msg=name)


def test_strengths_of_the_variants() -> None:
    assert {variant: strengths(variant, 0.5) for variant in VARIANTS} == {
        "centred": (-0.5, 0.5),
        "positive": (0.5,),
        "negative": (-0.5,),
    }
