"""``circuitsim montecarlo``: statistics and yield over tolerances."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from circuitsim.cli.options import whole
from circuitsim.cli.output import check_target, present
from circuitsim.cli.progress import LateProgress
from circuitsim.cli.solving import opened
from circuitsim.cli.workers import workers_of
from circuitsim.errors import UsageError

if TYPE_CHECKING:
    import numpy as np

    from circuitsim.netlist.deck import Deck

TOLERANCES = """\
tolerances: NAMES=AMOUNT[,normal|truncated|ends][,lot]; in decks tol=5%, DEV, LOT, mc(), gauss()
  R*=1%            each resistor uniformly within ±1 % of its value
  R1=0.5%,normal   normal, with three standard deviations of 0.5 %
  V1=0.1           ±0.1 V; D1.vfwd=10% is a parameter of a device
  R*=5%,lot        one common deviation, added to their own
"""

EPILOG = f"""\
{TOLERANCES}
Results depend only on --seed. contributions: fraction of the variance that each tolerance explains.

examples:
  circuitsim montecarlo netlists/divider.cir --tol 'R*=1%' --observe 'v(out)'
  circuitsim montecarlo netlists/divider.cir --tol 'R*=5%,normal' --spec 'v(out)>1' --plot a.png
"""


def read_observed(args: argparse.Namespace) -> Deck:
    """The deck of a command with ``--observe`` and ``--spec``; its notes are reported.

    Raises
    ------
    UsageError
        Neither of them; a picture or a result that cannot be written.
    """
    if not args.observe and not args.spec:
        raise UsageError("nothing is observed: give --observe 'v(out)' or --spec '4.9<v(out)<5.1'")
    # This command uses the tolerances that others ignore.
    return opened(args, lambda note: note.kind == "nominal", held=True)


OPTIONS = """
@tol
@observe p(element)
@spec of a good circuit
--samples N = 10000  circuits to draw (%(default)s)
--latin  Latin hypercube within blocks of 1024 samples
--seed N = 0  seed of the random numbers (%(default)s)
--confidence P = 0.95  of the intervals (%(default)s)
@workers threads of this one
@dask
@checkpoint
--rows FILE  also write each sample's quantities as CSV
@deck
@tolerance
@format table csv json
@output the result
@plot draw histograms and contributions
"""
SETTINGS = {"samples": {"type": whole}}


def run(args: argparse.Namespace) -> int:
    """Sample, solve and summarise."""
    from circuitsim.tolerance import montecarlo

    check_target(args.rows, [args.deck], "--rows")
    deck = read_observed(args)
    pool = workers_of(args.workers, args.dask)
    with LateProgress("montecarlo") as line, _kept(args.rows) as rows, pool as (workers, executor):
        found = montecarlo(
            deck,
            args.tol,
            args.observe or "",
            args.samples,
            args.spec,
            args.seed,
            args.latin,
            args.confidence,
            args.tolerance,
            workers,
            executor,
            line.update,
            rows,
            args.checkpoint,
        )
    present(found, args)
    return 0


@contextmanager
def _kept(path: str | None) -> Iterator[Callable[[Sequence[str], np.ndarray], None] | None]:
    """Writer of the samples of a run to a file, block by block."""
    if path is None:
        yield None
        return
    from circuitsim._files import atomic_file
    from circuitsim.formats.columns import csv

    with atomic_file(Path(path)) as file:

        def write(names: Sequence[str], values: np.ndarray) -> None:
            if not file.tell():
                file.write(csv(names, []).encode())
            file.write("".join(",".join(map(repr, row)) + "\n" for row in values.tolist()).encode())

        yield write
