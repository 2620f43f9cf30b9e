"""The circuit as a layer beside cvxpylayers: construction, forward and backward pass, in one run, one thread.

    OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 python benchmarks/learning/layers.py > results/learning/layers.md

Meshes of random resistors (conductances within e^±1) with diodes across a share of their cells, four sources, eight
outputs. Inputs of both layers are the sources' voltages, parameters the conductances; both are differentiated with
respect to both. cvxpylayers has the same program: potentials in least squares over √g, sources and diodes as
constraints. Needs the packages torch and cvxpylayers.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import torch
from cvxpylayers.torch import CvxpyLayer

from circuitsim.analysis.tree_proof import tree_kernel
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import DIODE, RESISTOR, VOLTAGE
from circuitsim.engine.small.kernels import load
from circuitsim.torch import CircuitLayer

SOURCES, OUTPUTS = 4, 8
THIRD = 1.0 / 3.0
ACCURATE = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}


class Mesh(NamedTuple):
    """A mesh: its circuit, resistors and diodes as pairs of nodes, driven nodes, nodes that are read."""

    circuit: Circuit
    resistors: np.ndarray
    diodes: np.ndarray
    driven: np.ndarray
    read: np.ndarray
    conductances: np.ndarray


def mesh(side: int, share: float = THIRD, seed: int = 0) -> Mesh:
    """A square mesh with diodes across a share of its cells; the last node has a resistor to ground (node 0)."""
    rng = np.random.default_rng(seed)
    node = 1 + np.arange(side * side).reshape(side, side)
    down, right = (node[:-1], node[1:]), (node[:, :-1], node[:, 1:])
    edges = [np.stack([a.ravel(), b.ravel()], axis=1) for a, b in (down, right)]
    across = np.concatenate([*edges, [[node[-1, -1], 0]]])
    cells = np.stack([node[:-1, :-1].ravel(), node[1:, 1:].ravel()], axis=1)
    chosen = cells[rng.permutation(len(cells))[: int(share * len(cells))]]
    diodes = np.where(rng.random((len(chosen), 1)) < 0.5, chosen, chosen[:, ::-1])
    places = 1 + rng.permutation(side * side - 1)[: SOURCES + OUTPUTS]
    driven, read = places[:SOURCES], places[SOURCES:]
    g = np.exp(rng.uniform(-1.0, 1.0, len(across)))
    ends = np.concatenate([across, diodes, np.stack([driven, 0 * driven], axis=1)])
    kind = np.repeat([RESISTOR, DIODE, VOLTAGE], [len(across), len(diodes), SOURCES])
    value = np.concatenate([1.0 / g, np.zeros(len(diodes)), np.ones(SOURCES)])
    circuit = Circuit.from_arrays(kind, ends[:, 0], ends[:, 1], value, side * side + 1)
    return Mesh(circuit, across, diodes, driven, read, g)


def ours(made: Mesh) -> tuple[Callable[[torch.Tensor, torch.Tensor], torch.Tensor], torch.Tensor]:
    """The layer, and its conductances."""
    names, kinds = made.circuit.names, made.circuit.arrays().kind
    inputs = " ".join(names[k] for k in np.flatnonzero(kinds == VOLTAGE))
    outputs = " ".join(f"v({made.circuit.node_names[k]})" for k in made.read)
    layer = CircuitLayer(made.circuit, inputs, outputs, "R* min=1m max=1k", dtype=torch.float64)
    return lambda x, g: layer(x), layer.conductance


def theirs(made: Mesh) -> tuple[Callable[[torch.Tensor, torch.Tensor], torch.Tensor], torch.Tensor]:
    """The same by cvxpylayers."""
    n = made.circuit.arrays().n_nodes
    v, root, volts = cp.Variable(n), cp.Parameter(len(made.resistors), nonneg=True), cp.Parameter(SOURCES)
    first, second = made.resistors.T
    drop = v[first.tolist()] - v[second.tolist()]
    anode, cathode = made.diodes.T
    limits = [v[0] == 0, v[made.driven.tolist()] == volts, v[anode.tolist()] <= v[cathode.tolist()]]
    program = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(cp.multiply(root, drop))), limits)
    layer = CvxpyLayer(program, parameters=[root, volts], variables=[v])
    own = torch.tensor(made.conductances, requires_grad=True)

    def forward(x: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
        many = g.sqrt().expand(len(x), -1)
        found = layer(many, x, solver_args={"solve_method": "Clarabel", **ACCURATE})[0]
        return found[:, made.read.tolist()]

    return forward, own


class Times(NamedTuple):
    """Seconds, medians of the repetitions (``processor`` that of both passes, on all threads), and the last output and
    derivatives."""

    construct: float
    forward: float
    backward: float
    processor: float
    results: list[np.ndarray]


def measure(make: Callable[[Mesh], Any], made: Mesh, batch: int, repetitions: int) -> Times:
    """One layer on one batch size."""
    begin = time.perf_counter()
    function, g = make(made)
    construct = time.perf_counter() - begin
    x = torch.tensor(np.random.default_rng(1).normal(size=(batch, SOURCES)), requires_grad=True)
    cotangent = torch.tensor(np.random.default_rng(2).normal(size=(batch, OUTPUTS)))
    there, back, used = [], [], []
    for _ in range(repetitions + 1):  # the first loads kernels and caches
        begin, processor = time.perf_counter(), time.process_time()
        output = function(x, g)
        middle = time.perf_counter()
        gradients = torch.autograd.grad(output, (x, g), cotangent)
        there.append(middle - begin)
        back.append(time.perf_counter() - middle)
        used.append(time.process_time() - processor)
    results = [tensor.detach().numpy() for tensor in (output, *gradients)]
    return Times(construct, *(statistics.median(column[1:]) for column in (there, back, used)), results)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--sides", type=int, nargs="+", default=[5, 10, 20, 40, 60, 71], help="sides of the meshes")
    parser.add_argument("--largest", type=int, default=20, help="largest side for cvxpylayers (default: 20)")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 64], help="samples of a batch (default: 1 64)")
    parser.add_argument("--share", type=float, default=THIRD, help="share of the cells with diodes (default: 1/3)")
    parser.add_argument("--repetitions", type=int, default=5)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    load()
    tree_kernel.load()
    measure(ours, mesh(5), 1, 1)  # imports and kernels
    print("# Layers of PyTorch: the circuit beside cvxpylayers\n")
    print(f"Seconds; load {os.getloadavg()[0]:.1f}. Processor: time of both passes, on all threads.")
    print("Difference: of outputs and derivatives, relative to the largest.\n")
    print("| nodes | diodes | batch | layer | construct | forward | backward | processor | difference |")
    print("|---:|---:|---:|---|---:|---:|---:|---:|---:|")
    for side in chosen.sides:
        made = mesh(side, chosen.share)
        for batch in chosen.batch:
            rows = [("circuitsim", measure(ours, made, batch, chosen.repetitions))]
            if side <= chosen.largest:
                rows.append(("cvxpylayers", measure(theirs, made, batch, 1)))
            for name, times in rows:
                pairs = zip(times.results, rows[0][1].results, strict=True)
                off = max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in pairs)
                seconds = " | ".join(f"{value:.3g}" for value in times[:4])
                print(f"| {side * side} | {len(made.diodes)} | {batch} | {name} | {seconds} | {off:.0e} |", flush=True)


if __name__ == "__main__":
    main()
