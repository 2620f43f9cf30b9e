"""Waveforms over time: random circuits of R, C, L, ideal diodes and sources, and a buck converter for 1,000 periods.

    python benchmarks/waveforms.py [--count 1000] [--out benchmarks/results/waveforms.txt]

The random circuits are those of `tests/transient/random_waveforms.py`; each run is certified or an error, which is
counted. Processor time, kernels compiled before.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

from circuitsim import Circuit
from circuitsim.errors import CircuitError
from circuitsim.time_domain import Pulse, TransientResult, transient
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
    lines = [timed_buck(), *random_circuits(args.count)]
    lines.append(f"load {os.getloadavg()[0]:.1f}; command: python benchmarks/waveforms.py --count {args.count}")
    print("\n".join(lines))
    if args.out:
        args.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
