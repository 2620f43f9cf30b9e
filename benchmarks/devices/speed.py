"""Meshes of junction diodes against ngspice, and batches of a circuit of 20 diodes: processor times in one run.

    python benchmarks/devices/speed.py --diodes 100 1000 --samples 20000

ngspice repeats ``.op`` of the same deck in one process (its gmin 1e-30 S, reltol 1e-10), so that start-up and reading
drop out (from 5,000 diodes on it solves once); each repetition starts anew, as each solution here does. Here the source
has another value each time, and each solution is certified. The potentials of both are compared.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

import circuitsim  # noqa: E402
from circuitsim.bench.families.devices import mesh  # noqa: E402
from circuitsim.newton.kernels import newton_kernel  # noqa: E402

LONG = 5000
"""Diodes from which on ngspice solves once: beside tens of seconds its start-up is nothing."""

OPTIONS = ".options gmin=1e-30 reltol=1e-10 abstol=1e-18 vntol=1e-14"


def of_diodes(count: int) -> circuitsim.Circuit:
    """The mesh with so many diodes beside 30 % of its edges."""
    m = max(3, round((1.0 + math.sqrt(1.0 + 4.0 * count / 0.6)) / 2.0))
    return mesh(m, count / (2.0 * m * (m - 1)), 0)


def ours(circuit: circuitsim.Circuit, turns: int) -> tuple[float, circuitsim.OperatingPoint]:
    """Median processor time of one solution with a new source value, s; the solution of the circuit itself."""
    ready, own = circuitsim.prepared(circuit), circuit.arrays().value
    point, k, spent = ready.solve(own), circuit.element_index("V0"), []
    for factor in np.random.default_rng(0).uniform(0.9, 1.1, turns):
        value = own.copy()
        value[k] *= factor
        began = time.process_time()
        again = ready.solve(value)
        good = again.certificate.certified
        spent.append(time.process_time() - began)
        if not good:
            raise SystemExit("no certificate")
    return statistics.median(spent), point


def ngspice(circuit: circuitsim.Circuit, more: int) -> tuple[float, float, float]:
    """Processor time of one more ``.op`` in the same process, s; v(n0_0), V; iterations of one.

    With ``more`` = 0 that of the only one, start-up and reading included.
    """
    text = circuitsim.dumps(circuit).removesuffix(".op\n.end\n")
    spent = []
    for turns in (1, 1 + more) if more else (1,):
        loop = f"{OPTIONS}\n.control\nset numdgt=15\nrepeat {turns}\nop\nend\nprint v(n0_0)\nrusage totiter\nquit\n"
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "mesh.cir")
            path.write_text(text + loop + ".endc\n.end\n", encoding="utf-8")
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run(["ngspice", "-b", str(path)], capture_output=True, text=True, check=False)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
        said = re.search(r"v\(n0_0\) = (\S+)", done.stdout), re.search(r"Total iterations = (\d+)", done.stdout)
        if said[0] is None or said[1] is None:
            raise SystemExit(f"ngspice found no operating point:\n{(done.stdout + done.stderr)[-500:]}")
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    each = (spent[1] - spent[0]) / more if more else spent[0]
    return each, float(said[0][1]), int(said[1][1]) / (1 + more)


def batches(samples: int) -> None:
    """Certified samples a second of processor time of a circuit of 20 diodes, and by the clock with two threads."""
    circuit = of_diodes(20)
    solver = circuitsim.batched(circuit, ["V0"], [("n0_0", "n2_2")])
    volts = np.random.default_rng(0).uniform(-10.0, 10.0, (samples, 1))
    solver.solve(volts[:64])
    for threads in (1, 2):
        clock, began = time.perf_counter(), time.process_time()
        found = solver.solve(volts, threads=threads)
        spent, waited = time.process_time() - began, time.perf_counter() - clock
        print(
            f"batch of {samples} samples, {threads} threads: {int(found.certified.sum())} certified (worst "
            f"{found.relative.max():.1e}), {found.iterations.mean():.1f} steps a sample; {samples / spent:.0f} a "
            f"second of processor time, {samples / waited:.0f} by the clock"
        )


def main() -> int:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--diodes", type=int, nargs="*", default=[100, 1000], help="sizes of the meshes")
    parser.add_argument("--samples", type=int, default=20000, help="samples of the batches (0: none)")
    options = parser.parse_args()
    newton_kernel.load()
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    for count in options.diodes:
        circuit = of_diodes(count)
        here, point = ours(circuit, max(5, 20000 // count))
        there, volts, iterations = ngspice(circuit, 10000 // count if count < LONG else 0)
        off = abs(point["n0_0"] - volts) / np.abs(point.voltages).max()
        print(
            f"{len(circuit.devices)} diodes, {len(circuit.node_names)} nodes: {1e3 * here:.3f} ms "
            f"({point.solver['newton_steps']} steps, worst violation {point.certificate.worst:.1e}); ngspice "
            f"{1e3 * there:.3f} ms ({iterations:.0f} iterations), {there / here:.1f} times ours; potentials differ "
            f"by {off:.1e}",
            flush=True,
        )
    if options.samples:
        batches(options.samples)
    return 0


if __name__ == "__main__":
    sys.exit(main())
