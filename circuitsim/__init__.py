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

_TABLE = """
analyses                  run
analysis                  OperatingPoint prepared solve sweep
analysis.batched          batched
analysis.curve            curve
analysis.ir_drop          ir_drop
analysis.operating_point  Uniqueness
blocks.circuit            CircuitBlock
circuit                   Circuit
circuit.source            draw
effective                 CrossbarLayer EffectiveMatrix effective_matrix
errors                    CircuitError ConvergenceError DeckWarning InfeasibleError NetlistError
errors                    TopologyError UnboundedError UsageError
learning.function         circuit_block
netlist                   dump dumps load loads
netlist.deck              Deck
small_signal              ac poles
small_signal.sensitivity  sensitivity transfer_function
time_domain               measure steady_state transient waveform_gradient
tolerance                 montecarlo worst_case
tolerance.design          optimise
"""
_HOMES = {
    name: f"circuitsim.{module}" for module, *names in map(str.split, _TABLE.strip().splitlines()) for name in names
}
"""Name → module that defines it. Loaded on first use, so that `import circuitsim` and the command line start fast."""

_MODULES = """
analysis blocks boltzmann certificate controlled datasets effective elements errors examples experiments families
ffebm fitting hopfield jax layered learning models netlist plotting report roles small_signal time_domain tolerance
torch trained training units
"""
_PARTS = frozenset(_MODULES.split())
"""Packages and modules, also imported on first use."""

__all__ = [*sorted(_HOMES), "__version__"]


_at_home = at_first_use("circuitsim", **_HOMES)


def __getattr__(name: str) -> Any:
    return import_module(f"circuitsim.{name}") if name in _PARTS else _at_home(name)


def __dir__() -> list[str]:
    return [*__all__, *sorted(_PARTS)]
