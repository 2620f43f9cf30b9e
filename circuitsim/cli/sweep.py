"""``circuitsim sweep``: operating points over ranges of values."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from circuitsim.cli.deck import add_deck, read, report
from circuitsim.cli.output import add_output, check_target, deliver
from circuitsim.cli.solving import add_solving
from circuitsim.errors import ConvergenceError, UsageError

if TYPE_CHECKING:
    from circuitsim.analysis import Sweep
    from circuitsim.netlist import Deck
    from circuitsim.training.progress import ProgressLine

EPILOG = """\
Without --vary the sweep is the deck's: .dc (one or two sources, or temp) inside .step param, .step temp or a .temp
with several values. With --vary the deck's analyses
are ignored. Numbers are SPICE's (10k, 1MEG, 5m). The first name varied runs fastest, as in .dc.

columns: those of --columns, else those of the deck's .print or .save, else all v(node) and i(element).

A point without a steady state is a row with its status and empty columns; the exit code is then 3.

examples:
  circuitsim sweep my.cir --vary V1=0:5:0.1 > my.csv
  circuitsim sweep my.cir --vary V1=0:5:0.1 --vary R2=1k,2k,5k --columns 'v(out) i(D1)' --plot my.png
  circuitsim sweep my.cir --format table
"""

OTHER_ANALYSES = ("tran", "ac", "noise", "disto", "tf", "pz", "sp")
"""What a ``.print`` card may name that is not done here: its columns are not the sweep's."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``sweep``."""
    parser.epilog = EPILOG
    add_deck(parser)
    parser.add_argument(
        "--vary", metavar="NAME=RANGE", action="append", default=[],
        help="an element, a parameter or temp (°C), and start:stop:step or a list a,b,c (repeatable)",
    )  # fmt: skip
    parser.add_argument("--columns", metavar="LIST", help="what to show: v(node), v(a,b), i(element), p(element)")
    parser.add_argument("--format", choices=("csv", "table", "json"), default="csv", help="default: csv")
    add_output(parser)
    add_solving(parser)
    parser.add_argument("--plot", metavar="FILE", help="also plot the columns (.png, .svg or .pdf)")


def run(args: argparse.Namespace) -> int:
    """Solve all points and print them as rows."""
    from circuitsim.analysis import sweep

    check_target(args.output, [args.deck])
    if args.plot:
        from circuitsim.cli.drawing import check_drawing

        check_drawing(args.plot, [args.deck], args.output)
    vary = dict(_named(text) for text in args.vary)
    if len(vary) < len(args.vary):
        raise UsageError("--vary names one thing twice; give it one range or one list")
    deck = read(args)
    report([*deck.problems, *deck.notes])
    line = _ProgressLine()
    try:
        columns = args.columns or _printed(deck)
        found = sweep(deck, vary or _asked(deck), columns, args.solver, args.tolerance, line.update)
    finally:
        line.close()
    report(w for w in found.warnings if w not in deck.problems and w not in deck.notes)
    deliver(_formatted(found, args.format), args.output)
    if args.plot:
        from circuitsim.cli.drawing import draw_sweep

        draw_sweep(found, args.plot)
    if found.failures:
        raise _failed(found)
    return 0


def _failed(found: Sweep) -> ConvergenceError:
    first = found.failures[0]
    at = ", ".join(f"{name}={values[first.row]:g}" for name, values in found.axes.items())
    return ConvergenceError(
        f"{len(found.failures)} of {len(found)} points have no operating point; the first, at {at}: {first.error}"
    )


def _named(text: str) -> tuple[str, tuple[float, ...]]:
    """Name and values of one ``--vary``."""
    name, equals, values = text.partition("=")
    if not equals or not name.strip() or not values.strip():
        raise UsageError(f"--vary {text!r}: write NAME=start:stop:step or NAME=a,b,c, for instance V1=0:5:0.1")
    try:
        return name.strip(), _values(values.strip())
    except (UsageError, ValueError) as error:
        hint = getattr(error, "hint", "") or "start:stop:step, for instance 0:5:0.1, or a,b,c"
        raise UsageError(f"--vary {text!r}: {error}\n    hint: {hint}") from None


