"""The kernels of small circuits, interpreted or compiled (`circuitsim.kernel_family`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from circuitsim import _graphs, certificate
from circuitsim.engine.kernels import MODULES
from circuitsim.engine.small import active_set, branches, currents, elimination, loops, pointers, single, workspace
from circuitsim.kernel_family import KernelFamily
from circuitsim.kernels import compile_all, register_module
from circuitsim.solvers import minimum_degree

KERNELS = (
    "prepare",
    "solve_once",
    "loops_once",
    "refine_once",
    "add_pass",
    "worst_violations",
    "plan",
    "respond_samples",
)
"""Entry points of `small_kernel`."""

_MODULES = (minimum_degree, elimination, workspace, active_set, currents, branches, loops, single)

MEASURES = (
    "update_maximum",
    "current_scale",
    "net_currents",
    "branch_violations",
    "worst_violations",
)
"""Functions of `circuitsim.certificate` that kernels call."""


def load() -> None:
    """Compile or load kernels from now on, however small the work, including those of `circuitsim.kernels`."""
    compile_all()
    small_kernel.load()


def _register() -> None:
    """Register the functions that compiled kernels call."""
    from numba.extending import register_jitable

    from circuitsim import _pointers
    from circuitsim.engine.kernels import register

    register()  # graph primitives, steps, arithmetic
    _pointers.register_kept(pointers.kept)
    _pointers.register(pointers.pointer, pointers.retain)
    for module in _MODULES:
        register_module(module)
    for name in MEASURES:
        register_jitable(getattr(certificate, name))


def _sources() -> Iterator[Path]:
    for module in (*_MODULES, certificate, *MODULES, _graphs):
        yield Path(str(module.__file__))


small_kernel = KernelFamily(KERNELS, (elimination, active_set, loops, single, certificate), _register, _sources)
"""Returns a kernel by name (`KERNELS`) for a given number of nodes."""
