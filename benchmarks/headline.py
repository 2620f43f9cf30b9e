"""What must not get worse: old against new, every headline speed, in one run on one machine.

    python benchmarks/headline.py OLD NEW [--rows mesh,drn,…] [--quick] [--rounds 5] [--cache DIR] [--out DIR]

OLD and NEW are git revisions or Python interpreters that have circuitsim. Of a revision, a git worktree and a virtual
environment are made in the cache folder, once, from `constraints/old.txt` and `constraints/new.txt`. Each case runs in
processes of its own (`headline_worker.py`; other programs in `headline_rivals.py`, with NEW's interpreter), which take
turns, round by round; figures are medians of the rounds. Times are processor seconds on one thread, where nothing else
is said. A row passes if NEW meets its bar, or takes at most 1.3 times as long as OLD; a row that could not be measured
says why. The table and its JSON go to OUT, with the machine's load.

`--rows` takes names of rows or groups; without it all are measured, but the suite, which is run only by name. `--quick`
leaves slow cases out and makes three short rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
MOST = 1.3
"""Times as long as OLD that a row may take."""


class Row(NamedTuple):
    """A figure of a case: its name; the bar (at most so many seconds or GB; with a rival, at least so many times as
    fast); its key in the worker's answer."""

    name: str
    bar: float
    key: str = "seconds"


class Case(NamedTuple):
    """A task of the worker with its rows; a rival's task; what makes it slow."""

    group: str
    task: str
    given: dict[str, Any]
    rows: tuple[Row, ...]
    rival: str = ""
    rival_given: dict[str, Any] | None = None
    words: tuple[str, ...] = ()
    quick: bool = True
    warm: bool = True
    """Whether kernels have to be compiled before."""
    threads: int = 1


def cases() -> list[Case]:
    """All cases, in the order of the table."""
    found = [
        Case("mesh", "cold", {"side": m}, (Row(f"mesh-{m * m}", bar),), "cvxpy", quick=m < 100)
        for m, bar in ((10, 25.0), (32, 5.0), (100, 4.5))
    ]
    found.append(Case("mesh", "cold", {"side": 1000}, (Row("mesh-1000000", 10.0),), quick=False))
    found += [
        Case(
            "ngspice-values",
            "new_values",
            {"circuit": "mesh", "size": m},
            (Row(f"values-{m * m}", bar),),
            "ngspice_values",
            quick=m < 100,
        )
        for m, bar in ((10, 50.0), (32, 50.0), (100, 300.0))
    ]
    of = {"circuit": "junctions", "size": 1000}
    found.append(Case("devices", "new_values", of, (Row("junctions-1000", 25.0),), "ngspice_values"))
    found.append(Case("opamps", "turned_values", {"size": 1000}, (Row("opamps-1000", 20.0),), "ngspice_turned"))
    found += [
        Case("drn", "drn", {"preset": f"drn-{name}"}, (Row(f"drn-{name}", bar),), quick=name in ("xs", "1h"), threads=2)
        for name, bar in (("xs", 0.43), ("1h", 2.2), ("2h", 37.0), ("3h", 83.0), ("xl", 124.0))
    ]
    found += [
        Case("rbm", "rbm", {"batch": batch, "samples": 4000}, (Row(f"rbm-{batch}", 3.0),), "bernoulli")
        for batch in (10, 100)
    ]
    found.append(Case("conv", "convolution", {"batch": 4, "sweeps": 20}, (Row("conv", 1.0),), "torch_convolution"))
    bars = {"construct": 0.05, "forward": 0.01, "backward": 0.01, "batch": 0.3}
    rows = tuple(Row(f"layer-{key}", bar, key) for key, bar in bars.items())
    found.append(Case("layer", "layer", {"side": 71, "diodes": 1633}, rows, threads=2))
    found.append(Case("crossbar", "crossbar", {"side": 128, "inputs": 32}, (Row("crossbar-128", 0.15),)))
    found.append(Case("crossbar", "images", {"count": 60_000}, (Row("crossbar-images", 10.0),), quick=False, threads=2))
    found.append(Case("montecarlo", "montecarlo", {"samples": 50_000, "of": 10**6}, (Row("montecarlo", 20.0),)))
    rows = Row("grid", 40.0), Row("grid-memory", 4.0, "gigabytes")
    found.append(Case("grid", "grid", {"deck": "GRID"}, rows, quick=False))
    found.append(Case("converters", "buck", {"periods": 1000}, (Row("buck-1000", 0.06),)))
    found += [
        Case(
            "converters",
            "rectifier",
            {"name": name},
            (Row(name, bar),),
            "ngspice_rectifier",
            {"name": name, "error": error},
            quick=False,
        )
        for name, bar, error in (("bridge", 50.0, 1e-5), ("six-pulse", 40.0, 1e-5), ("cascade", 30.0, 1e-5))
    ]
    tran = "tran", "ROOT/netlists/boost-converter.cir", "--format", "csv"
    rows = Row("tran-first", 10.0, "first"), Row("tran-later", 1.5, "later")
    found.append(Case("first-tran", "first_use", {}, rows, words=("0", *tran), warm=False))
    found.append(Case("tran", "capacitors", {"stop": 2.5e-4}, (Row("tran-mesh", 15.0),), quick=False))
    flyback = "tran", "ROOT/netlists/flyback-converter.cir", "--format", "csv"
    found.append(Case("tran", "command", {}, (Row("flyback", 1.0),), words=flyback))
    found += [
        Case("first-use", "first_use", {"side": m}, (Row(f"first-{m * m}", bar),), quick=m < 100, warm=False)
        for m, bar in ((32, 5.0), (100, 15.0))
    ]
    found.append(
        Case("first-use", "process", {}, (Row("help", 0.1),), words=("-m", "circuitsim", "--help"), warm=False)
    )
    found.append(Case("first-use", "process", {}, (Row("import", 0.1),), words=("-c", "import circuitsim"), warm=False))
    found.append(
        Case(
            "suite",
            "suite",
            {"tree": "TREE", "processes": 2},
            (Row("suite", 360.0),),
            quick=False,
            warm=False,
            threads=2,
        )
    )
    return found


