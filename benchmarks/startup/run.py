"""Start-up time: each command in a fresh environment (no compiled kernels) and again.

    python benchmarks/startup/run.py [--out benchmarks/results/startup.md] [--rows solve,sweep,train,bench,warm-up]

Every row has a directory for compiled kernels of its own, which is empty at first. Seconds are of whole processes: wall
clock, and in brackets those of the processor. *First use* is the difference of the two processor times.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numba

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

SIDES = (4, 16, 32, 45, 100)
NETLISTS = ROOT / "netlists"

COMMANDS = {
    "sweep": f"sweep {NETLISTS}/rectifier-half-wave.cir --vary V1=-5:5:0.01 --format csv --output OUT/sweep.csv",
    "train deck": f"train circuit {NETLISTS}/learn-divider.cir --data {NETLISTS}/learn-divider.csv --epochs 20 "
    "--out OUT/NEW",
    "train rbm": "train rbm --dataset digits --hidden 16 --epochs 1 --out OUT/NEW",
    "train drn-xs": "train drn --preset drn-xs --dataset digits --input-gain 30 --epochs 1 --out OUT/NEW",
    "train ffebm": "train ffebm --dataset digits --epochs 1 --out OUT/NEW",
    "bench": "bench --suite small --against clarabel --max-unknowns 100 --budget 0.1 --out OUT/NEW",
    "warm-up": "warm-up",
}
"""Row → command; OUT is a folder of the row, OUT/NEW one that does not exist yet."""


def decks(folder: Path) -> dict[str, str]:
    """Meshes of several sizes, each with the command that solves it."""
    from readme_table import mesh

    from circuitsim.netlist import dumps

    rows = {}
    for side in SIDES:
        deck = folder / f"mesh-{side * side}.cir"
        deck.write_text(dumps(mesh(side)))
        rows[f"solve, mesh of {side * side:,}"] = f"solve {deck} --format json --output OUT/point.json"
    return rows


def measure(command: str, out: Path, cache: Path) -> tuple[float, float]:
    """Seconds on the wall clock, and of the processor, of one process."""
    words = command.replace("OUT/NEW", str(out / f"run-{time.time_ns()}")).replace("OUT", str(out)).split()
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT)}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "circuitsim", *words], env=environment, capture_output=True, text=True, check=False
    )
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        print(f"{command}: {done.stderr.strip()}", file=sys.stderr)
        return math.nan, math.nan
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the table row by row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="also write the table to this file")
    parser.add_argument("--rows", default="", help="rows whose names contain one of these words; default: all")
    args = parser.parse_args()
    lines = [
        f"numba {numba.__version__}, Python {platform.python_version()}, {os.cpu_count()} processors, load "
        f"{os.getloadavg()[0]:.1f} before; seconds: wall clock (processor)",
        "",
        "| command | fresh environment | again | first use |",
        "|---|---|---|---|",
    ]
    print("\n".join(lines), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        table = {**decks(Path(folder)), **COMMANDS}
        words = [word for word in args.rows.split(",") if word]
        for name, command in table.items():
            if words and not any(word in name for word in words):
                continue
            own = Path(tempfile.mkdtemp(dir=folder))
            (wall, cpu), (wall_again, again) = (measure(command, own, own / "cache") for _ in range(2))
            lines.append(f"| {name} | {wall:.1f} ({cpu:.1f}) | {wall_again:.1f} ({again:.1f}) | {cpu - again:.1f} |")
            print(lines[-1], flush=True)
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text("\n".join(["# Start-up time", "", *lines, ""]))


if __name__ == "__main__":
    main()
