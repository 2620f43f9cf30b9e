"""Random circuits over many decades, every branch against the exact oracle; twenty times as many in the long profile.

`benchmarks/exactness/run.py` runs the same for any range of seeds.
"""

from __future__ import annotations

import pytest
from branch_checks import examine
from circuits import examples
from wide_circuits import LARGE, SMALL, Regime, draw


@pytest.mark.parametrize(("nodes", "count"), [(SMALL, 60), (LARGE, 4)], ids=["small", "large"])
@pytest.mark.parametrize("regime", Regime, ids=lambda regime: regime.name)
def test_every_branch(regime: Regime, nodes: tuple[int, int], count: int) -> None:
    wrong = {}
    for seed in range(examples(count)):
        found = examine(draw(regime, seed, nodes))
        if found:
            wrong[seed] = found
    assert wrong == {}


@pytest.mark.parametrize(
    ("regime", "seed"),
    [
        # A closed diode whose current is zero after the refinement leaves an interval of potentials.
        (Regime.ISLANDS, 324), (Regime.ISLANDS, 6604), (Regime.ISLANDS, 51494), (Regime.ISLANDS, 52924),
        (Regime.ISLANDS, 55984),
        # A part tied by a hundred-millionth of the current beside it; the reverse current of a diode outside all loops.
        (Regime.CURRENT_LOOPS, 60668), (Regime.CURRENT_LOOPS, 63458), (Regime.CURRENT_LOOPS, 65618),
        # Parallel diodes that share a current below the rounding of the potentials around them.
        (Regime.BRIDGES, 602007), (Regime.CHAINS, 605825), (Regime.SPREAD, 611410),
        # Nodes of 0 V in loops of sources and diodes that close up to rounding.
        (Regime.DECIMALS, 304822), (Regime.DECIMALS, 1005282), (Regime.DECIMALS, 1101446), (Regime.DECIMALS, 1101485),
        (Regime.DECIMALS, 4061012),
        # What diodes carry away from a part that only they hold: zero, but for the rounding at any node of the part.
        (Regime.ISLANDS, 2010124), (Regime.ISLANDS, 3007584), (Regime.ISLANDS, 3063554),
        # Loops of diodes: net currents that are rounding of pairs of doubles; drops of those that come to conduct.
        (Regime.ANYTHING, 3001899), (Regime.ANYTHING, 3077389), (Regime.CURRENT_LOOPS, 3077708),
        # A reverse current of 1e-22 of the largest, times the resistances of its loop.
        (Regime.CANCELLING, 3036116),
        # Potentials of parts that carry large currents and are tied weakly.
        (Regime.CURRENT_LOOPS, 2005478), (Regime.CURRENT_LOOPS, 3072388),
        # A current within its accuracy, whose drop is all of its loop's.
        (Regime.ANYTHING, 620139),
    ],
    ids=str,
)  # fmt: skip
def test_circuits_that_were_wrong(regime: Regime, seed: int) -> None:
    assert examine(draw(regime, seed, SMALL)) == []
