"""Linear circuits of R, V and I in exact rational arithmetic, by the modified nodal equations."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from circuitsim import Circuit


def random_circuit(rng: np.random.Generator, decades: float) -> Circuit:
    """Resistors on a random tree and beside it, voltage sources and shorts without loops, current sources."""
    n, circuit = int(rng.integers(3, 9)), Circuit()
    place = [str(k) for k in rng.permutation(n)]
    for k in range(int(rng.integers(0, n - 1))):
        ends = place[k + 1], place[int(rng.integers(0, k + 1))]
        first, second = ends if rng.random() < 0.5 else ends[::-1]
        if rng.random() < 0.2:
            circuit.resistor(f"Rshort{k}", first, second, 0.0)
        else:
            circuit.voltage_source(f"V{k}", first, second, rng.normal())
    for k in range(1, n):
        circuit.resistor(f"R{k}", place[k], place[int(rng.integers(0, k))], 10.0 ** rng.uniform(-decades, decades))
    for k in range(n):
        a, b = rng.integers(0, n, 2)
        circuit.resistor(f"Rx{k}", str(a), str(b), 10.0 ** rng.uniform(-decades, decades))
    for k in range(3):
        a, b = rng.integers(0, n, 2)
        circuit.current_source(f"I{k}", str(a), str(b), rng.normal())
    return circuit


def exact_matrix(circuit: Circuit, inputs: list[str], outputs: list[str | tuple[str, str]]) -> list[list[Fraction]]:
    """Rows of (matrix, offset): nodes or pairs of nodes, and currents ``i(V)``."""
    kind = [circuit[name].kind for name in circuit.names]
    fixed = [k for k, name in enumerate(circuit.names) if kind[k] == "voltage source" or circuit[name].value == 0.0]
    fixed = [k for k in fixed if kind[k] != "current source"]
    n = len(circuit.node_names)
    size = n + len(fixed)
    system = [[Fraction(0)] * size for _ in range(size)]
    right = [[Fraction(0)] * (len(inputs) + 1) for _ in range(size)]
    column = {circuit.element_index(name): j for j, name in enumerate(inputs)}
    for k, name in enumerate(circuit.names):
        element = circuit[name]
        a, b = circuit.node_index(element.first), circuit.node_index(element.second)
        weight = {column[k]: Fraction(1)} if k in column else {len(inputs): Fraction(element.value or 0)}
        if k in fixed:
            row = n + fixed.index(k)
            for node, sign in ((a, 1), (b, -1)):
                system[node][row] += sign
                system[row][node] += sign
            for j, w in weight.items():
                right[row][j] += w if kind[k] == "voltage source" else 0
        elif kind[k] == "current source":
            for j, w in weight.items():
                right[a][j] -= w
                right[b][j] += w
        else:
            g = 1 / Fraction(element.value)
            for p, q in ((a, b), (b, a)):
                system[p][p] += g
                system[p][q] -= g
    system[0] = [Fraction(int(k == 0)) for k in range(size)]
    right[0] = [Fraction(0)] * (len(inputs) + 1)
    solution = _eliminated(system, right)
    rows = []
    for output in outputs:
        if isinstance(output, tuple):
            p, q = (solution[circuit.node_index(node)] for node in output)
            rows.append([x - y for x, y in zip(p, q)])
        elif output.startswith("i("):
            rows.append(solution[n + fixed.index(circuit.element_index(output[2:-1]))])
        else:
            rows.append(solution[circuit.node_index(output)])
    return rows


def _eliminated(system: list[list[Fraction]], right: list[list[Fraction]]) -> list[list[Fraction]]:
    size = len(system)
    for k in range(size):
        pivot = next(r for r in range(k, size) if system[r][k])
        system[k], system[pivot], right[k], right[pivot] = system[pivot], system[k], right[pivot], right[k]
        for r in range(size):
            if r != k and system[r][k]:
                factor = system[r][k] / system[k][k]
                system[r] = [x - factor * y for x, y in zip(system[r], system[k])]
                right[r] = [x - factor * y for x, y in zip(right[r], right[k])]
    return [[x / system[k][k] for x in right[k]] for k in range(size)]
