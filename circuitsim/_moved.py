"""Removed or renamed commands, options and public names, with their replacements; the hints remain through 0.3.x."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

_TABLE = """
circuitsim COMMAND --diodes = write `.options diodes=ideal` into the deck; in Python `ideal_diodes=True`
circuitsim COMMAND --rkm = leave it out: 2K2 is read as 2.2k, with a note
circuitsim completion = gone: `circuitsim --help` lists the commands, `circuitsim COMMAND --help` the options
circuitsim energy = use `circuitsim report RUN --capacitance 1p`; in Python `settling_energy`
circuitsim evaluate = use `circuitsim predict RUN --data FILE`, which reports errors where the data have targets
circuitsim forms = see the table in docs/dialects.md
circuitsim gradient = use `circuitsim train circuit DECK --data FILE --compare`
circuitsim init = use `circuitsim examples copy first/KIND`, for instance first/rectifier
circuitsim ir-drop = use `circuitsim solve DECK --drops`; `--plot` in place of `--map`
circuitsim man = use `circuitsim --help` and `circuitsim COMMAND --help`
circuitsim steady = use `circuitsim tran DECK --steady`
circuitsim train --estimator = use `--variant`
circuitsim train --model = name the model first: `circuitsim train drn --preset drn-xs`
circuitsim train --resume = use `circuitsim train resume --out DIR`
circuitsim train --tol = use `--tolerance`
circuitsim tran --dask = use `--workers N`; `circuitsim sweep` of the deck's .tran and .step takes --dask
circuitsim warm-up --only = leave it out: one run warms all kernels
circuitsim.elements.current_by_current = use `Circuit.cccs`
circuitsim.elements.current_by_voltage = use `Circuit.vccs`
circuitsim.elements.ideal_amplifier = use `Circuit.opamp`
circuitsim.elements.ideal_transformer = use `Circuit.transformer`
circuitsim.elements.voltage_by_current = use `Circuit.ccvs`
circuitsim.elements.voltage_by_voltage = use `Circuit.vcvs`
circuitsim.learning.Estimator = use `circuitsim.learning.Rule`
circuitsim.netlist.read_deck_text = use `circuitsim.loads`
circuitsim.read_deck = use `circuitsim.load`, which gives the deck
circuitsim.steady_state_periodic = use `circuitsim.steady_state`
"""
MOVED = dict(row.split(" = ", 1) for row in _TABLE.strip().splitlines())
"""Old spelling → replacement. Commands and options as typed, ``COMMAND`` for any command, Python names with their
module."""


def hint(old: str) -> str | None:
    """The replacement of ``old``, as a sentence; None if there is none.

    >>> hint("circuitsim forms")
    'circuitsim forms was removed: see the table in docs/dialects.md'
    """
    return f"{old} was removed: {MOVED[old]}" if old in MOVED else None


def at_first_use(module: str, **homes: str) -> Any:
    """``__getattr__`` of a module: imports names from their home; of a former name the error states the replacement."""

    def found(name: str) -> Any:
        if name in homes:
            value = getattr(import_module(homes[name]), name)
            setattr(sys.modules[module], name, value)  # found without this function from now on
            return value
        raise AttributeError(hint(f"{module}.{name}") or f"module {module!r} has no attribute {name!r}")

    return found
