"""Commands about a whole deck: ``run``, ``solve``, ``check``, ``graph``, ``convert``, ``report``."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from math import nan
from os.path import basename, exists, isdir, join, normpath, splitext
from typing import TYPE_CHECKING, Any

from circuitsim import report as parts
from circuitsim.cli import command, main
from circuitsim.cli.common import (
    FORMATS,
    PICTURES,
    alone,
    check_target,
    check_targets,
    deliver,
    draw,
    elsewhere,
    ending_of,
    present,
    printed,
    read,
    report,
    roles_of,
    run_together,
    save,
    say,
    severity,
)
from circuitsim.errors import CircuitError, NetlistError, NoSteadyStateError, Problem, TopologyError, UsageError, some
from circuitsim.formats import Result, Table, as_csv, as_raw, dumps, laws, plain
from circuitsim.netlist import load
from circuitsim.netlist.deck import (
    OVER_TIME,
    Deck,
    FourierCard,
    MeasurementRequest,
    SensitivityRequest,
    TransferRequest,
    analyses_of,
    ranges_of,
    steps_of,
)
from circuitsim.netlist.roles import Roles, read_roles

if TYPE_CHECKING:
    from circuitsim.analysis import OperatingPoint
    from circuitsim.circuit import Circuit
    from circuitsim.inspection import Report

_TABLE = """
op    op    solve        Operating point
dc    dc    sweep        DC sweep
tran  tran  tran         Transient analysis
four  tran  tran         Fourier series
ac    ac    ac           AC analysis
tf    sens  sensitivity  Transfer functions and sensitivities
sens  sens  sensitivity  Transfer functions and sensitivities
"""
COMMANDS = {
    card: (name, heading, command)
    for card, name, command, heading in (row.split(None, 3) for row in _TABLE.strip().splitlines())
}
"""For each analysis, the name of its files, its heading and its command."""

SEVERITY = (0, 3, 2, 1, 130)
"""Exit codes in order of severity, the worst last."""


@command(
    """
@deck
--output, -o DIR  write each result to a CSV file in DIR
--plot DIR  draw each result as a PNG file in DIR
""",
    """\
Runs .op, .dc, .step, .tran with .meas and .four, .ac, .tf and .sens in the order of the deck, or the
operating point of a deck without any. If one fails, the others still run; the exit code is the worst.
Long tables are shortened; --output writes them whole.

examples:
  circuitsim run netlists/boost-converter.cir
  circuitsim run netlists/lowpass-butterworth.cir --output results --plot results
""",
)
def run_run(args: Namespace) -> int:
    """Run all analyses of the deck, one after another."""
    for option, folder in (("--output", args.output), ("--plot", args.plot)):
        if folder and not isdir(folder) and (exists(folder) or ending_of(folder) in (*PICTURES, *FORMATS)):
            raise UsageError(f"{option} {folder!r} names a file; name a folder (created if missing)")
    deck = read(args)
    words = analyses_of(deck)
    asked = dict.fromkeys(COMMANDS[word] for word in words)
    for folder in filter(None, (args.output, args.plot)):
        os.makedirs(folder, exist_ok=True)
    worst = 0
    report(_left_out(deck, words), args.verbose)
    with run_together(deck, filter(elsewhere, deck.notes)):
        for k, (name, heading, command) in enumerate(asked):
            print(f"{chr(10) * (k > 0)}{heading}\n{'-' * len(heading)}")
            words = [command, args.deck, "--color", args.color, *["-v"] * args.verbose, *["--debug"] * args.debug]
            words += ["--plot", join(args.plot, f"{name}.png")] if args.plot else []
            words += ["--output", join(args.output, f"{name}.csv")] if args.output else ["--format", "table"]
            code = main(words)
            worst = max(worst, code, key=SEVERITY.index)
            if code == SEVERITY[-1]:
                break
    return worst


def _left_out(deck: Deck, words: Sequence[str]) -> Iterator[Problem]:
    """A note on each measurement and Fourier series of an analysis that the deck does not request."""
    for card in deck.analyses:
        if isinstance(card, (MeasurementRequest, FourierCard)):
            wanted = card.analysis if isinstance(card, MeasurementRequest) else "tran"
            if wanted not in words:
                message = f".{card.card} {card.text} is left out: the deck has no .{wanted}"
                yield Problem("no-effect", message, card.location)


@command(
    """
