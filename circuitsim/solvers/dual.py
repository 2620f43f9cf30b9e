"""The dual method of Goldfarb and Idnani (1983): one violated diode at a time is let in.

The conducting diodes are a spanning forest, as in the network simplex method. The energy rises at every step, so the
method ends.
"""

from __future__ import annotations

import numpy as np

from circuitsim.errors import ConvergenceError
from circuitsim.program import QuadraticProgram
from circuitsim.program.flow import NOISE, forest_flow
from circuitsim.solvers.contracted import Network, Settled, respond, scatter, settle
from circuitsim.solvers.rounds import violation


def dual_method(network: Network, settled: Settled, limit: int) -> tuple[Settled, int]:
    """Goldfarb–Idnani from the diodes that conduct forward in ``settled``; returns the optimum and the steps taken.

    Where only rounding is left to decide (a tie at exactly zero volts, say) the steps may run out: the last point comes
    back after ``limit`` steps, and exact potentials tell.
    """
    program = network.program
    on = np.zeros(program.tail.size, dtype=bool)
    on[settled.forest] = True
    steps = 0
    # A start that is optimal for its own diodes: none of them may carry a current backwards.
    while True:
        on[settled.forest] = settled.flow >= -NOISE * settled.noise
        if on[settled.forest].all():
            break
        settled, steps = settle(network, on, settled.x, previous=settled.factored), steps + 1
    while steps < limit:
        wrong = violation(program, settled)
        wrong[settled.forest] = 0.0
        if not wrong.any():
            return settled, steps
        settled, taken = _admit(network, settled, int(np.argmax(wrong)), limit - steps)
        steps += taken
    return settled, steps


def _admit(network: Network, settled: Settled, entering: int, limit: int) -> tuple[Settled, int]:
    """Let one violated diode conduct, taking out those whose current would turn negative on the way.

    The diode carries a growing current u; the potentials and the other diodes' currents change linearly with u until
    either the violation is gone (the diode joins the forest) or a diode of the forest runs dry (it leaves).
    """
    program = network.program
    n, tail, head = program.n, int(program.tail[entering]), int(program.head[entering])
    on = np.zeros(program.tail.size, dtype=bool)
    on[settled.forest] = True
    carried = 0.0
    unit = np.zeros(n + 1)
    unit[tail], unit[head] = -1.0, 1.0
    for step in range(1, limit + 1):
        rate, resistance = _response(network, settled, unit)
        shrinks = rate < -NOISE
        room = np.where(shrinks, np.maximum(settled.flow, 0.0) / np.where(shrinks, -rate, 1.0), np.inf)
        leaving = int(np.argmin(room)) if room.size else -1
        dry = float(room[leaving]) if room.size else np.inf
        enough = _current_to_admit(program, settled, entering, resistance)
        if dry == np.inf and enough == np.inf:
            raise ConvergenceError(f"the diode constraints contradict each other at {program.diode[entering]}")
        carried += min(dry, enough)
        if enough <= dry:
            on[entering] = True
            return settle(network, on, settled.x, previous=settled.factored), step
        on[settled.forest[leaving]] = False
        settled = settle(network, on, settled.x, carried * unit, settled.factored)
    return settled, limit


def _response(network: Network, settled: Settled, unit: np.ndarray) -> tuple[np.ndarray, float]:
    """Change of the forest's currents per ampere of ``unit`` (−1 at a node, +1 at another), and the resistance between.

    The resistance is 0 inside a group of conducting diodes and infinite between parts without a common path.
    """
    program = network.program
    n = program.n
    tail, head = int(np.argmin(unit)), int(np.argmax(unit))
    x = respond(settled, unit)
    need = unit - scatter(program, program.g * (x[program.a] - x[program.b]))
    rate, _ = forest_flow(n, program.tail[settled.forest], program.head[settled.forest], need, np.abs(need))
    if settled.part[tail] != settled.part[head]:
        return rate, np.inf
    return rate, x[head] - x[tail]


def _current_to_admit(program: QuadraticProgram, settled: Settled, entering: int, resistance: float) -> float:
    """Current at which the entering diode's violation is gone, A; infinite inside a group of conducting diodes."""
    tail, head = program.tail[entering], program.head[entering]
    part, stranded = settled.part, settled.stranded
    if resistance == np.inf:
        return max(stranded[part[tail]], -stranded[part[head]], 0.0)
    if resistance <= 0.0:
        return np.inf
    return max(settled.x[tail] - settled.x[head] - program.bound[entering], 0.0) / resistance
