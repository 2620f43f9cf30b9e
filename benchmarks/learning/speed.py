"""What a step of equilibrium propagation costs, in batched solves of the same circuit.

Usage: ``python benchmarks/learning/speed.py [repetitions]``. A random sheet with diodes between its free nodes, many of
which conduct; the whole step (factorise at the new conductances, free phase, two nudged phases, differences of
energies, Adam, projection) beside one batched solve from nothing, timed in turns in one process. Writes
``benchmarks/results/learning/speed.md``.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from common import machine, write

from circuitsim.blocks.circuit import CircuitBlock
from circuitsim.circuit import Circuit
from circuitsim.learning import EquilibriumPropagation, Learner, SquaredError
from circuitsim.learning.start import default_beta
from circuitsim.netlist.roles import make_roles
from circuitsim.training import Adam

SIZES = ((520, 16), (520, 64))


def sheet(nodes: int, seed: int = 0) -> CircuitBlock:
    """Random points, each tied to its neighbours by resistors or diodes; ten inputs, ten outputs."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(0.0, 1.0, (nodes, 2))
    distance = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    nearest = np.argsort(distance, axis=1, kind="stable")[:, 1:6]
    edges = sorted({(min(k, j), max(k, j)) for k in range(nodes) for j in nearest[k].tolist()})
    circuit = Circuit(f"sheet of {nodes} free nodes")
    for k in range(10):
        circuit.voltage_source(f"V{k}", f"s{k}", "0", 0.0)
        for j in range(8):
            circuit.resistor(f"Rs{k}_{j}", f"s{k}", f"n{int(rng.integers(nodes))}", float(np.exp(rng.uniform(-1, 1))))
    for k in range(nodes):
        circuit.resistor(f"Rl{k}", f"n{k}", "0", 30.0)
    for k, (a, b) in enumerate(edges):
        if rng.random() < 0.25:
            a, b = (a, b) if rng.random() < 0.5 else (b, a)
            circuit.diode(f"D{k}", f"n{a}", f"n{b}")
        else:
            circuit.resistor(f"R{k}", f"n{a}", f"n{b}", float(np.exp(rng.uniform(-1, 1))))
    outputs = " ".join(f"v(n{k})" for k in rng.choice(nodes, 10, replace=False).tolist())
    roles = make_roles(circuit, "V*", outputs, "R* min=1m max=1k")
    return CircuitBlock(circuit, roles)


def measure(nodes: int, batch: int, repetitions: int) -> str:
    """One row of the table."""
    block, rng = sheet(nodes), np.random.default_rng(1)
    learner = Learner(block, EquilibriumPropagation(default_beta(block, SquaredError())), SquaredError())
    x, y = rng.normal(size=(batch, 10)) * 3, rng.normal(size=(batch, 10))
    optimizer = Adam(1e-3)
    memory = optimizer.start(learner.parameters)

    def step() -> None:
        gradients, _ = learner.gradient((x, y), rng)
        assert gradients is not None
        optimizer.step(learner.parameters, gradients, memory, 1.0)
        learner.project()

    def solve() -> None:
        assert block.relax(x).certified.all()

    times: dict[str, list[float]] = {"step": [], "solve": []}
    for _ in range(2):
        step()
        solve()
    for _ in range(repetitions):
        for name, work in (("step", step), ("solve", solve)):
            begun = time.perf_counter()
            work()
            times[name].append(time.perf_counter() - begun)
    conducting = block.relax(x).closed
    one, all_ = (float(np.median(times[name])) * 1e3 for name in ("solve", "step"))
    ratios = np.array(times["step"]) / np.array(times["solve"])
    low, high = np.quantile(ratios, [0.25, 0.75])
    return (
        f"| {nodes} | {len(block.roles.trainable)} | {conducting.shape[1]} ({conducting.mean():.0%} conduct) "
        f"| {batch} | {one:.2f} | {all_:.2f} | **{np.median(ratios):.2f}** ({low:.2f} to {high:.2f}) |"
    )


def main(repetitions: int = 15) -> None:
    """Run and write."""
    lines = [
        "# A step of equilibrium propagation in batched solves",
        "",
        "Centred, constant currents; every phase certified. Medians over the repetitions, quartiles of the ratio.",
        "",
        "| free nodes | trainable resistors | diodes between free nodes | batch | one batched solve, ms "
        "| EP step, ms | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [measure(nodes, batch, repetitions) for nodes, batch in SIZES]
    write("speed.md", [*lines, "", f"{repetitions} repetitions. {machine()}"])


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
