"""The network with a given set of diodes conducting: a linear circuit, solved with the conducting diodes as shorts.

Here is all the linear algebra an active-set method needs: `settle` returns the potentials, and the diode currents that
a spanning forest of the conducting diodes carries. What it leaves open is only which diodes conduct.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.program.components import component_labels
from circuitsim.program.flow import NOISE, forest_flow, spanning_forest, tight_potentials
from circuitsim.program.structure import ROUNDING, QuadraticProgram
from circuitsim.solvers.linear import Factored, Laplacian

LEAKAGE = 1e-60
"""Potentials below this share of the largest may be leakage past the finite shorts of a factor."""


class Network(NamedTuple):
    """A program prepared for solves with changing sets of conducting diodes.

    Attributes
    ----------
    program : QuadraticProgram
    laplacian : Laplacian
        Of the resistors and all diodes, in one pattern: a diode is a short or absent.
    island : (n + 1,) int array
        Smallest super-node of each part joined by resistors; index n is earth.
    current : (n,) float array
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
    """

    x: np.ndarray
    forest: np.ndarray
    flow: np.ndarray
    noise: np.ndarray
    part: np.ndarray
    stranded: np.ndarray
    factored: Factored


def prepare(program: QuadraticProgram) -> Network:
    """Everything about a program that does not depend on which diodes conduct."""
    n = program.n
    laplacian = Laplacian.analyse(
        n, np.concatenate([program.a, program.tail]), np.concatenate([program.b, program.head]), program.g
    )
    drive = program.g * program.e
    current = program.c - scatter(program, drive)
    return Network(program, laplacian, component_labels(n + 1, program.a, program.b), current)


def scatter(program: QuadraticProgram, branch_current: np.ndarray) -> np.ndarray:
    """Net current out of each super-node (n,) through the resistor branches that carry ``branch_current``."""
    n = program.n
    out = np.bincount(program.a, branch_current, n + 1) - np.bincount(program.b, branch_current, n + 1)
    return out[:n]


def demand(program: QuadraticProgram, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Current that must leave each super-node through diodes, and the scale of its rounding, both (n,), A."""
    n = program.n
    xa, xb = x[program.a], x[program.b]
    need = program.c - scatter(program, program.g * (xa - xb + program.e))
    size = program.g * (np.abs(xa) + np.abs(xb) + np.abs(program.e))
    scale = (np.bincount(program.a, size, n + 1) + np.bincount(program.b, size, n + 1))[:n] + program.c_scale
    return need, scale


def settle(
    network: Network,
    on: np.ndarray,
    before: np.ndarray,
    extra: np.ndarray | None = None,
    previous: Factored | None = None,
) -> Settled:
    """Solve the linear circuit in which the diodes ``on`` are shorts (with their bounds) and the others absent.

    Parameters
    ----------
    network : Network
    on : (d,) bool array
    before : (n + 1,) float array
        Potentials that parts without a path to earth stay near.
    extra : (n,) float array, optional
        Further injected currents, A.
    previous : Factored, optional
        Of this network, with other diodes: a later factorisation repeats only what differs.
    """
    program = network.program
    n = program.n
    forest = spanning_forest(n, program.tail, program.head, np.flatnonzero(on))
    w = tight_potentials(n, program.tail[forest], program.head[forest], program.bound[forest])
    current = network.current if extra is None else network.current + extra
    if w.any():
        current = current - scatter(program, program.g * (w[program.a] - w[program.b]))
    factored = network.laplacian.factor(forest, previous)
    last = _group(network, forest)
    x = factored.solve(current)[last] + w
    _wipe_leakage(program, factored, last, x, extra)
    part = component_labels(
        n + 1, np.concatenate([network.island, program.tail[forest]]),
        np.concatenate([np.arange(n + 1), program.head[forest]]),
    )  # fmt: skip
    stranded = _anchor(network, x, part, before, extra)
    need, scale = demand(program, x)
    if extra is not None:
        need, scale = need + extra, scale + np.abs(extra)
    flow, noise = forest_flow(n, program.tail[forest], program.head[forest], need, scale)
    return Settled(x, forest, flow, noise, part, stranded, factored)


def _group(network: Network, forest: np.ndarray) -> np.ndarray:
    """For each super-node the member of its group (joined by shorts) that was eliminated last; earth is always last.

    That member has the least rounding, and taking its potential for all makes the ends of shorts exactly equal.
    """
    n = network.program.n
    last = np.arange(n + 1)
    if forest.size:
        group = component_labels(n + 1, network.program.tail[forest], network.program.head[forest])
        order = np.argsort(network.laplacian.rank, kind="stable")
        last[group[order]] = order
        last = last[group]
    return last


def respond(network: Network, settled: Settled, current: np.ndarray) -> np.ndarray:
    """Change of the potentials (n + 1,) of a settled circuit for a further injected ``current`` (n,)."""
    return settled.factored.solve(current)[_group(network, settled.forest)]


def _wipe_leakage(
    program: QuadraticProgram, factored: Factored, last: np.ndarray, x: np.ndarray, extra: np.ndarray | None
) -> None:
    """Refine (in place) away what leaked past shorts that are finite in the factor: parts that should be at exactly 0.

    Every pass makes such potentials smaller by the weight of a short; real attenuation (long ladders) it leaves alone.
    """
    for _ in range(12):
        size = np.abs(x)
        if not ((size > 0.0) & (size < LEAKAGE * size.max())).any():
            return
        need, scale = demand(program, x)
        if extra is not None:
            need, scale = need + extra, scale + np.abs(extra)
        n = program.n
        net, local = np.bincount(last[:n], need, n + 1)[:n], np.bincount(last[:n], scale, n + 1)[:n]
        net[np.abs(net) <= NOISE * local] = 0.0
        net[last[:n] != np.arange(n)] = 0.0
        x += factored.solve(net)[last]


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
    net = np.bincount(part[:n], np.where(loose, added, 0.0), n + 1)
    size = np.bincount(part[:n], np.where(loose, scale, 0.0), n + 1)
    return np.where(np.abs(net) > ROUNDING * size, net, 0.0)
