"""Commands beside the analyses: bundled decks and data sets, compiled kernels, comparison with other solvers at equal
verified error.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path

from circuitsim.cli import Command, add_options, add_stated, check_values, command, options_in
from circuitsim.cli.common import INTERRUPTED, say
from circuitsim.errors import UsageError
from circuitsim.formats import dumps, table


def _list(args: Namespace) -> None:
    """One line per deck: its name and its title."""
    from circuitsim.examples import examples

    found = examples()
    if args.format == "json":
        print(json.dumps([example._asdict() for example in found], indent=2, ensure_ascii=False))
        return
    width = max(len(example.name) for example in found)
    for example in found:
        print(f"{example.name:{width}}  {example.title}")


def _show(args: Namespace) -> None:
    """The text of one deck."""
    from circuitsim.examples import path

    with open(path(args.name), encoding="utf-8") as file:
        sys.stdout.write(file.read())


def _copy(args: Namespace) -> None:
    """Copy, and print the path of each file."""
    from circuitsim.examples import copy

    folder = args.output or ("." if args.names else "netlists")
    for path in copy(args.names, folder, args.force):
        print(path.removeprefix("./"))


run_examples = Command(
    {
        "list": ("names and titles of all bundled decks", "@format table json", _list),
        "show": ("print a deck", "name NAME  a bundled deck", _show),
        "copy": (
            "copy decks, what they include and their data",
            """
names NAME…  bundled decks; none: all, into the folder netlists
--output, -o DIR  the folder to copy to (the current one)
--force  replace files that have other content
""",
            _copy,
        ),
    },
    """\
first/amplifier, first/diode, first/learning, first/linear, first/rectifier and first/time are short decks to begin
with; their comments name the commands to run.

examples:
  circuitsim examples list
  circuitsim examples show rectifier-bridge
  circuitsim examples copy first/rectifier
  circuitsim examples copy rectifier-bridge learn-divider
  circuitsim examples copy                                  everything, into the folder netlists
""",
)


def _data_sets(args: Namespace) -> None:
    """One row per data set: name, location, description."""
    from circuitsim.datasets.images import COLOUR
    from circuitsim.datasets.remote import REMOTE, data_directory, find

    rows: list[tuple[str, Path | None, str]] = [
        ("digits", Path("bundled with scikit-learn"), "1,797 handwritten digits, 8 × 8 pixels")
    ]
    rows += [(name, find(name, args.data_dir), remote.about) for name, remote in REMOTE.items()]
    root = data_directory(args.data_dir)
    rows += [(name, form.inside(root), form.about) for name, form in COLOUR.items()]
    listed = [(name, place and str(place), about) for name, place, about in rows]
    if args.format == "json":
        print(json.dumps([dict(zip(("name", "place", "about"), row)) for row in listed], indent=1))
        return
    absent = {name: f"not here: circuitsim data fetch {name}" for name in REMOTE}
    shown = [[name, place or absent.get(name, "not here: docs/models.md"), about] for name, place, about in listed]
    print("\n".join(table(["data set", "place", "contents"], shown)))


def _fetch(args: Namespace) -> None:
    """Fetch, and print a line per file."""
    from circuitsim.datasets.remote import fetch

    folder = fetch(args.name, args.data_dir, args.mirror, say)
    print(folder)


WHERE = "--data-dir DIR  the data directory ($CIRCUITSIM_DATA, or the user's cache directory)"
run_data = Command(
    {
        "list": ("data sets, and where they are", f"{WHERE}\n@format table json", _data_sets),
        "fetch": (
            "fetch a data set, once",
            f"name NAME  mnist\n--mirror URL  fetch from this folder instead (repeatable)\n{WHERE}",
            _fetch,
        ),
    },
    "",
)


DIVIDER = """A voltage divider with a diode, to sweep and to train
*! input V1
*! output v(out)
*! trainable R* min=10 max=100k
V1 in 0 1
R1 in out 1k
R2 out 0 1k
R3 in b 1k
R4 b 0 1k
D1 b out ideal
.model ideal D
"""
RECTIFIER = """A smoothed rectifier
V1 in 0 SIN(0 1 50)
D1 in out ideal
C1 out 0 10u
R1 out 0 1k
.model ideal D
.tran 1m 40m
"""
AMPLIFIER = """An inverting amplifier with diodes in feedback and a load that is charged through a junction diode
*! input V1
V1 in 0 SIN(0 1 1k)
R1 in m 1k
R2 m out 10k
D1 m out ideal
E1 out 0 0 m 1e5
D2 out c junction
C1 c 0 1u
R3 c 0 1k
.model ideal D
.model junction D(IS=1p)
.tran 10u 2m
"""
PARALLEL = """Sources and ideal diodes in loops
V1 a 0 1
V2 a 0 1
D1 a b ideal
D2 a b ideal
D3 b c ideal
D4 a c ideal
R1 b 0 1k
R2 c 0 1k
.model ideal D
"""
SIDE = 145
"""Nodes along an edge of a mesh that is too large for the kernels of small circuits."""

WARMED = """
solve mesh.cir --format csv
sweep divider.cir --vary V1=-5:5:0.001 --format csv
tran rectifier.cir --format csv
tran ringing.cir --format csv
solve amplifier.cir --format csv
tran amplifier.cir --format csv
solve parallel.cir --format csv
train circuit divider.cir --data data.csv --epochs 1 --out ideal
train circuit junction.cir --data data.csv --epochs 1 --out junction
train drn --preset drn-xs --dataset digits --epochs 1 --input-gain 30 --out drn
train dhn --preset dhn-1h --dataset digits --epochs 1 --hidden 8 --out dhn
train ffebm --dataset digits --epochs 1 --out chain
train rbm --dataset digits --hidden 8 --epochs 1 --out rbm
""".strip().splitlines()
"""A solve, a batch, waveforms, controlled sources, loops of diodes, a training step of each kind of model."""


@command(
    "",
    """\
