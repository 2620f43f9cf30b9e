"""``circuitsim bench``: comparison of circuitsim with other solvers, at equal verified error."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from circuitsim.cli.options import Kind, Option, check_values
from circuitsim.cli.output import add_format
from circuitsim.errors import UsageError
from circuitsim.formats.strict_json import dumps

EPILOG = """\
Each measurement runs in its own process and is stored in OUT; repeat the command to continue. Results of
other solvers are checked by our certificate and tightened until their verified error is at most 1e-9.

examples:
  circuitsim bench --suite small --against cvxpy-nodal:PIQP --out bench-small
  circuitsim bench --suite full --against cvxpy,ngspice --limit 600 --out bench-full
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--suite", metavar="NAME", default="small", help="small or full (small)")
    parser.add_argument(
        "--against",
        default="cvxpy,ngspice",
        metavar="LIST",
        help="cvxpy, cvxpy-nodal:PIQP, ngspice …, by commas (cvxpy,ngspice)",
    )
    parser.add_argument("--out", type=Path, default=Path("bench"), metavar="DIR", help="where results go (bench)")
    add_format(parser, "table", "json")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the random circuits (0)")
    parser.add_argument("--limit", type=float, default=120.0, metavar="S", help="time limit of a measurement, s (120)")
    parser.add_argument("--budget", type=float, default=1.0, metavar="S", help="time for repeated measurements, s (1)")
    parser.add_argument("--max-unknowns", type=int, default=10**7, metavar="N", help="leave larger circuits out")


def run(args: argparse.Namespace) -> int:
    """Measure what is missing, write report.md and times.png, print the report."""
    from matplotlib.figure import Figure

    from circuitsim._files import atomic_write
    from circuitsim.bench import report, runner
    from circuitsim.bench.competitors import expand
    from circuitsim.plotting.figure import write

    options = {"seed": args.seed, "limit": args.limit, "budget": args.budget}
    check_values(options, dict.fromkeys(options, Option(Kind.NUMBER)))
    if args.limit <= 0.0 or args.budget < 0.0:
        raise UsageError("--limit must be more than 0 s, --budget not less than 0 s")
    wanted = [
        case for case in runner.cases(args.suite, expand(args.against), args.seed) if case.unknowns <= args.max_unknowns
    ]

    if not wanted:
        raise UsageError("there is nothing to measure: name competitors with --against, or raise --max-unknowns")

    def tell(line: str) -> None:
        if sys.stderr.isatty():
            print(line, file=sys.stderr, flush=True)

    rows = runner.run(wanted, args.out, args.limit, args.budget, tell)
    spent = f"at most {args.limit:g} s a measurement, {args.budget:g} s of repeats."
    settings = f"Suite {args.suite}, seed {args.seed}, {spent}"
    text = report.markdown(rows, settings)
    atomic_write(args.out / "report.md", text.encode("utf-8"))
    figure = Figure(layout="constrained")
    report.draw(figure, rows)
    write(figure, args.out / "times.png")
    print(dumps(rows) if args.format == "json" else text, end="" if args.format == "json" else "\n")
    return 0
