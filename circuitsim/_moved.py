"""Commands, options and public names that went or changed, and what to write now: one table, kept through 0.3.x."""

from __future__ import annotations

MOVED = {
    "circuitsim completion": "gone: `circuitsim --help` lists the commands, `circuitsim COMMAND --help` the options",
    "circuitsim energy": "use `circuitsim report RUN --capacitance 1p`; in Python `settling_energy`",
    "circuitsim evaluate": "use `circuitsim predict RUN --data FILE`, which reports errors where the data have targets",
    "circuitsim forms": "see the table in docs/netlist.md",
    "circuitsim gradient": "use `circuitsim train circuit DECK --data FILE --compare`",
    "circuitsim init": "use `circuitsim examples copy first/KIND`, for instance first/rectifier",
    "circuitsim ir-drop": "use `circuitsim solve DECK --drops`; `--plot` in place of `--map`",
    "circuitsim man": "use `circuitsim --help` and `circuitsim COMMAND --help`",
    "circuitsim steady": "use `circuitsim tran DECK --steady`",
}
"""Old spelling → what to write now. Commands and options as they are typed, Python names with their module."""


def hint(old: str) -> str | None:
    """What to write now in place of ``old``, as a sentence; None for what never was, or still is.

    >>> hint("circuitsim forms")
    'circuitsim forms was removed: see the table in docs/netlist.md'
    """
    return f"{old} was removed: {MOVED[old]}" if old in MOVED else None
