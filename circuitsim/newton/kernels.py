"""The kernels of Newton's method, interpreted or compiled (`circuitsim.kernel_family`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from circuitsim import certificate, engine, models
from circuitsim.engine.small.kernels import small_kernel
from circuitsim.kernel_family import KernelFamily
from circuitsim.kernels import register_module
from circuitsim.models import curve, formula_inverse, formula_tape, junction_diode
from circuitsim.newton import co_content, laws, port_resistance, steps

_MODULES = (port_resistance, steps, co_content)
KERNELS = ("project", "newton_once", "co_content_differences", "responses_of_laws")
"""Entry points of `newton_kernel`."""
LONGEST = 400_000
"""Work (devices, counted as twenty nodes each, and nodes) that one kernel does interpreted (4 to 8 seconds) before it
is compiled where no cache holds it."""


def _register() -> None:
    """Register the functions that compiled kernels call."""
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
"""Returns a kernel by name (`KERNELS`) for a given amount of work."""
