"""Random circuits over many decades, every branch against the exact oracle; twenty times as many in the long profile.

`benchmarks/exactness/run.py` runs the same for any range of seeds.
"""

from __future__ import annotations

import pytest
from branch_checks import examine
from circuits import Parts, examples, sketch_of
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
        (Regime.ISLANDS, 324),
        (Regime.ISLANDS, 6604),
        (Regime.ISLANDS, 51494),
        (Regime.ISLANDS, 52924),
        (Regime.ISLANDS, 55984),
        # A part tied by a hundred-millionth of the current beside it; the reverse current of a diode outside all loops.
        (Regime.CURRENT_LOOPS, 60668),
        (Regime.CURRENT_LOOPS, 63458),
        (Regime.CURRENT_LOOPS, 65618),
        # Parallel diodes that share a current below the rounding of the potentials around them.
        (Regime.BRIDGES, 602007),
        (Regime.CHAINS, 605825),
        (Regime.SPREAD, 611410),
        # Nodes of 0 V in loops of sources and diodes that close up to rounding.
        (Regime.DECIMALS, 304822),
        (Regime.DECIMALS, 1005282),
        (Regime.DECIMALS, 1101446),
        (Regime.DECIMALS, 1101485),
        (Regime.DECIMALS, 4061012),
        # What diodes carry away from a part that only they hold: zero, but for the rounding at any node of the part.
        (Regime.ISLANDS, 2010124),
        (Regime.ISLANDS, 3007584),
        (Regime.ISLANDS, 3063554),
        # Loops of diodes: net currents that are rounding of pairs of doubles; drops of those that come to conduct.
        (Regime.ANYTHING, 3001899),
        (Regime.ANYTHING, 3077389),
        (Regime.CURRENT_LOOPS, 3077708),
        # A reverse current of 1e-22 of the largest, times the resistances of its loop.
        (Regime.CANCELLING, 3036116),
        # Potentials of parts that carry large currents and are tied weakly.
        (Regime.CURRENT_LOOPS, 2005478),
        (Regime.CURRENT_LOOPS, 3072388),
        # A current within its accuracy, whose drop is all of its loop's.
        (Regime.ANYTHING, 620139),
        # Loops of sources that close up to rounding, by a short at a node without other currents.
        (Regime.DECIMALS, 7011932),
        (Regime.DECIMALS, 7062772),
        (Regime.DECIMALS, 9553132),
        (Regime.DECIMALS, 9594882),
        # Small currents beside large ones that cancel: drops that count as zero, between potentials that differ.
        (Regime.CANCELLING, 9553976),
        (Regime.CANCELLING, 9554836),
        (Regime.CANCELLING, 9556566),
        # Currents of another biconnected component, which cancel, beside a current of 1e-28 of them.
        (Regime.CANCELLING, 7016846),
        # The energy of a current source across a nanoohm.
        (Regime.ISLANDS, 4067724),
        # A diode beside a short of its ends, one of which a conducting diode puts at its own potential.
        (Regime.ANYTHING, 31094569),
        # 6e-17 A of a diode on a loop, which refinement left where 0.8 A meet.
        (Regime.TIES, 111003951),
        # Sources and two diodes close a loop but for 3e-17 V: less than the rounding of the sources, not of its ends.
        (Regime.DECIMALS, 111005212),
        # A diode whose ends are equal only once those of the diodes beside it are.
        (Regime.CURRENT_LOOPS, 112004758),
        # 6e-17 V that a proof left at nodes of 0 V, since potentials elsewhere are 5 V.
        (Regime.TIES, 112100244),
        # A diode whose ends turn out equal in that way and join two trees of conducting diodes.
        (Regime.TIES, 121013091),
        # A conducting diode of −2e-9 A, rounding of 40,960 A, that held a node of 2e-9 V at 0.
        (Regime.CURRENT_LOOPS, 121028068),
        # ConvergenceError: currents into a part that one-way loops only lead out of, less than zero by rounding.
        (Regime.SHORTS, 121038193),
        # A part without a path to ground at −1e8 V, where earlier sets had driven it: intervals without digits.
        (Regime.ISLANDS, 122004814),
        # A loop of sources that closes once another one has been closed, through a node at 6e-17 V.
        (Regime.DECIMALS, 124009192),
    ],
    ids=str,
)
def test_circuits_that_were_wrong(regime: Regime, seed: int) -> None:
    assert examine(draw(regime, seed, SMALL)) == []


@pytest.mark.parametrize(("regime", "seed", "nodes"), [(Regime.ISLANDS, 2674, SMALL), (Regime.SPREAD, 370, LARGE)])
def test_circuits_on_which_changes_of_all_diodes_return_to_an_earlier_set(
    regime: Regime, seed: int, nodes: tuple[int, int]
) -> None:
    assert examine(draw(regime, seed, nodes)) == []


