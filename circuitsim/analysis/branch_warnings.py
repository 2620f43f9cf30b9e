"""What is said about the branches of operating points of circuits with controlled sources."""

from __future__ import annotations

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.errors import Problem

SAME = 1e-7
"""Share of the largest below which a difference is one of rounding."""


def listed(elements: list[str], nodes: list[str]) -> str:
    """Elements, or nodes where there are none."""
    return some(elements) if elements else f"the nodes {some(nodes)}"


def some(names: list[str], shown: int = 8) -> str:
    """The first names, and how many more there are."""
    return ", ".join(names[:shown]) + (f" and {len(names) - shown} more" if len(names) > shown else "")


def same_point(a: OperatingPoint, b: OperatingPoint) -> bool:
    """Whether two operating points are one but for rounding."""
    pairs = ((a.voltages, b.voltages), (a.currents, b.currents))
    return all(bool((np.abs(x - y) <= SAME * np.abs(x).max(initial=0.0)).all()) for x, y in pairs)


def several(point: OperatingPoint, other: OperatingPoint) -> Problem:
    """The warning of a second operating point, with the node that differs most; of the deck itself, where one of its
    nodes does."""
    away = np.abs(point.voltages - other.voltages)
    own = np.array(["." not in name for name in point.circuit.node_names])
    if (away[own] > SAME * away.max()).any():
        away = np.where(own, away, 0.0)
    k = int(np.argmax(away))
    name = point.circuit.node_names[k]
    return Problem(
        "several",
        f"there are several operating points: v({name}) is {point.voltages[k]:.6g} V here and "
        f"{other.voltages[k]:.6g} V in another",
        hint="start= (or a sweep) chooses the branch",
        names=[name],
    )


def jump(names: list[str]) -> Problem:
    """The warning of a branch that has ended, with the diodes that changed there."""
    return Problem(
        "jump",
        f"the branch of operating points ended on the way here (diodes {some(names)}): the operating point has jumped",
        names=names,
    )


def floating_control(names: list[str]) -> Problem:
    """The warning of controls by the potential of a part that nothing ties to ground."""
    return Problem(
        "floating-control",
        f"{some(names)}: controlled by a node voltage without a path to ground, which may have any value",
        hint="connect that part to ground, with a large resistor say",
        names=names,
    )