class Installation(NamedTuple):
    """A version: what was asked for, its interpreter, its source tree (or where it is installed), its cache."""

    name: str
    python: str
    tree: str
    cache: Path


def run(words: list[str], **given: Any) -> str:
    """The output of a process that has to succeed."""
    done = subprocess.run(words, capture_output=True, text=True, check=False, **given)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} failed:\n{(done.stderr or done.stdout)[-2000:]}")
    return done.stdout.strip()


def installed(name: str, constraints: Path, cache: Path, extras: str) -> Installation:
    """The installation of a revision, made where the cache folder has none, or of an interpreter."""
    if Path(name).is_file():
        python = str(Path(name).absolute())
        own = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        home = run([python, "-c", "import circuitsim; print(circuitsim.__file__)"], cwd=tempfile.gettempdir(), env=own)
        folder = cache / re.sub(r"\W+", "-", python).strip("-")
        return Installation(name, python, str(Path(home).parents[1]), folder / "kernels")
    git = ["git", "-C", str(HERE)]
    commit = run([*git, "rev-parse", "--verify", f"{name}^{{commit}}"])
    folder = cache / f"{commit[:12]}-{constraints.stem}"
    tree, python = folder / "tree", folder / "venv" / "bin" / "python"
    if not (folder / "made").exists():
        print(f"making {folder}", file=sys.stderr)
        shutil.rmtree(folder, ignore_errors=True)
        run([*git, "worktree", "prune"])
        run([*git, "worktree", "add", "--detach", str(tree), commit])
        run([sys.executable, "-m", "venv", str(python.parents[1])])
        run([str(python), "-m", "pip", "install", "-q", "-c", str(constraints), "-e", f"{tree}[{extras}]"])
        (folder / "made").touch()
    return Installation(f"{name} ({commit[:12]})", str(python), str(tree), folder / "kernels")


