"""``circuitsim sweep``: DC sweeps."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from circuitsim.cli.deck import alone, elsewhere, printed, read, report
from circuitsim.cli.output import check_targets
from circuitsim.cli.over_time import measured, present_measured
from circuitsim.cli.progress import LateProgress
from circuitsim.cli.stepped import check_runs, run_all
from circuitsim.cli.workers import workers_of
from circuitsim.errors import UsageError
from circuitsim.netlist.deck import (
    OVER_TIME,
    STEADY,
    TIME,
    DcSweep,
    Transient,
    Vary,
    measurements_of,
    memory,
    ranges_of,
    steps_of,
)

if TYPE_CHECKING:
    from circuitsim.netlist.deck import Deck

EPILOG = """\
Without --vary: the deck's .dc, .step and .temp, the first name fastest. A point without a solution is
a row with its status and empty columns (exit code 3). Waveforms: circuitsim tran --vary.

examples:
  circuitsim sweep netlists/limiter-two-sided.cir --vary V1=-10:10:0.5 --columns 'v(out)'
  circuitsim sweep netlists/divider.cir --vary R1=1k,2k,5k --format table --plot a.png
  circuitsim sweep netlists/sweep-dead-zone.cir --format raw --output zone.raw
"""


OPTIONS = """
@vary element, parameter, temp or time
@columns
@measure dc: 'vth FIND v(in) WHEN v(out)=1'
@solver
@workers this one
@dask
@checkpoint
@deck
@tolerance
@format csv table json raw
@binary
@output the result
@plot plot the columns
"""


def run(args: argparse.Namespace) -> int:
    """Solve all points and print them as rows."""
    from circuitsim.analysis import sweep

    check_targets(args)
    vary = varied(args.vary)
    deck = read(args)
    if not vary and runs_over_time(deck):
        return _over_time(args, deck)
    texts = [] if vary else measurements_of(deck, "dc")
    report([w for w in deck.notes if not texts or not set(w.names) & {".meas", ".measure"}], args.verbose)
    asked = vary or ranges_of(deck)
    for card in (
        [] if vary or TIME in asked or not alone() else [card for card in deck.analyses if isinstance(card, Transient)]
    ):
        print(f"note: .tran (line {card.location.line}) is not run beside .dc; --vary time=… runs it", file=sys.stderr)
    columns = args.columns or printed(deck, OVER_TIME if TIME in asked else STEADY)
    with LateProgress("sweep") as line, workers_of(args.workers, args.dask) as (workers, executor):
        found = sweep(
            deck, asked, columns, args.solver, args.tolerance, line.update, workers or 1, executor, args.checkpoint
        )
    report([w for w in found.warnings if w not in deck.notes], args.verbose)
    values = measured(deck, found, texts, args.measure)
    present_measured(found, args, [found.tables()["points"]], values, whole=True)
    check_runs(found, "points have no operating point")
    return 0


def runs_over_time(deck: Deck) -> bool:
    """Whether the deck's sweep is its ``.tran`` card, for a circuit that stores energy."""
    sweeps = [card for card in deck.analyses if isinstance(card, DcSweep)]
    cards = [card for card in deck.analyses if isinstance(card, Transient)]
    return len(cards) == 1 and not sweeps and bool(memory(deck.operating_circuit))


def _over_time(args: argparse.Namespace, deck: Deck) -> int:
    """The deck's ``.tran``, within its ``.step`` cards."""
    report([note for note in deck.notes if not elsewhere(note)], args.verbose)
    if args.solver != "auto" or args.checkpoint:
        option = "--checkpoint" if args.checkpoint else "--solver"
        raise UsageError(f"{option} is for operating points; this deck's .tran runs over time: leave it out")
    return run_all(args, deck, steps_of(deck), args.columns or printed(deck, OVER_TIME))


def varied(texts: Sequence[str]) -> Vary:
    """What ``--vary`` options vary."""
    vary: Vary = dict(_named(text) for text in texts)
    if len(vary) < len(texts):
        raise UsageError("--vary names one thing twice; give it one range or one list")
    return vary


def _named(text: str) -> tuple[str, tuple[float, ...]]:
    """Name and values of one ``--vary``."""
    name, equals, values = text.partition("=")
    if not equals or not name.strip() or not values.strip():
        raise UsageError(f"--vary {text!r}: write NAME=start:stop:step or NAME=a,b,c, for instance V1=0:5:0.1")
    return name.strip(), ranged("--vary", values.strip(), text)


def ranged(option: str, values: str, text: str = "") -> tuple[float, ...]:
    """The numbers of ``start:stop:step`` or ``a,b,c``; ``text`` is shown in errors instead of them.

    Raises
    ------
    UsageError
        Neither.
    """
    try:
        return _values(values)
    except (UsageError, ValueError) as error:
        hint = getattr(error, "hint", "") or "start:stop:step, for instance 0:5:0.1, or a,b,c"
        raise UsageError(f"{option} {(text or values)!r}: {error}\n    hint: {hint}") from None


def _values(text: str) -> tuple[float, ...]:
    from circuitsim.netlist.deck import points
    from circuitsim.units import parse

    if ":" not in text:
        return tuple(parse(part.strip()) for part in text.split(","))
    parts = [parse(part.strip()) for part in text.split(":")]
    if len(parts) != 3:
        raise UsageError(f"a range has three numbers, start:stop:step, not {len(parts)}")
    return tuple(points(*parts))


def note_steps(deck: Deck, analysis: str) -> None:
    """Note that an analysis of one circuit ignores ``.step``."""
    if steps_of(deck):
        print(f"note: {analysis} uses the values on the cards; .step and .temp are ignored", file=sys.stderr)
