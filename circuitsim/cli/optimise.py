"""``circuitsim optimise``: element values for targets."""

from __future__ import annotations

import argparse
import sys
from math import isclose

from circuitsim.cli.output import check_target, present
from circuitsim.cli.solving import opened
from circuitsim.errors import UsageError

EPILOG = """\
Least squares of relative errors, starting from the deck's values. Resistances vary over three decades or
within bounds. After each rounding to a series the other values are adjusted again.

examples:
  circuitsim optimise netlists/divider.cir --adjust 'R*' --target 'v(out)=2' --series E24
  circuitsim optimise netlists/divider.cir --adjust R1=100:10k --target 'v(out)=2' --plot a.png
"""


OPTIONS = """
!--adjust NAMES[=LOW:HIGH]  resistors and sources to adjust (repeatable)
!--target QUANTITY=VALUE[,weight=W]  'v(out)=2.5' (repeatable)
--series SERIES {E6 E12 E24 E48 E96 E192}  round to preferred values: {0}
--deck FILE as written  also write the deck with these values
@deck
@format table csv json
@output the result
@plot draw errors and values
"""


def run(args: argparse.Namespace) -> int:
    """Find and print the values."""
    from circuitsim.tolerance.design import optimise

    check_target(args.written, [args.deck], "--deck")
    deck = opened(args, held=True)
    bounds = {text.partition("=")[0].strip(): _ends(text) for text in args.adjust}
    found = optimise(deck, bounds, args.target, args.series or "")
    table = found.tables()["values"]
    present(found, args, csv=table._replace(header=("name", *table.header[1:])).csv)
    ends = found.bounds
    bound = [name for name, value in found.values.items() if any(isclose(value, x, rel_tol=1e-6) for x in ends[name])]
    if bound:
        print(f"note: at a bound: {', '.join(bound)} (--adjust NAMES=LOW:HIGH sets others)", file=sys.stderr)
    if args.written:
        from circuitsim.cli.output import save
        from circuitsim.netlist import dumps

        save(dumps(found.point.circuit).encode(), args.written)
    return 0


def _ends(text: str) -> tuple[float, float] | None:
    """The bounds of one ``--adjust``."""
    from circuitsim.units import NumberError, parse

    _, equals, ends = text.partition("=")
    if not equals:
        return None
    low, colon, high = ends.partition(":")
    try:
        return parse(low.strip()), parse(high.strip())
    except NumberError as error:
        why = error if colon else "one bound is missing"
        raise UsageError(f"--adjust {text!r}: {why}; write NAMES=LOW:HIGH, for instance R1=100:10k") from None
