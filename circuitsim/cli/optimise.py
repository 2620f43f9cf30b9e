"""``circuitsim optimise``: element values for targets."""

from __future__ import annotations

import argparse
from math import isclose
from typing import TYPE_CHECKING

from circuitsim.cli.deck import add_deck, held_switches, read, report
from circuitsim.cli.output import add_format, add_output, add_plot, check_target, check_targets, present
from circuitsim.errors import UsageError

if TYPE_CHECKING:
    from circuitsim.tolerance.design import Design

EPILOG = """\
Least squares of relative errors, from the deck's values. Resistances vary over three decades, or within
bounds. Rounding to a series adjusts the other values after each.

examples:
  circuitsim optimise netlists/divider.cir --adjust 'R*' --target 'v(out)=2' --series E24
  circuitsim optimise netlists/divider.cir --adjust R1=100:10k --target 'v(out)=2' --plot a.png
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``optimise``."""
    parser.epilog = EPILOG
    add_deck(parser)
    parser.add_argument(
        "--adjust",
        metavar="NAMES[=LOW:HIGH]",
        action="append",
        required=True,
        help="resistors and sources that vary (repeatable)",
    )
    parser.add_argument(
        "--target",
        metavar="QUANTITY=VALUE[,weight=W]",
        action="append",
        required=True,
        help="'v(out)=2.5' (repeatable)",
    )
    parser.add_argument(
        "--series",
        metavar="SERIES",
        choices=("E6", "E12", "E24", "E48", "E96", "E192"),
        default="",
        help="round to preferred values: E6, E12, E24, E48, E96 or E192",
    )
    add_format(parser, "table", "csv", "json")
    add_output(parser)
    parser.add_argument("--deck", metavar="FILE", dest="written", help="also write the deck with these values")
    add_plot(parser, "draw errors and values")


def run(args: argparse.Namespace) -> int:
    """Find and print the values."""
    from circuitsim.tolerance.design import optimise

    check_targets(args)
    check_target(args.written, [args.deck], "--deck")
    deck = read(args)
    report([*deck.notes, *held_switches(deck)], args.verbose)
    bounds = {text.partition("=")[0].strip(): _ends(text) for text in args.adjust}
    found = optimise(deck, bounds, args.target, args.series)
    table = found.tables()["values"]
    csv = table._replace(header=("name", *table.header[1:])).csv
    present(found, args, table=lambda: _text(found), csv=csv)
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
    try:
        low, high = (parse(part.strip()) for part in ends.split(":"))
    except (NumberError, ValueError) as error:
        raise UsageError(f"--adjust {text!r}: {error}; write NAMES=LOW:HIGH, for instance R1=100:10k") from None
    return low, high


def _text(found: Design) -> str:
    from circuitsim.analysis.probes import UNITS
    from circuitsim.formats.columns import quantity, table

    circuit = found.point.circuit
    units = {"resistor": "Ω", "voltage source": "V", "current source": "A"}
    rows = [[name, quantity(value, units[circuit[name].kind])] for name, value in found.values.items()]
    lines = [circuit.title, *table(["element", found.series or "value"], rows), ""]
    goals = [
        [
            name,
            quantity(value, UNITS[name[0]]),
            quantity(target, UNITS[name[0]]),
            f"{100.0 * (value / target - 1.0):.3g} %" if target else "",
        ]
        for name, (value, target) in found.outputs.items()
    ]
    lines += table(["quantity", "value", "target", "error"], goals)
    if found.series:
        lines.append(f"root mean square error {found.error:.3g}; before rounding {found.continuous_error:.3g}")
    ends = found.bounds
    held = [name for name, value in found.values.items() if any(isclose(value, x, rel_tol=1e-6) for x in ends[name])]
    if held:
        lines.append(f"at a bound: {', '.join(held)} (--adjust NAMES=LOW:HIGH sets others)")
    return "\n".join(lines) + "\n"
