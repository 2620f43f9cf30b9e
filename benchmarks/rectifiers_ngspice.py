"""Rectifiers in time beside ngspice: the exact method, and ngspice's fastest setting for each error.

    python benchmarks/rectifiers_ngspice.py [--runs 5] [--out benchmarks/results/rectifiers_ngspice.md]

Equal verified errors: the circuits have ideal diodes, and a run's error is its largest difference from the exact
waveform of the output, of the largest voltage there; that of the exact method is below its certificate. ngspice is run
with four models of the diode (XSPICE's piecewise-linear one of three small resistances, Shockley's of a small emission
coefficient), both of its methods and four tolerances with steps to suit. For each error the table has the
fastest of all runs that are within it. Where no run reaches an error, there is no ratio; the least error of all runs is
the last row. Processor time: circuitsim in a process of its own, kernels loaded; ngspice a process a run, less that of
a deck of two elements. The speed of shared machines varies, so both take turns: times and ratios are medians of turns.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from circuitsim import Circuit
from circuitsim.bench.report import times
from circuitsim.time_domain import Sine, TransientResult, transient
from circuitsim.time_domain.kernels import time_kernel

FREQUENCY, STAGES = 50.0, 20
DIODES = (
    "sidiode(Roff=1e12 Ron=1e-2 Vfwd=0)",
    "sidiode(Roff=1e12 Ron=1e-3 Vfwd=0)",
    "sidiode(Roff=1e12 Ron=1e-5 Vfwd=0)",
    "D(IS=1e-12 N=0.0005)",
)
SETTINGS = ((1e-3, 1000), (1e-4, 4000), (1e-5, 20000), (1e-6, 100000))
"""Relative tolerance of ngspice and least number of its steps."""
ERRORS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
LIMIT = 20.0
"""Longest run of ngspice, s."""


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


CALLS = 9
"""Runs of the exact method in a turn."""
LEAST = 3e-3
"""Shortest time of ngspice that is resolved beside the start of its process, s."""


def serve() -> None:
    """Answer each number of a case with the median processor time, s, of `CALLS` runs after a first one."""
    time_kernel.load()
    cases = [case() for case in CASES]
    for line in sys.stdin:
        case, found = cases[int(line)], []
        for _ in range(1 + CALLS):
            began = time.process_time()
            exact(case)
            found.append(time.process_time() - began)
        print(statistics.median(found[1:]), flush=True)


class Ours:
    """The exact method in a process of its own (`serve`)."""

    def __init__(self) -> None:
        command = [sys.executable, __file__, "--serve"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def seconds(self, case: int) -> float:
        """Processor time of a case of `CASES`, s."""
        assert self._process.stdin and self._process.stdout
        print(case, file=self._process.stdin, flush=True)
        return float(self._process.stdout.readline())

    def end(self) -> None:
        """End the process."""
        self._process.communicate()


class Setting(NamedTuple):
    """Of ngspice: the diode's model, the method, the relative tolerance and the least number of steps."""

    diode: str
    method: str
    tolerance: float
    steps: int


def deck(case: Case, of: Setting, out: Path) -> str:
    """The deck of a case for ngspice."""
    cards, arrays = [case.name], case.circuit.arrays()
    for k, name in enumerate(case.circuit.names):
        ends = " ".join(case.circuit.node_names[j] for j in (arrays.first[k], arrays.second[k]))
        if name in case.sources:
            volts, phase = case.sources[name]
            value = f"SIN(0 {volts} {FREQUENCY} 0 0 {phase})"
        else:
            value = "ideal" if name[0] == "D" else repr(float(arrays.value[k]))
        letter = "a" if name[0] == "D" and of.diode.startswith("sidiode") else ""
        cards.append(f"{letter}{name} {ends} {value}" + (" ic=0" if name[0] == "C" else ""))
    step, least = case.stop / of.steps, of.tolerance
    shown = f"v({case.out[0]})" + ("" if case.out[1] == "0" else f"-v({case.out[1]})")
    return "\n".join(
        [
            *cards,
            f".model ideal {of.diode}",
            f".options reltol={least} abstol={1e-9 * least} vntol={1e-3 * least} chgtol={1e-11 * least}"
            f" method={of.method}",
            f".tran {step} {case.stop} 0 {step} uic",
            ".control",
            "set wr_singlescale",
            "set numdgt=12",
            "run",
            f"wrdata {out} {shown}",
            ".endc",
            ".end",
            "",
        ]
    )