SHRUNK: dict[str, Parts] = {
    # 0.6 − 0.1 − 0.5 = 2⁻⁵⁵: the diode at the end of a short closes a loop of sources that carry nothing.
    "loop of sources, short, diode": [
        ("V", 5, 2, -0.6),
        ("V", 0, 4, -0.1),
        ("V", 2, 4, 0.5),
        ("V", 5, 1, 0.0),
        ("D", 1, 0, 0.0),
    ],
    "loop of sources, short, diode, other signs": [
        ("V", 6, 2, 0.8),
        ("V", 7, 1, 0.0),
        ("V", 1, 6, -0.5),
        ("V", 2, 0, -0.3),
        ("D", 7, 0, 0.0),
    ],
    # 2⁻⁵⁵ V across a resistor beside a diode that carries 0.6 A.
    "resistor beside a diode that closes a loop of sources": [
        ("R", 0, 1, 1.0),
        ("R", 2, 1, 1.0),
        ("V", 1, 3, -0.6),
        ("V", 0, 4, -0.1),
        ("V", 2, 4, 0.5),
        ("D", 3, 2, 0.0),
        ("R", 3, 1, 0.1),
        ("D", 1, 0, 0.0),
    ],
    # 2⁻⁵⁵ V between nodes that a resistor without a current and a diode join.
    "resistor without a current in a loop of sources": [
        ("R", 1, 2, 0.858300860942038),
        ("D", 3, 2, 0.0),
        ("R", 3, 0, 12288.0),
        ("D", 4, 5, 0.0),
        ("V", 5, 6, -0.6),
        ("V", 7, 6, -0.7),
        ("V", 0, 4, -0.1),
        ("D", 7, 2, 0.0),
        ("I", 1, 0, 1.3),
        ("D", 1, 8, 0.0),
    ],
    "resistors without a current in a loop of sources": [
        ("D", 1, 0, 0.0),
        ("R", 1, 2, 65.32029177621114),
        ("R", 3, 0, 0.375),
        ("R", 3, 4, 10.950978383377498),
        ("R", 2, 5, 10.92515576955131),
        ("R", 2, 6, 0.25),
        ("V", 4, 3, 0.2),
        ("V", 5, 2, -1.2),
        ("V", 7, 1, 0.1),
        ("V", 3, 7, -0.3),
        ("D", 4, 6, 0.0),
        ("R", 8, 9, 1.0),
    ],
    # 24,600 A that cancel between nodes 1 and 6; 1.4e-24 A through both resistors on the other side of node 1.
    "cancelling sources beside a small current": [
        ("R", 0, 1, 2097152.0),
        ("R", 1, 2, 1.7e6),
        ("I", 0, 2, 0.0020287794612725784),
        ("I", 0, 2, 0.004057558922545157),
        ("I", 2, 0, 0.006086338383817734),
        ("I", 6, 1, 8200.0),
        ("I", 6, 1, 16400.0),
        ("I", 1, 6, 24600.0),
        ("R", 1, 6, 1.0),
        ("R", 0, 2, 4.0),
    ],
    # The same where only sources lead to node 6.
    "cancelling sources to a node of no other elements": [
        ("R", 0, 1, 2097152.0),
        ("R", 1, 2, 1.7e6),
        ("I", 0, 2, 0.0020287794612725784),
        ("I", 0, 2, 0.004057558922545157),
        ("I", 2, 0, 0.006086338383817734),
        ("I", 6, 1, 8200.0),
        ("I", 6, 1, 16400.0),
        ("I", 1, 6, 24600.0),
        ("R", 0, 2, 4.0),
    ],
    # 1e-18 A that sources leave over in a part without a path to ground, at the end of its resistor.
    "sources of a free part that cancel up to rounding": [
        ("R", 2, 4, 1.0),
        ("I", 0, 4, 0.0020287794612725784),
        ("I", 0, 4, 0.004057558922545157),
        ("I", 4, 0, 0.006086338383817734),
    ],
    # −0.1 + 0.4 − 0.3 = 2⁻⁵⁵: a loop of sources and of diodes of both directions, one of which carries 0.5 A.
    "diodes of both directions in a loop of sources": [
        ("D", 2, 1, 0.0),
        ("D", 2, 3, 0.0),
        ("R", 4, 5, 768.0),
        ("V", 1, 0, -0.1),
        ("V", 0, 6, -0.3),
        ("V", 4, 7, 0.4),
        ("D", 6, 4, 0.0),
        ("D", 3, 7, 0.0),
        ("I", 0, 5, -0.5),
    ],
    "current source across 2 nΩ at 1 V": [("R", 1, 2, 2e-9), ("I", 1, 2, 1.0), ("V", 0, 2, 1.0)],
}


@pytest.mark.parametrize("name", SHRUNK)
def test_shrunk_circuits(name: str) -> None:
    assert examine(sketch_of(SHRUNK[name])) == []
