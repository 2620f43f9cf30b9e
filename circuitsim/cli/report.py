"""``circuitsim report``: one self-contained HTML file about a deck or a training run."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from circuitsim.cli.deck import read, report
from circuitsim.cli.output import check_ending, check_target, save
from circuitsim.errors import CircuitError, NoSteadyStateError, UsageError

if TYPE_CHECKING:
    from circuitsim.errors import Problem
    from circuitsim.netlist.deck import Deck

EPILOG = """\
Operating point, sweeps and waveforms of a deck, or the history of a training run, in one file. Drawings
can be moved and zoomed; a click on a heading sorts a table. What prevents an operating point is shown
in red (exit code 3).

examples:
  circuitsim report netlists/rectifier-bridge.cir
  circuitsim report netlists/boost-converter.cir --output boost.html
"""

MOST_POINTS = 5000
"""Maximum number of points of a deck's sweep that a report runs."""


OPTIONS = """
@deck
--output, -o FILE  the report (name of DECK or RUN with .html)
@solver
@tolerance
--capacitance F  for a run: settling times and energies with F from each node to ground
"""


def run(args: argparse.Namespace) -> int:
    """Write the report, and print its path."""
    name = os.path.basename(os.path.normpath(args.deck))
    stem = "circuit" if args.deck == "-" else os.path.splitext(name)[0]
    path = args.output or f"{stem}.html"
    check_ending(path, ("html", "htm"))
    check_target(path, [args.deck])
    code = 0
    if os.path.isdir(args.deck):
        text = _of_run(args.deck, args.capacitance)
    elif args.capacitance is not None:
        raise UsageError(
            "--capacitance is for the folder of a run; in Python: settling_energy(StepCircuit.of_deck(…), x)"
        )
    else:
        text, code = _of_deck(args, read(args))
    save(text.encode(), path)
    print(path)
    return code


def _of_deck(args: argparse.Namespace, deck: Deck) -> tuple[str, int]:
    """The report of a deck, and the exit code."""
    from circuitsim import report as parts
    from circuitsim.analysis import solve

    problems: list[Problem] = [*deck.notes]
    body, code = [], 0
    try:
        point = solve(deck, solver=args.solver, tolerance=args.tolerance)
        problems += point.warnings
        body.append(parts.operating_point(point))
    except NoSteadyStateError as error:
        body.append(parts.failure(deck.operating_circuit, str(error), error.elements))
        code = error.exit_code
        print(f"error: {error}", file=sys.stderr)
    if code == 0:
        body = [*_analyses(deck, args.tolerance), *body]
    report(problems, args.verbose)
    return parts.page(deck.operating_circuit.title or args.deck, body, problems), code


def _analyses(deck: Deck, tolerance: float) -> list[str]:
    """The analyses requested by the deck in addition to its operating point, in order."""
    from circuitsim import report as parts
    from circuitsim.analyses import run
    from circuitsim.analysis.sweep_axes import Combinations
    from circuitsim.cli.run import COMMANDS
    from circuitsim.formats.result import Result
    from circuitsim.netlist.deck import analyses_of, ranges_of

    body, left = [], ["op"]
    found: Mapping[str, Any]
    try:
        if "dc" in analyses_of(deck) and (points := Combinations.of(ranges_of(deck), deck).points) > MOST_POINTS:
            hint = "circuitsim sweep runs them"
            body.append(f"<p>No sweep: {points:,} points are more than a report shows ({MOST_POINTS:,}); {hint}</p>")
            left.append("dc")
        found = run(deck, left, tolerance=tolerance)
    except CircuitError as error:
        found = error.partial_result or {}  # type: ignore[assignment]
        body.append(f"<p>Not run: {_plain(error)}</p>")
    for name, result in found.items():
        if name == "meas":
            body.append(parts.measurements(result))
            continue
        results = result if isinstance(result, list) else [result]
        body += [parts.analysis(COMMANDS[name][1], one) for one in results if isinstance(one, Result)]
    return body


def _plain(error: CircuitError) -> str:
    from html import escape

    return escape(str(error))


def _of_run(path: str, capacitance: str | None) -> str:
    """The report of a training run."""
    import json

    from circuitsim import report as parts
    from circuitsim.training import History, RunDirectory

    directory = RunDirectory(path)
    if not directory.config.is_file():
        raise UsageError(f"{path} is a folder without a run (no {directory.config.name}); name a deck or a run")
    options = directory.options()
    history = History()
    lines = directory.path / History.LINES
    if lines.is_file():
        for line in lines.read_text(encoding="utf-8").splitlines():
            try:
                row = json.loads(line)
                history.append({name: float("nan") if value is None else value for name, value in row.items()})
            except (ValueError, AttributeError) as problem:
                raise UsageError(f"{lines} is damaged and cannot be read ({problem})") from None
    body = [parts.history(history, options)]
    if (directory.path / "trained.cir").is_file():
        from circuitsim.analysis import solve
        from circuitsim.netlist import load

        deck = load(directory.path / "trained.cir")
        body.append(parts.operating_point(solve(deck)))
        if capacitance is not None:
            body.append(_settling(deck, options, capacitance))
    elif capacitance is not None:
        raise UsageError(f"{path} has no trained.cir: --capacitance is for finished runs of train circuit")
    return parts.page(f"Run {os.path.normpath(path)}: {options.get('model')}", body)


def _settling(deck: Deck, options: Mapping[str, Any], capacitance: str) -> str:
    """Settling times and energies over the samples that a deck was trained with."""
    from circuitsim import report as parts
    from circuitsim.cli.options import spice_number
    from circuitsim.datasets.samples import read_samples
    from circuitsim.netlist.roles import read_roles
    from circuitsim.time_domain import StepCircuit, settling_energy

    step = StepCircuit.of_deck(deck, spice_number("--capacitance", capacitance))
    samples = read_samples(options["data"], read_roles(deck)[0].require(), options["classes"], targets=False)
    found = settling_energy(step, float(options["gain"]) * samples.x)
    return parts.analysis("Settling time and energy", found)
