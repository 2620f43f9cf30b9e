"""The kernels of circuits with controlled sources, interpreted or compiled (`circuitsim.kernel_family`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from circuitsim.controlled import corrections, held_laws
from circuitsim.kernel_family import KernelFamily
from circuitsim.kernels import register_module

_MODULES = (corrections, held_laws)
KERNELS = ("corrected", "laws_held")
"""Entry points of `controlled_kernel`."""


def _register() -> None:
    """Register the functions that compiled kernels call."""
    for module in _MODULES:
        register_module(module)


def _sources() -> Iterator[Path]:
    for module in _MODULES:
        yield Path(str(module.__file__))


controlled_kernel = KernelFamily(KERNELS, _MODULES, _register, _sources)
"""Returns a kernel by name (`KERNELS`) for a given number of elements or unknowns."""

__all__ = ["KERNELS", "controlled_kernel"]
