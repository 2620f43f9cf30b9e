"""Whether the diodes at which an active-set method ended are the only ones at which it could have ended.

The potentials of a convex program are unique where something holds them, and with them the diodes whose ends are equal.
But rounding decides about diodes that carry next to nothing, or block next to nothing: rounds that begin elsewhere may
end with others, and with other last digits. Where no diode is near such a tie they may begin anywhere.
"""

from __future__ import annotations

import numpy as np

from circuitsim.program.components import component_labels
from circuitsim.program.flow import NOISE
from circuitsim.program.structure import ROUNDING
from circuitsim.solvers.contracted import Network, Settled

NEAR_ZERO = 1e-3
"""Share of the largest potential below which equal potentials may be so by chance."""


def may_be_clear(network: Network) -> bool:
    """Whether a diode can be beyond doubt at all in this network, and factors are worth keeping for the next solve."""
    return network.laplacian.lasting and _clear(network) < 1.0


def _clear(network: Network) -> float:
    """By how much more than its scale a current or a voltage must differ from zero."""
    g = network.program.g
    least, most = g.min(initial=np.inf), g.max(initial=0.0)
    return float(max(10.0 * ROUNDING, NOISE * most / least * network.program.n)) if least > 0.0 else np.inf


def beyond_doubt(network: Network, settled: Settled) -> bool:
    """Whether each diode clearly carries or clearly blocks, or does neither but for rounding, and every potential is
    held.

    Where much larger conductances meet at a diode's ends, rounding of their currents hides what it carries or blocks:
    by the resistance between any two nodes times the conductance at a third, which is at most the spread of
    conductances times the number of nodes. So much clearer than rounding the signs must be.

    Parameters
    ----------
    network : Network
    settled : Settled
        With all diodes as shorts whose ends are equal (``on`` is ``equal``).
    """
    program, x, forest, clear = network.program, settled.x, settled.forest, _clear(network)
    if not clear < 1.0 or settled.stranded.any():
        return False
    n = program.n
    size = np.abs(x)
    largest = max(size.max(), np.abs(program.e).max(initial=0.0))
    reach = size[program.tail] + size[program.head] + np.abs(program.bound)
    blocks = program.bound - (x[program.tail] - x[program.head]) > np.maximum(clear * reach, NOISE * largest)
    if not (blocks | settled.equal).all():
        return False
    strongest = settled.noise.max(initial=0.0)
    carries = settled.flow > np.maximum(clear * settled.noise, NOISE * strongest)
    # Near zero a potential may be nothing but rounding, and no measure of it.
    nothing = (np.abs(settled.flow) <= 0.1 * NOISE * settled.noise) & (reach[forest] > NEAR_ZERO * largest)
    if not (carries | nothing).all():
        return False
    held = network.island
    if held.any():  # nodes that resistors alone do not join to earth: everything has the label 0 where they do
        rigid, every = forest[carries], np.arange(n + 1)
        held = component_labels(
            n + 1, np.concatenate([held, program.tail[rigid]]), np.concatenate([every, program.head[rigid]])
        )
    return bool((held == held[n]).all())
