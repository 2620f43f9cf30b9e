"""Prepared circuits with several sets of values, from starts and in batches, every branch against the exact oracle.

`benchmarks/exactness/run.py --repeats` runs the same for any range of seeds.
"""

from __future__ import annotations

import numpy as np
import pytest
from circuits import examples
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
        (Regime.ANYTHING, 91000269), (Regime.ISLANDS, 91000184), (Regime.ISLANDS, 91000564),
        # The same far from these: their digits.
        (Regime.ISLANDS, 92001174), (Regime.ISLANDS, 92001684),
        # A net current into such a part: the engine refuses it, the sample is not certified.
        (Regime.ISLANDS, 92001924),
    ],
    ids=str,
)  # fmt: skip
def test_batches_that_were_wrong(regime: Regime, seed: int) -> None:
    sketch, rng = draw(regime, seed, SMALL), np.random.default_rng([seed, REPEATS])
    assert examine_starts(sketch, rng, REPEATS) == []
    assert examine_batch(sketch, rng, REPEATS) == []
