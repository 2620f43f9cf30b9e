"""Voltage drops of a power grid as text tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from circuitsim.formats.table import Table

if TYPE_CHECKING:
    from circuitsim.analysis.ir_drop import IrDrop


def shown(found: IrDrop, top: int) -> tuple[Table, Table, Table]:
    """Nets, the ``top`` worst nodes, and pads; nets are numbered from 1."""
    nets = [(str(k), *net) for k, net in enumerate(found.nets, 1)]
    worst = [(name, str(net + 1), *numbers) for name, net, *numbers in found.worst(top)]
    pads = [(pad.name, pad.node, str(pad.net + 1), pad.voltage, pad.current) for pad in found.pads]
    heads = "net, nominal, nodes, pads, current, worst drop, at node, mean drop"
    return (
        Table.of(heads, nets, ("", "V", "", "", "A", "V", "", "V")),
        Table.of("worst node, net, voltage, drop", worst, ("", "", "V", "V")),
        Table.of("pad, node, net, voltage, current", pads, ("", "", "", "V", "A")),
    )
