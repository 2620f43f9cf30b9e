"""Families of benchmark circuits: deterministic, with a steady state, one generator ``(unknowns, seed) -> Circuit``.

Every circuit of a family has its unknowns tied to ground through resistors and no diode beside a voltage source without
a resistor between, so that a unique steady state exists whatever the random numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from circuitsim.bench.families import amplifiers, arrays, chains, devices, grids, random_graphs
from circuitsim.circuit import Circuit
from circuitsim.errors import UsageError


class Family(NamedTuple):
    """One family.

    Attributes
    ----------
    name : str
    what : str
        One line for the report.
    make : callable
        ``make(unknowns, seed)`` gives the circuit whose number of nodes besides ground is about ``unknowns``.
    linear : bool
        Whether it has no ideal diodes at all.
    convex_program : bool
        Whether it is a convex quadratic program, which other solvers can take: no smooth devices, no controlled
        sources.
    """

    name: str
    what: str
    make: Callable[[int, int], Circuit]
    linear: bool = False
    convex_program: bool = True


_ROWS = (
    Family("grid", "m×m mesh, 30 % of the edges carry a diode of random direction in parallel", grids.grid),
    Family("grid-scaled", "the same mesh with conductances 10^U(−9, 3) S", grids.scaled_grid),
    Family("erdos-renyi", "random graph of mean degree 4 (its giant component), values as grid", random_graphs.sparse),
    Family("scale-free", "preferential attachment, two edges a node, values as grid", random_graphs.scale_free),
    Family("ladder", "chain of resistors with shunts, 30 % of the links carry a diode", chains.ladder),
    Family("bridges", "full-wave bridges, each feeding the ground of the next through resistors", chains.bridges),
    Family("selectors", "largest and smallest of four voltages, coupled by resistors", chains.selectors),
    Family("crossbar", "m×m resistive cells, wires of 1 S between cells, no diodes", arrays.crossbar, linear=True),
    Family("crossbar-1d1r", "the same with a diode in series with every cell", arrays.rectifying_crossbar),
    Family("drn", "layered network: doubled inputs, two hidden layers held by diodes to ground", arrays.layered),
    Family(
        "shockley-grid",
        "m×m mesh, 30 % of the edges carry a junction diode in parallel; m V across it",
        devices.shockley_grid,
        linear=True,
        convex_program=False,
    ),
    Family(
        "op-amp-stages",
        "inverting amplifiers of gain 1e5 in a row, a rectifier behind each",
        amplifiers.stages,
        convex_program=False,
    ),
)

FAMILIES: dict[str, Family] = {family.name: family for family in _ROWS}
"""All families by name, in the order of the report."""


def make(name: str, unknowns: int, seed: int) -> Circuit:
    """The circuit of a family; the same arguments give the same bits.

    Parameters
    ----------
    name : str
        A name in `FAMILIES`.
    unknowns : int
        How many unknown voltages it has, about; at least 4.
    seed : int
        Of its random values.

    Examples
    --------
    >>> from circuitsim.families import make
    >>> make("grid", 100, 0)
    Circuit('grid, 101 unknowns, seed 0': 102 nodes, 261 elements: 200 R, 55 D, 1 V, 5 I)

    Raises
    ------
    UsageError
        No such family; fewer than four unknowns.
    """
    if name not in FAMILIES:
        raise UsageError(f"no family is called {name!r}; known: {', '.join(FAMILIES)}")
    if unknowns < 4:
        raise UsageError(f"a benchmark circuit has at least 4 unknowns, not {unknowns}")
    return FAMILIES[name].make(unknowns, seed)


__all__ = ["FAMILIES", "Family", "make"]
