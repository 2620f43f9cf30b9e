"""Options and failures common to the commands that solve."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from circuitsim.cli.deck import held_switches, read, report
from circuitsim.cli.output import check_targets
from circuitsim.errors import CircuitError, Problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from circuitsim.circuit import Circuit
    from circuitsim.netlist.deck import Deck


def opened(args: argparse.Namespace, leave: Callable[[Problem], bool] = lambda note: False, held: bool = False) -> Deck:
    """The deck of an analysis, after checking that its targets can be written; its notes are reported.

    Parameters
    ----------
    args : argparse.Namespace
    leave : callable
        Whether a note is irrelevant to the analysis.
    held : bool
        Whether switches keep the states of the operating point.
    """
    check_targets(args)
    deck = read(args)
    notes = [note for note in deck.notes if not leave(note)]
    report([*notes, *(held_switches(deck) if held else ())], args.verbose)
    return deck


def failure(error: CircuitError, circuit: Circuit) -> dict[str, Any]:
    """The JSON of ``solve`` for a circuit without an operating point (exit code 3): the same keys, and ``cause``."""
    from circuitsim.analysis.operating_point import cause_of, status_of, warning_to_dict

    return {
        "schema": 2,
        "title": circuit.title,
        "status": status_of(error).value,
        "message": str(error),
        "cause": cause_of(error),
        "warnings": [warning_to_dict(problem) for problem in circuit.notes],
        "nodes": {},
        "intervals": {},
        "branches": {},
        "energy": None,
        "certificate": None,
        "solver": None,
    }
