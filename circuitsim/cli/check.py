"""``circuitsim check``: all problems of a deck at once, and its structure."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from circuitsim.cli.deck import as_dict, read, roles_of, severity
from circuitsim.cli.output import check_target, deliver
from circuitsim.errors import CircuitError, NetlistError, NoSteadyStateError, Problem, TopologyError, UsageError

if TYPE_CHECKING:
    from circuitsim.inspection import Report
    from circuitsim.netlist.deck import Deck
    from circuitsim.netlist.roles import Roles

EPILOG = """\
Lists all errors of the text (exit code 2), likely mistakes, and why a circuit has no operating point
(exit code 3).

examples:
  circuitsim check netlists/nested-subcircuits.cir
  circuitsim check netlists/rectifier-bridge.cir --format json
"""


OPTIONS = """
@deck
@format table json
@output the report
"""


def run(args: argparse.Namespace) -> int:
    """Print the report; the exit code is that of the most severe problem."""
    check_target(args.output, [args.deck])
    try:
        deck = read(args)
        roles, notes = roles_of(deck)
    except NetlistError as error:
        problems = [("error", problem) for problem in error.problems]
        _deliver(args, "", problems, None)
        raise CircuitError(f"{args.deck}: {_count(problems)}; the circuit cannot be built") from None
    from circuitsim.inspection import inspect_circuit

    found = inspect_circuit(deck.operating_circuit)
    said = [*deck.notes, *notes, *_asked_wrongly(deck), *found.lints]
    problems = [(severity(p), p) for p in _once(said)]
    if found.contradiction is not None:
        problems.append(("error", _as_problem(found.contradiction)))
    _deliver(args, deck.title, problems, found.report, deck, roles)
    if found.contradiction is not None:
        # The report has the whole message; this line is the result.
        raise type(found.contradiction)(f"{args.deck}: {_count(problems)}; the circuit has no steady state")
    return 0


def _asked_wrongly(deck: Deck) -> Iterator[Problem]:
    """Quantities of ``.sens`` and ``.tf`` cards that ``sensitivity`` refuses."""
    from circuitsim.netlist.deck import SensitivityRequest, TransferRequest

    for request in deck.analyses:
        if not isinstance(request, (SensitivityRequest, TransferRequest)):
            continue
        from circuitsim.analysis.probes import parse_probes
        from circuitsim.small_signal.transfer import output_and_input

        try:
            if isinstance(request, TransferRequest):
                output_and_input(deck.operating_circuit, request.output, request.source)
            else:
                parse_probes(" ".join(request.outputs), deck.operating_circuit)
        except (UsageError, TopologyError) as error:
            yield Problem("analysis", str(error), request.location)


def _once(problems: list[Problem]) -> list[Problem]:
    return list({str(problem): problem for problem in problems}.values())


def _as_problem(error: NoSteadyStateError) -> Problem:
    return Problem("no-steady-state", str(error), names=[*error.elements, *error.nodes])


def _count(problems: list[tuple[str, Problem]]) -> str:
    """``2 errors, 1 warning``."""
    levels = [level for level, _ in problems]
    counts = [(levels.count(level), level) for level in ("error", "warning", "note")]
    return ", ".join(f"{n} {level}{'s' * (n > 1)}" for n, level in counts if n) or "no problems"


def _deliver(
    args: argparse.Namespace,
    title: str,
    problems: list[tuple[str, Problem]],
    report: Report | None,
    deck: Deck | None = None,
    roles: Roles | None = None,
) -> None:
    if args.format == "json":
        from circuitsim.formats.strict_json import dumps

        errors = any(level == "error" for level, _ in problems)
        content: dict[str, Any] = {
            "schema": 2,
            "title": title,
            "ok": not errors,
            "problems": [{"severity": level, **as_dict(problem)} for level, problem in problems],
            "structure": report and report._asdict(),
            "roles": roles and _roles_to_dict(roles),
        }
        deliver(dumps(content), args.output)
        return
    lines = [f"{level}: {problem}" for level, problem in problems]
    if report is not None and deck is not None:
        lines += [*([""] if lines else []), *_text(report, deck, roles), "", f"{args.deck}: {_count(problems)}"]
    deliver("\n".join(lines) + "\n", args.output)


def _roles_to_dict(roles: Roles) -> dict[str, Any]:
    """Roles as plain values; an infinite bound is null."""
    from math import isfinite

    return {
        "inputs": list(roles.inputs),
        "outputs": [list(pair) for pair in roles.outputs],
        "trainable": [
            {
                "name": a.name,
                "min": a.minimum if isfinite(a.minimum) else None,
                "max": a.maximum if isfinite(a.maximum) else None,
            }
            for a in roles.trainable
        ],
    }


def _text(report: Report, deck: Deck, roles: Roles | None) -> list[str]:
    """The structure as text."""
    from circuitsim.formats.table import Table
    from circuitsim.netlist.deck import CARDS

    kinds = ", ".join(f"{n} {kind}{'s' * (n > 1)}" for kind, n in report.kinds.items())
    rows = [
        ("nodes", report.nodes, "ground included"),
        ("elements", report.elements, kinds),
        ("parts", report.parts, f"{report.floating} of them without a path to ground"),
        ("islands", report.islands, "joined by resistors and voltage sources; only diodes lead out of one"),
        ("super-nodes", report.super_nodes, "groups of nodes joined by voltage sources and shorts"),
        ("unknowns", report.unknowns, "node voltages to solve for"),
        ("free–free diodes", report.free_diodes, "diodes between two unknown node voltages"),
        ("voltage loops", report.voltage_loops, "loops of voltage sources and shorts: currents not unique"),
    ]
    asked = [f".{(CARDS.get(type(own)) or own.card).lstrip('.')}" for own in deck.analyses]  # type: ignore[union-attr]
    rows.append(("analyses", len(asked), ", ".join(asked) or "none requested: solve computes the operating point"))
    if roles is not None:
        named = roles.inputs, roles.output_names, [a.name for a in roles.trainable]
        rows += [(what, len(names), _some(names)) for what, names in zip(("inputs", "outputs", "trainable"), named)]
    return [deck.title, Table.of("structure, , ", rows).text().rstrip()]


def _some(names: Sequence[str], shown: int = 6) -> str:
    return ", ".join(names[:shown]) + (f" and {len(names) - shown} more" if len(names) > shown else "")
