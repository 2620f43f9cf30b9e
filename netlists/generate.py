"""Writes the larger decks of this folder. They are committed; a test holds them equal to what this prints.

Usage: ``python netlists/generate.py`` rewrites ``mesh-10x10.cir``, ``crossbar-1r.cir``, ``crossbar-1d1r.cir``,
``deep-resistive-network.cir`` and the larger circuits that learn (``learn-….cir``) beside this file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def mesh(n: int = 10) -> str:
    """A square mesh of 1 Ω resistors, 1 A through two nodes a knight's move apart near its middle."""
    lines = [
        f"Resistor mesh {n} x {n}, a knight's move",
        "* On an endless mesh of 1 Ω resistors the resistance of a knight's move is 4/pi - 1/2 = 0.773 Ω; the edges of",
        "* this small one make it a little more. Node x4y5 is held at 0 V, and 1 A goes in at x5y3.",
        "I1 0 x5y3 1",
        "V0 x4y5 0 0",
    ]
    for x in range(n):
        for y in range(n):
            if x + 1 < n:
                lines.append(f"Rh{x}{y} x{x}y{y} x{x + 1}y{y} 1")
            if y + 1 < n:
                lines.append(f"Rv{x}{y} x{x}y{y} x{x}y{y + 1} 1")
    return "\n".join([*lines, ".op", ".end", ""])


def low(row: int, column: int) -> bool:
    """Whether the memristor of a crossbar cell is in its low-resistance state."""
    return (3 * row + 5 * column + row * column) % 7 < 3


def crossbar(n: int = 8, selector: bool = False) -> str:
    """A memristor crossbar with wire resistance: rows driven from the left, columns sensed at the bottom."""
    if selector:
        lines = [
            f"Memristor crossbar {n} x {n} with diode selectors and wire resistance (1D1R)",
            "* Row 3 is raised to 1 V and column 5 lowered to 0 V; every other cell sees its diode the wrong way",
            "* round, so what column 5 delivers is the one cell's current alone, wires included.",
        ]
    else:
        lines = [
            f"Memristor crossbar {n} x {n} with wire resistance (1R)",
            "* Rows carry a vector of voltages, columns end in virtual grounds: their currents are a matrix-vector",
            "* product, a few percent short of the ideal because every wire segment has 2.5 Ω.",
        ]
    lines.append(".param wire=2.5")
    for row in range(n):
        volts = (1.0 if row == 3 else 0.0) if selector else (row + 1) / 10
        lines += [f"Vrow{row} row{row} 0 {volts:g}", f"Rw{row}_0 row{row} r{row}_0 {{wire}}"]
        lines += [f"Rw{row}_{c} r{row}_{c - 1} r{row}_{c} {{wire}}" for c in range(1, n)]
    for column in range(n):
        lines += [f"Rb{r}_{column} c{r}_{column} c{r + 1}_{column} {{wire}}" for r in range(n - 1)]
        volts = (0.0 if column == 5 else 1.0) if selector else 0.0
        lines += [
            f"Rb{n - 1}_{column} c{n - 1}_{column} col{column} {{wire}}",
            f"Vcol{column} col{column} 0 {volts:g}",
        ]
    for row in range(n):
        for c in range(n):
            ohms = "1k" if low(row, c) else "100k"
            if selector:
                lines.append(f"Ds{row}_{c} r{row}_{c} d{row}_{c} ideal")
            lines.append(f"Rm{row}_{c} {'d' if selector else 'r'}{row}_{c} c{row}_{c} {ohms}")
    if selector:
        lines.append(".model ideal D")
    return "\n".join([*lines, ".op", ".end", ""])


LAYERS = (6, 4, 4, 2)
INPUT = (0.3, -0.7, 0.5)
GAIN = 8.0


def conductance(layer: int, j: int, k: int) -> float:
    """Conductance between unit j of ``layer`` and unit k of the next, in siemens; some are missing (0)."""
    return ((7 * j + 11 * k + 5 * layer + 3 * j * k) % 10) / 10


def bias(layer: int, k: int) -> float:
    """Current injected into unit k of ``layer``, in amperes."""
    return ((3 * k + layer) % 5 - 2) / 10


