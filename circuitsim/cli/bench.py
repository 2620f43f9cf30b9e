"""``circuitsim bench``: comparison of circuitsim with other solvers, at equal verified error."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from circuitsim.cli.options import add_options, add_stated, check_values, command, options_in
from circuitsim.errors import UsageError
from circuitsim.formats.table import dumps

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
def run_bench(args: Namespace) -> int:
    """Measure what is missing, write report.md and times.png, print the report."""
    from circuitsim._files import atomic_write
    from circuitsim.bench import runner
    from circuitsim.bench.competitors import expand
    from circuitsim.plotting.figure import write

    check_values({name: value for name, value in vars(args).items() if value is not None}, OPTIONS)
    if args.limit <= 0.0 or args.budget < 0.0:
        raise UsageError("--limit must be more than 0 s, --budget not less than 0 s")
    cases = runner.cases(args.suite, expand(args.against), args.seed)
    wanted = [case for case in cases if args.max_unknowns is None or case.unknowns <= args.max_unknowns]
    if not wanted:
        raise UsageError("there is nothing to measure: name competitors with --against, or raise --max-unknowns")

    def tell(line: str) -> None:
        if sys.stderr.isatty():
            print(line, file=sys.stderr, flush=True)

    folder = Path(args.out)
    rows = runner.run(wanted, folder, args.limit, args.budget, tell)
    spent = f"at most {args.limit:g} s a measurement, {args.budget:g} s of repeats."
    settings = f"Suite {args.suite}, seed {args.seed}, {spent}"
    text = runner.markdown(rows, settings)
    atomic_write(folder / "report.md", text.encode("utf-8"))
    write(runner.draw(rows), folder / "times.png")
    print(dumps(rows) if args.format == "json" else text, end="" if args.format == "json" else "\n")
    return 0
