"""``circuitsim graph``: a drawing of the circuit with its voltages and currents."""

from __future__ import annotations

import argparse
import os

from circuitsim.cli.deck import read, report
from circuitsim.cli.output import check_drawing, draw

EPILOG = """\
Colour is voltage, width and arrows are current, conducting diodes are filled. Above 160 nodes: a
table of the worst nodes and elements, or the map of a power grid.

examples:
  circuitsim graph netlists/rectifier-bridge.cir
  circuitsim graph netlists/voltage-doubler.cir --output doubler.svg
"""


OPTIONS = """
@deck
--output, -o FILE  the picture: .png, .svg or .pdf (name of DECK with .png)
@solver
@tolerance
"""


def run(args: argparse.Namespace) -> int:
    """Solve the deck, draw it, and print the picture's path."""
    from circuitsim.analysis import solve
    from circuitsim.plotting import draw_circuit

    stem = "circuit" if args.deck == "-" else os.path.splitext(os.path.basename(args.deck))[0]
    path = args.output or f"{stem}.png"
    check_drawing(path, [args.deck], None, "--output")
    deck = read(args)
    point = solve(deck, solver=args.solver, tolerance=args.tolerance)
    report([*deck.notes, *point.warnings], args.verbose)
    draw(draw_circuit(point), path)
    print(path)
    return 0
