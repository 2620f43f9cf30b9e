"""Currents of least norm in loops of sources and conducting diodes.

They are what wires of equal, vanishing resistance would carry: the operating point of a circuit in which each edge is
1 Ω, each one-way edge 1 Ω in series with an ideal diode. Loops are small and many, so they are solved some at a time by
the kernel for small circuits, and by the general solver only where one tangle of loops is large.
"""

from __future__ import annotations

import numpy as np

from circuitsim.analysis.quick import LARGEST, ROUNDS, UPDATES
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR
from circuitsim.compact.kernels import compact
from circuitsim.compact.single import unpack
from circuitsim.program import QuadraticProgram
from circuitsim.program.flow import NOISE
from circuitsim.solvers.active_set import ActiveSet

TOGETHER = 500
"""Nodes of parts that are solved together."""
ACCURATE = 1e-9
"""The kernel's answer counts if its certificate holds to this; what is left over is the next pass's business."""


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
    diodes, fed = np.flatnonzero(one_way), np.flatnonzero(free & (need != 0.0))
    middle = np.arange(diodes.size) + int(free.sum()) + 1
    n_nodes = int(free.sum()) + diodes.size + 1
    if n_nodes > LARGEST:
        return None
    ends = number[second].copy()
    ends[diodes] = middle
    a = np.concatenate([number[first], middle, np.zeros(fed.size, dtype=np.int64)])
    b = np.concatenate([ends, number[second[diodes]], number[fed]])
    kind = np.repeat(np.array([RESISTOR, DIODE, CURRENT], dtype=np.int8), [first.size, diodes.size, fed.size])
    value = np.concatenate([np.ones(first.size), np.full(diodes.size, np.nan), need[fed]])
    plan = unpack(compact("prepare", n_nodes)(kind, a, b, value, n_nodes, np.zeros(n_nodes, dtype=bool), UPDATES))
    if not plan.resistor.size:
        return None
    v, current = np.empty((1, n_nodes)), np.empty((1, kind.size))
    worst, relative = np.empty((1, 7)), np.empty((1, 7))
    status, count = np.empty(1, dtype=np.int64), np.empty(1, dtype=np.int64)
    closed = np.zeros((1, diodes.size), dtype=bool)
    compact("solve_samples", n_nodes)(
        plan, kind, a, b, value, np.zeros(0, dtype=np.int64), np.zeros((1, 0)), ROUNDS, 0, 1,
        closed, v, current, worst, relative, status, count,
    )  # fmt: skip
    # Potentials may be open where only idle diodes hold a node, but with a resistor in each edge its current is unique.
    return current[0, : first.size] if relative.max() <= ACCURATE else None


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
