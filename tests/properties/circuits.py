"""Circuits of resistors, ideal diodes and sources as plain values: random ones of the contract's regimes, and decks."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from corpus import REGIMES, Builder, decimals
from exact import Edge, edges_of

from circuitsim import Circuit

Parts = list[tuple[str, int, int, float]]
Regime = Callable[[Builder], None]

NODES = ("0", *"abcdefghijklmnop", *(f"n{k}" for k in range(17, 62)))
SMALL, LARGE = (2, 20), (21, 60)


class Sketch(NamedTuple):
    """A circuit as plain values: number of nodes with ground, and (letter, first, second, value) an element.

    Nodes are numbered in the order in which the elements name them, as circuitsim numbers them; 0 is ground.
    """

    n: int
    parts: Parts

    def circuit(self, names: Sequence[str] | None = None, nodes: Sequence[str] | None = None) -> Circuit:
        """The circuit; elements ``R0, D1 …`` and nodes ``0, a, b …`` unless other names are given."""
        nodes = nodes or NODES
        circuit = Circuit("a random circuit")
        for k, (letter, a, b, value) in enumerate(self.parts):
            name = names[k] if names else f"{letter}{k}"
            circuit.add(letter, name, nodes[a], nodes[b], None if letter == "D" else value)
        return circuit

    def edges(self) -> list[Edge]:
        """The same for the exact oracle."""
        return edges_of(self.parts)


def sketch_of(parts: Parts) -> Sketch:
    """The circuit of these parts, with nodes renumbered by appearance."""
    number = {0: 0}
    for _, a, b, _ in parts:
        number.setdefault(a, len(number))
        number.setdefault(b, len(number))
    return Sketch(len(number), [(letter, number[a], number[b], value) for letter, a, b, value in parts])


def draw(regime: Regime, seed: int, nodes: tuple[int, int] = SMALL) -> Sketch:
    """A random circuit of the contract's generator: a function of regime, seed and range of nodes alone."""
    rng = np.random.default_rng([1, seed])
    builder = Builder(rng, int(rng.integers(nodes[0], nodes[1] + 1)), regime is decimals)
    regime(builder)
    return sketch_of(builder.parts or [("R", 0, 1, 1.0)])


def drawn(count: int, nodes: tuple[int, int] = SMALL) -> list[Sketch]:
    """``count`` circuits, of each regime in turn."""
    return [draw(REGIMES[seed % len(REGIMES)], seed, nodes) for seed in range(examples(count))]


def decks(name: str) -> dict[str, Sketch]:
    """The circuits of a file here by title: one after the other, each with ``.end``."""
    found = {}
    for text in (Path(__file__).parent / name).read_text(encoding="utf-8").split("\n.end\n")[:-1]:
        title, *lines = text.split("\n")
        cards = [line.split() for line in lines]
        found[title] = sketch_of([(x[0][0], int(x[1]), int(x[2]), float(x[3]) if x[3:] else 0.0) for x in cards])
    return found


def examples(ci: int) -> int:
    """Number of examples of a test: ``ci`` by default, twenty times as many with HYPOTHESIS_PROFILE=long."""
    return ci * 20 if os.environ.get("HYPOTHESIS_PROFILE") == "long" else ci
