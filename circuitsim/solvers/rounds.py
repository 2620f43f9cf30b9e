"""Rounds of the primal–dual active-set method: all wrong diodes change at once, until none is wrong."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from circuitsim.program import QuadraticProgram
from circuitsim.program.components import component_labels
from circuitsim.program.flow import NOISE
from circuitsim.solvers.contracted import Network, Settled, refined, settle
from circuitsim.solvers.linear import ACCURACY
from circuitsim.solvers.refinement import dead_resistors

FAR = 1e100
"""Where a part with a net current and no path to earth ends up, V: beyond every diode that could stop it."""

STALLED = 0.9
"""A round that leaves more than this share of the fewest wrong diodes so far is followed by one that drops none."""


def primal_dual(
    network: Network,
    on: np.ndarray,
    before: np.ndarray,
    rounds: int,
    finish: Callable[[Network, Settled], Settled] = lambda network, settled: settled,
    accuracy: float = ACCURACY,
    keep: bool = False,
) -> tuple[Settled, bool, int]:
    """Drop every conducting diode with a negative current, add every violated one, until neither exists.

    Every linear circuit is handed to ``finish`` before it is judged. With ``keep``, diodes whose ends are equal stay
    closed also where fewer carry the current: good where few change, but trees that `exchange` found are forgotten.

    Returns
    -------
    settled : Settled
        The last linear circuit.
    done : bool
        Whether it is optimal; otherwise a set of diodes came back, or the rounds ran out.
    rounds : int
        Linear circuits solved.
    """
    seen: set[bytes] = set()
    fewest = network.program.tail.size + 1
    settled = finish(network, settle(network, on, before, previous=network.laplacian.kept(), accuracy=accuracy))
    for count in range(1, rounds + 1):
        wrong, on = judge(network, settled, keep)
        if not wrong:
            return settled, not settled.stranded.any(), count
        carrying = settled.equal.copy() if keep else np.zeros(on.size, dtype=bool)
        carrying[settled.forest] = True
        many = int((on != carrying).sum())
        if many >= STALLED * fewest and (on & ~carrying).any():
            on |= carrying
        fewest = min(fewest, many)
        key = on.tobytes()
        if key in seen or count == rounds:
            return settled, False, count
        seen.add(key)
        settled = finish(network, settle(network, on, settled.x, previous=settled.factored, accuracy=accuracy))
    raise AssertionError("unreachable")


def judge(network: Network, settled: Settled, keep: bool = False) -> tuple[bool, np.ndarray]:
    """Whether a diode conducts backwards or is held forward, and which diodes should conduct next (d,).

    With ``keep``, also those beside the forest whose ends stay equal.
    """
    program, forest = network.program, settled.forest
    negative = settled.flow < -NOISE * settled.noise
    on = violation(program, settled) > 0.0
    on[forest] = False
    wrong = bool(negative.any() or on.any())
    kept = forest[~negative]
    on[kept] = True
    if keep:
        spare = settled.equal & ~on
        if negative.any():
            part = component_labels(program.n + 1, program.tail[kept], program.head[kept])
            spare &= part[program.tail] == part[program.head]
        on |= spare
    return wrong, on


def polish(network: Network, settled: Settled) -> Settled:
    """The same linear circuit with everything that carries no current held at exactly equal potentials, and refined."""
    iterative = network.laplacian.iterative is not None
    dead = dead_resistors(network.program, settled.last, settled.w, settled.x, iterative)
    if not dead.size:
        return refined(network, settled._replace(x=settled.x.copy()), None, thorough=True)
    on = np.zeros(settled.on.size, dtype=bool)
    on[settled.forest] = True
    return settle(network, on, settled.x, previous=settled.factored, dead=dead)


def violation(program: QuadraticProgram, settled: Settled) -> np.ndarray:
    """How far each diode is held forward, V, where that is more than rounding; else 0. Stranded parts are far away."""
    xt, xh = settled.x[program.tail], settled.x[program.head]
    gap = xt - xh - program.bound
    wrong = np.where(gap > NOISE * (np.abs(xt) + np.abs(xh) + np.abs(program.bound)), gap, 0.0)
    if settled.stranded.any():
        far = np.sign(settled.stranded)[settled.part] * FAR
        # Among the diodes that could stop a stranded part, the one it meets first counts as the most violated.
        first_met = 1.0 + 0.5 * gap / (1.0 + np.abs(gap))
        wrong += np.maximum(0.0, far[program.tail] - far[program.head]) * first_met
    return wrong
