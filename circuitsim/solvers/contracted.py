"""The network with a given set of diodes conducting: a linear circuit, solved with the conducting diodes as shorts.

Here is all the linear algebra an active-set method needs: `settle` returns the potentials, and the diode currents that
a spanning forest of the conducting diodes carries. What it leaves open is only which diodes conduct.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.kernels import COMPILED, kernel
from circuitsim.program.components import component_labels
from circuitsim.program.flow import NOISE, forest_flow, spanning_forest, tight_potentials
from circuitsim.program.structure import ROUNDING, QuadraticProgram, islands
from circuitsim.engine.exchange import exchange
from circuitsim.solvers.linear import ACCURACY, Factored, Laplacian
from circuitsim.solvers.refinement import refine


class Network(NamedTuple):
    """A program prepared for solves with changing sets of conducting diodes.

    Attributes
    ----------
    program : QuadraticProgram
    laplacian : Laplacian
        Of the resistors and all diodes, in one pattern: a diode is a short or absent.
    island : (n + 1,) int array
        Smallest super-node of each part joined by resistors; index n is earth.
    current : (n + 1,) float array
        Injected currents with the branch offsets folded in, A.
    """

    program: QuadraticProgram
    laplacian: Laplacian
    island: np.ndarray
    current: np.ndarray


class Settled(NamedTuple):
    """The linear circuit at one set of conducting diodes.

    Attributes
    ----------
    x : (n + 1,) float array
        Potentials, V; x[n] = 0.
    forest : (f,) int array
        Conducting diodes of a spanning forest, ascending; further conducting diodes close loops among them.
    flow : (f,) float array
        Their currents, A; exact by leaf elimination.
    noise : (f,) float array
        Scale of the rounding in ``flow``, A.
    part : (n + 1,) int array
        Label of the part (islands joined by the forest) of each super-node.
    stranded : (n + 1,) float array
        By part label: net current of a part that no path leads to earth, A; 0 where it balances.
    factored : Factored
        The linear circuit itself, for further right-hand sides.
    last : (n + 1,) int array
        For each super-node the one whose potential stands for its whole group of shorted nodes.
    w : (n + 1,) float array
        Potentials within each group, V, up to a constant.
    missing : float
        The largest current that conjugate gradients left missing at a group, as a share of the scale of its rounding;
        infinite where it is not known.
    on : (d,) bool array
        The diodes that were to be shorts.
    equal : (d,) bool array
        All diodes within groups of shorted nodes, at their bounds: those of the forest and those that close loops.
    """

    x: np.ndarray
    forest: np.ndarray
    flow: np.ndarray
    noise: np.ndarray
    part: np.ndarray
    stranded: np.ndarray
    factored: Factored
    last: np.ndarray
    w: np.ndarray
    missing: float
    on: np.ndarray
    equal: np.ndarray


def prepare(program: QuadraticProgram, direct: bool = False) -> Network:
    """Everything about a program that does not depend on which diodes conduct; ``direct`` insists on factorisations."""
    n = program.n
    a, b = _ends(program)
    island = islands(program)
    laplacian = Laplacian.analyse(n, a, b, program.g, not direct and not island.any(), program.memo)
    current = program.c - scatter(program, program.g * program.e)
    return Network(program, laplacian, island, current)


def _ends(program: QuadraticProgram) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the resistors, then of the diodes."""
    memo = {} if program.memo is None else program.memo
    sides = program.a, program.b, program.tail, program.head
    kept = memo.get("pattern")
    if kept is None or any(old is not new for old, new in zip(kept[0], sides)):
        both = np.concatenate([program.a, program.tail]), np.concatenate([program.b, program.head])
        kept = memo["pattern"] = sides, both
    return kept[1][0], kept[1][1]


def scatter(program: QuadraticProgram, branch_current: np.ndarray) -> np.ndarray:
    """Net current out of each super-node (n + 1,) through the resistor branches that carry ``branch_current``."""
    size = program.n + 1
    # Where only a few branches have offsets, most of these currents are 0.
    some = np.flatnonzero(branch_current != 0.0)
    amount = branch_current[some]
    return np.bincount(program.a[some], amount, size) - np.bincount(program.b[some], amount, size)


