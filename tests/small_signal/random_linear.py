"""Random linear circuits with capacitors and inductors, and an independent solution of their complex equations."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from circuitsim import Circuit
from circuitsim.netlist import loads

Couplings = Mapping[tuple[str, str], float]
UNCOUPLED: Couplings = MappingProxyType({})


class Element(NamedTuple):
    """Letter, name, two nodes, value; the controlling nodes of E and G."""

    letter: str
    name: str
    a: int
    b: int
    value: float
    control: tuple[int, int] = (0, 0)


def random_elements(rng: np.random.Generator, nodes: int, controlled: bool) -> list[Element]:
    """A spanning tree of resistors to ground, then all kinds between random nodes."""
    found = [Element("V", "V1", 1, 0, 0.0), Element("I", "I1", 0, nodes, 0.0)]
    found += [Element("R", f"R{k}", k, int(rng.integers(0, k)), 10 ** rng.uniform(0, 4)) for k in range(1, nodes + 1)]
    letters = "RRCCL" + ("EG" if controlled else "")
    for k in range(2 * nodes):
        letter = letters[rng.integers(len(letters))]
        a, b = (int(x) for x in rng.choice(nodes + 1, 2, replace=False))
        exponents = {"R": (0, 4), "C": (-9, -6), "L": (-6, -3), "E": (-1, 1), "G": (-5, -3)}[letter]
        value = 10 ** rng.uniform(*exponents)
        if letter == "E":  # a node of its own behind a resistor, so that sources never form loops
            found.append(Element("R", f"Re{k}", a, nodes + 100 + k, 10 ** rng.uniform(1, 3)))
            a = nodes + 100 + k
        control = tuple(int(x) for x in rng.choice(nodes + 1, 2, replace=False))
        found.append(Element(letter, f"{letter}{k}x", a, b, value, control if letter in "EG" else (0, 0)))
    return found


def random_couplings(rng: np.random.Generator, elements: list[Element], ideal: bool) -> dict[tuple[str, str], float]:
    """Factors of pairs of inductors, from random shares of flux; ``ideal``: all flux is common."""
    coils = [e.name for e in elements if e.letter == "L"]
    flux = rng.normal(size=(len(coils), 1 if ideal else 1 + len(coils)))
    flux /= np.linalg.norm(flux, axis=1)[:, None]
    return {(a, b): float(flux[i] @ flux[j]) for i, a in enumerate(coils) for j, b in enumerate(coils[:i])}


def deck(elements: list[Element]) -> str:
    """As a netlist."""
    lines = ["random"]
    for e in elements:
        control = f" n{e.control[0]} n{e.control[1]}" if e.letter in "EG" else ""
        lines.append(f"{e.name} n{e.a} n{e.b}{control} {e.value:.17g}".replace(" n0", " 0"))
    return "\n".join([*lines, ".end"])


def circuit(elements: list[Element]) -> Circuit:
    """As read by this package."""
    return loads(deck(elements)).all_controlled()[0]


def stamps(
    elements: list[Element], s: complex, volts: complex, amperes: complex, couplings: Couplings = UNCOUPLED
) -> tuple[np.ndarray, np.ndarray]:
    """Textbook equations at s, every branch with a current of its own, rows scaled: potentials come first."""
    names = sorted({n for e in elements for n in (e.a, e.b)} - {0})
    place = {n: k for k, n in enumerate(names)}
    n, m = len(names), len(elements)
    matrix, right = np.zeros((n + m, n + m), dtype=complex), np.zeros(n + m, dtype=complex)
    for j, e in enumerate(elements):
        row = n + j
        for node, sign in ((e.a, 1.0), (e.b, -1.0)):
            if node:
                matrix[place[node], row] += sign

        def drop(row: int, nodes: tuple[int, int], factor: complex) -> None:
            for node, sign in zip(nodes, (1.0, -1.0), strict=True):
                if node:
                    matrix[row, place[node]] += sign * factor

        if e.letter == "V":
            drop(row, (e.a, e.b), 1.0)
            right[row] = volts
        elif e.letter == "I":
            matrix[row, row] = 1.0
            right[row] = amperes
        elif e.letter == "R":
            drop(row, (e.a, e.b), 1.0)
            matrix[row, row] = -e.value
        elif e.letter == "L":
            drop(row, (e.a, e.b), 1.0)
            matrix[row, row] = -s * e.value
        elif e.letter == "C":
            drop(row, (e.a, e.b), s * e.value)
            matrix[row, row] = -1.0
        elif e.letter == "E":
            drop(row, (e.a, e.b), 1.0)
            drop(row, e.control, -e.value)
        else:
            matrix[row, row] = 1.0
            drop(row, e.control, -e.value)
    row_of = {e.name: n + j for j, e in enumerate(elements)}
    size = {e.name: e.value for e in elements}
    for (one, other), factor in couplings.items():
        mutual = factor * (size[one] * size[other]) ** 0.5
        matrix[row_of[one], row_of[other]] -= s * mutual
        matrix[row_of[other], row_of[one]] -= s * mutual
    scale = 1.0 / np.abs(matrix).max(axis=1)
    return matrix * scale[:, None], right * scale


def dense(
    elements: list[Element], s: complex, volts: complex, amperes: complex, couplings: Couplings = UNCOUPLED
) -> dict[str, complex]:
    """Node potentials at s."""
    x = np.linalg.solve(*stamps(elements, s, volts, amperes, couplings))
    return {f"n{node}": x[k] for k, node in enumerate(sorted({n for e in elements for n in (e.a, e.b)} - {0}))}
