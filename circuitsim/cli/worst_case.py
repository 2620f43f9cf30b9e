"""``circuitsim worst-case``: proven extremes over tolerances."""

from __future__ import annotations

import argparse

from circuitsim.cli.montecarlo import TOLERANCES, read_observed
from circuitsim.cli.output import present
from circuitsim.cli.progress import LateProgress
from circuitsim.cli.workers import workers_of
from circuitsim.errors import UsageError

EPILOG = f"""\
Minimum and maximum over all values within the tolerances, each attained at a certified operating point,
with a proven bound: equal for resistors and sources, and as close as --gap or --budget allow for diodes.

{TOLERANCES}
examples:
  circuitsim worst-case netlists/divider.cir --tol 'R*=1%' --observe 'v(out) dissipation'
  circuitsim worst-case netlists/divider.cir --tol 'R*=5%' --spec '1.9<v(out)<2.1' --plot ranges.png
"""


OPTIONS = """
@tol
@observe dissipation
@spec to hold everywhere
--gap G  gap between value and bound that ends a search (1e-4 of the range)
--budget N = 4000  maximum linear systems of a search (%(default)s)
@workers this one
@dask
@deck
@format table csv json
@output the result
@plot draw the ranges and limits
"""


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
            args.observe or "",
            args.spec,
            args.gap,
            args.budget,
            workers or 1,
            executor,
            line.update,
        )
    present(found, args)
    return 0
