"""``circuitsim ir-drop``: voltage drops of a power grid."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from circuitsim.cli.deck import add_deck, read, report
from circuitsim.cli.output import add_format, add_output, check_target, deliver
from circuitsim.cli.solving import add_solving
from circuitsim.errors import UsageError

if TYPE_CHECKING:
    from circuitsim.analysis.ir_drop import IrDrop

EPILOG = """\
A net is what resistors, inductors and sources of 0 V join; its pads are the voltage sources between it and ground. The
drop of a node is what it lacks of its net's potential at the pads; a ground net's is how far it rises.

--map draws the largest drop of each spot, one picture a net. It takes the place of a node from its name, whose last two
numbers are x and y: n1_1200_350.

--format csv has one row a pad; json has nets, pads, worst nodes and certificate.

examples:
  circuitsim ir-drop grid.spice --map drop.png
  circuitsim ir-drop grid.spice --top 50
  circuitsim ir-drop grid.spice --format csv --output pads.csv
  circuitsim ir-drop grid.spice --no-title --format json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``ir-drop``."""
    parser.epilog = EPILOG
    add_deck(parser)
    add_format(parser, "table", "csv", "json")
    parser.add_argument("--top", metavar="N", type=int, default=10, help="worst nodes and pads shown (%(default)s)")
    add_output(parser)
    add_solving(parser)
    parser.add_argument("--map", metavar="FILE", help="draw the voltage drops over the plane (.png, .svg or .pdf)")


def run(args: argparse.Namespace) -> int:
    """Solve the grid and print nets, worst nodes and pads."""
    from circuitsim.analysis.ir_drop import ir_drop
    from circuitsim.analysis.solve import as_read

    check_target(args.output, [args.deck])
    if args.top < 0:
        raise UsageError(f"--top must be at least 0, not {args.top}")
    if args.map:
        from circuitsim.cli.drawing import check_drawing

        check_drawing(args.map, [args.deck], args.output, "--map")
    deck = read(args)
    point = as_read(deck, args.solver, args.tolerance).solve()
    report([*deck.problems, *deck.notes, *point.warnings])
    found = ir_drop(point)
    deliver(_formatted(found, args), args.output)
    if args.map:
        from circuitsim.cli.drawing import draw_drops

        draw_drops(found, args.map)
    return 0


def _formatted(found: IrDrop, args: argparse.Namespace) -> str:
    from circuitsim.formats import columns
    from circuitsim.formats.columns import quantity

    if args.format == "json":
        from circuitsim.formats.strict_json import dumps

        return dumps(found.to_dict())
    if args.format == "csv":
        rows = ((pad.name, pad.node, str(pad.net + 1), pad.voltage, pad.current) for pad in found.pads)
        return columns.csv(("pad", "node", "net", "voltage", "current"), rows)
    nets = [
        [
            str(k),
            quantity(net.nominal, "V"),
            str(net.nodes),
            str(net.pads),
            quantity(net.current, "A"),
            quantity(net.worst, "V"),
            net.worst_node,
            quantity(net.mean, "V"),
        ]
        for k, net in enumerate(found.nets, 1)
    ]
    worst = [
        [name, str(net + 1), quantity(v, "V"), quantity(drop, "V")] for name, net, v, drop in found.worst(args.top)
    ]
    pads = [
        [pad.name, pad.node, str(pad.net + 1), quantity(pad.voltage, "V"), quantity(pad.current, "A")]
        for pad in found.pads[: args.top]
    ]
    left = len(found.pads) - len(pads)
    lines = [
        found.point.circuit.title,
        "",
        *columns.table(["net", "nominal", "nodes", "pads", "current", "worst drop", "at node", "mean drop"], nets),
        "",
        *columns.table(["worst node", "net", "potential", "drop"], worst),
        "",
        *columns.table(["pad", "node", "net", "potential", "current"], pads),
        *([f"and {left} more pads (--top, --format csv)"] if left > 0 else []),
        "",
        f"certified: worst violation {found.point.certificate.worst:.1e} of a local scale, allowed "
        f"{found.point.certificate.tolerance:.0e}",
    ]
    return "\n".join(lines).lstrip("\n") + "\n"
