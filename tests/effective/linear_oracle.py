"""Linear circuits of R, V and I in exact rational arithmetic, one source at a time."""

from fractions import Fraction

import numpy as np
from exact import Oracle, edges_of

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
    _, first, second, value, n = circuit.arrays()
    columns = []
    for on in [*({name} for name in inputs), set(circuit.names) - set(inputs)]:
        sources = [x if name[0] == "R" else x * (name in on) for name, x in zip(circuit.names, value.tolist())]
        if len(columns) < len(inputs):
            sources = [1.0 if name in on else x for name, x in zip(circuit.names, sources)]
        letters = [name[0] for name in circuit.names]
        exact = Oracle(n, edges_of(zip(letters, first.tolist(), second.tolist(), sources))).solve()
        assert exact is not None
        volts = dict(zip(circuit.node_names, exact.voltage))
        column = []
        for output in outputs:
            if isinstance(output, tuple):
                column.append(volts[output[0]] - volts[output[1]])
            elif output.startswith("i("):
                column.append(exact.current[circuit.element_index(output[2:-1])])
            else:
                column.append(volts[output])
        columns.append(column)
    return [list(row) for row in zip(*columns)]
