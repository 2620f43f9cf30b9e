"""Where the vertices of a sketch go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from circuitsim.plotting.embed import embed
from circuitsim.plotting.grid import Grid, Shape
from circuitsim.plotting.layers import PlacedLayers, layered
from circuitsim.plotting.sketch import Diamond, Sketch
from circuitsim.program.components import component_labels

ON_GRID = 160
"""Up to this many vertices a circuit is drawn with symbols; beyond, in layers or not at all."""

SCALES = (1.0, 1.15, 1.3, 1.5, 2.0)
"""Cells an element is long at first. The search is local: several starts, and the best result of them."""

MANY_STARTS = 60
"""Up to this many nodes all of them are tried."""

GAP = 1.6
"""Cells between two parts."""


def place(sketch: Sketch, sources: Sequence[int] = ()) -> PlacedLayers | None:
    """Positions of the vertices, in cells, x to the right and y up, and of the symbols on the bundles.

    None of a circuit with more than `ON_GRID` vertices that is not in layers: no picture of it would be readable.

    Parameters
    ----------
    sketch : Sketch
    sources : sequence of int
        Vertices that would rather be on the left.
    """
    seen: dict[tuple[bytes, ...], PlacedLayers] = {}  # equal parts get equal drawings
    n = len(sketch.node)
    ends = np.array([(b.start, b.end) for b in sketch.bundles], dtype=np.int64).reshape(-1, 2)
    part = component_labels(n, ends[:, 0], ends[:, 1])
    parent = np.array(sketch.parent, dtype=np.int64)
    weight = np.array([float(len(b.elements)) for b in sketch.bundles])
    share = np.full(len(ends), 0.5)
    pieces = []
    for root in np.unique(part).tolist():
        members = np.flatnonzero(part == root)
        local = np.full(n, -1, dtype=np.int64)
        local[members] = np.arange(members.size)
        own = part[ends[:, 0]] == root
        own_parent = np.where(parent[members] >= 0, local[parent[members]], -1)
        left = np.array([local[v] for v in sources if local[v] >= 0], dtype=np.int64)
        diamonds = [shaped(d, local) for d in sketch.diamonds if part[d.left] == root]
        key = tuple(a.tobytes() for a in (local[ends[own]], own_parent, weight[own], left, *(v for v, _ in diamonds)))
        placed = seen.get(key) or _component(local[ends[own]], own_parent, weight[own], left, diamonds, n <= ON_GRID)
        if placed is None:
            return None
        seen[key] = placed
        share[own] = placed.share
        pieces.append((members, placed.positions))
    return PlacedLayers(_packed(n, pieces), share)


def shaped(diamond: Diamond, local: np.ndarray) -> Shape:
    """The vertices of a bridge, and their cells about its centre."""
    wide = max(1, (len(diamond.middle) + 2) // 2)
    inner = len(diamond.middle)
    across = [j - inner // 2 + (j >= inner // 2 and inner % 2 == 0) for j in range(inner)]
    cells = [(-wide, 0), (wide, 0), (0, wide), (0, -wide), *((x, 0) for x in across)]
    return local[[*diamond[:4], *diamond.middle]], np.array(cells, dtype=np.int64)


def _component(
    edges: np.ndarray,
    parent: np.ndarray,
    weight: np.ndarray,
    left: np.ndarray,
    diamonds: Sequence[Shape],
    small: bool,
) -> PlacedLayers | None:
    found = None if diamonds else layered(edges, parent, left, small)
    if found is not None or not small:
        return found
    core = np.flatnonzero(parent < 0)
    number = np.cumsum(parent < 0) - 1
    inner = edges[parent[edges[:, 1]] < 0]
    wish = np.zeros((parent.size, 2))
    wish[core] = _upright(embed(core.size, number[inner]), number, parent, left)
    scales = SCALES if core.size <= MANY_STARTS else SCALES[1:2]
    starts = (Grid(wish * scale, edges, parent, weight, diamonds) for scale in scales)
    return PlacedLayers(_best_grid(starts), np.full(len(edges), 0.5))


def _best_grid(grids: Iterable[Grid]) -> np.ndarray:
    """The cheapest of the arrangements that the search finds from several starts."""
    best = None
    starts: set[bytes] = set()
    for grid in grids:
        if grid.cells.tobytes() in starts:
            continue
        starts.add(grid.cells.tobytes())
        grid.improve()
        if best is None or grid.cost() < best.cost() - 1e-9:
            best = grid
        if best.cost() < 1.0:
            break  # at most one ground symbol lies sideways: no further gain
    assert best is not None
    return best.cells.astype(float)


def _upright(x: np.ndarray, number: np.ndarray, parent: np.ndarray, left: np.ndarray) -> np.ndarray:
    """Mirror so that the first of ``left`` is on the left, and most nodes with a ground symbol in the lower half."""
    if left.size and x[number[left[0]], 0] > x[:, 0].mean():
        x = x * np.array([-1.0, 1.0])
    grounded = number[parent[parent >= 0]]
    if grounded.size and x[grounded, 1].mean() > x[:, 1].mean() + 1e-9:
        x = x * np.array([1.0, -1.0])
    return x


def _packed(n: int, pieces: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Parts beside each other, in rows about as wide as the whole is high; the tallest of a row sets its height."""
    positions = np.zeros((n, 2))
    sizes = [np.ptp(x, axis=0) + GAP for _, x in pieces]
    width = max(max((s[0] for s in sizes), default=0.0), float(np.sqrt(sum(1.5 * s[0] * s[1] for s in sizes))))
    x = top = height = 0.0
    for (members, local), size in zip(pieces, sizes):
        if x and x + size[0] > width + 1e-9:
            x, top, height = 0.0, top - height, 0.0
        positions[members] = local - [local[:, 0].min(), local[:, 1].max()] + [x, top]
        x, height = x + size[0], max(height, float(size[1]))
    return positions