@solver
--start FILE  JSON of an operating point to start from, if there are several
--explain  print the method, the reason for it and each residual
--drops  voltage drops and pad currents of a power grid instead
--top N  number of worst nodes and pads of --drops (10)
@deck
@tolerance
@format table csv json raw
@binary
@output the result
@plot draw the circuit, or the map of --drops
""",
    """\
Currents flow from an element's first node through it to the second. The JSON object also describes a circuit
without an operating point (exit code 3). The drop of a power-grid node is the voltage of the sources (pads)
of its net minus its own.

examples:
  circuitsim solve netlists/rectifier-half-wave.cir
  circuitsim solve netlists/rectifier-bridge.cir --output bridge.json --plot bridge.svg
  printf 'divider\\nV1 in 0 6\\nR1 in out 1k\\nR2 out 0 2k\\n' | circuitsim solve -
""",
)
def run_solve(args: Namespace) -> None:
    """Solve the deck and print its operating point."""
    from circuitsim.analysis.solve import as_read

    check_targets(args, *filter(None, [args.start]))
    if args.top is not None and (args.top < 0 or not args.drops):
        raise UsageError(f"--top must be at least 0, not {args.top}" if args.drops else "--top is an option of --drops")
    if args.drops and args.format == "raw":
        raise UsageError("rawfiles hold all voltages: leave out --drops, or choose another --format")
    deck = read(args)
    circuit = deck.operating_circuit
    start = read_start(args.start, circuit) if args.start else None
    try:
        point = as_read(deck, args.solver, args.tolerance).solve(start=start)
    except CircuitError as error:
        report(deck.notes, args.verbose)
        if error.exit_code == 3 and args.format == "json":
            deliver(dumps(failure(error, circuit)), args.output)
        raise
    said = [*deck.notes, *point.warnings]
    report([note for note in said if note.kind not in ("tran", "ac")], args.verbose)
    try:
        printed(deck, ("op",))
    except UsageError as error:
        say(f"warning: {error}")
    left = [f".{card}" for card in deck.cards() if card in LEFT_OUT]
    if left and alone():
        say(f"note: only the operating point is solved; circuitsim run also does {', '.join(left)}")
    if args.explain:
        from circuitsim.analysis.solve import explain

        certificate = point.certificate.to_dict()
        head = f"certificate (tolerance {certificate['tolerance']:g})"
        say("\n".join([*explain(point), laws(certificate, point.uniqueness is None, head).text().rstrip()]))
    if args.drops:
        from circuitsim.analysis.ir_drop import ir_drop

        found = ir_drop(point)
        _, nets, pads = found.tables().values()
        rows = found.worst(10 if args.top is None else args.top)
        worst = Table.of("worst node, net, voltage, drop", rows, ("", "", "V", "V"))
        tables = {"pads": pads} if args.format == "csv" else {"nets": nets, "worst": worst, "pads": pads}
        present(found, args, tables, json=lambda: dumps(found.to_dict()))
    else:
        present(
            point,
            args,
            csv=lambda: as_csv(point.to_dict()),
            raw=lambda: as_raw(point.to_dict()),
        )


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
        **{name: {} for name in ("nodes", "intervals", "branches")},
        **dict.fromkeys(("energy", "certificate", "solver")),
    }


LEFT_OUT = ("dc", "step", "tran", "ac", "tf", "sens")
"""Analysis cards that ``solve`` ignores."""


def read_start(path: str, circuit: Circuit) -> OperatingPoint:
    """The operating point in the file ``path``.

    Raises
    ------
    UsageError
        A file that cannot be read, or is not an operating point of this circuit.
    """
    import json

    from circuitsim.analysis.operating_point import stored_point

    try:
        with open(path, encoding="utf-8") as file:
            stored = json.load(file)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        raise UsageError(f"{path} is not JSON: {error}") from None
    return stored_point(stored, circuit)


@command(
    """
