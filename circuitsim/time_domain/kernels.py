"""The kernels of waveforms; which form of them a call gets: `circuitsim.kernel_family`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from circuitsim.engine.small import pointers
from circuitsim.kernel_family import KernelFamily
from circuitsim.kernels import register_module
from circuitsim.time_domain import (
    decay_series,
    decaying_parts,
    decays,
    exponentials,
    loop,
    mode_kernels,
    mode_parts,
    mode_rows,
    mode_selection,
    part_currents,
    part_states,
    roots,
    scales,
    trees,
    windows,
)

KERNELS = (
    "advance",
    "advance_decays",
    "sizes",
    "signs",
    "evaluate",
    "evaluate_decays",
    "node_exponentials",
    "wired",
    "equations",
    "entered",
)
"""Functions that `time_kernel` provides."""
PATIENCE = 2_000_000
"""Products of two numbers that a process computes interpreted (about half a second) before it loads compiled
kernels."""
LONGEST = 24_000_000
"""Those that it computes, or expects to, in one kernel interpreted (about six seconds) before it compiles what no cache
has."""
SOON = {"advance": 16_000_000, "evaluate": 3_000_000, "evaluate_decays": 6_000_000, "node_exponentials": 3_000_000}
"""The same of kernels that compile in less time."""

_MODULES = (
    loop,
    decay_series,
    decays,
    decaying_parts,
    exponentials,
    mode_selection,
    mode_kernels,
    mode_parts,
    mode_rows,
    part_currents,
    part_states,
    roots,
    scales,
    trees,
    windows,
)


def _register() -> None:
    """Let compiled kernels call the functions they are made of."""
    from circuitsim import _pointers

    _pointers.register(pointers.pointer, pointers.retain)
    for module in _MODULES:
        register_module(module)


def _sources() -> Iterator[Path]:
    for module in _MODULES:
        yield Path(str(module.__file__))


time_kernel = KernelFamily(KERNELS, _MODULES, _register, _sources, PATIENCE, LONGEST, SOON)
"""The kernel of a name (`KERNELS`) for a total number of scalar products."""

__all__ = ["KERNELS", "time_kernel"]