def network() -> str:
    """A deep resistive network: doubled inputs, two hidden layers of diodes to ground, a linear output layer."""
    lines = [
        "A deep resistive network, 6-4-4-2",
        "* Three inputs, each with its negative, amplified eight times; in each hidden layer diodes keep the first two",
        "* units above ground and the last two below: a neural network that relaxes instead of computing.",
    ]
    for j, x in enumerate(x for value in INPUT for x in (value, -value)):
        lines.append(f"V{j} u0_{j} 0 {GAIN * x:g}")
    for layer in range(1, len(LAYERS)):
        for k in range(LAYERS[layer]):
            unit = f"u{layer}_{k}"
            if layer < len(LAYERS) - 1:
                ends = f"0 {unit}" if k < LAYERS[layer] // 2 else f"{unit} 0"
                lines.append(f"D{layer}_{k} {ends} ideal")
            lines.append(f"I{layer}_{k} 0 {unit} {bias(layer, k):g}")
            for j in range(LAYERS[layer - 1]):
                g = conductance(layer - 1, j, k)
                if g:
                    lines.append(f"R{layer - 1}_{j}_{k} u{layer - 1}_{j} {unit} {{1/{g:g}}}")
    return "\n".join([*lines, ".model ideal D", ".op", ".end", ""])


def told(circuit: Any, roles: Any, story: list[str]) -> str:
    """The deck of a circuit with roles, its story under the title."""
    from circuitsim.netlist import dumps

    title, rest = dumps(circuit, roles).split("\n", 1)
    return "\n".join([title, *story, rest])


def rectifiers(name: str, features: int, hidden: int, classes: int) -> str:
    """A network of rectifiers that can learn to tell classes apart; an arbitrary sample is at its inputs."""
    import numpy as np

    from circuitsim.learning.scikit import rectifier_network

    circuit, roles = rectifier_network(features, hidden, classes, np.random.default_rng(0))
    circuit.title = f"{name} by a network of {hidden} rectifiers, before learning"
    sample = {f"Vp{j}": (7 * j + 3) % 10 / 10 for j in range(features)}
    sample |= {f"Vn{j}": -value for j, value in enumerate(list(sample.values()))}
    return told(
        circuit.with_values(sample),
        roles,
        [
            f"* {features} features and their negatives drive {hidden} hidden units, two nodes each with a diode "
            "between",
            f"* them: the second follows the first only upwards (or only downwards). The highest of {classes} "
            "outputs is",
            f"* the answer. Learns with: circuitsim train circuit netlists/learn-{name.lower()}.cir --data "
            f"{name.lower()} --gain 4 --split 0.25",
        ],
    )


def allostery(nodes: int = 64, neighbours: int = 4, seed: int = 1) -> str:
    """Resistors between random points and their nearest neighbours: a disordered sheet that learns distant voltages."""
    import numpy as np

    from circuitsim.circuit import Circuit
    from circuitsim.netlist.roles import make_roles

    rng = np.random.default_rng(seed)
    points = rng.uniform(0.0, 1.0, (nodes, 2))
    distance = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    nearest = np.argsort(distance, axis=1, kind="stable")[:, 1 : neighbours + 1]
    edges = sorted({(min(k, j), max(k, j)) for k in range(nodes) for j in nearest[k].tolist()})
    # The source acts on the left edge; the targets are pairs on the right.
    order = np.argsort(points[:, 0], kind="stable").tolist()
    circuit = Circuit(f"Allostery: a disordered sheet of {len(edges)} resistors, before learning")
    circuit.voltage_source("V1", f"n{order[0]}", f"n{order[1]}", 1.0)
    circuit.resistor("Rground", f"n{order[nodes // 2]}", "0", 1e3)
    for k, (a, b) in enumerate(edges):
        circuit.resistor(f"R{k}", f"n{a}", f"n{b}", 1e3)
    pairs = [(order[-1], order[-2]), (order[-3], order[-4]), (order[-5], order[-6])]
    outputs = " ".join(f"v(n{a},n{b})" for a, b in pairs)
    roles = make_roles(circuit, "V1", outputs, "R? R?? R??? min=50 max=100k")
    return told(
        circuit,
        roles,
        [
            "* A volt between two neighbours on the left edge of a random sheet of equal resistors; on the right edge",
            "* three pairs of nodes hardly feel it. Learning gives them the voltages of learn-allostery.csv:",
            "* circuitsim train circuit netlists/learn-allostery.cir --data netlists/learn-allostery.csv --epochs 2000",
        ],
    )


DECKS = {
    "mesh-10x10.cir": mesh,
    "crossbar-1r.cir": crossbar,
    "crossbar-1d1r.cir": lambda: crossbar(selector=True),
    "deep-resistive-network.cir": network,
    "learn-iris.cir": lambda: rectifiers("Iris", 4, 10, 3),
    "learn-digits.cir": lambda: rectifiers("Digits", 64, 20, 10),
    "learn-allostery.cir": allostery,
}


if __name__ == "__main__":
    for name, text in DECKS.items():
        (HERE / name).write_text(text(), encoding="utf-8")
        print(name)
