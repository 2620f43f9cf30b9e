"""Random circuits for hypothesis: any topology, nine decades of resistance either way, sources and diodes anywhere."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from exact import Edge, edges_of
from hypothesis import strategies as st

from circuitsim import Circuit

Parts = list[tuple[str, int, int, float]]

NODES = ("0", *"abcdefghijklmnop", *(f"n{k}" for k in range(17, 60)))


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

    def count(self, letter: str) -> int:
        """Number of elements of a kind."""
        return sum(part[0] == letter for part in self.parts)


MANTISSA, EXPONENT = st.integers(1, 99), st.integers(-33, 33)
# Most resistances are k · 2^j, 1e-9 … 1e9 Ω and more: exact in binary, so that the oracle's fractions stay short.
OHMS = st.one_of(
    st.builds(lambda m, e: m * 2.0**e, MANTISSA, EXPONENT),
    st.builds(lambda m, e: m * 2.0**e, MANTISSA, st.integers(-3, 3)),
    st.sampled_from([1.0, 1.0, 2.0, 1e-9, 1e9, 4.7e3, 0.1, 1e6]),
)
# Millivolts to kilovolts and microamperes to kiloamperes: no sum of them is closer to nothing than 1e-12 of its terms,
# where circuitsim calls it rounding and the exact oracle a contradiction.
VOLTS = st.one_of(
    st.integers(-5, 5).map(float), st.builds(lambda m, e: m * 2.0**e, st.integers(-9, 9), st.integers(-10, 10))
)
AMPERES = st.one_of(
    st.integers(-5, 5).map(float), st.builds(lambda m, e: m * 2.0**e, st.integers(-9, 9), st.integers(-20, 10))
)
# N is a resistor with a current source across it, so that its current is never unbalanced; 0 is a resistor of zero ohm.
ANY_LETTER = st.sampled_from("RRRRNNNDDDDDVVIILC0")
TAME_LETTER = st.sampled_from("RRRNNNNNDDDDDDDVVLC0")


@st.composite
def sketches(draw: st.DrawFn, max_nodes: int = 12, max_diodes: int = 10, linear: bool = False) -> Sketch:
    """A circuit of 1 … ``max_nodes`` nodes besides ground, which may or may not be used.

    Two of three are *tame*: a hidden potential per node gives the sources values that agree with each other and turns
    most diodes the way it allows, so that most of these circuits have a steady state. The others are anything.
    """
    n = draw(st.integers(1, max_nodes)) + 1
    node = st.integers(0, n - 1)
    # A hidden potential of every node, for two circuits of three.
    hidden = draw(st.lists(st.integers(-6, 6), min_size=n, max_size=n)) if draw(st.integers(0, 2)) else None
    letter = ANY_LETTER if hidden is None else TAME_LETTER
    fewest = draw(st.sampled_from([1, n, 2 * n]))
    picks = draw(st.lists(st.tuples(letter, node, node), min_size=fewest, max_size=2 * n + 6))
    parts: Parts = []
    diodes = 0
    for kind, a, b in picks:
        if kind == "D":
            diodes += 1
            if linear or diodes > max_diodes:
                continue
            if hidden is not None and hidden[a] > hidden[b] and draw(st.integers(0, 4)):
                a, b = b, a
            parts.append(("D", a, b, 0.0))
        elif kind == "V":
            parts.append(("V", a, b, draw(VOLTS) if hidden is None else float(hidden[a] - hidden[b])))
        elif kind in "LC":
            parts.append((kind, a, b, 1e-3))
        elif kind in "R0":
            parts.append(("R", a, b, draw(OHMS) if kind == "R" else 0.0))
        else:
            if kind == "N":
                parts.append(("R", a, b, draw(OHMS)))
            parts.append(("I", a, b, draw(AMPERES)))
    return sketch_of(parts or [("R", 0, n - 1, 1.0)])


@st.composite
def bristling(draw: st.DrawFn, max_nodes: int, max_diodes: int) -> Sketch:
    """Every node pulled somewhere through a resistor, and diodes between any of them: these conduct in groups.

    All of them have a steady state: every island is tied to ground, and nothing holds a voltage.
    """
    n = draw(st.integers(2, max_nodes)) + 1
    parts: Parts = []
    for k in range(1, n):
        parts += [("R", k, 0, draw(OHMS)), ("I", 0, k, draw(AMPERES))]
    for a, b in draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=n)):
        parts.append(("R", a, b, draw(OHMS)))
    pairs = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda pair: pair[0] != pair[1])
    parts += [("D", a, b, 0.0) for a, b in draw(st.lists(pairs, min_size=n // 2, max_size=max_diodes))]
    return sketch_of(parts)


def sketch_of(parts: Parts) -> Sketch:
    """The circuit of these parts, with nodes renumbered by appearance."""
    number = {0: 0}
    for _, a, b, _ in parts:
        number.setdefault(a, len(number))
        number.setdefault(b, len(number))
    return Sketch(len(number), [(letter, number[a], number[b], value) for letter, a, b, value in parts])


def examples(ci: int) -> int:
    """Number of examples of a test: ``ci`` by default, twenty times as many with HYPOTHESIS_PROFILE=long."""
    return ci * 20 if os.environ.get("HYPOTHESIS_PROFILE") == "long" else ci
