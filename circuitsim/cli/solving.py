"""Options and failures common to the commands that solve."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from circuitsim.cli.deck import add_deck, held_switches, read, report
from circuitsim.cli.options import add_options, bounded
from circuitsim.cli.output import add_format, add_output, add_plot, check_targets
from circuitsim.errors import CircuitError, Problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from circuitsim.circuit import Circuit
    from circuitsim.netlist.deck import Deck

TOLERANCE = 1e-9
"""Default of ``--tolerance``: that of the certificate (a test checks this), without its import."""


def add_analysis(parser: argparse.ArgumentParser, formats: str, plot: str, exact: bool = True) -> None:
    """Add the deck, ``--format`` with these formats, ``--output``, ``--plot`` and, if ``exact``, ``--tolerance``."""
    add_deck(parser)
    if exact:
        add_tolerance(parser)
    add_format(parser, *formats.split())
    add_output(parser)
    add_plot(parser, plot)


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


def add_solver(parser: argparse.ArgumentParser) -> None:
    """Add ``--solver`` to a command."""
    add_options(
        parser,
        "--solver NAME  auto, active-set, coordinate-descent, cvxpy:CLARABEL … (auto)",
        solver={"default": "auto"},
    )


def add_tolerance(parser: argparse.ArgumentParser) -> None:
    """Add ``--tolerance`` of certificates to a command."""
    own = {"type": tolerance, "default": TOLERANCE}
    add_options(parser, "--tolerance T  maximum relative residual of the certificate (%(default)g)", tolerance=own)


METHOD = """
--method METHOD  exact or implicit (exact where it applies)
--accuracy X  implicit method: relative error of the waveforms (1e-4)
"""


def add_method(parser: argparse.ArgumentParser) -> None:
    """Add ``--method`` and ``--accuracy`` of transient analysis to a command."""
    own: dict[str, Any] = {"accuracy": {"type": tolerance, "default": 1e-4}}
    add_options(parser, METHOD, **own, method={"choices": ("exact", "implicit")})


def tolerance(text: str) -> float:
    """The value of ``--tolerance`` or ``--accuracy``: a SPICE number between 0 and 1."""
    return bounded(text, lambda value: 0.0 < value < 1.0, "not between 0 and 1")


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
