"""The kernels of Newton's method; which form of them a call gets: `circuitsim.kernel_family`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from circuitsim import certificate, engine, models
from circuitsim.engine.small.kernels import small_kernel
from circuitsim.kernel_family import KernelFamily
from circuitsim.kernels import register_module
from circuitsim.models import curve, formula_inverse, formula_tape, junction_diode
from circuitsim.newton import contrasts, laws, seen, steps

_MODULES = (seen, steps, contrasts)
KERNELS = ("project", "newton_once", "contrasts", "responses_of_laws")
"""Functions that `newton_kernel` provides."""
LONGEST = 400_000
"""Devices, each as twenty nodes, and nodes that a process hands to one kernel interpreted (4 to 8 seconds) before it
compiles what no cache has."""


def _register() -> None:
    """Let compiled kernels call the functions they are made of."""
    from numba.extending import register_jitable

    small_kernel.compiled("solve_once")  # lets kernels call those of small circuits
    shared: list[Callable[..., Any]] = [
        curve.middle,
        curve.load_line,
        curve.point,
        laws.project,
        laws.charging,
        *laws.JUNCTIONS,
        *laws.CHAIN[1:],
    ]
    shared[:0] = [*formula_tape.HELPERS, *formula_inverse.HELPERS, junction_diode.charge]
    shared += [*laws.DERIVATIVES, *laws.DERIVATIVE_CHAIN[1:]]
    for function in shared:
        register_jitable(function)
    for module in _MODULES:
        register_module(module)


def _sources() -> Iterator[Path]:
    yield Path(str(certificate.__file__))
    for package in (engine, models, steps):
        yield from sorted(Path(str(package.__file__)).parent.rglob("*.py"))


newton_kernel = KernelFamily(KERNELS, (laws, *_MODULES), _register, _sources, longest=LONGEST)
"""The kernel of a name (`KERNELS`) for work on so many devices and nodes in all."""
