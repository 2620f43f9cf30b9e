"""``circuitsim solve``: the certified operating point of a deck."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from circuitsim.cli.deck import alone, printed, read, report
from circuitsim.cli.output import check_targets, deliver, present
from circuitsim.cli.solving import failure
from circuitsim.errors import CircuitError, UsageError

if TYPE_CHECKING:
    from circuitsim.analysis import OperatingPoint
    from circuitsim.circuit import Circuit

EPILOG = """\
Currents flow from an element's first node through it to the second. The JSON object also describes a circuit
without an operating point (exit code 3). The drop of a power-grid node is the voltage of the sources (pads)
of its net minus its own.

examples:
  circuitsim solve netlists/rectifier-half-wave.cir
  circuitsim solve netlists/rectifier-bridge.cir --output bridge.json --plot bridge.svg
  printf 'divider\\nV1 in 0 6\\nR1 in out 1k\\nR2 out 0 2k\\n' | circuitsim solve -
"""


OPTIONS = """
@solver
--start FILE  JSON of an operating point to start from, if there are several
--explain  print the method, the reason for it and each residual
--drops  voltage drops and pad currents of a power grid instead
--top N  number of worst nodes and pads of --drops (10)
@deck
@tolerance
@format table csv json raw
@binary
@output the result
@plot draw the circuit, or the map of --drops
"""


def run(args: argparse.Namespace) -> int:
    """Solve the deck and print its operating point."""
    from circuitsim.analysis.solve import as_read

    check_targets(args, *filter(None, [args.start]))
    if args.top is not None and (args.top < 0 or not args.drops):
        raise UsageError(f"--top must be at least 0, not {args.top}" if args.drops else "--top is an option of --drops")
    if args.drops and args.format == "raw":
        raise UsageError("rawfiles hold all voltages: leave out --drops, or choose another --format")
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
    try:
        printed(deck, ("op",))
    except UsageError as error:
        print(f"warning: {error}", file=sys.stderr)
    left = [f".{card}" for card in deck.cards() if card in LEFT_OUT]
    if left and alone():
        print(f"note: only the operating point is solved; circuitsim run also does {', '.join(left)}", file=sys.stderr)
    if args.explain:
        from circuitsim.analysis.explain import explain
        from circuitsim.formats.operating_point import certificate_table

        print("\n".join([*explain(point), *certificate_table(point.to_dict())]), file=sys.stderr)
    if args.drops:
        from circuitsim.analysis.ir_drop import ir_drop
        from circuitsim.formats.table import Table

        found = ir_drop(point)
        _, nets, pads = found.tables().values()
        rows = found.worst(10 if args.top is None else args.top)
        worst = Table.of("worst node, net, voltage, drop", rows, ("", "", "V", "V"))
        tables = [pads, nets, worst] if args.format == "csv" else [nets, worst, pads]
        present(found, args, tables, whole=True)
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
"""Analysis cards that ``solve`` ignores."""


def read_start(path: str, circuit: Circuit) -> OperatingPoint:
    """The operating point in the file ``path``.

    Raises
    ------
    UsageError
        A file that cannot be read, or is not an operating point of this circuit.
    """
    import json

    from circuitsim.analysis.stored import stored_point

    try:
        with open(path, encoding="utf-8") as file:
            stored = json.load(file)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        raise UsageError(f"{path} is not JSON: {error}") from None
    return stored_point(stored, circuit)