@deck
@format table json
@output the report
""",
    """\
Lists all errors of the text (exit code 2), likely mistakes, and why a circuit has no operating point
(exit code 3).

examples:
  circuitsim check netlists/nested-subcircuits.cir
  circuitsim check netlists/rectifier-bridge.cir --format json
""",
)
def run_check(args: Namespace) -> None:
    """Print the report; the exit code is that of the most severe problem."""
    from circuitsim.inspection import inspect_circuit

    check_target(args.output, [args.deck])
    structure, roles, title, shown, ending = None, None, "", "", None
    try:
        deck = read(args)
        roles, notes = roles_of(deck)
    except NetlistError as error:
        problems, ending = [("error", problem) for problem in error.problems], (CircuitError, "cannot be built")
    else:
        structure, lints, stop = inspect_circuit(deck.operating_circuit)
        title, shown = deck.title, _structure(structure, deck, roles)
        said = {str(p): p for p in (*deck.notes, *notes, *_asked_wrongly(deck), *lints)}
        problems = [(severity(problem), problem) for problem in said.values()]
        if stop is not None:
            problems.append(("error", Problem("no-steady-state", str(stop), names=[*stop.elements, *stop.nodes])))
            ending = type(stop), "has no steady state"
    levels = [level for level, _ in problems]
    counts = [(levels.count(level), level) for level in ("error", "warning", "note")]
    count = ", ".join(f"{n} {level}{'s' * (n > 1)}" for n, level in counts if n) or "no problems"
    lines = [f"{level}: {problem}" for level, problem in problems]
    if shown:
        lines += [*[""] * bool(lines), title, shown, "", f"{args.deck}: {count}"]
    content = {
        "schema": 2,
        "title": title,
        "ok": "error" not in levels,
        "problems": [{"severity": level, **problem.to_dict()} for level, problem in problems],
        "structure": structure and structure._asdict(),
        "roles": roles and _roles_to_dict(roles),
    }
    deliver(dumps(content) if args.format == "json" else "\n".join(lines) + "\n", args.output)
    if ending is not None:  # the report has the whole message
        raise ending[0](f"{args.deck}: {count}; the circuit {ending[1]}")


def _asked_wrongly(deck: Deck) -> Iterator[Problem]:
    """Quantities of ``.sens`` and ``.tf`` cards that ``sensitivity`` refuses."""
    for request in deck.analyses:
        if not isinstance(request, (SensitivityRequest, TransferRequest)):
            continue
        from circuitsim.analysis.probes import parse_probes
        from circuitsim.small_signal.sensitivity import output_and_input

        try:
            if isinstance(request, TransferRequest):
                output_and_input(deck.operating_circuit, request.output, request.source)
            else:
                parse_probes(" ".join(request.outputs), deck.operating_circuit)
        except (UsageError, TopologyError) as error:
            yield Problem("analysis", str(error), request.location)


def _roles_to_dict(roles: Roles) -> dict[str, Any]:
    """Roles as plain values; an infinite bound is null."""
    trainable = [dict(zip(("name", "min", "max"), own)) for own in roles.trainable]
    found: dict[str, Any] = plain({"inputs": roles.inputs, "outputs": roles.outputs, "trainable": trainable})
    return found


_STRUCTURE = """
nodes  nodes  ground included
elements  elements  {kinds}
parts  parts  {floating} of them without a path to ground
islands  islands  joined by resistors and voltage sources; only diodes lead out of one
super-nodes  super_nodes  groups of nodes joined by voltage sources and shorts
unknowns  unknowns  node voltages to solve for
free–free diodes  free_diodes  diodes between two unknown node voltages
voltage loops  voltage_loops  loops of voltage sources and shorts: currents not unique
"""
"""Lines of `check`: name, attribute of the `Report`, and what it is."""


def _structure(report: Report, deck: Deck, roles: Roles | None) -> str:
    """The structure as text."""
    facts = report._asdict()
    facts["kinds"] = ", ".join(f"{n} {kind}{'s' * (n > 1)}" for kind, n in report.kinds.items())
    lines = (line.split("  ") for line in _STRUCTURE.strip().splitlines())
    rows = [(name, facts[key], words.format(**facts)) for name, key, words in lines]
    asked = [f".{own.card}" for own in deck.analyses]
    rows.append(("analyses", len(asked), ", ".join(asked) or "none requested: solve computes the operating point"))
    if roles is not None:
        named = roles.inputs, roles.output_names, [a.name for a in roles.trainable]
        rows += [(what, len(names), some(names, 6)) for what, names in zip(("inputs", "outputs", "trainable"), named)]
    return Table.of("structure, , ", rows).text().rstrip()


@command(
    """
