"""The sweeps to convergence of ``circuitsim reproduce table3``."""

import numpy as np

from circuitsim.blocks.hopfield import Sweeps
from circuitsim.hopfield import HopfieldLearning, network
from circuitsim.hopfield.convergence import phases, sweeps_to_converge


def test_the_measure_of_convergence_is_its_definition():
    """s ← r s on one unit a sample, from 1: converged to a share once r^t ≤ share; a unit that strays back counts."""
    rates = np.array([0.5, 0.09, 0.0])
    found = sweeps_to_converge(lambda s: [1.0 + rates[:, None] * (s[0] - 1.0)], [np.zeros((3, 1))], 1e-3, 100)
    assert found.tolist() == [10, 3, 1]
    # At its final value after one sweep, away from it after two, back for good after three.
    path = {0.0: 1.0, 1.0: 0.5, 0.5: 1.0 + 1e-9}
    start = [np.zeros((1, 1))]
    strays = sweeps_to_converge(lambda s: [np.array([[path.get(s[0][0, 0], 1.0 + 1e-9)]])], start, 0.01, 50)
    assert strays.tolist() == [3]
    slow = sweeps_to_converge(lambda s: [s[0] + 1.0], [np.zeros((1, 1))], 1e-3, 20)
    assert slow.tolist() == [20]


def test_networks_converge_as_in_their_own_relaxation():
    rng = np.random.default_rng(0)
    pixels, labels = rng.integers(0, 256, (6, 20)).astype(np.uint8), rng.integers(0, 3, 6)
    learning = HopfieldLearning(0.2)
    net = network((20, 15, 12, 3), Sweeps(5, 5, None, False), learning, 4, rng=1, dtype=np.float64, spread=1.5)
    free, nudged = phases(net.block, pixels / 255, np.eye(3)[labels], 0.2, 1e-3, 300)
    net.block.sweeps = Sweeps(300, 1, None, False)
    final = net.relax(pixels).layers
    for sample, needed in enumerate(free.tolist()):
        assert needed > 1
        for sweeps, converged in ((needed, True), (needed - 1, False)):
            net.block.sweeps = Sweeps(sweeps, 1, None, False)
            now = net.relax(pixels).layers
            far = max(np.abs(a[sample] - b[sample]).max() / np.abs(b[sample]).max() for a, b in zip(now, final))
            assert bool(far <= 1e-3) == converged
    assert (nudged > 0).all() and (nudged <= free.max()).all()

    from circuitsim.layered.network import DeepResistiveNetwork

    resistive = DeepResistiveNetwork((20, 15, 12, 3), rng=2)
    free, nudged = phases(resistive, pixels / 255, np.eye(3)[labels], 0.5, 1e-3, 300)
    assert (free > 0).all() and (free < 300).all() and (nudged <= free.max()).all()
