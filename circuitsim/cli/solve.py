"""``circuitsim solve``: a deck in, its certified operating point out."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from typing import TYPE_CHECKING

from circuitsim.cli.deck import add_deck, alone, read, report
from circuitsim.cli.output import add_format, add_output, add_plot, check_drawing, check_target, deliver, present
from circuitsim.cli.solving import add_solving, failure
from circuitsim.errors import CircuitError, UsageError

if TYPE_CHECKING:
    from circuitsim.analysis import OperatingPoint
    from circuitsim.circuit import Circuit

EPILOG = """\
formats:
  table   for people: potentials, branches, diode states, certificate
  json    everything, in full double precision; also printed where there is no steady state (exit code 3)
  csv     one row a node and a branch; pandas.read_csv reads it
  raw     a SPICE3 rawfile; ngspice's `load` reads it

signs are SPICE's: a current flows from an element's first node through it to its second.

--drops is for power grids: a net is what resistors, inductors and sources of 0 V join, its pads are the voltage
sources between it and ground, and the drop of a node is what it lacks of the potential at the pads. --plot then draws
the largest drop of each spot; names that end in the place, as n1_1200_350, say where a node is. csv has the pads.

examples:
  circuitsim solve netlists/rectifier-half-wave.cir
  circuitsim solve my.cir --format json --output my.json
  circuitsim solve my.cir --plot my.svg
  circuitsim solve trigger.cir --start high.json
  circuitsim solve grid.spice --drops --top 50 --plot drop.png
  printf 'divider\\nV1 in 0 6\\nR1 in out 1k\\nR2 out 0 2k\\n' | circuitsim solve -
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``solve``."""
    parser.epilog = EPILOG
    add_deck(parser)
    add_format(parser, "table", "csv", "json", "raw")
    add_output(parser)
    add_solving(parser)
    parser.add_argument(
        "--start",
        metavar="FILE",
        help="operating point (JSON of solve) to continue from: chooses one of several with controlled sources",
    )
    parser.add_argument("--explain", action="store_true", help="print the method, why, and each residual on stderr")
    parser.add_argument(
        "--drops", action="store_true", help="voltage drops, worst nodes and pad currents of a power grid instead"
    )
    parser.add_argument("--top", metavar="N", type=int, help="worst nodes and pads shown by --drops (10)")
    add_plot(parser, "draw the circuit, or the map of --drops")


def run(args: argparse.Namespace) -> int:
    """Solve the deck and print its operating point."""
    from circuitsim.analysis.solve import as_read

    check_target(args.output, [args.deck, *filter(None, [args.start])])
    if args.top is not None and (args.top < 0 or not args.drops):
        raise UsageError(f"--top must be at least 0, not {args.top}" if args.drops else "--top is an option of --drops")
    if args.drops and args.format == "raw":
        raise UsageError("rawfiles hold all voltages: leave out --drops, or choose another --format")
    if args.plot:
        check_drawing(args.plot, [args.deck], args.output)
    deck = read(args)
    circuit = deck.operating_circuit
    start = read_start(args.start, circuit) if args.start else None
    try:
        point = as_read(deck, args.solver, args.tolerance).solve(start=start)
    except CircuitError as error:
        report(deck.notes, args.verbose)
        if error.exit_code == 3 and args.format == "json":
            from circuitsim.formats.strict_json import dumps

            deliver(dumps(failure(error, circuit)), args.output)
        raise
    said = [*deck.notes, *point.warnings]
    report([note for note in said if note.kind not in ("tran", "ac")], args.verbose)
    left = [f".{card}" for card in deck.cards() if card in LEFT_OUT]
    if left and alone():
        print(f"note: only the operating point is solved; circuitsim run also does {', '.join(left)}", file=sys.stderr)
    if args.explain:
        from circuitsim.analysis.explain import explain
        from circuitsim.formats.operating_point import certificate_table

        print("\n".join([*explain(point), *certificate_table(point.to_dict())]), file=sys.stderr)
    if args.drops:
        from circuitsim.analysis.ir_drop import ir_drop
        from circuitsim.formats import drops

        found, top = ir_drop(point), 10 if args.top is None else args.top
        present(found, args, csv=partial(drops.as_csv, found), table=partial(drops.as_table, found, top))
    else:
        from circuitsim.formats import operating_point as forms

        present(
            point,
            args,
            table=lambda: forms.as_table(point.to_dict()),
            csv=lambda: forms.as_csv(point.to_dict()),
            raw=lambda: forms.as_raw(point.to_dict()),
        )
    return 0


LEFT_OUT = ("dc", "step", "tran", "ac", "tf", "sens")
"""Cards of analyses that ``solve`` leaves out."""


def read_start(path: str, circuit: Circuit) -> OperatingPoint:
    """The operating point in the file ``path``.

    Raises
    ------
    UsageError
        A file that cannot be read, or holds no operating point of this circuit.
    """
    import json

    from circuitsim.analysis.stored import stored_point

    try:
        with open(path, encoding="utf-8") as file:
            stored = json.load(file)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        raise UsageError(f"{path} is no JSON: {error}") from None
    return stored_point(stored, circuit)
