"""``circuitsim montecarlo``: statistics and yield over tolerances."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from circuitsim.cli.deck import add_deck, held_switches, read, report
from circuitsim.cli.options import whole
from circuitsim.cli.output import Listed, add_format, add_output, add_plot, check_target, check_targets, present
from circuitsim.cli.progress import LateProgress
from circuitsim.cli.solving import add_tolerance
from circuitsim.cli.workers import add_workers, workers_of
from circuitsim.errors import UsageError

if TYPE_CHECKING:
    import numpy as np

    from circuitsim.netlist.deck import Deck
    from circuitsim.tolerance import MonteCarlo
    from circuitsim.tolerance.result import Quantity

TOLERANCES = """\
tolerances: NAMES=AMOUNT[,normal|truncated|ends][,lot]; in decks tol=5%, DEV, LOT, mc(), gauss()
  R*=1%            each resistor uniformly within ±1 % of its value
  R1=0.5%,normal   normal, with three standard deviations of 0.5 %
  V1=0.1           ±0.1 V; D1.vfwd=10% is a parameter of a device
  R*=5%,lot        all by one common share, added to their own deviations
"""

EPILOG = f"""\
{TOLERANCES}
Results depend on --seed alone. contributions: the share of the variance that each tolerance explains.

examples:
  circuitsim montecarlo netlists/divider.cir --tol 'R*=1%' --observe 'v(out)'
  circuitsim montecarlo netlists/divider.cir --tol 'R*=5%,normal' --spec 'v(out)>1' --plot a.png
"""


NOMINAL = "nominal"
"""The notes on tolerances that all other commands leave out."""


def add_tolerances(parser: argparse.ArgumentParser, quantity: str, spec: str) -> None:
    """Add ``--tol``, ``--observe`` and ``--spec`` to a command; ``quantity`` is the last kind of quantities."""
    parser.add_argument(
        "--tol",
        metavar="NAMES=AMOUNT",
        action="append",
        default=[],
        help="a tolerance, beside those of the deck (repeatable; forms below)",
    )
    parser.add_argument(
        "--observe",
        metavar="LIST",
        action=Listed,
        default="",
        help=f"v(node), v(a,b), i(element), {quantity}",
    )
    parser.add_argument(
        "--spec",
        metavar="RANGE",
        action="append",
        default=[],
        help=f"a range {spec}: '4.9<v(out)<5.1' (repeatable)",
    )


def read_observed(args: argparse.Namespace) -> Deck:
    """The deck of a command with ``--observe`` and ``--spec``; its notes are reported.

    Raises
    ------
    UsageError
        Neither of them; a picture or a result that cannot be written.
    """
    check_targets(args)
    if not args.observe and not args.spec:
        raise UsageError("nothing is observed: give --observe 'v(out)' or --spec '4.9<v(out)<5.1'")
    deck = read(args)
    notes = [note for note in deck.notes if note.kind != NOMINAL]  # the command takes what these say is left out
    report([*notes, *held_switches(deck)], args.verbose)
    return deck


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``montecarlo``."""
    parser.epilog = EPILOG
    add_deck(parser)
    add_tolerances(parser, "p(element)", "of a good circuit")
    parser.add_argument("--samples", metavar="N", type=whole, default=10_000, help="circuits to draw (%(default)s)")
    parser.add_argument("--latin", action="store_true", help="Latin hypercube within blocks of 1024 samples")
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="of the random numbers (%(default)s)")
    parser.add_argument("--confidence", metavar="P", type=float, default=0.95, help="of the intervals (%(default)s)")
    add_workers(parser, "threads of this one", checkpoint=True)
    add_tolerance(parser)
    add_format(parser, "table", "csv", "json")
    add_output(parser)
    parser.add_argument("--rows", metavar="FILE", help="also write each sample's quantities as CSV")
    add_plot(parser, "draw histograms and contributions")


def run(args: argparse.Namespace) -> int:
    """Draw, solve and summarise."""
    from circuitsim.tolerance import montecarlo

    check_target(args.rows, [args.deck], "--rows")
    deck = read_observed(args)
    pool = workers_of(args.workers, args.dask)
    with LateProgress("montecarlo") as line, _kept(args.rows) as rows, pool as (workers, executor):
        found = montecarlo(
            deck,
            args.tol,
            args.observe,
            args.samples,
            args.spec,
            args.seed,
            args.latin,
            args.confidence,
            args.tolerance,
            workers,
            executor,
            None if args.quiet else line.update,
            rows,
            args.checkpoint,
        )
    present(found, args, table=lambda: _text(found))
    return 0


@contextmanager
def _kept(path: str | None) -> Iterator[Callable[[Sequence[str], np.ndarray], None] | None]:
    """What writes the samples of a run into a file, block by block."""
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


def _text(found: MonteCarlo) -> str:
    percent = f"{100 * found.confidence:g} %"
    lines = [found.nominal.circuit.title, f"{found.samples:,} samples, seed {found.seed}; intervals of {percent}"]
    if found.failures:
        lines.append(f"{found.failures:,} samples have no steady state")
    for quantity in found.quantities:
        lines += ["", *_table(quantity)]
    if found.yield_ is not None:
        lines += ["", *_yield(found)]
    lines += ["", f"all samples certified, worst relative violation {found.worst:.1e}"]
    return "\n".join(lines) + "\n"


def _table(q: Quantity) -> list[str]:
    from circuitsim.formats.columns import quantity, table

    rows = [
        ["nominal", quantity(q.nominal, q.unit), ""],
        ["mean", quantity(q.mean, q.unit), f"± {quantity(q.mean_error, q.unit)} (standard error)"],
        ["standard deviation", quantity(q.deviation, q.unit), ""],
        ["least", quantity(q.least, q.unit), ""],
    ]
    for p, (low, value, high) in q.quantiles.items():
        between = f"{_end(low, q.unit)} … {_end(high, q.unit)}"
        rows.append([f"{100 * p:g} % quantile", quantity(value, q.unit), between])
    rows.append(["most", quantity(q.most, q.unit), ""])
    for name, share in q.contributions[:5]:
        rows.append([f"variance from {name}", f"{100 * share:.3g} %", ""])
    rows.append(["not linear", f"{100 * q.unexplained:.3g} %", ""])
    return table([q.name, "", "interval"], rows)


def _end(value: float, unit: str) -> str:
    from circuitsim.formats.columns import quantity

    return quantity(value, unit) if abs(value) < float("inf") else "?"


def _yield(found: MonteCarlo) -> list[str]:
    from circuitsim.formats.columns import table

    pairs = [(str(one), share) for one, share in found.specifications]
    assert found.yield_ is not None
    if len(pairs) > 1:
        pairs.append(("all", found.yield_))
    rows = [[name, f"{100 * s.value:.5g} %", f"{100 * s.low:.5g} … {100 * s.high:.5g} %"] for name, s in pairs]
    return table(["specification", "yield", "interval"], rows)
