"""Bidirectional amplifiers (Scellier 2024, App. D): their gain sections, and the circuit without them.

An amplifier of gain a imposes v_R = a v_L and i_R = a i_L. Cut the circuit at its amplifiers and at ground, and give
each section a gain c with c_R = a c_L: in the coordinates v/c and i/c every amplifier is a wire, conductances and
diodes are unchanged, and sources are divided by c. The circuit then has the energy function of one without amplifiers,
provided that the gains agree around every loop and no element joins sections of different gain.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from circuitsim.circuit.circuit import Circuit
from circuitsim.circuit.elements import AMPLIFIER, CAPACITOR, CURRENT, RESISTOR, VOLTAGE
from circuitsim.circuit.table import GROUND
from circuitsim.errors import AmplifierError, some

if TYPE_CHECKING:
    import numpy as np

ROUNDING = 1e-12
"""Rounding error allowed in a product of gains around a loop."""

RANGE = "the product of the amplifiers' gains exceeds the range of a double"


class Image(NamedTuple):
    """A circuit without its amplifiers: v = ``node`` v_image, i = ``element`` i_image.

    Attributes
    ----------
    circuit : Circuit
        The same elements and nodes; amplifiers are resistors of zero ohm, sources are divided by their section's gain.
    node : (n_nodes,) float array
        Gain c of each node's section; ground's is 1.
    element : (m,) float array
        Gain c of each element's section; an amplifier's is that of its left terminal.
    """

    circuit: Circuit
    node: np.ndarray
    element: np.ndarray


def section_gains(circuit: Circuit) -> list[float]:
    """Gain c of each node's section; 1 at the first node of each component without ground.

    Raises
    ------
    AmplifierError
        Gains around a loop whose product is not one, or an element that joins sections of different gain.
    """
    kind, first, second, value = circuit.columns()
    parent = list(range(len(circuit.node_names)))
    ratio = [1.0] * len(parent)  # c(node) / c(parent)

    def root(node: int) -> int:
        path = []
        while parent[node] != node:
            path.append(node)
            node = parent[node]
        total = 1.0
        for k in reversed(path):
            total *= ratio[k]
            parent[k], ratio[k] = node, total
        return node

    for k, code in enumerate(kind):
        a, b = first[k], second[k]
        if code == CAPACITOR or a == GROUND or b == GROUND:
            continue
        gain = value[k] if code == AMPLIFIER else 1.0
        root_a, root_b = root(a), root(b)
        # c(b) = gain c(a) must hold; this is c(root_b) / c(root_a).
        step = gain * (ratio[a] if a != root_a else 1.0) / (ratio[b] if b != root_b else 1.0)
        if root_a == root_b:
            if abs(step - 1.0) > ROUNDING:
                raise _contradiction(circuit, k, step)
        elif not (0.0 < step < math.inf and 0.0 < 1.0 / step < math.inf):
            raise AmplifierError(f"{circuit.names[k]}: {RANGE}", k, [circuit.names[k]])
        elif root_a < root_b:
            parent[root_b], ratio[root_b] = root_a, step
        else:
            parent[root_a], ratio[root_a] = root_b, 1.0 / step
    return [ratio[node] if root(node) != node else 1.0 for node in range(len(parent))]


def _contradiction(circuit: Circuit, k: int, product: float) -> AmplifierError:
    """The error of element ``k``, which closes a loop whose gains multiply to ``product``."""
    kind, first, second, _ = circuit.columns()
    path = _path(circuit, k)
    name, loop = circuit.names[k], [circuit.names[e] for e in (k, *path)]
    listed = some(loop)
    if kind[k] == AMPLIFIER:
        message = f"{name} closes the loop {listed}, whose gains multiply to {product:g} instead of one"
    else:
        a, b = (circuit.node_names[end[k]] for end in (first, second))
        message = (
            f"{name} joins the nodes {a} and {b}, whose sections differ in gain by a factor of {1.0 / product:g} "
            f"(loop {listed}): an element between them has no energy function"
        )
    return AmplifierError(message, k, loop)


def _path(circuit: Circuit, k: int) -> list[int]:
    """A shortest path from the second terminal of element ``k`` back to its first, over the elements before it."""
    import networkx

    kind, first, second, _ = circuit.columns()
    graph = networkx.Graph()
    graph.add_nodes_from((first[k], second[k]))
    for e in reversed(range(k)):
        if kind[e] != CAPACITOR and GROUND not in (first[e], second[e]):
            graph.add_edge(first[e], second[e], element=e)
    nodes = networkx.shortest_path(graph, second[k], first[k])
    return [graph.edges[ends]["element"] for ends in pairwise(nodes)]


def without_amplifiers(circuit: Circuit) -> Image:
    """The circuit in the coordinates v/c, i/c, where every amplifier is a wire.

    Raises
    ------
    AmplifierError
        As `section_gains`.
    """
    import numpy as np

    node = np.array(section_gains(circuit))
    kind, first, second, value, _ = circuit.arrays()
    wire = kind == AMPLIFIER
    element = node[np.where(first != GROUND, first, second)]
    sources = (kind == VOLTAGE) | (kind == CURRENT)
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        element = np.where(wire & (first == GROUND), element / np.where(wire, value, 1.0), element)
        scaled = np.where(sources, value / element, value)
        held = (element > 0.0) & np.isfinite(element)
        held &= ~sources | (np.isfinite(scaled) & ((scaled != 0.0) == (value != 0.0)))
    if not held.all():
        k = int(np.argmin(held))
        raise AmplifierError(f"{circuit.names[k]}: {RANGE}", k, [circuit.names[k]])
    columns = np.where(wire, RESISTOR, kind).astype(np.int8), first, second, np.where(wire, 0.0, scaled)
    nodes = list(circuit.node_names)
    image = Circuit.from_arrays(*columns, len(nodes), circuit.title, circuit.names, nodes)
    return Image(image, node, element)