def demand(program: QuadraticProgram, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Current that must leave each super-node through diodes, and the scale of its rounding, both (n + 1,), A."""
    if program.a.size > COMPILED:
        need, scale = program.c.copy(), program.c_scale.copy()
        kernel(_demand, program.a.size)(program.a, program.b, program.g, program.e, x, need, scale)
        return need, scale
    xa, xb = x[program.a], x[program.b]
    need = program.c - scatter(program, program.g * (xa - xb + program.e))
    size = program.g * (np.abs(xa) + np.abs(xb) + np.abs(program.e))
    local = np.bincount(program.a, size, program.n + 1) + np.bincount(program.b, size, program.n + 1)
    return need, local + program.c_scale


def _demand(a, b, g, e, x, need, scale):
    for k in range(a.size):
        i, j = a[k], b[k]
        u, v = x[i], x[j]
        flow, size = g[k] * (u - v + e[k]), g[k] * (abs(u) + abs(v) + abs(e[k]))
        need[i] -= flow
        need[j] += flow
        scale[i] += size
        scale[j] += size


def settle(
    network: Network,
    on: np.ndarray,
    before: np.ndarray,
    extra: np.ndarray | None = None,
    previous: Factored | None = None,
    dead: np.ndarray | None = None,
    accuracy: float = ACCURACY,
) -> Settled:
    """Solve the linear circuit in which the diodes ``on`` are shorts (with their bounds) and the others absent.

    Parameters
    ----------
    network : Network
    on : (d,) bool array
    before : (n + 1,) float array
        Potentials that parts without a path to earth stay near.
    extra : (n + 1,) float array, optional
        Further injected currents, A.
    previous : Factored, optional
        Of this network, with other diodes: a later factorisation repeats only what differs.
    dead : int array, optional
        Resistors known to carry no current (`dead_resistors`): their ends are held exactly equal.
    accuracy : float
        What conjugate gradients leave of the injected currents.
    """
    program = network.program
    n, r = program.n, program.a.size
    tail, head = network.laplacian.a, network.laplacian.b
    equal = np.flatnonzero(on) + r
    closed = spanning_forest(n, tail, head, equal if dead is None else np.concatenate([equal, dead]))
    w = np.zeros(n + 1)
    if closed.size:
        w = tight_potentials(n, tail[closed], head[closed], np.concatenate([-program.e, program.bound])[closed])
    current = network.current if extra is None else network.current + extra
    offset = bool(w.any())
    if offset:
        current = current - scatter(program, program.g * (w[program.a] - w[program.b]))
    factored = network.laplacian.factor(closed, previous)
    last = _group(network, tail[closed], head[closed])
    x = factored.solve(current[:n], before - w if offset else before, accuracy)
    if closed.size:
        x = x[last] + w
    part = network.island
    if closed.size:
        part = component_labels(
            n + 1, np.concatenate([part, tail[closed]]), np.concatenate([np.arange(n + 1), head[closed]])
        )
    stranded = _anchor(network, x, part, before, extra)
    nothing = np.zeros(0)
    found = Settled(x, closed[closed >= r] - r, nothing, nothing, part, stranded, factored, last, w, np.inf, on, on)
    return refined(network, found, extra, thorough=dead is not None)


def refined(network: Network, settled: Settled, extra: np.ndarray | None, thorough: bool) -> Settled:
    """The same linear circuit with its potentials corrected in place (see `refine`), and the currents that follow."""
    program, (x, forest, _, _, part, _, factored, last, w, *_) = network.program, settled
    n = program.n
    missing = refine(program, factored, last, part, x, extra, thorough)
    equal = _tight(program, last, w)
    if not forest.size:
        return settled._replace(missing=missing, equal=equal)
    need, scale = demand(program, x)
    if extra is not None:
        need, scale = need + extra, scale + np.abs(extra)
    flow, noise = forest_flow(n, program.tail[forest], program.head[forest], need, scale)
    forest, flow, noise = exchange(program.tail, program.head, last, equal, forest, flow, noise, need, scale)
    return settled._replace(forest=forest, flow=flow, noise=noise, missing=missing, equal=equal)


def _tight(program: QuadraticProgram, last: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Diodes between shorted super-nodes that are at their bounds (d,)."""
    tight = last[program.tail] == last[program.head]
    d = np.flatnonzero(tight)
    wt, wh, bound = w[program.tail[d]], w[program.head[d]], program.bound[d]
    tight[d] = np.abs(wt - wh - bound) <= NOISE * (np.abs(wt) + np.abs(wh) + np.abs(bound))
    return tight


def _group(network: Network, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """For each super-node the member of its group (joined by shorts a–b) that is eliminated last; earth always is.

    That member has the least rounding, and taking its potential for all makes the ends of shorts exactly equal.
    """
    n = network.program.n
    last = np.arange(n + 1)
    if a.size:
        group = component_labels(n + 1, a, b)
        order = network.laplacian.order
        last[group[order]] = order
        last = last[group]
    return last


def respond(settled: Settled, current: np.ndarray) -> np.ndarray:
    """Change of the potentials (n + 1,) of a settled circuit for a further injected ``current`` (n + 1,)."""
    return settled.factored.solve(current[:-1], np.zeros(current.size))[settled.last]


def _anchor(
    network: Network, x: np.ndarray, part: np.ndarray, before: np.ndarray, extra: np.ndarray | None
) -> np.ndarray:
    """Shift (in place) each part without a path to earth to where it was; returns the net currents of such parts."""
    program = network.program
    n = program.n
    loose = part[:n] != part[n]
    stranded = np.zeros(n + 1)
    if not loose.any():
        return stranded
    anchor = part[:n][loose]
    x[:n][loose] += before[anchor] - x[anchor]
    added = program.c if extra is None else program.c + extra
    scale = program.c_scale if extra is None else program.c_scale + np.abs(extra)
    net = np.bincount(part[:n], np.where(loose, added[:n], 0.0), n + 1)
    size = np.bincount(part[:n], np.where(loose, scale[:n], 0.0), n + 1)
    return np.where(np.abs(net) > ROUNDING * size, net, 0.0)
