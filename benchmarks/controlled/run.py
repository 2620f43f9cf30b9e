"""Random circuits with controlled sources against enumeration in exact arithmetic; times of chains of op-amp stages.

    python benchmarks/controlled/run.py --count 5000 --nodes 12 --diodes 6
    python benchmarks/controlled/run.py --count 200 --nodes 40 --diodes 10 --start 10000
    python benchmarks/controlled/run.py --stages 1000 --ngspice

The lines count answers by kind; a wrong answer (a missed operating point with a proof that there is none, a false
``unique`` or ``several``, an operating point that exact arithmetic does not have) is printed, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "controlled")]

from judge import judged  # noqa: E402
from random_controlled import random_circuit  # noqa: E402

import circuitsim  # noqa: E402
from circuitsim.bench.families.amplifiers import chain  # noqa: E402
from circuitsim.kernels import compile_all  # noqa: E402

SOURCES = 1.5, -2.5, 3.5, -0.5
"""Values of the source, V, one after the other: all diodes change state each time."""


def timed(count: int, solves: int = 200) -> float:
    """Print processor times of a chain: first solve with analysis, new source values; the latter."""
    compile_all()
    ready = circuitsim.prepared(chain(count))
    for volts in 10 * SOURCES:
        ready.solve({"V0": volts})  # loads the kernels
    first = []
    for _ in range(7):
        circuit, began = chain(count), time.process_time()
        point = circuitsim.prepared(circuit).solve()
        first.append(time.process_time() - began)
    began = time.process_time()
    for turn in range(solves):
        point = ready.solve({"V0": SOURCES[turn % len(SOURCES)]})
        assert point.certificate.certified
    again = (time.process_time() - began) / solves
    print(
        f"{count} stages: {1e3 * statistics.median(first):.1f} ms with analysis, {1e3 * again:.2f} ms for new "
        f"sources; {point.uniqueness.value}, worst violation {point.certificate.worst:.1e}"
    )
    return again


def ngspice_seconds(count: int, options: str = "", more: int = 40) -> float:
    """Processor time of one ``alter`` and ``.op`` of ngspice, repeated in one process, with its near-ideal diodes."""
    text = circuitsim.dumps(chain(count)).removesuffix(".op\n.end\n") + options
    turn = "".join(f"alter v0 = {volts}\nop\n" for volts in SOURCES)
    spent = []
    for rounds in (1, 1 + more // len(SOURCES)):
        loop = f".control\nrepeat {rounds}\n{turn}end\nprint v(d{count})\nquit\n.endc\n.end\n"
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "stages.cir")
            path.write_text(text + loop, encoding="utf-8")
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run(["ngspice", "-b", str(path)], capture_output=True, text=True, check=False)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if f"v(d{count}) =" not in done.stdout:
            raise SystemExit(f"ngspice found no operating point:\n{(done.stdout + done.stderr)[-500:]}")
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return (spent[1] - spent[0]) / more


def main() -> int:
    """Run the circuits; 1 if any answer is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=0, help="number of random circuits")
    parser.add_argument("--start", type=int, default=0, help="first seed")
    parser.add_argument("--nodes", type=int, default=12, help="most nodes")
    parser.add_argument("--diodes", type=int, default=6, help="most diodes")
    parser.add_argument("--stages", type=int, default=0, help="op-amp stages of the timed chain")
    parser.add_argument("--ngspice", action="store_true", help="time ngspice on the chain, too")
    options = parser.parse_args()
    found: Counter[str] = Counter()
    wrong = 0
    for seed in range(options.start, options.start + options.count):
        try:
            found[judged(random_circuit(seed, options.nodes, options.diodes)).value] += 1
        except AssertionError as error:
            wrong += 1
            print(f"seed {seed}: {error}")
    for answer, count in found.most_common():
        print(f"  {count:6d} {answer}")
    if options.count:
        print(f"{wrong} of {options.count} wrong")
    if options.stages:
        ours = timed(options.stages)
        if options.ngspice:
            for setting in ("", ".options klu\n", ".options gmin=1e-9\n"):
                theirs = ngspice_seconds(options.stages, setting)
                print(
                    f"ngspice {setting.strip() or 'as it is'}: {1e3 * theirs:.1f} ms for alter and .op in one "
                    f"process, {theirs / ours:.1f} times ours"
                )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