def _values(text: str) -> tuple[float, ...]:
    from circuitsim.netlist.analyses import points
    from circuitsim.units import parse

    if ":" not in text:
        return tuple(parse(part.strip()) for part in text.split(","))
    parts = [parse(part.strip()) for part in text.split(":")]
    if len(parts) != 3:
        raise UsageError(f"a range has three numbers, start:stop:step, not {len(parts)}")
    return tuple(points(*parts))


def _asked(deck: Deck) -> dict[str, tuple[float, ...]]:
    """What the deck's own ``.dc`` and ``.step`` vary; ``.dc`` runs inside ``.step``."""
    from circuitsim.analysis.sweep import PARAMETER, TEMPERATURE
    from circuitsim.netlist.deck import DcSweep, ParameterStep, Temperature, TemperatureStep

    dc = [analysis for analysis in deck.analyses if isinstance(analysis, DcSweep)]
    if len(dc) > 1:
        lines = " and ".join(str(analysis.location.line) for analysis in dc)
        raise UsageError(f"the deck has {len(dc)} .dc cards (lines {lines}); leave one, or give --vary")
    steps = [analysis.sweep for analysis in deck.analyses if isinstance(analysis, ParameterStep)]
    heats = [analysis.sweep.values for analysis in deck.analyses if isinstance(analysis, TemperatureStep)]
    heats += [a.values for a in deck.analyses if isinstance(a, Temperature) and len(a.values) > 1]
    if not dc and not steps and not heats:
        raise UsageError("the deck has no .dc, no .step and no .temp list; give --vary, for instance --vary V1=0:5:0.1")
    asked = {s.name: tuple(s.values) for analysis in dc for s in analysis.sweeps}
    asked |= {PARAMETER + s.name: tuple(s.values) for s in steps}
    return asked | ({TEMPERATURE: tuple(heats[-1])} if heats else {})


def _printed(deck: Deck) -> str | None:
    """The columns that the deck's ``.print dc`` and ``.save`` cards name; None where they name none, or all."""
    from circuitsim.netlist.deck import Output

    words: list[str] = []
    for card in deck.analyses:
        if isinstance(card, Output) and card.requests:
            kind = card.requests[0].lower()
            if card.card == "save" or kind not in OTHER_ANALYSES:
                words += card.requests[kind in ("dc", "op") :]
    return None if any(word.lower() in ("all", "allv", "alli") for word in words) else " ".join(words) or None


def _formatted(found: Sweep, form: str) -> str:
    if form == "json":
        from circuitsim.formats.strict_json import dumps

        return dumps(found.to_dict())
    from circuitsim.formats import columns

    if form == "csv":
        return columns.csv(found.header, found.rows())
    units = [found.units.get(name, "") for name in found.header]
    rows = [
        [cell if isinstance(cell, str) else columns.quantity(cell, unit) for cell, unit in zip(row, units)]
        for row in found.rows()
    ]
    return "\n".join([found.title, "", *columns.table(found.header, rows)]).lstrip("\n") + "\n"


class _ProgressLine:
    """How far a long sweep is, on a terminal; loaded only once the sweep has run for a second."""

    def __init__(self) -> None:
        import time

        self._clock, self._began = time.monotonic, time.monotonic()
        self._line: ProgressLine | None = None

    def update(self, done: int, points: int) -> None:
        """Show the share of the points that is done."""
        if self._line is None and done < points and self._clock() - self._began > 1.0 and sys.stderr.isatty():
            from circuitsim.training.progress import ProgressLine

            self._line = ProgressLine(sys.stderr, "sweep")
        if self._line is not None:
            self._line.update(done / points)

    def close(self) -> None:
        """End the line."""
        if self._line is not None:
            self._line.close()
