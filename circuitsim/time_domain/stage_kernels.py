"""The kernel of the stages of implicit steps, interpreted or compiled (`circuitsim.kernel_family`)."""

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
"""Entry points of `stage_kernel`."""
LONGEST = 24_000
"""Unknowns that one kernel handles interpreted (for as long as compilation takes) before it is compiled where no cache
holds it."""

_MODULES = (tangent_newton, stage_equations, stages_kernel)


def _register() -> None:
    """Register the functions that compiled kernels call."""
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
"""Returns a kernel by name (`KERNELS`) for stages with a given number of unknowns in all."""

__all__ = ["KERNELS", "stage_kernel"]