@deck
--output, -o FILE  the picture: .png, .svg or .pdf (name of DECK with .png)
@solver
@tolerance
""",
    """\
Colour is voltage, width and arrows are current, conducting diodes are filled. Above 160 nodes: a
table of the worst nodes and elements, or the map of a power grid.

examples:
  circuitsim graph netlists/rectifier-bridge.cir
  circuitsim graph netlists/voltage-doubler.cir --output doubler.svg
""",
)
def run_graph(args: Namespace) -> None:
    """Solve the deck, draw it, and print the picture's path."""
    from circuitsim.analysis import solve
    from circuitsim.plotting import draw_circuit

    stem = "circuit" if args.deck == "-" else splitext(basename(args.deck))[0]
    path = args.output or f"{stem}.png"
    check_target(path, [args.deck], endings=PICTURES)
    deck = read(args)
    point = solve(deck, solver=args.solver, tolerance=args.tolerance)
    report([*deck.notes, *point.warnings], args.verbose)
    draw(draw_circuit(point), path)
    print(path)


ENDINGS = ("cir", "net", "sp", "spice", "ckt", "lib", "inc", "txt")
"""File name extensions of decks."""


@command(
    """
@deck
@output the flattened deck
--ngspice  write ideal diodes, limiters, varistors, tables as elements that ngspice has
""",
    """\
Expands sub-circuits, parameters and includes; keeps time-dependent sources, analyses, measurements and
outputs. What a flat deck cannot express (a sweep of a parameter) is refused by name.

examples:
  circuitsim convert netlists/nested-subcircuits.cir
  circuitsim convert netlists/boost-converter.cir --ngspice --output flat.cir
""",
)
def run_convert(args: Namespace) -> None:
    """Print the flattened deck."""
    from circuitsim.netlist.writer import text_of

    check_target(args.output, [args.deck], endings=ENDINGS)
    deck = read(args)
    roles, notes = roles_of(deck)
    report([*(w for w in deck.notes if not elsewhere(w)), *notes], args.verbose)
    deliver(text_of(deck, roles, ngspice=args.ngspice, strict=args.ngspice), args.output)


MOST_POINTS = 5000
"""Maximum number of points of a deck's sweep that a report runs."""


