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
