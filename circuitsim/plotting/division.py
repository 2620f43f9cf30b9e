"""Large circuits in blocks: sub-circuits by their names, other elements by their places in the plane.

A block has few parts, or few elements. Every element is in exactly one block without parts; nodes on the border belong
to several blocks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from circuitsim.circuit import GROUND, Circuit
from circuitsim.plotting.drawing import MOST
from circuitsim.plotting.layout import ON_GRID, place
from circuitsim.plotting.sketch import Sketch, sketch

MOST_ELEMENTS = 48
"""Elements in a block that is drawn in full."""

MOST_PARTS = 24
"""Parts of a block."""

CROSSED = 0.1
"""Crossings an element from which the picture of the whole is a tangle."""

LONG = 6.0
"""Length of the picture of the whole, in its heights, from which it is a line."""


class Block(NamedTuple):
    """Some elements of a circuit.

    Attributes
    ----------
    name : str
        Of the sub-circuit, or ``part 2.1``; empty for the whole.
    elements : tuple of int
        Positions of all its elements, ascending.
    parts : tuple of Block
        Empty: the block is drawn in full.
    """

    name: str
    elements: tuple[int, ...]
    parts: tuple[Block, ...] = ()


class _Item(NamedTuple):
    """An element without sub-circuit (empty name), or a sub-circuit: its name and its elements."""

    name: str
    elements: list[int]


def division(circuit: Circuit) -> Block | None:
    """The blocks of a circuit, or None where one picture shows it better: few nodes, layers, few crossings.

    None also of a circuit with more elements than a picture can show.
    """
    if len(circuit) > MOST:
        return None
    plan = sketch(circuit)
    if len(plan.node) <= ON_GRID:
        return None
    placed = place(plan)
    hierarchical = sum("." in name for name in circuit.names) > len(circuit) / 2
    in_layers = bool((placed.share != 0.5).any())
    if not hierarchical and (in_layers or _legible(plan, placed.positions)):
        return None
    where = np.zeros((len(circuit), 2))
    for bundle in plan.bundles:
        where[list(bundle.elements)] = placed.positions[[bundle.start, bundle.end]].mean(0)
    return _Division(circuit.names, where).block("", list(range(len(circuit))), "", 0)


def common_nodes(circuit: Circuit, parts: Sequence[Block]) -> dict[tuple[int, int], list[int]]:
    """Nodes without ground that two parts have in common, for each pair of parts with any.

    Parameters
    ----------
    circuit : Circuit
    parts : sequence of Block
    """
    arrays = circuit.arrays()
    holders: dict[int, list[int]] = {}
    for number, part in enumerate(parts):
        own = list(part.elements)
        for node in sorted({*arrays.first[own].tolist(), *arrays.second[own].tolist()} - {GROUND}):
            holders.setdefault(node, []).append(number)
    found: dict[tuple[int, int], list[int]] = {}
    for node, held in sorted(holders.items()):
        for k, one in enumerate(held):
            for other in held[k + 1 :]:
                found.setdefault((one, other), []).append(node)
    return found


def _legible(plan: Sketch, positions: np.ndarray) -> bool:
    """Whether few wires cross, on a picture that is no line."""
    width, height = np.ptp(positions, axis=0).tolist()
    if max(width, height) > LONG * min(width, height):
        return False
    ends = np.array([(b.start, b.end) for b in plan.bundles])
    start, end = positions[ends[:, 0]], positions[ends[:, 1]]
    # The crossings of some wires with all.
    some = np.arange(0, len(ends), max(1, len(ends) // 500))
    p, q = start[some, None], end[some, None]
    crossed = (_side(p, q, start) * _side(p, q, end) < 0) & (_side(start, end, p) * _side(start, end, q) < 0)
    return bool(np.count_nonzero(crossed) <= 2.0 * CROSSED * len(some))


def _side(p: np.ndarray, q: np.ndarray, r: np.ndarray) -> np.ndarray:
    """On which side of the line p→q the points r lie: −1, 0, 1."""
    along, apart = q - p, r - p
    return np.sign(along[..., 0] * apart[..., 1] - along[..., 1] * apart[..., 0])


class _Division:
    """Names and places of elements while they are divided."""

    def __init__(self, names: Sequence[str], where: np.ndarray) -> None:
        self.names, self.where = names, where

    def block(self, name: str, elements: list[int], prefix: str, depth: int) -> Block:
        """The block of a sub-circuit, whose elements' names begin with ``prefix`` of ``depth`` parts."""
        items: dict[str, _Item] = {}
        for k in elements:
            words = self.names[k].split(".")
            inside = ".".join(words[: depth + 1]) if len(words) > depth + 1 else ""
            items.setdefault(inside.lower() or f" {k}", _Item(inside, [])).elements.append(k)
        if len(items) == 1 and len(elements) > MOST_ELEMENTS:
            (only,) = items.values()
            return self.block(only.name, elements, only.name, depth + 1)
        return self._of(name, list(items.values()), prefix, depth)

    def _of(self, name: str, items: list[_Item], prefix: str, depth: int) -> Block:
        elements = tuple(sorted(k for item in items for k in item.elements))
        if len(elements) <= MOST_ELEMENTS:
            return Block(name, elements)
        boxes = [item for item in items if item.name]
        loose = [item for item in items if not item.name]
        if len(boxes) <= MOST_PARTS and len(loose) <= MOST_ELEMENTS:
            parts = [self.block(box.name, box.elements, box.name, depth + 1) for box in boxes]
            if loose:
                rest = tuple(sorted(k for item in loose for k in item.elements))
                parts.append(Block(self._part(prefix, name, "elements"), rest))
            return Block(name, elements, tuple(parts))
        leaves = max(math.ceil(len(items) / (MOST_PARTS if boxes else MOST_ELEMENTS)), 2)
        levels = max(1, math.ceil(math.log(leaves) / math.log(MOST_PARTS) - 1e-9))
        groups = self._groups(items, max(2, math.ceil(leaves ** (1.0 / levels) - 1e-9)))
        parts = [
            self._of(self._part(prefix, name, str(number)), group, prefix, depth)
            for number, group in enumerate(groups, 1)
        ]
        return Block(name, elements, tuple(parts))

    @staticmethod
    def _part(prefix: str, name: str, number: str) -> str:
        """``part 2``, in it ``part 2.1``; in a sub-circuit ``X1: part 2``."""
        if "part " in name:
            return f"{name}.{number}"
        return f"{prefix}: part {number}" if prefix else f"part {number}"

    def _groups(self, items: list[_Item], count: int) -> list[list[_Item]]:
        """Groups of equal size, made by cuts across the longest extent."""
        if count == 1:
            return [items]
        where = np.array([self.where[item.elements].mean(0) for item in items])
        centred = where - where.mean(0)
        along = np.linalg.eigh(centred.T @ centred)[1][:, -1]
        along = along * (1.0 if along[np.argmax(np.abs(along))] > 0 else -1.0)
        order = np.argsort(np.round(centred @ along, 9), kind="stable").tolist()
        below = count // 2
        cut = round(len(items) * below / count)
        first, second = ([items[k] for k in sorted(half)] for half in (order[:cut], order[cut:]))
        return [*self._groups(first, below), *self._groups(second, count - below)]
