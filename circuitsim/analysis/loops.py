"""Currents of least norm in loops of sources and conducting diodes.

They are what wires of equal, vanishing resistance would carry: the operating point of a circuit in which each edge is
1 Ω, each one-way edge 1 Ω in series with an ideal diode. Loops are small and many, so they are solved some at a time by
the kernel for small circuits, and by the general solver only where one tangle of loops is large.
"""

from __future__ import annotations

import numpy as np

from circuitsim.analysis.quick import LARGEST
from circuitsim.compact.kernels import compact
from circuitsim.program import QuadraticProgram
from circuitsim.program.flow import NOISE
from circuitsim.solvers.active_set import ActiveSet

TOGETHER = 500
"""Nodes of parts that are solved together."""


def least_norm_currents(
    first: np.ndarray, second: np.ndarray, one_way: np.ndarray, need: np.ndarray, part: np.ndarray, roots: np.ndarray
) -> np.ndarray:
    """Currents of least norm that carry away ``need``, one-way edges ≥ 0; what is rounding among them is 0.

    Parameters
    ----------
    first, second : (m,) int arrays
        Ends of the edges, which carry current from first to second.
    one_way : (m,) bool array
    need : (n,) float array
        Current that leaves each node through the edges, A; at the roots whatever balances their part.
    part : (n,) int array
        Number of each node's connected part, from 0.
    roots : (parts,) int array
        One node of each part, which takes up what is left.

    Returns
    -------
    (m,) float array

    Raises
    ------
    ConvergenceError
        No such currents exist.
    """
    carried = np.zeros(first.size)
    edge_part = part[first]
    # A middle node for every one-way edge.
    size = np.bincount(part, minlength=roots.size) + np.bincount(edge_part[one_way], minlength=roots.size)
    group = (np.cumsum(size) - size) // TOGETHER
    for which in np.unique(group).tolist():
        edges, nodes = np.flatnonzero(group[edge_part] == which), np.flatnonzero(group[part] == which)
        number = np.zeros(need.size, dtype=np.int64)
        number[nodes] = np.arange(nodes.size)
        earth = number[roots[group == which]]
        local = number[first[edges]], number[second[edges]], one_way[edges], need[nodes], earth
        found = _by_kernel(*local)
        carried[edges] = _by_solver(*local) if found is None else found
    carried[one_way] = np.maximum(carried[one_way], 0.0)
    carried[np.abs(carried) <= NOISE * np.abs(carried).max(initial=0.0)] = 0.0
    return carried


def _by_kernel(
    first: np.ndarray, second: np.ndarray, one_way: np.ndarray, need: np.ndarray, roots: np.ndarray
) -> np.ndarray | None:
    """The currents by the kernel for small circuits, or None where it cannot tell. Node 0 is earth."""
    free = np.ones(need.size, dtype=bool)
    free[roots] = False
    number = np.zeros(need.size, dtype=np.int64)
    number[free] = np.arange(1, int(free.sum()) + 1)
    n_nodes = int(free.sum()) + int(one_way.sum()) + 1
    if n_nodes > LARGEST:
        return None
    numbered = np.append(0.0, need[free])
    good, found = compact("least_norm", n_nodes)(number[first], number[second], one_way, numbered)
    return found if good else None


def _by_solver(
    first: np.ndarray, second: np.ndarray, one_way: np.ndarray, need: np.ndarray, roots: np.ndarray
) -> np.ndarray:
    """The currents by the general solver."""
    # Unknowns: the nodes but for the roots, then a middle node for every one-way edge.
    free = np.ones(need.size, dtype=bool)
    free[roots] = False
    diodes = np.flatnonzero(one_way)
    size = int(free.sum()) + diodes.size
    number = np.full(need.size, size)
    number[free] = np.arange(int(free.sum()))
    middle = np.arange(diodes.size) + int(free.sum())
    a, b = number[first], number[second]
    b[diodes] = middle
    injected = np.zeros(size + 1)
    injected[: size - diodes.size] = need[free]
    injected[size] = -injected.sum()
    real = a != b
    fed = np.flatnonzero(injected[:size])
    program = QuadraticProgram(
        n=size, a=a[real], b=b[real], g=np.ones(int(real.sum())), e=np.zeros(int(real.sum())), c=injected,
        c_low=np.zeros(size + 1), c_scale=np.abs(injected), origin=np.full(fed.size, size), target=fed,
        tail=middle, head=number[second[diodes]], bound=np.zeros(diodes.size), diode=diodes,
        offset=np.zeros(0),
    )  # fmt: skip
    u = ActiveSet().solve(program, np.zeros(size + 1)).x
    return np.where(real, u[a] - u[b], 0.0)
