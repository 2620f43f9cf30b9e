"""Rectifiers in time beside ngspice: the exact method, ngspice with nearly ideal diodes, one run after the other.

    python benchmarks/rectifiers_ngspice.py [--runs 5] [--out benchmarks/results/rectifiers_ngspice.md]

The reference is the exact method with ideal diodes: its own error is below its certificate. ngspice's diodes have
small emission coefficients, so that their forward voltage is 5 mV, 1 mV or 0.2 mV; its error, of the largest
voltage, holds that and its steps. Where ngspice's error is the larger one, the ratio is a lower bound of that at equal
errors. Processor time: circuitsim in its process, kernels loaded; ngspice a process, less that of a deck of two
elements.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from circuitsim import Circuit
from circuitsim.time_domain import Sine, TransientResult, transient

EMISSIONS, FREQUENCY, STAGES = (0.01, 0.002, 0.0005), 50.0, 20
SETTINGS = ((1e-3, 1000), (1e-4, 4000), (1e-6, 20000), (1e-6, 100000))
"""Relative tolerance of ngspice and least number of its steps."""


class Case(NamedTuple):
    """A circuit; its sources by name (V, phase in degrees), its output nodes and the end of the run, s."""

    name: str
    circuit: Circuit
    sources: dict[str, tuple[float, float]]
    out: tuple[str, str]
    stop: float


def bridge() -> Case:
    """10 V behind 1 Ω, four diodes, 100 µF and 1 kΩ; ten periods."""
    circuit = Circuit("bridge")
    circuit.voltage_source("V1", "a", "b", 0.0)
    circuit.resistor("Rs", "a", "s", 1.0)
    circuit.resistor("Rg", "b", "0", 1e6)
    for k, (first, second) in enumerate((("s", "p"), ("b", "p"), ("m", "s"), ("m", "b"))):
        circuit.diode(f"D{k}", first, second)
    circuit.add("C", "C1", "p", "m", 1e-4)
    circuit.resistor("R1", "p", "m", 1e3)
    return Case("bridge rectifier, RC load", circuit, {"V1": (10.0, 0.0)}, ("p", "m"), 10.0 / FREQUENCY)


def six_pulse() -> Case:
    """Three phases of 10 V behind 0.5 Ω, six diodes, 100 µF and 100 Ω; ten periods."""
    circuit, sources = Circuit("six pulses"), {}
    for k in range(3):
        circuit.voltage_source(f"V{k}", f"a{k}", "0", 0.0)
        circuit.resistor(f"Rs{k}", f"a{k}", f"s{k}", 0.5)
        circuit.diode(f"DP{k}", f"s{k}", "p")
        circuit.diode(f"DM{k}", "m", f"s{k}")
        sources[f"V{k}"] = (10.0, -120.0 * k)
    circuit.add("C", "C1", "p", "m", 1e-4)
    circuit.resistor("R1", "p", "m", 100.0)
    circuit.resistor("Rg", "m", "0", 1e6)
    return Case("6-pulse rectifier", circuit, sources, ("p", "m"), 10.0 / FREQUENCY)


def cascade() -> Case:
    """10 V behind 10 Ω, 20 stages of 1 µF, 10 MΩ; ten periods."""
    circuit, lower, upper = Circuit("cascade"), "0", "s"
    circuit.voltage_source("V1", "a", "0", 0.0)
    circuit.resistor("Rs", "a", "s", 10.0)
    for k in range(STAGES):
        circuit.add("C", f"CA{k}", upper, f"u{k}", 1e-6)
        circuit.diode(f"DA{k}", lower, f"u{k}")
        circuit.diode(f"DB{k}", f"u{k}", f"l{k}")
        circuit.add("C", f"CB{k}", lower, f"l{k}", 1e-6)
        lower, upper = f"l{k}", f"u{k}"
    circuit.resistor("RL", lower, "0", 1e7)
    return Case(f"Cockcroft–Walton, {STAGES} stages", circuit, {"V1": (10.0, 0.0)}, (lower, "0"), 10.0 / FREQUENCY)


def exact(case: Case) -> TransientResult:
    """The exact method, from states of zero."""
    waves = {name: Sine(0.0, volts, FREQUENCY, phase=phase) for name, (volts, phase) in case.sources.items()}
    return transient(case.circuit, case.stop, waves, {}, method="exact")


def seconds(function: Callable[[], object], runs: int) -> float:
    """Median processor time of calls after a first one."""
    function()
    found = []
    for _ in range(runs):
        began = time.process_time()
        function()
        found.append(time.process_time() - began)
    return statistics.median(found)


def deck(case: Case, tolerance: float, steps: int, emission: float, out: Path) -> str:
    """The deck of a case for ngspice."""
    cards, arrays = [case.name], case.circuit.arrays()
    for k, name in enumerate(case.circuit.names):
        ends = " ".join(case.circuit.node_names[j] for j in (arrays.first[k], arrays.second[k]))
        if name in case.sources:
            volts, phase = case.sources[name]
            value = f"SIN(0 {volts} {FREQUENCY} 0 0 {phase})"
        else:
            value = "ideal" if name[0] == "D" else repr(float(arrays.value[k]))
        cards.append(f"{name} {ends} {value}" + (" ic=0" if name[0] == "C" else ""))
    step = case.stop / steps
    shown = f"v({case.out[0]})" + ("" if case.out[1] == "0" else f"-v({case.out[1]})")
    return "\n".join([
        *cards, f".model ideal D(IS=1e-12 N={emission})", f".options reltol={tolerance} method=gear",
        f".tran {step} {case.stop} 0 {step} uic", ".control", "set wr_singlescale", "run", f"wrdata {out} {shown}",
        ".endc", ".end", "",
    ])  # fmt: skip


def ngspice(text: str, folder: Path, runs: int) -> float:
    """Median processor time of ngspice on a deck."""
    path, found = folder / "deck.cir", []
    path.write_text(text)
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(["ngspice", "-b", str(path)], capture_output=True, check=False, timeout=120)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return statistics.median(found)


def row(case: Case, runs: int, folder: Path) -> list[str]:
    """Rows of the table of one case, by ngspice's error; the least one last."""
    result, ours = exact(case), seconds(lambda: exact(case), runs)
    empty = ngspice("start\nV1 a 0 1\nR1 a 0 1\n.op\n.end\n", folder, runs)
    lines: list[tuple[float, str]] = []
    for (tolerance, steps), emission in itertools.product(SETTINGS, EMISSIONS):
        out = folder / "waves.txt"
        out.unlink(missing_ok=True)
        theirs, off, end = ngspice(deck(case, tolerance, steps, emission, out), folder, runs) - empty, math.nan, 0.0
        if out.exists():
            times, volts = np.loadtxt(out)[:, :2].T
            end, inside = float(times[-1]), times <= case.stop
            ideal = result.voltage(*case.out, times=times[inside])
            off = float(np.abs(volts[inside] - ideal).max() / np.abs(ideal).max())
        whole = end >= 0.999 * case.stop
        done = f"{off:.1e}" if whole else f"stopped at {end:.3g} s"
        ratio = f"{theirs / ours:.2g}×" if whole else "–"
        text = (
            f"| {case.name} | {len(result.events)} | {1e3 * ours:.2f} ms | {result.energies.imbalance:.1e} | "
            f"{emission:g}, {tolerance:g}, {steps:,} | {1e3 * theirs:.1f} ms | {done} | {ratio} |"
        )
        lines.append((off if whole else math.inf, text))
    return [text for _, text in sorted(lines, reverse=True)]


def main() -> None:
    """Print the table and write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    lines = [
        "# Rectifiers in time beside ngspice", "",
        f"`python benchmarks/rectifiers_ngspice.py`: medians of {args.runs} runs; ten periods from states of zero; "
        "processor time. ngspice's error is its largest difference from the exact waveform with ideal diodes, of the "
        "largest output voltage.", "",
        "| circuit | events | circuitsim, exact | its energy balance | ngspice: N, reltol, steps | time | error | "
        "ratio |",
        "|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        for case in (bridge(), six_pulse(), cascade()):
            lines += row(case, args.runs, Path(folder))
    lines += ["", f"Load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors."]
    print("\n".join(lines))
    if args.out:
        args.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
