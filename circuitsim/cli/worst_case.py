"""``circuitsim worst-case``: proven extremes over tolerances."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from circuitsim.cli.deck import add_deck
from circuitsim.cli.montecarlo import TOLERANCES, add_tolerances, read_observed
from circuitsim.cli.options import bounded
from circuitsim.cli.output import add_format, add_output, add_plot, present
from circuitsim.cli.progress import LateProgress
from circuitsim.cli.workers import add_workers, workers_of
from circuitsim.errors import UsageError

if TYPE_CHECKING:
    from circuitsim.tolerance import WorstCase
    from circuitsim.tolerance.worst_case import Extreme

EPILOG = f"""\
The least and the largest value over all values within the tolerances, each attained at a certified
operating point, with a bound that no value passes: equal for resistors and sources, and as close as
--gap or --budget allow for diodes.

{TOLERANCES}
examples:
  circuitsim worst-case netlists/divider.cir --tol 'R*=1%' --observe 'v(out) dissipation'
  circuitsim worst-case netlists/divider.cir --tol 'R*=5%' --spec '1.9<v(out)<2.1' --plot ranges.png
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``worst-case``."""
    parser.epilog = EPILOG
    add_deck(parser)
    add_tolerances(parser, "dissipation", "to hold everywhere")
    parser.add_argument(
        "--gap", metavar="G", type=gap, help="gap between value and bound that ends a search (1e-4 of the range)"
    )
    parser.add_argument(
        "--budget", metavar="N", type=int, default=4000, help="most linear systems of a search (%(default)s)"
    )
    add_workers(parser, "this one")
    add_format(parser, "table", "csv", "json")
    add_output(parser)
    add_plot(parser, "draw the ranges and limits")


def gap(text: str) -> float:
    """The value of ``--gap``: a SPICE number that is not negative."""
    return bounded(text, lambda value: value >= 0.0, "less than 0")


def run(args: argparse.Namespace) -> int:
    """Search and print the extremes."""
    from circuitsim.tolerance import worst_case

    if args.budget < 1:
        raise UsageError(f"--budget must be at least 1, not {args.budget}")
    deck = read_observed(args)
    with LateProgress("worst-case") as line, workers_of(args.workers, args.dask) as (workers, executor):
        found = worst_case(
            deck,
            args.tol,
            args.observe,
            args.spec,
            args.gap,
            args.budget,
            workers or 1,
            executor,
            None if args.quiet else line.update,
        )
    present(found, args, table=lambda: _text(found))
    return 0


def _text(found: WorstCase) -> str:
    from circuitsim.formats.columns import quantity, table

    rows = [
        [r.name, quantity(r.nominal, r.unit), _value(r.least, r.unit), _value(r.most, r.unit), r.method]
        for r in found.ranges
    ]
    lines = [found.title, *table(["quantity", "nominal", "least", "most", "proof"], rows)]
    words = {True: "holds in every case", False: "violated in some case", None: "not proven: a larger --budget may"}
    if found.specifications:
        lines += ["", *table(["specification", ""], [[str(one), words[holds]] for one, holds in found.specifications])]
    for r in found.ranges[:8]:
        lines += ["", *_corners(r.name, r.least, r.most)]
    return "\n".join(lines) + "\n"


def _value(extreme: Extreme, unit: str) -> str:
    from circuitsim.formats.columns import quantity

    return quantity(extreme.value, unit)


def _corners(name: str, least: Extreme, most: Extreme, shown: int = 12) -> list[str]:
    """The values at which the extremes are taken."""
    from circuitsim.formats.columns import table

    rows = [[key, f"{least.at[key]:.6g}", f"{most.at[key]:.6g}"] for key in list(least.at)[:shown]]
    more = len(least.at) - len(rows)
    return [*table([f"{name} is", "least at", "most at"], rows), *[f"… and {more} more values"] * (more > 0)]
