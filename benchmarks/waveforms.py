"""Waveforms over time: random circuits of R, C, L, ideal diodes and sources, a buck converter for 1,000 periods, and a
mesh of 10,000 capacitors with 100 diodes.

    python benchmarks/waveforms.py [--count 1000] [--out benchmarks/results/waveforms.txt]

The random circuits are those of `tests/transient/random_waveforms.py`; each run is certified or an error, which is
counted. Processor time, kernels compiled before.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import time
from pathlib import Path

import numpy as np

from circuitsim import Circuit
from circuitsim.errors import CircuitError
from circuitsim.time_domain import Pulse, Sine, TransientResult, transient
from circuitsim.time_domain.kernels import time_kernel

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "transient"))

from random_waveforms import draw  # noqa: E402

STOP = 2.0
PERIODS = 1000


def buck() -> TransientResult:
    """12 V at 40 % of 100 kHz, 100 µH, 10 µF, 5 Ω; edges of 1 ns."""
    circuit = Circuit("buck converter")
    circuit.voltage_source("V1", "s", "0", 0.0)
    circuit.diode("D1", "s", "a")
    circuit.diode("D2", "0", "a")
    circuit.add("L", "L1", "a", "out", 1e-4)
    circuit.add("C", "C1", "out", "0", 1e-5)
    circuit.resistor("R1", "out", "0", 5.0)
    return transient(circuit, PERIODS * 1e-5, {"V1": Pulse(-1.0, 12.0, 0.0, 1e-9, 1e-9, 4e-6, 1e-5)}, {})


def timed_buck(runs: int = 7) -> str:
    """A line of the table."""
    buck()
    seconds = []
    for _ in range(runs):
        began = time.process_time()
        found = buck()
        seconds.append(time.process_time() - began)
    worst = max(event.error for event in found.events)
    return (
        f"buck converter, {PERIODS:,} periods: {1e3 * statistics.median(seconds):.0f} ms, {len(found.events):,} "
        f"events, largest error of their times {worst:.1e} s, energy balance {found.certificate.energy:.1e}"
    )


def mesh(side: int = 100, diodes: int = 100, sources: int = 16) -> tuple[Circuit, dict[str, Pulse | Sine]]:
    """1 kΩ between neighbours, 1 nF at each node; sources with 100 Ω and clamping diodes with 100 Ω at random nodes."""
    spots = np.random.default_rng(1).permutation(side * side)[: sources + diodes].tolist()
    circuit, waves = Circuit("RC mesh with diodes"), dict[str, Pulse | Sine]()
    for k in range(side * side):
        circuit.add("C", f"C{k}", f"n{k}", "0", 1e-9)
        for other, there in ((k + 1, (k + 1) % side != 0), (k + side, k + side < side * side)):
            if there:
                circuit.resistor(f"R{k}_{other}", f"n{k}", f"n{other}", 1e3)
    for j, k in enumerate(spots[:sources]):
        circuit.voltage_source(f"V{j}", f"s{j}", "0", 0.0)
        circuit.resistor(f"RS{j}", f"s{j}", f"n{k}", 100.0)
        pulse = Pulse(0.0, 5.0, 1e-5 * j, 1e-5, 1e-5, 2e-4, 5e-4)
        waves[f"V{j}"] = Sine(0.0, 5.0, 1e3 * (1 + j % 4)) if j % 2 else pulse
    for j, k in enumerate(spots[sources:]):
        circuit.resistor(f"RD{j}", f"n{k}", f"d{j}", 100.0)
        circuit.diode(f"D{j}", *((f"d{j}", "0") if j % 2 else ("0", f"d{j}")))
    return circuit, waves


def timed_mesh(stop: float = 2.5e-4) -> str:
    """A line of the table."""
    circuit, waves = mesh()
    transient(circuit, 0.02 * stop, waves, points=3, method="implicit")
    began = time.process_time()
    found = transient(circuit, stop, waves, points=11, method="implicit")
    took = time.process_time() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return (
        f"RC mesh, 10,000 nodes, 100 diodes, {found.steps:,} steps of the implicit method, {len(found.events)} events: "
        f"{took:.1f} s, {1e3 * took / found.steps:.1f} ms a step, energy balance {found.certificate.energy:.1e}, "
        f"{memory:.0f} MB"
    )


def random_circuits(count: int) -> list[str]:
    """Lines of the table."""
    events, failed, worst = 0, [], 0.0
    began = time.process_time()
    for seed in range(count):
        try:
            found = transient(*_stopped(seed), points=101)
        except CircuitError as error:
            failed.append(f"    {seed}: {error}")
            continue
        events += len(found.events)
        worst = max(worst, *found.certificate[:-1])
    took = time.process_time() - began
    return [
        f"random circuits, {count:,}: {events:,} events, {len(failed)} errors, worst residual {worst:.1e}, "
        f"{1e3 * took / count:.1f} ms a circuit",
        *failed,
    ]


def _stopped(seed: int) -> tuple:
    circuit, waves, initial = draw(seed)
    return circuit, STOP, waves, initial


def main() -> None:
    """Print the table and write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    time_kernel.load()
    lines = [timed_buck(), timed_mesh(), *random_circuits(args.count)]
    lines.append(f"load {os.getloadavg()[0]:.1f}; command: python benchmarks/waveforms.py --count {args.count}")
    print("\n".join(lines))
    if args.out:
        args.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