@command(
    """
@deck
--output, -o FILE  the report (name of DECK or RUN with .html)
@solver
@tolerance
--capacitance F  for a run: settling times and energies with F from each node to ground
""",
    """\
Operating point, sweeps and waveforms of a deck, or the history of a training run, in one file. Drawings
can be moved and zoomed; a click on a heading sorts a table. What prevents an operating point is shown
in red (exit code 3).

examples:
  circuitsim report netlists/rectifier-bridge.cir
  circuitsim report netlists/boost-converter.cir --output boost.html
""",
)
def run_report(args: Namespace) -> int:
    """Write the report, and print its path."""
    name = basename(normpath(args.deck))
    stem = "circuit" if args.deck == "-" else splitext(name)[0]
    path = args.output or f"{stem}.html"
    check_target(path, [args.deck], endings=("html", "htm"))
    code = 0
    if isdir(args.deck):
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


def _of_deck(args: Namespace, deck: Deck) -> tuple[str, int]:
    """The report of a deck, and the exit code."""
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
        say(f"error: {error}")
    if code == 0:
        body = [*_analyses(deck, args.tolerance), *body]
    report(problems, args.verbose)
    return parts.page(deck.operating_circuit.title or args.deck, body, problems), code


def _analyses(deck: Deck, tolerance: float) -> list[str]:
    """The analyses requested by the deck in addition to its operating point, in order."""
    from circuitsim.analyses import run
    from circuitsim.analysis.sweep import Combinations

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
        body.append(f"<p>Not run: {escape(str(error))}</p>")
    for name, result in found.items():
        if name == "meas":
            body.append(parts.measurements(result))
            continue
        results = result if isinstance(result, list) else [result]
        body += [_pictured(deck, name, one) for one in results if isinstance(one, Result)]
    return body


def _pictured(deck: Deck, name: str, found: Result) -> str:
    """An analysis, with the columns of the deck's output cards in the picture of waveforms and responses."""
    from circuitsim.cli.analyses import amplitudes

    heading, kinds = COMMANDS[name][1], {"tran": OVER_TIME, "ac": ("ac",)}
    if name not in kinds or steps_of(deck):
        return parts.analysis(heading, found)
    try:
        return parts.analysis(heading, found, printed(deck, kinds[name], amplitudes if name == "ac" else str))
    except UsageError as error:
        return f"{parts.analysis(heading, found)}<p>{escape(str(error))}</p>"


def _of_run(path: str, capacitance: float | None) -> str:
    """The report of a training run."""
    import json

    from circuitsim.training import History, RunDirectory

    directory = RunDirectory(path)
    if not directory.config.is_file():
        raise UsageError(f"{path} is a folder without a run (no {directory.config.name}); name a deck or a run")
    options = directory.options()
    history = History()
    lines = directory.path / History.LINES
    if lines.is_file():
        try:
            rows = map(json.loads, lines.read_text(encoding="utf-8").splitlines())
            history.restart({name: nan if own is None else own for name, own in row.items()} for row in rows)
        except (ValueError, AttributeError) as problem:
            raise UsageError(f"{lines} is damaged and cannot be read ({problem})") from None
    body = [parts.history(history, options)]
    if (directory.path / "trained.cir").is_file():
        from circuitsim.analysis import solve

        deck = load(directory.path / "trained.cir")
        body.append(parts.operating_point(solve(deck)))
        if capacitance is not None:
            body.append(_settling(deck, options, capacitance))
    elif capacitance is not None:
        raise UsageError(f"{path} has no trained.cir: --capacitance is for finished runs of train circuit")
    return parts.page(f"Run {normpath(path)}: {options.get('model')}", body)


def _settling(deck: Deck, options: Mapping[str, Any], capacitance: float) -> str:
    """Settling times and energies over the samples that a deck was trained with."""
    from circuitsim.datasets.samples import read_samples
    from circuitsim.time_domain import StepCircuit, settling_energy

    step = StepCircuit.of_deck(deck, capacitance)
    samples = read_samples(options["data"], read_roles(deck)[0].require(), options["classes"], targets=False)
    found = settling_energy(step, float(options["gain"]) * samples.x)
    return parts.analysis("Settling time and energy", found)