def ngspice(text: str, folder: Path, runs: int) -> float:
    """Median processor time of ngspice on a deck, s; inf where it does not end."""
    path, found = folder / "deck.cir", []
    path.write_text(text)
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        try:
            subprocess.run(["ngspice", "-b", str(path)], capture_output=True, check=False, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            return math.inf
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return statistics.median(found)


def outcomes(case: Case, result: TransientResult, folder: Path) -> list[tuple[float, float, Setting]]:
    """Error, time, s, with the start of the process, and setting of all runs of ngspice that reach the end."""
    found = []
    for diode, method, (tolerance, steps) in itertools.product(DIODES, ("trap", "gear"), SETTINGS):
        of, out = Setting(diode, method, tolerance, steps), folder / "waves.txt"
        out.unlink(missing_ok=True)
        spent = ngspice(deck(case, of, out), folder, 1)
        if math.isinf(spent) or not out.exists():
            continue
        times, volts = np.loadtxt(out)[:, :2].T
        if times[-1] >= 0.999 * case.stop:
            inside = times <= case.stop
            ideal = result.voltage(*case.out, times=times[inside])
            off = float(np.abs(volts[inside] - ideal).max() / np.abs(ideal).max())
            found.append((off, spent, of))
    return found


def rows(k: int, ours: Ours, runs: int, folder: Path) -> list[str]:
    """Rows of the table of one case."""
    case = CASES[k]()
    result = exact(case)
    found, empty = outcomes(case, result, folder), ngspice("start\nV1 a 0 1\nR1 a 0 1\n.op\n.end\n", folder, runs)
    lines = [
        f"**{case.name}**: {len(result.events)} events, energy balance {result.energies.imbalance:.1e}; "
        f"{len(found)} of {len(DIODES) * 2 * len(SETTINGS)} runs of ngspice end",
        "",
        "| error | ngspice | its error | its setting | exact | ratio |",
        "|---|---|---|---|---|---|",
    ]
    for most in (*ERRORS, min(off for off, *_ in found)):
        within = [one for one in found if one[0] <= most]
        if not within:
            lines.append(f"| {most:.0e} | not reached | | | | |")
            continue
        off, _, of = min(within, key=lambda one: one[1])
        text = deck(case, of, folder / "waves.txt")
        turns = [(ngspice(text, folder, 1) - empty, ours.seconds(k)) for _ in range(runs)]
        theirs, own = (statistics.median(column) for column in zip(*turns))
        named = f"{of.diode}, {of.method}, reltol {of.tolerance:g}, {of.steps:,} steps"
        label = f"{most:.0e}" if most in ERRORS else "the least of all"
        # Times are those beyond the start of the process, whose own differ by a millisecond or two.
        spent, ratio = "< 3 ms", "–"
        if theirs > LEAST:
            spent, ratio = f"{1e3 * theirs:.1f} ms", times(statistics.median(one / other for one, other in turns))
        lines.append(f"| {label} | {spent} | {off:.1e} | {named} | {1e3 * own:.2f} ms | {ratio} |")
    return [*lines, ""]


CASES = (bridge, six_pulse, cascade)


def main() -> None:
    """Print the table and write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="turns; default: 5")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.serve:
        serve()
        return
    lines = [
        "# Rectifiers in time beside ngspice",
        "",
        f"`python benchmarks/rectifiers_ngspice.py --runs {args.runs}`: ten periods from states of zero; processor "
        "time, medians of turns. For each error, relative to the largest output voltage, the fastest run of ngspice "
        "that is within it.",
        "",
    ]
    ours = Ours()
    with tempfile.TemporaryDirectory() as folder:
        for k in range(len(CASES)):
            lines += rows(k, ours, args.runs, Path(folder))
    ours.end()
    lines += ["", f"Load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors."]
    print("\n".join(lines))
    if args.out:
        args.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
