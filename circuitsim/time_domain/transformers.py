"""Ideally coupled windings: the normal tree of a circuit with ideal transformers.

Of windings that store energy only together, some are inductors of the current i + Σ T i_w, where i_w are the
currents of the others (role `WINDING`) and T their turns over those of the inductor: v_w = Tᵀ v. A winding is
neither a branch of the tree nor a link. Its law takes one branch out of the tree: the last one that it moves, since an
ideal transformer keeps v and i orthogonal and the trees of such a circuit are the bases of a matroid (Bryant 1959;
Recski 1989), of which the greedy one in the order of the roles is normal.
"""

from __future__ import annotations

import numpy as np

from circuitsim.time_domain.trees import FREE, WINDING, Wiring

CANCELLED = 1e-12
"""Share of the terms of a sum below which it is zero: turns ratios are rounded."""


def with_transformers(net: Wiring, role: np.ndarray, turns: np.ndarray) -> Wiring:
    """The normal tree without its windings.

    Parameters
    ----------
    net : Wiring
        Of the graph, windings last.
    role : (m,) int array
    turns : (w, m) float array
        T of each winding, in ascending order of these, over the inductors.

    Returns
    -------
    Wiring
    """
    windings = np.flatnonzero(role == WINDING)
    t, links = net.twigs.size, net.links[: net.rest[FREE + 1]]
    rows = np.concatenate([np.eye(t), net.cut[:, : links.size], _moved(net, windings, turns)], axis=1)
    first = t + links.size
    pivot = _pivots(rows, first, np.isin(windings, net.twigs))
    flows = np.zeros((windings.size, role.size))
    for j, p in pivot.items():
        # Currents of windings that no law determines (ideally coupled ones in parallel) are zero.
        flows[j, net.twigs] = -rows[p, :t] / rows[p, first + j]
        flows[j, links] -= rows[p, t:first] / rows[p, first + j]
        flows[j, windings] = 0.0
    return _arranged(net, links, rows[:, :first], set(pivot.values()), flows)


def _pivots(rows: np.ndarray, first: int, inside: np.ndarray) -> dict[int, int]:
    """Eliminate the columns from ``first`` on, one of each winding: for each the last row that has an entry there,
    but for those of others. Those ``inside`` the tree leave it themselves: they come first, while no other column has
    changed their rows."""
    found = dict[int, int]()
    for j in np.argsort(~inside, kind="stable").tolist():
        free = [p for p in np.flatnonzero(rows[:, first + j]).tolist() if p not in found.values()]
        if free:
            found[j] = free[-1]
            _eliminate(rows, free[-1], first + j)
    return found


def _moved(net: Wiring, windings: np.ndarray, turns: np.ndarray) -> np.ndarray:
    """What each winding's law v_w − Tᵀ v = 0 is over the voltages of the tree: (t, w)."""
    m = turns.shape[1]
    over = np.zeros((net.twigs.size, m))
    over[np.arange(net.twigs.size), net.twigs] = 1.0
    over[:, net.links] = net.cut
    found = over[:, windings] - over @ turns.T
    size = np.abs(over[:, windings]) + np.abs(over) @ np.abs(turns.T)
    return np.where(np.abs(found) > CANCELLED * size, found, 0.0)


def _eliminate(rows: np.ndarray, p: int, column: int) -> None:
    """Take row ``p`` from all others, such that the column is zero there."""
    share = rows[:, column] / rows[p, column]
    share[p] = 0.0
    taken = np.outer(share, rows[p])
    left = rows - taken
    rows[:] = np.where(np.abs(left) > CANCELLED * (np.abs(rows) + np.abs(taken)), left, 0.0)


def _arranged(net: Wiring, links: np.ndarray, rows: np.ndarray, gone: set[int], flows: np.ndarray) -> Wiring:
    """The tree without the branches that are gone, which are links now but for windings."""
    tree, rest, t = net.tree, net.rest, net.twigs.size
    twigs, columns, at, of = list[int](), list[int](), [0], [0]
    for kind in range(FREE + 1):
        inside = range(tree[kind], tree[kind + 1])
        twigs += [k for k in inside if k not in gone]
        columns += [*range(t + rest[kind], t + rest[kind + 1]), *(k for k in inside if k in gone)]
        at.append(len(twigs))
        of.append(len(columns))
    elements = np.concatenate([net.twigs, links])
    cut = np.ascontiguousarray(rows[np.ix_(twigs, columns)])
    return Wiring(net.twigs[twigs], elements[columns], cut, np.array(at), np.array(of), flows)
