"""The fast way for small circuits: one kernel from columns to a certified operating point.

It answers where everything is unique and proven. Where only currents in loops of diodes leave a choice it hands on its
potentials; in any other case (loops of sources, free potentials, no steady state, digits lost) it says nothing, and the
general solver takes the circuit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.certificate import EQUATIONS, Certificate
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import RESISTOR
from circuitsim.compact.kernels import compact
from circuitsim.compact.plan import Plan
from circuitsim.compact.settle import FREE, NO_REST, SETTLED, SHARED

LARGEST = 1500
"""Most nodes of a circuit for which the kernel (dense tables while planning, scalar elimination) is worth trying."""
ROUNDS = 40
"""Most linear circuits it solves before the general solver's dual method takes over."""

_NO_INPUTS, _NO_SAMPLES = np.zeros(0, dtype=np.int64), np.zeros((1, 0))


WHY = f"one kernel for the whole circuit: at most {LARGEST:,} nodes"
UPDATES = 400_000
"""Most updates of one elimination (about a millisecond); beyond, panels of columns beat one entry at a time."""

TOO_LARGE = f"general solver: more than {LARGEST:,} nodes"
TOO_DENSE = f"general solver: one elimination takes more than {UPDATES:,} updates"
_LEFT = {
    FREE: "sources close a loop, or only blocking diodes hold some potential",
    NO_REST: f"{ROUNDS} rounds of the kernel were not enough, or there is no steady state",
}
_DIGITS = "the kernel's digits did not satisfy the certificate"


def quick_plan(circuit: Circuit) -> Plan | str:
    """The plan of a circuit that is small enough, else why it is not."""
    kind, first, second, value, n_nodes = circuit.arrays()
    if n_nodes > LARGEST:
        return TOO_LARGE
    make = compact("plan", n_nodes)
    plan = Plan(*make(kind, first, second, value, n_nodes, np.zeros(n_nodes, dtype=bool), UPDATES))
    # A plan that was given up has no branches.
    return plan if plan.resistor.size or not (kind == RESISTOR).any() else TOO_DENSE


class Claim(NamedTuple):
    """Potentials that are unique, V, and the diodes that need not carry anything there (m,)."""

    voltages: np.ndarray
    idle: np.ndarray
    info: dict[str, object]


def quick_solve(
    circuit: Circuit, plan: Plan, tolerance: float, start: OperatingPoint | None = None
) -> OperatingPoint | Claim | str:
    """The certified operating point of a circuit with a plan of its topology, potentials without currents, or why not.

    The diodes that conduct in ``start`` are the first guess.
    """
    kind, first, second, value, n_nodes = circuit.arrays()
    closed = np.zeros((1, plan.diode.size), dtype=bool)
    if start is not None:
        closed[0] = start.currents[plan.diode] > 0.0
    v, current = np.empty((1, n_nodes)), np.empty((1, kind.size))
    worst, relative = np.empty((1, 7)), np.empty((1, 7))
    status, count = np.empty(1, dtype=np.int64), np.empty(1, dtype=np.int64)
    with np.errstate(all="ignore"):
        compact("solve_samples", n_nodes)(
            plan, kind, first, second, value, _NO_INPUTS, _NO_SAMPLES, ROUNDS, 0, 1,
            closed, v, current, worst, relative, status, count,
        )  # fmt: skip
    info: dict[str, object] = {"name": "active-set", "why": WHY, "rounds": int(count[0]), "steps": 0}
    if status[0] == SHARED:
        idle = np.zeros(kind.size, dtype=bool)
        idle[plan.diode[~closed[0]]] = True
        info["why"] = f"{WHY}; conducting diodes close loops, whose currents are the choice of least norm"
        return Claim(v[0], idle, info)
    ratios = dict(zip(EQUATIONS, relative[0].tolist()))
    certificate = Certificate(**dict(zip(EQUATIONS, worst[0].tolist())), relative=ratios, tolerance=tolerance)
    if status[0] != SETTLED:
        return f"general solver: {_LEFT[int(status[0])]}"
    if not certificate.ok:
        return f"general solver: {_DIGITS}"
    unique = np.ones(kind.size, dtype=bool)
    return OperatingPoint(circuit, v[0], current[0], {}, unique, certificate, info, circuit.notes)
