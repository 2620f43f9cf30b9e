"""``circuitsim convert``: a flat SPICE deck."""

from __future__ import annotations

import argparse

from circuitsim.cli.deck import elsewhere, read, report, roles_of
from circuitsim.cli.output import check_ending, check_target, deliver

EPILOG = """\
Expands sub-circuits, parameters and includes; keeps time-dependent sources, analyses, measurements and
outputs. What a flat deck cannot express (a sweep of a parameter) is refused by name.

examples:
  circuitsim convert netlists/nested-subcircuits.cir
  circuitsim convert netlists/boost-converter.cir --ngspice --output flat.cir
"""

ENDINGS = ("cir", "net", "sp", "spice", "ckt", "lib", "inc", "txt")
"""File name extensions of decks."""


OPTIONS = """
@deck
@output the flattened deck
--ngspice  write ideal diodes, limiters, varistors, tables as elements that ngspice has
"""


def run(args: argparse.Namespace) -> int:
    """Print the flattened deck."""
    from circuitsim.netlist.writer import text_of

    check_ending(args.output, ENDINGS)
    check_target(args.output, [args.deck])
    deck = read(args)
    roles, notes = roles_of(deck)
    report([*(w for w in deck.notes if not elsewhere(w)), *notes], args.verbose)
    deliver(text_of(deck, roles, ngspice=args.ngspice, strict=args.ngspice), args.output)
    return 0
