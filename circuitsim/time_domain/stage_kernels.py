"""The kernel of the stages of implicit steps; which form a call gets: `circuitsim.kernel_family`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from circuitsim import certificate, engine, models, newton
from circuitsim.analysis import stage_equations, tangent_newton
from circuitsim.controlled import corrections, held_laws
from circuitsim.engine.small import pointers
from circuitsim.kernel_family import KernelFamily
from circuitsim.kernels import register_module
from circuitsim.newton.kernels import newton_kernel
from circuitsim.time_domain import stages_kernel

KERNELS = ("solve_stages",)
"""Functions that `stage_kernel` is asked for."""
LONGEST = 24_000
"""Unknowns that a process hands to one kernel interpreted (as long as it takes to compile) before it compiles what no
cache has."""

_MODULES = (tangent_newton, stage_equations, stages_kernel)


def _register() -> None:
    """Let compiled kernels call the functions they are made of."""
    from numba.extending import register_jitable

    from circuitsim import _pointers

    newton_kernel.compiled("project")
    _pointers.register(pointers.pointer, pointers.retain)
    register_jitable(certificate.resolved_violations)
    register_jitable(held_laws.laws_held)
    register_jitable(corrections.corrected)
    for module in _MODULES:
        register_module(module)


def _sources() -> Iterator[Path]:
    for module in (*_MODULES, certificate, corrections, held_laws):
        yield Path(str(module.__file__))
    for package in (engine, models, newton):
        yield from sorted(Path(str(package.__file__)).parent.rglob("*.py"))


stage_kernel = KernelFamily(KERNELS, (stages_kernel,), _register, _sources, longest=LONGEST)
"""The kernel of a name (`KERNELS`) for stages of so many unknowns in all."""

__all__ = ["KERNELS", "stage_kernel"]
