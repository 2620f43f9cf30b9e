"""Power grids in the style of the public IBM decks: two nets in layers, vias, pads as voltage sources, current loads.

    python benchmarks/power_grid/deck.py --nodes 1700000 grid.spice

Names are n<layer>_<x>_<y>; odd layers belong to the supply net, even ones to the ground net. In each net the lowest
layer runs along x, the next along y, the two above are coarser; a tenth of the vias are sources of 0 V.
Pads are package resistors to sources. Every load is two sources: out of the supply net, into the ground net.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np

PITCH = 200
"""Between neighbouring wires of the lowest layers, nm."""

COARSE = (8, 16)
"""Wires of the lowest layers for each one of the third, and of the fourth layer."""

SHEET = (0.9, 0.7, 0.12, 0.05)
"""Resistance of a wire between neighbouring nodes, Ω, by layer."""

VIA, PACKAGE, SUPPLY = 0.4, 0.02, 1.8
"""Ω, Ω, V."""


def side_of(nodes: int) -> int:
    """Wires along each side of a grid of about so many nodes."""
    fine, third, fourth = 2.0, 1.0 / COARSE[0], 1.0 / COARSE[0] / COARSE[1]
    return max(COARSE[1] + 1, round((nodes / 2.0 / (fine + third + fourth)) ** 0.5))


def lines(nodes: int, seed: int = 0) -> Iterator[str]:
    """The lines of a deck of about ``nodes`` nodes; the same arguments give the same deck."""
    side, rng = side_of(nodes), np.random.default_rng(seed)
    yield f"* power grid, {side} x {side} wires, seed {seed}"
    count = 0
    for net, supply in enumerate((SUPPLY, 0.0)):
        layer = [1 + net, 3 + net, 5 + net, 7 + net]
        yield f"* layers {layer}: net of {supply:g} V"
        for number, (rows, columns) in enumerate(_crossings(side)):
            for text in _wires(layer[number], SHEET[number], rows, columns, number % 2 == 0, rng):
                count += 1
                yield f"R{count} {text}"
            if number:
                for text, short in _vias(layer[number - 1], layer[number], rows, columns, rng):
                    count += 1
                    yield f"V{count} {text} 0" if short else f"R{count} {text} {VIA:g}"
        rows, columns = _crossings(side)[3]
        for k, (x, y) in enumerate((x, y) for y in rows[::2] for x in columns[::2]):
            node = f"n{layer[3]}_{PITCH * x}_{PITCH * y}"
            yield f"Rp{net}_{k} {node} pad{net}_{PITCH * x}_{PITCH * y} {PACKAGE:g}"
            yield f"Vp{net}_{k} pad{net}_{PITCH * x}_{PITCH * y} 0 {supply:g}"
    yield from _loads(side, rng)
    yield ".op"
    yield ".end"


def _crossings(side: int) -> list[tuple[range, range]]:
    """Rows and columns of the crossings at which each layer has nodes."""
    every, third, fourth = range(side), range(0, side, COARSE[0]), range(0, side, COARSE[1])
    return [(every, every), (every, every), (third, every), (third, fourth)]


def _wires(
    layer: int, sheet: float, rows: range, columns: range, along_x: bool, rng: np.random.Generator
) -> Iterator[str]:
    """Resistors along x or y, a few of them interrupted in the lowest layer."""
    if along_x:
        pairs = ((x, y, columns[k + 1], y) for y in rows for k, x in enumerate(columns[:-1]))
        step, total = columns.step, len(rows) * (len(columns) - 1)
    else:
        pairs = ((x, y, x, rows[k + 1]) for x in columns for k, y in enumerate(rows[:-1]))
        step, total = rows.step, len(columns) * (len(rows) - 1)
    values = (sheet * step * rng.uniform(0.8, 1.2, total)).tolist()
    cut = (rng.random(total) < (0.02 if layer <= 2 else 0.0)).tolist()
    for (x, y, u, v), value, without in zip(pairs, values, cut):
        if not without:
            yield f"n{layer}_{PITCH * x}_{PITCH * y} n{layer}_{PITCH * u}_{PITCH * v} {value:.6g}"


def _vias(below: int, above: int, rows: range, columns: range, rng: np.random.Generator) -> Iterator[tuple[str, bool]]:
    short = (rng.random(len(rows) * len(columns)) < 0.1).tolist()
    for k, (x, y) in enumerate((x, y) for y in rows for x in columns):
        place = f"{PITCH * x}_{PITCH * y}"
        yield f"n{below}_{place} n{above}_{place}", short[k]


def _loads(side: int, rng: np.random.Generator) -> Iterator[str]:
    """Currents of 30 % of the crossings, larger around a few hot spots; 1 mA on average at the hottest."""
    chosen = np.flatnonzero(rng.random(side * side) < 0.3)
    x, y = chosen % side, chosen // side
    spots, width = rng.uniform(0, side, (6, 2)), side / 8
    heat = 0.15 + np.exp(-((x - spots[:, :1]) ** 2 + (y - spots[:, 1:]) ** 2) / (2 * width**2)).sum(axis=0)
    ampere = 1e-3 * np.minimum(heat, 1.0) * rng.exponential(size=chosen.size)
    for k, (u, v, value) in enumerate(zip(x.tolist(), y.tolist(), ampere.tolist())):
        place = f"{PITCH * u}_{PITCH * v}"
        yield f"Is{k} n1_{place} 0 {value:.6g}"
        yield f"Ig{k} 0 n2_{place} {value:.6g}"


def write(path: str, nodes: int, seed: int = 0) -> None:
    """Write the deck to a file."""
    with open(path, "w", encoding="ascii") as file:
        file.writelines(f"{line}\n" for line in lines(nodes, seed))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write a power grid as a deck.")
    parser.add_argument("--nodes", type=int, default=1_700_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("file")
    chosen = parser.parse_args()
    write(chosen.file, chosen.nodes, chosen.seed)
