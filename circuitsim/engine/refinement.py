"""The linear circuit at one set of conducting diodes, with branch currents refined to individual relative accuracy.

Iterative refinement in branch variables: tree currents and potentials follow from the chord currents in pairs of
doubles (`circuitsim.engine.tree`), and the nodal matrix in doubles turns loop residuals into corrections. So the
current of a picoohm resistor next to a kiloohm is a sum of currents, never a difference of rounded potentials.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.engine import tree
from circuitsim.engine.corrections import Corrections
from circuitsim.engine.network import Network, representative, spanning_tree
from circuitsim.engine.tree import Tree
from circuitsim.solvers.linear import Factored

FURTHER = 6
"""Number of corrections after which a small current that still changes counts as rounding."""
STEPS = 60
"""Maximum number of corrections; each gains about ten digits, except in networks of extreme spread."""


class LinearPoint(NamedTuple):
    """Currents and potentials of the linear circuit at one set of conducting diodes.

    Attributes
    ----------
    tree : Tree
    closed : (m,) bool array
        Conducting diodes: those of the tree.
    current, current_low : (m,) float arrays
        Branch currents, A; 0 in elements of fixed voltage outside the tree.
    v, v_low : (n_nodes,) float arrays
        Node voltages, V.
    need : (n_nodes,) float array
        Net current into the component of each root, A.
    block : (m,) int array
        Biconnected component of each element that carries current, −1 elsewhere.
    correction : (m,) float array
        Size of the last change of each current, A.
    in_block : float array
        Largest |current| in each biconnected component, A.
    factored : Factored
        The nodal matrix with the conducting diodes as shorts.
    converged : bool
        Whether the last correction met `LOCAL` or `OVERALL`.
    steps : int
        Corrections made.
    """

    tree: Tree
    closed: np.ndarray
    current: np.ndarray
    current_low: np.ndarray
    v: np.ndarray
    v_low: np.ndarray
    need: np.ndarray
    block: np.ndarray
    correction: np.ndarray
    in_block: np.ndarray
    factored: Factored
    converged: bool
    steps: int


def solve_linear(
    net: Network,
    closed: np.ndarray,
    guess: np.ndarray,
    anchor: np.ndarray,
    previous: Factored | None = None,
) -> LinearPoint:
    """Solve the linear circuit in which the diodes ``closed`` conduct and all others block.

    Parameters
    ----------
    net : Network
    closed : int array
        Conducting diodes, most important first; one that closes a loop with fixed voltages and earlier ones is left
        out.
    guess : (m,) float array
        Initial branch currents, A.
    anchor : (n_nodes,) float array
        Potentials of the roots of components without a path to ground, V.
    previous : Factored, optional
        The nodal matrix at another set; consumed.
    """
    made = spanning_tree(net, closed)
    on = np.zeros(net.first.size, dtype=bool)
    on[closed] = True
    on &= made.inside
    factored = net.laplacian.factor(net.branch[np.flatnonzero(on & (net.branch >= 0))], previous)
    last = representative(net, on)[net.structure.coordinate]
    work = Corrections(net, made, on, guess, anchor)
    agree, steps, proven, open_digits = 0, 0, False, True
    tiny = work.follow()
    while work.chords.size:
        power = work.residuals()
        proven = work.proven(power)
        if proven:
            break
        if steps:
            ratio = work.change()
            agree = agree + 1 if ratio <= 1.0 else 0
            open_digits = work.rounding()
            if not ratio < np.inf or steps >= STEPS or (agree >= 2 and not open_digits) or agree >= FURTHER:
                break
        work.correct(factored.solve(work.injected[:-1], work.accuracy(power)), last)
        steps += 1
        tiny = work.follow()
    if tiny or work.zero.size:
        work.current[work.zero] = work.current_low[work.zero] = 0.0
        work.follow(tree.RESOLUTION)
    converged = bool(agree) or proven or not work.chords.size
    return LinearPoint(
        made,
        on,
        work.current,
        work.current_low,
        work.v,
        work.v_low,
        work.need,
        work.block,
        work.correction,
        work.in_block,
        factored,
        converged,
        steps,
    )
