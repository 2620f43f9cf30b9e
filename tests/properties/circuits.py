"""Random circuits for hypothesis: any topology, nine decades of resistance either way, sources and diodes anywhere."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

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


# Most resistances are k · 2^j, 1e-9 … 1e9 Ω and more: exact in binary, so that the oracle's fractions stay short.
WIDE, NEAR = [[m * 2.0**e for m in range(1, 100) for e in range(-top, top + 1)] for top in (33, 3)]
OHMS = [1.0, 1.0, 2.0, 1e-9, 1e9, 4.7e3, 0.1, 1e6] * 800 + NEAR * 9 + WIDE  # a third of each
# Millivolts to kilovolts and microamperes to kiloamperes: no sum of them is closer to nothing than 1e-12 of its terms,
# where circuitsim calls it rounding and the exact oracle a contradiction.
WHOLE = [float(v) for v in (0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5)]
FINE, FINER = [[m * 2.0**e for m in range(-9, 10) for e in range(low, 11)] for low in (-10, -20)]
VOLTS, AMPERES = (WHOLE * len(values) + values * len(WHOLE) for values in (FINE, FINER))  # half of each
# N is a resistor with a current source across it, so that its current is never unbalanced; 0 is a resistor of zero ohm.
ANY_LETTER = "RRRRNNNDDDDDVVIILC0"
TAME_LETTER = "RRNNNNDDDDDDDDVVLC0"


class Picks:
    """Choices for one element out of eight random bytes, far more than they need."""

    def __init__(self, drawn: bytes) -> None:
        self.rest = int.from_bytes(drawn, "little")

    def below(self, count: int) -> int:
        """A whole number, 0 … ``count`` − 1."""
        self.rest, found = divmod(self.rest, count)
        return found

    def low(self, count: int) -> int:
        """The same, small ones more often: elements side by side and in loops."""
        return min(self.below(count), self.below(count))

    def of(self, values: Sequence[Any]) -> Any:
        """One of the values."""
        return values[self.below(len(values))]


def picks(draw: st.DrawFn, fewest: int, most: int) -> list[Picks]:
    """For ``fewest`` … ``most`` elements, in one draw: a draw takes hypothesis as long as many a circuit circuitsim."""
    count = draw(st.integers(fewest, most)) if fewest < most else fewest
    drawn = draw(st.binary(min_size=8 * count, max_size=8 * count))
    return [Picks(drawn[8 * k : 8 * k + 8]) for k in range(count)]


@st.composite
def sketches(draw: st.DrawFn, max_nodes: int = 12, max_diodes: int = 10, linear: bool = False) -> Sketch:
    """A circuit of 1 … ``max_nodes`` nodes besides ground, which may or may not be used.

    Two of three are *tame*: a hidden potential per node gives the sources values that agree with each other and turns
    most diodes the way it allows, so that most of these circuits have a steady state. The others are anything.
    """
    n = draw(st.integers(1, max_nodes)) + 1
    # A hidden potential of every node, for two circuits of three.
    hidden = draw(st.lists(st.integers(-6, 6), min_size=n, max_size=n)) if draw(st.integers(0, 2)) else None
    letter = ANY_LETTER if hidden is None else TAME_LETTER
    fewest = draw(st.sampled_from([1, n, 2 * n, 2 * n]))
    parts: Parts = []
    diodes = 0
    for pick in picks(draw, fewest, 2 * n + 6):
        kind, a, b = pick.of(letter), pick.low(n), pick.low(n)
        if kind == "D":
            diodes += 1
            if linear or diodes > max_diodes:
                continue
            if hidden is not None and hidden[a] > hidden[b] and pick.below(9):
                a, b = b, a
            parts.append(("D", a, b, 0.0))
        elif kind == "V":
            parts.append(("V", a, b, pick.of(VOLTS) if hidden is None else float(hidden[a] - hidden[b])))
        elif kind in "LC":
            parts.append((kind, a, b, 1e-3))
        elif kind in "R0":
            parts.append(("R", a, b, pick.of(OHMS) if kind == "R" else 0.0))
        else:
            if kind == "N":
                parts.append(("R", a, b, pick.of(OHMS)))
            parts.append(("I", a, b, pick.of(AMPERES)))
    return sketch_of(parts or [("R", 0, n - 1, 1.0)])


@st.composite
def bristling(draw: st.DrawFn, max_nodes: int, max_diodes: int) -> Sketch:
    """Every node pulled somewhere through a resistor, and diodes between any of them: these conduct in groups.

    All of them have a steady state: every island is tied to ground, and nothing holds a voltage.
    """
    n = draw(st.integers(2, max_nodes)) + 1
    parts: Parts = []
    for k, pick in enumerate(picks(draw, n - 1, n - 1), start=1):
        parts += [("R", k, 0, pick.of(OHMS)), ("I", 0, k, pick.of(AMPERES))]
    for pick in picks(draw, 0, n):
        parts.append(("R", pick.below(n), pick.below(n), pick.of(OHMS)))
    for pick in picks(draw, n // 2, max_diodes):
        a, further = pick.below(n), pick.below(n - 1)
        parts.append(("D", a, (a + 1 + further) % n, 0.0))
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
