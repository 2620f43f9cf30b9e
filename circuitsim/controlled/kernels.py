"""The kernels of circuits with controlled sources; which form of them a call gets: `circuitsim.kernel_family`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from circuitsim.controlled import corrections, held_laws
from circuitsim.kernel_family import KernelFamily
from circuitsim.kernels import register_module

_MODULES = (corrections, held_laws)
KERNELS = ("corrected", "laws_held")
"""Functions that `controlled_kernel` provides."""


def _register() -> None:
    """Let compiled kernels call the functions they are made of."""
    for module in _MODULES:
        register_module(module)


def _sources() -> Iterator[Path]:
    for module in _MODULES:
        yield Path(str(module.__file__))


controlled_kernel = KernelFamily(KERNELS, _MODULES, _register, _sources)
"""The kernel of a name (`KERNELS`) for work on so many elements or unknowns in all."""

__all__ = ["KERNELS", "controlled_kernel"]
