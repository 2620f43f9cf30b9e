"""Old against new in one run: the times of two versions of circuitsim on a fixed list of circuits.

    python benchmarks/versions.py OLD NEW [--cases grid,ladder:1000,layered] [--sizes 100,1000,10000] [--rounds 3]
                                  [--out FILE.md]

OLD and NEW are revisions of this repository (each gets a git worktree in a temporary directory) or directories with a
source tree (used where they are). Each group of cases runs in processes of its own in turns, old, new, new, old, …: one
process loads one version, makes circuits from netlist text (`version_circuits.py`), and takes medians of processor time
on one thread (`version_worker.py`; time on the wall tells of the machine's other work):

- *cold*: ``circuitsim.prepared(circuit).solve()``, voltages, currents and certificate read;
- *new values*: ``solve(values)`` on what is prepared; *start*: the same with ``start=`` the point before;
- *batch*: one of a hundred samples of ``circuitsim.batched``, one thread (up to 1,500 unknowns);
- *training step*: four samples of a layered network by `DRNClassifier`.

The ratio is old / new, above one where new is faster: the median over rounds of neighbouring processes, and the least
and the largest of them beside it; *of the fastest* compares the fastest process of each (for loaded machines). A
version compiles its kernels before, by ``circuitsim warm-up`` where it has that, and in a first process of each group;
that is reported, not compared. Whatever fails is a row with its text.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from version_circuits import FAMILIES
from version_worker import LAYERED

HERE = Path(__file__).resolve().parent
LIMIT = 900.0
"""Seconds that one process may take."""
Times = dict[str, dict[str, float]]
TITLES = {"cold": "cold", "values": "new values", "start": "start", "batch": "batch", "training step": "training step"}


@contextmanager
def source_tree(name: str, folder: Path) -> Iterator[Path]:
    """A directory with the sources of a revision, or the directory itself."""
    if Path(name).is_dir():
        yield Path(name).resolve()
        return
    git = ["git", "-C", str(HERE), "worktree"]
    subprocess.run([*git, "add", "--quiet", "--detach", str(folder), name], check=True)
    try:
        yield folder
    finally:
        subprocess.run([*git, "remove", "--force", str(folder)], check=True)


def groups(asked: str, sizes: list[int]) -> list[list[str]]:
    """Cases that share a process: FAMILY (all sizes), FAMILY:UNKNOWNS, ``layered`` or ``layered:NAME``, by commas."""
    known = {f: [f"{f}:{n}" for n in sizes if n <= most] for f, (_, most) in FAMILIES.items()}
    known["layered"] = [f"layered:{name}" for name in LAYERED]
    found = []
    for word in asked.split(",") if asked else list(known):
        family, _, what = word.partition(":")
        if family not in known:
            raise SystemExit(f"no case is called {word!r}; there are {', '.join(known)}")
        found.append([word] if what else known[family])
    return [cases for cases in found if cases]


def environment(tree: Path) -> dict[str, str]:
    """The environment of a process of one version, on one thread."""
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    return {**os.environ, "PYTHONPATH": str(tree), **threads}


def compile_kernels(tree: Path) -> None:
    """Compile all kernels of a version: otherwise one process may run interpreted what the next one runs compiled."""
    if (tree / "circuitsim" / "cli" / "warm_up.py").exists():
        command = [sys.executable, "-m", "circuitsim", "warm-up", "-q"]
        subprocess.run(command, env=environment(tree), check=True, cwd=tree)


def measured(tree: Path, cases: list[str], budget: float) -> tuple[Times, dict[str, str]]:
    """Times of the cases in a process of one version, and what failed."""
    command = [sys.executable, str(HERE / "version_worker.py"), str(tree), str(budget), *cases]
    try:
        done = subprocess.run(
            command, env=environment(tree), capture_output=True, text=True, check=False, timeout=LIMIT
        )
        out, said = done.stdout, done.stderr
    except subprocess.TimeoutExpired as error:
        out = error.stdout.decode() if isinstance(error.stdout, bytes) else error.stdout or ""
        said = f"out of time ({LIMIT:g} s)"
    rows = {row["case"]: row for row in map(json.loads, out.splitlines())}
    last = (said.strip().splitlines() or ["no output"])[-1]
    failed = {case: rows.get(case, {}).get("failure", last) for case in cases if "times" not in rows.get(case, {})}
    return {case: rows[case]["times"] for case in cases if case not in failed}, failed


def in_turns(trees: list[Path], cases: list[str], rounds: int, budget: float) -> list[str]:
    """Rows of a table: the cases of one group, both versions in turns."""
    times: list[list[Times]] = [[], []]
    failed: list[dict[str, str]] = [{}, {}]
    for turn in range(rounds):
        for which in (0, 1) if turn % 2 == 0 else (1, 0):
            found, wrong = measured(trees[which], cases, budget)
            times[which].append(found)
            failed[which] |= wrong
    rows = []
    for case in cases:
        for which, name in ((0, "old"), (1, "new")):
            if case in failed[which]:
                rows.append(f"| {case} | failed ({name}): {failed[which][case]} | | | | |".replace("\n", " "))
        if case not in failed[0] and case not in failed[1]:
            rows += [
                _row(case, kind, [found[case] for found in times[0]], [found[case] for found in times[1]])
                for kind in times[0][0][case]
            ]
    return rows


def _row(case: str, kind: str, old: list[dict[str, float]], new: list[dict[str, float]]) -> str:
    """One time of one case."""
    before, after = [times[kind] for times in old], [times[kind] for times in new]
    ratios = [a / b for a, b in zip(before, after)]
    ms = [f"{1e3 * statistics.median(times):.4g}" for times in (before, after)]
    spread = f"{min(ratios):.2f} … {max(ratios):.2f}"
    least = min(before) / min(after)
    return f"| {case} | {TITLES[kind]} | {ms[0]} | {ms[1]} | {statistics.median(ratios):.2f} | {spread} | {least:.2f} |"


def machine() -> str:
    """Processor, versions of what was used."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if "model name" in line]
        cpu = models[0] if models else cpu
    found = []
    for package in ("numpy", "scipy", "numba", "llvmlite", "scikit-learn"):
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"no {package}")
    return f"{cpu}, {os.cpu_count()} processors; Python {platform.python_version()}, {', '.join(found)}."


