"""circuitsim: exact, certified simulation of nonlinear resistive circuits, and circuits that learn.

>>> import circuitsim
>>> op = circuitsim.solve(circuitsim.loads('''half-wave rectifier
... V1 1 0 1
... R1 1 2 1
... D1 2 3
... R2 3 0 1
... '''))
>>> float(op["3"])
0.5
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from circuitsim._moved import at_first_use
from circuitsim._version import __version__

# Name → module that defines it. Loaded on first use, so that `import circuitsim` and the command line start fast.
_HOMES = {
    "Circuit": "circuitsim.circuit",
    "CircuitError": "circuitsim.errors",
    "ConvergenceError": "circuitsim.errors",
    "Deck": "circuitsim.netlist.deck",
    "DeckWarning": "circuitsim.errors",
    "InfeasibleError": "circuitsim.errors",
    "NetlistError": "circuitsim.errors",
    "OperatingPoint": "circuitsim.analysis",
    "TopologyError": "circuitsim.errors",
    "UnboundedError": "circuitsim.errors",
    "UsageError": "circuitsim.errors",
    "ac": "circuitsim.small_signal",
    "batched": "circuitsim.analysis.batched",
    "circuit_block": "circuitsim.learning.function",
    "CircuitBlock": "circuitsim.blocks.circuit",
    "CrossbarLayer": "circuitsim.effective",
    "EffectiveMatrix": "circuitsim.effective",
    "curve": "circuitsim.analysis.curve",
    "draw": "circuitsim.circuit.source",
    "dump": "circuitsim.netlist",
    "dumps": "circuitsim.netlist",
    "effective_matrix": "circuitsim.effective",
    "ir_drop": "circuitsim.analysis.ir_drop",
    "load": "circuitsim.netlist",
    "loads": "circuitsim.netlist",
    "measure": "circuitsim.time_domain",
    "montecarlo": "circuitsim.tolerance",
    "optimise": "circuitsim.tolerance.design",
    "poles": "circuitsim.small_signal",
    "prepared": "circuitsim.analysis",
    "run": "circuitsim.analyses",
    "sensitivity": "circuitsim.small_signal.sensitivity",
    "solve": "circuitsim.analysis",
    "sweep": "circuitsim.analysis",
    "steady_state": "circuitsim.time_domain",
    "transfer_function": "circuitsim.small_signal.sensitivity",
    "transient": "circuitsim.time_domain",
    "Uniqueness": "circuitsim.analysis.operating_point",
    "waveform_gradient": "circuitsim.time_domain",
    "worst_case": "circuitsim.tolerance",
}

# Packages and modules, also imported on first use.
_PARTS = frozenset(
    {
        "analysis",
        "blocks",
        "boltzmann",
        "certificate",
        "controlled",
        "datasets",
        "effective",
        "elements",
        "errors",
        "examples",
        "experiments",
        "families",
        "ffebm",
        "fitting",
        "hopfield",
        "jax",
        "layered",
        "learning",
        "models",
        "netlist",
        "plotting",
        "report",
        "roles",
        "small_signal",
        "time_domain",
        "tolerance",
        "torch",
        "trained",
        "training",
        "units",
    }
)

__all__ = [*sorted(_HOMES), "__version__"]


_at_home = at_first_use("circuitsim", **_HOMES)


def __getattr__(name: str) -> Any:
    return import_module(f"circuitsim.{name}") if name in _PARTS else _at_home(name)


def __dir__() -> list[str]:
    return [*__all__, *sorted(_PARTS)]
