"""The rule of equilibrium propagation: its phases; diverged samples leave the gradient to the others."""

from __future__ import annotations

import numpy as np

from circuitsim.blocks import Nudge
from circuitsim.blocks.hopfield import DeepHopfieldBlock, Sweeps
from circuitsim.blocks.propagation import VARIANTS, contrast, strengths

SWEEPS = Sweeps(400, 400, 1e-13)
BETA = 0.05


def block_of(inputs: int | None = 6) -> DeepHopfieldBlock:
    return DeepHopfieldBlock([5, 4, 3], clamped=False, inputs=inputs, sweeps=SWEEPS, rng=3)


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