def revision(tree: Path, name: str) -> str:
    """The commit of a tree, beside its name, and whether it has changes of its own."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(tree), *words], capture_output=True, text=True, check=False)
        return done.stdout.strip()

    return f"{name} ({git('rev-parse', '--short=12', 'HEAD')}{', changed' if git('status', '--porcelain') else ''})"


def load() -> str:
    """The load average."""
    return ", ".join(f"{value:.1f}" for value in os.getloadavg())


def compare(names: list[str], trees: list[Path], options: argparse.Namespace) -> list[str]:
    """The page."""
    wanted = groups(options.cases, [int(word) for word in options.sizes.split(",")])
    before, compiling = load(), []
    for tree in trees:
        began = time.perf_counter()
        compile_kernels(tree)
        for cases in wanted:
            measured(tree, cases, 0.0)
        compiling.append(f"{time.perf_counter() - began:.0f} s")
    lines = [
        "# Speeds, old against new",
        "",
        f"Old: {revision(trees[0], names[0])}. New: {revision(trees[1], names[1])}. {machine()}",
        "",
        f"{options.rounds} rounds in turns. Untimed first run of all cases, with compilation: old {compiling[0]}, new "
        f"{compiling[1]}. Load before {before}, after {{after}}.",
        "",
        "| case | processor time | old, ms | new, ms | old / new | least … largest | of the fastest |",
        "|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines), flush=True)
    for cases in wanted:
        rows = in_turns(trees, cases, options.rounds, options.budget)
        print("\n".join(rows), flush=True)
        lines += rows
    lines += ["", f"Command: `python benchmarks/versions.py {' '.join(sys.argv[1:])}`."]
    return [line.replace("{after}", load()) for line in lines]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", help="revision or directory")
    parser.add_argument("new", help="revision or directory")
    parser.add_argument("--cases", default="", help="families, FAMILY:UNKNOWNS, layered (all)")
    parser.add_argument("--sizes", default="100,1000,10000", help="unknowns of families named without")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--budget", type=float, default=0.3, help="seconds for the repeats of one time (0.3)")
    parser.add_argument("--out", type=Path, help="write the table to a file too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        names = [options.old, options.new]
        with source_tree(options.old, Path(folder, "old")) as old, source_tree(options.new, Path(folder, "new")) as new:
            page = "\n".join(compare(names, [old, new], options)) + "\n"
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
