"""Voltage drops of a power grid as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from circuitsim.formats import columns
from circuitsim.formats.columns import quantity

if TYPE_CHECKING:
    from circuitsim.analysis.ir_drop import IrDrop


def as_csv(found: IrDrop) -> str:
    """The pads."""
    rows = ((pad.name, pad.node, str(pad.net + 1), pad.voltage, pad.current) for pad in found.pads)
    return columns.csv(("pad", "node", "net", "voltage", "current"), rows)


def as_table(found: IrDrop, top: int) -> str:
    """Nets, the ``top`` worst nodes and pads for people."""
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
    worst = [[name, str(net + 1), quantity(v, "V"), quantity(drop, "V")] for name, net, v, drop in found.worst(top)]
    pads = [
        [pad.name, pad.node, str(pad.net + 1), quantity(pad.voltage, "V"), quantity(pad.current, "A")]
        for pad in found.pads[:top]
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
