"""``circuitsim convert``: the elaborated, flattened deck back as SPICE."""

from __future__ import annotations

import argparse
import sys

from circuitsim.cli.deck import add_deck, read, report, roles_of
from circuitsim.cli.output import add_output, check_ending, check_target, deliver

EPILOG = """\
Sub-circuits, parameters and includes are worked out; what remains is one line an element. circuitsim reads it to the
same operating point, and ngspice runs it (ideal diodes as steep ones, zero-ohm parts as sources of 0 V; with --ngspice
also devices that it has no model of).

examples:
  circuitsim convert my.cir
  circuitsim convert my.cir --ngspice --output flat.cir && ngspice -b flat.cir
"""

ENDINGS = ("cir", "net", "sp", "spice", "ckt", "lib", "inc", "txt")
"""Of decks."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``convert``."""
    parser.epilog = EPILOG
    add_deck(parser)
    add_output(parser, "the flattened deck")
    more = "write idealised diodes, limiters, varistors, tables and cells as parts and formulas, which ngspice runs"
    parser.add_argument("--ngspice", action="store_true", help=more)


def run(args: argparse.Namespace) -> int:
    """Print the flattened deck."""
    from circuitsim.netlist import dumps

    check_ending(args.output, ENDINGS)
    check_target(args.output, [args.deck])
    deck = read(args)
    roles, notes = roles_of(deck)
    held = [note for note in deck.operating_circuit.notes if note.kind == "switch"]
    report([*deck.problems, *deck.notes, *held, *notes])
    circuit = deck.operating_circuit
    if deck.following.formulas:
        circuit, following = deck.all_controlled()
        constant = ", ".join(circuit.names[k] for k in sorted(following.formulas))
        if constant:
            print(f"warning: written with their values at the operating point: {constant}", file=sys.stderr)
    deliver(dumps(circuit, roles, ngspice=args.ngspice), args.output)
    return 0
