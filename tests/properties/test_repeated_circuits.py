"""Prepared circuits with several sets of values, from starts and in batches, every branch against the exact oracle.

`benchmarks/exactness/run.py --repeats` runs the same for any range of seeds.
"""

from __future__ import annotations

import numpy as np
import pytest
from circuits import Parts, examples, sketch_of
from repeated_checks import examine_batch, examine_starts
from wide_circuits import SMALL, Regime, draw

REPEATS = 4


@pytest.mark.parametrize("regime", Regime, ids=lambda regime: regime.name)
def test_every_branch_from_starts_and_in_batches(regime: Regime) -> None:
    for seed in range(examples(8)):
        sketch, rng = draw(regime, seed, SMALL), np.random.default_rng([seed, REPEATS])
        assert examine_starts(sketch, rng, REPEATS) == [], seed
        assert examine_batch(sketch, rng, REPEATS) == [], seed


@pytest.mark.parametrize(
    ("regime", "seed"),
    [
        # Potentials of parts without a path to ground, which are those against their reference nodes.
        (Regime.ANYTHING, 91000269),
        (Regime.ISLANDS, 91000184),
        (Regime.ISLANDS, 91000564),
        # The same far from these: their digits.
        (Regime.ISLANDS, 92001174),
        (Regime.ISLANDS, 92001684),
        # A net current into such a part: the engine refuses it, the sample is not certified.
        (Regime.ISLANDS, 92001924),
        # A source of 0 A beside a resistor without a drop, in a loop of sources that closes but for 3e-17 V.
        (Regime.DECIMALS, 92001092),
    ],
    ids=str,
)
def test_values_that_were_wrong(regime: Regime, seed: int) -> None:
    sketch, rng = draw(regime, seed, SMALL), np.random.default_rng([seed, REPEATS])
    assert examine_starts(sketch, rng, REPEATS) == []
    assert examine_batch(sketch, rng, REPEATS) == []


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