Compiles the kernels that are otherwise compiled at first use (about two minutes) and caches them for this
processor and version: beside the program, in the user's cache folder, or in NUMBA_CACHE_DIR.

examples:
  circuitsim warm-up
  NUMBA_CACHE_DIR=/opt/kernels circuitsim warm-up
""",
)
def run_warm_up(args: Namespace) -> None:
    """Compile the kernels, with one line per command on stderr, and print the seconds."""
    from circuitsim.kernels import compile_at_once

    begin = time.perf_counter()
    compile_at_once()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        _write_files()
        for k, line in enumerate(WARMED, 1):
            start = time.perf_counter()
            left_out = _failure(line.split())
            took = f"{time.perf_counter() - start:.1f} s"
            say(f"{k}/{len(WARMED)} {line}: {left_out or took}")
    print(f"kernels ready after {time.perf_counter() - begin:.1f} s")


def _write_files() -> None:
    """Write the decks and data of the commands into the working directory."""
    right = [f"R{k} {k} {k + 1} 1" for k in range(SIDE * SIDE) if (k + 1) % SIDE]
    down = [f"RD{k} {k} {k + SIDE} 1" for k in range(SIDE * (SIDE - 1))]
    diodes = [f"D{k} {k} 0 ideal" for k in range(1, SIDE * SIDE, SIDE)]
    junction = DIVIDER.replace("*! trainable", "*! trainable D1.is min=1f max=1u\n*! trainable")
    files = {
        "mesh.cir": "\n".join(["A mesh", f"I1 0 {SIDE * SIDE - 1} 1", *right, *down, *diodes, ".model ideal D", ""]),
        "divider.cir": DIVIDER,
        "junction.cir": junction.replace("ideal D\n", "ideal D(IS=1p)\n"),
        "rectifier.cir": RECTIFIER,
        "amplifier.cir": AMPLIFIER,
        "parallel.cir": PARALLEL,
        "ringing.cir": RECTIFIER.replace("D1 in out", "L1 in a 1m\nD1 a out"),
        "data.csv": "V1,v(out)\n2,1.4\n1,0.7\n-1,-0.2\n",
    }
    for name, text in files.items():
        Path(name).write_text(text)


def _failure(words: list[str]) -> str:
    """Run a command without its output; returns the last line of its message if it fails."""
    from circuitsim.cli import main

    errors = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
        code = main(words)
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    return errors.getvalue().strip().splitlines()[-1] if code else ""


OPTIONS = options_in("""
suite NAME = small  small or full
against NAMES = cvxpy,ngspice  cvxpy, cvxpy-nodal:PIQP, ngspice …, by commas
out DIR = bench  where results go
seed N = 0  seed of the random circuits
limit S = 120  time limit of a measurement, s
budget S = 1  time for repeated measurements, s
max_unknowns N  leave larger circuits out
""")


def add_arguments(parser: ArgumentParser) -> None:
    """The options of the command."""
    add_stated(parser, OPTIONS)
    add_options(parser, "@format table json")


@command(
    add_arguments,
    """\
Each measurement runs in its own process and is stored in OUT; repeat the command to continue. Other solvers'
tolerances are tightened until node voltages differ from our certified ones by at most 1e-9 of the largest.

examples:
  circuitsim bench --suite small --against cvxpy-nodal:PIQP --out bench-small
  circuitsim bench --suite full --against cvxpy,ngspice --limit 600 --out bench-full
""",
)
def run_bench(args: Namespace) -> None:
    """Measure what is missing, write report.md and times.png, print the report."""
    from circuitsim._files import atomic_write
    from circuitsim.bench import runner
    from circuitsim.bench.runner import expand
    from circuitsim.plotting.charts import write

    check_values({name: value for name, value in vars(args).items() if value is not None}, OPTIONS)
    if args.limit <= 0.0 or args.budget < 0.0:
        raise UsageError("--limit must be more than 0 s, --budget not less than 0 s")
    cases = runner.cases(args.suite, expand(args.against), args.seed)
    wanted = [case for case in cases if args.max_unknowns is None or case.unknowns <= args.max_unknowns]
    if not wanted:
        raise UsageError("there is nothing to measure: name competitors with --against, or raise --max-unknowns")

    def tell(line: str) -> None:
        if sys.stderr.isatty():
            say(line)

    folder = Path(args.out)
    rows = runner.run(wanted, folder, args.limit, args.budget, tell)
    spent = f"at most {args.limit:g} s a measurement, {args.budget:g} s of repeats."
    settings = f"Suite {args.suite}, seed {args.seed}, {spent}"
    text = runner.markdown(rows, settings)
    atomic_write(folder / "report.md", text.encode("utf-8"))
    write(runner.draw(rows), folder / "times.png")
    print(dumps(rows) if args.format == "json" else text, end="" if args.format == "json" else "\n")
