"""The kernel of stages with smooth devices beside controlled sources; which form a call gets:
`circuitsim.kernel_family`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from circuitsim import engine, models, newton
from circuitsim.analysis import tangent_newton
from circuitsim.controlled import corrections
from circuitsim.controlled.kernels import controlled_kernel
from circuitsim.kernel_family import KernelFamily
from circuitsim.kernels import register_module
from circuitsim.newton.kernels import newton_kernel

KERNELS = ("tangent_newton",)
"""Functions that `tangent_kernel` is asked for."""
LONGEST = 4_000
"""Unknowns that a process hands to one kernel interpreted before it compiles what no cache has."""


def _register() -> None:
    """Let the compiled kernel call the functions it is made of."""
    newton_kernel.compiled("project")
    controlled_kernel.compiled("corrected")
    register_module(tangent_newton)


def _sources() -> Iterator[Path]:
    yield Path(str(tangent_newton.__file__))
    yield Path(str(corrections.__file__))
    for package in (engine, models, newton):
        yield from sorted(Path(str(package.__file__)).parent.rglob("*.py"))


tangent_kernel = KernelFamily(KERNELS, (tangent_newton,), _register, _sources, longest=LONGEST)
"""The kernel of a name (`KERNELS`) for work on so many unknowns in all."""

__all__ = ["KERNELS", "tangent_kernel"]