class Worker:
    """A process that answers requests."""

    def __init__(self, program: str, of: Installation, threads: int) -> None:
        names = "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"
        limits = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": str(threads), "NUMBA_NUM_THREADS": str(threads)}
        own = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", *names)}
        environment = own | limits | {"NUMBA_CACHE_DIR": str(of.cache)}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        # Another folder than the checkout's: `import circuitsim` must find the installation.
        self._process = subprocess.Popen(
            [of.python, str(HERE / program)], text=True, env=environment, cwd=tempfile.gettempdir(), **pipes
        )

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer; a process that ended is an error."""
        assert self._process.stdin and self._process.stdout
        try:
            print(json.dumps(request), file=self._process.stdin, flush=True)
            return json.loads(self._process.stdout.readline())
        except (BrokenPipeError, json.JSONDecodeError):
            return {"error": f"the process ended with {self._process.wait()}"}

    def end(self) -> None:
        """End the process."""
        self._process.communicate()


def measured(case: Case, versions: list[Installation], rounds: int, budget: float, deck: str) -> dict[str, Any]:
    """Answers by old, new and rival, round by round, or the error of each."""
    sides: dict[str, Worker] = {}
    found: dict[str, Any] = {"old": [], "new": [], "rival": []}
    try:
        for side, of in zip(("old", "new"), versions):
            given = {
                key: {"GRID": deck, "TREE": of.tree}.get(value, value) if isinstance(value, str) else value
                for key, value in case.given.items()
            }
            sides[side] = Worker("headline_worker.py", of, case.threads)
            answer = sides[side].ask(
                {"set": case.task, "words": [int(w) if w.isdigit() else w for w in case.words], "with": given}
            )
            if "error" in answer:
                found[side] = answer["error"]
        if case.rival:
            sides["rival"] = Worker("headline_rivals.py", versions[1], case.threads)
            answer = sides["rival"].ask({"set": case.rival, "with": case.rival_given or case.given})
            if "error" in answer:
                found["rival"] = answer["error"]
        for turn in range(rounds):
            for side in sides if turn % 2 == 0 else reversed(sides):
                if isinstance(found[side], list):
                    answer = sides[side].ask({"go": budget})
                    found[side] = answer["error"] if "error" in answer else [*found[side], answer]
    finally:
        for worker in sides.values():
            worker.end()
    return found


def judged(case: Case, row: Row, found: dict[str, Any]) -> dict[str, Any]:
    """A line of the table: with a rival, figures in brackets are its time over ours. Without one that is missing, a row
    is judged beside the old version alone."""
    result: dict[str, Any] = {"row": row.name, "group": case.group, "bar": row.bar}
    result |= dict.fromkeys(("old", "new", "ratio", "pass")) | {"note": ""}
    wrong = {side: answers for side, answers in found.items() if isinstance(answers, str)}
    if wrong:
        errors = "; ".join(f"{side}: {text}" for side, text in wrong.items())
        result["note"] = f"not measured: {errors.removeprefix('rival: Missing: ')}"
    if wrong.keys() & {"old", "new"}:
        return result
    seconds = {side: [answer[row.key] for answer in found[side]] for side in found if found[side] and side not in wrong}
    # Differences, of a first run and the next, may be nothing.
    ratios = [new / old for old, new in zip(seconds["old"], seconds["new"]) if old > 0.0 and new > 0.0]
    ratio = statistics.median(ratios) if ratios else None
    old, new = (statistics.median(seconds[side]) for side in ("old", "new"))
    result |= {"old": old, "new": new, "ratio": ratio}
    met: bool | None = new <= row.bar
    if case.rival:
        met = None
    if "rival" in seconds:
        rival = seconds["rival"]
        times = {
            f"{side}_times": statistics.median(b / a for a, b in zip(seconds[side], rival)) for side in ("old", "new")
        }
        result |= {**times, "rival": statistics.median(rival), "note": found["rival"][-1].get("which", "")}
        met = times["new_times"] >= row.bar
    return result | {"pass": True if ratio is not None and ratio <= MOST else met}


def written(value: float | None, row: dict[str, Any]) -> str:
    """A figure with its unit."""
    if value is None:
        return "–"
    if "memory" in row["row"]:
        return f"{value:.3g} GB"
    return (
        f"{value:.3g} s"
        if abs(value) >= 1.0
        else f"{1e3 * value:.3g} ms"
        if abs(value) >= 1e-3
        else f"{1e6 * value:.3g} µs"
    )


def line(row: dict[str, Any]) -> str:
    """A row as Markdown."""
    cells = [written(row[side], row) for side in ("old", "new")]
    bar = f"≤ {written(row['bar'], row)}"
    if "new_times" in row:
        cells = [f"{cell} ({row[side]:.3g} ×)" for cell, side in zip(cells, ("old_times", "new_times"))]
    if row["rival_bar"]:
        bar = f"≥ {row['bar']:g} ×"
    ratio = "–" if row["ratio"] is None else f"{row['ratio']:.2f}"
    verdict = {None: "–", True: "yes", False: "**no**"}[row["pass"]]
    return f"| {row['row']} | {cells[0]} | {cells[1]} | {ratio} | {bar} | {verdict} | {row['note'].replace('|', '/')} |"


def machine() -> str:
    """Processor and packages."""
    info = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*: (.*)", info.read_text()) if info.exists() else None
    return (
        f"{found[1] if found else platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}"
    )


def load() -> str:
    """The load averages of 1, 5 and 15 minutes."""
    return ", ".join(f"{value:.1f}" for value in os.getloadavg())


def chosen(asked: str, quick: bool) -> list[Case]:
    """The cases that rows and groups name."""
    words, every = [word for word in asked.split(",") if word], cases()
    known = {row.name for case in every for row in case.rows} | {case.group for case in every}
    for word in words:
        if word not in known:
            raise SystemExit(f"no row or group is called {word!r}; there are {', '.join(sorted(known))}")
    if words:
        wanted = [case for case in every if case.group in words or any(row.name in words for row in case.rows)]
        return [case for case in wanted if case.quick or not quick or any(row.name in words for row in case.rows)]
    return [case for case in every if case.group != "suite" and (case.quick or not quick)]


def table(options: argparse.Namespace) -> Iterator[str]:
    """The page, line by line; writes nothing."""
    wanted, cache = chosen(options.rows, options.quick), options.cache.expanduser().absolute()
    rounds, budget = options.rounds or (3 if options.quick else 5), 0.2 if options.quick else 1.0
    names = zip((options.old, options.new), ("old", "new"))
    versions = [installed(name, HERE / "constraints" / f"{which}.txt", cache, options.extras) for name, which in names]
    before = load()
    if any(case.warm for case in wanted):
        for of in versions:
            print(f"compiling kernels of {of.name}, where that has not been done", file=sys.stderr)
            run(
                [of.python, "-m", "circuitsim", "warm-up"],
                env=os.environ | {"NUMBA_CACHE_DIR": str(of.cache)},
                cwd=tempfile.gettempdir(),
            )
    yield "# Headline speeds, old against new\n"
    yield f"Old: {versions[0].name}. New: {versions[1].name}. {machine()}. Load before: {before}.\n"
    yield f"Medians of {rounds} rounds in turns. With a rival, times in brackets are the rival's time over ours.\n"
    yield "| row | old | new | new / old | bar | passes | note |\n|---|---|---|---|---|---|---|"
    with tempfile.TemporaryDirectory() as folder:
        deck = f"{folder}/grid.spice"
        if any(case.group == "grid" for case in wanted):
            sys.path.insert(0, str(HERE / "power_grid"))
            from deck import write

            write(deck, 1_700_000)
        for case in wanted:
            found = measured(case, versions, rounds if case.group not in ("suite", "grid") else 1, budget, deck)
            for row in case.rows:
                result = judged(case, row, found) | {"rival_bar": bool(case.rival)}
                options.results.append(result)
                yield line(result)
    after = load()
    options.results[:] = [row | {"load_before": before, "load_after": after} for row in options.results]
    yield f"\nLoad after: {after}. Command: `python benchmarks/headline.py {' '.join(sys.argv[1:])}`."


def main() -> int:
    """Print the table and write it; 1 if a row failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", help="revision, or Python interpreter")
    parser.add_argument("new", help="revision, or Python interpreter")
    parser.add_argument("--rows", default="", help="rows or groups, by commas; default: all but suite")
    parser.add_argument("--quick", action="store_true", help="fast cases, three short rounds")
    parser.add_argument("--rounds", type=int, default=0, help="rounds (5, with --quick 3)")
    parser.add_argument(
        "--cache", type=Path, default=Path("~/.cache/circuitsim-headline"), help="environments and kernels"
    )
    parser.add_argument("--extras", default="test,bench", help="extras to install; add torch for its row (test,bench)")
    parser.add_argument(
        "--out", type=Path, default=HERE / "results" / "headline", help="folder of headline.md and .json"
    )
    options = parser.parse_args()
    options.results, lines = [], []
    for text in table(options):
        print(text, flush=True)
        lines.append(text)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "headline.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (options.out / "headline.json").write_text(
        json.dumps(options.results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    return int(any(row["pass"] is False for row in options.results))


if __name__ == "__main__":
    sys.exit(main())
