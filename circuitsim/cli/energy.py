"""``circuitsim energy``: settling time and energy of a circuit after steps of its inputs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from circuitsim.cli.deck import DEFAULTS, add_reading, read, read_with
from circuitsim.cli.output import add_format, add_output, check_target, deliver
from circuitsim.cli.progress import INTERRUPTED, Interrupt, LateProgress
from circuitsim.cli.solving import add_method, add_tolerance
from circuitsim.errors import UsageError

if TYPE_CHECKING:
    from circuitsim.netlist.deck import Deck
    from circuitsim.netlist.roles import Roles
    from circuitsim.time_domain.settling import SettlingResult

EPILOG = """\
Each sample of the data is a step of the input sources at time 0: from all inputs at 0, or with --previous from the
sample before. The settling time is the last time at which an output is off its final value by more than --share (1 %)
of the largest change of an output; the energy is what all sources deliver until then. Capacitances: the deck's own
capacitors, and --capacitance from nodes to ground. Networks of ideal and piecewise-linear diodes have exact waveforms;
those with junction diodes, controlled sources or more than 60 capacitors get the implicit method.

examples:
  circuitsim energy netlists/learn-divider.cir --data netlists/learn-divider.csv --capacitance 1p
  circuitsim train circuit netlists/learn-divider.cir --data netlists/learn-divider.csv --out run
  circuitsim energy run --data netlists/learn-divider.csv --capacitance 1p --capacitance out=5p --plot energy.png
  circuitsim energy run --data netlists/learn-divider.csv --capacitance 1p --previous --format csv
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``energy``."""
    parser.epilog = EPILOG
    parser.add_argument("deck", metavar="RUN|DECK", help="a directory of circuitsim train circuit --out, or a deck")
    parser.add_argument("--data", metavar="FILE", required=True, help="samples: .csv or .npz, as for training")
    parser.add_argument(
        "--capacitance",
        metavar="[NODE=]F",
        action="append",
        default=[],
        help="from every node to ground, F (1p), or from one node, which replaces it (repeatable)",
    )
    parser.add_argument(
        "--share",
        metavar="S",
        type=float,
        default=0.01,
        help="of the largest change that counts as settled (%(default)s)",
    )
    parser.add_argument("--previous", action="store_true", help="each step begins at the sample before")
    parser.add_argument("--inputs", metavar="NAMES", help="input sources: 'V1 V2' (the deck's *! input)")
    parser.add_argument("--outputs", metavar="PAIRS", help="outputs: 'v(out) v(p,q)' (the deck's *! output)")
    add_tolerance(parser)
    add_method(parser)
    add_reading(parser, **DEFAULTS)
    add_format(parser, "table", "csv", "json")
    add_output(parser)
    parser.add_argument(
        "--plot", metavar="FILE", help="also draw energy over time, and the slowest outputs (.png, .svg or .pdf)"
    )


def run(args: argparse.Namespace) -> int:
    """Step through the samples and print times and energies."""
    from circuitsim.analysis.switching import switches_of
    from circuitsim.cli.drawing import check_drawing, draw_settling
    from circuitsim.time_domain.settling import StepCircuit, settling_energy

    check_target(args.output, [args.deck, args.data])
    if args.plot:
        check_drawing(args.plot, [args.deck, args.data], args.output)
    deck, options = _source(args)
    roles = _roles(deck, args)
    x = _samples(args, roles, options)
    circuit, following = deck.where_change(roles.inputs)
    following.check_dynamic()
    step = StepCircuit(
        circuit,
        roles.inputs,
        roles.output_names,
        _capacitances(args.capacitance, deck),
        switches_of(circuit, following),
        following.couplings,
        args.share,
        args.tolerance,
        args.method,
        args.accuracy,
    )
    line = LateProgress("energy")
    with Interrupt() as interrupt:
        try:
            found = settling_energy(step, x, args.previous, interrupt.watch(line))
        finally:
            line.close()
    deliver(_formatted(found, args.format), args.output)
    if args.plot:
        slow = found.slowest
        before = x[slow - 1] if args.previous else 0.0 * x[slow]
        draw_settling(found, step.run(before, x[slow]), args.plot)
    if interrupt.asked:
        print(f"interrupted after {len(found.rows)} of {len(x)} samples", file=sys.stderr)
        return INTERRUPTED
    return 0


def _source(args: argparse.Namespace) -> tuple[Deck, Mapping[str, Any]]:
    """The deck, and the options of the run that it comes from."""
    options: Mapping[str, Any] = {}
    if Path(args.deck).is_dir():
        from circuitsim.trained import run_options

        path, options = run_options(args.deck)
        if options["model"] != "circuit" or options.get("over_time"):
            raise UsageError(f"{path} is no run of a deck at rest: energy takes decks and runs of train circuit")
        if not (path / "trained.cir").is_file():
            raise UsageError(f"{path} has no trained.cir: circuitsim train resume --out {path}")
        return read_with({"deck": str(path / "trained.cir"), **DEFAULTS}), options
    return read(args), options


def _roles(deck: Deck, args: argparse.Namespace) -> Roles:
    from circuitsim.netlist.roles import make_roles, numbers_of, read_roles

    roles = make_roles(deck.circuit, args.inputs, args.outputs, None, read_roles(deck)[0], numbers_of(deck))
    for word, found in (("input", roles.inputs), ("output", roles.outputs)):
        if not found:
            raise UsageError(f"the deck names no {word}: write '*! {word} …' into it, or give --{word}s")
    return roles


def _samples(args: argparse.Namespace, roles: Roles, options: Mapping[str, Any]) -> Any:
    """(samples, inputs) values of the input sources."""
    from circuitsim.datasets.samples import read_samples

    samples = read_samples(args.data, roles, tuple(options.get("classes", ())), targets=False)
    return float(options.get("gain", 1.0)) * samples.x


def _capacitances(texts: list[str], deck: Deck) -> dict[str, float]:
    """Capacitances by node, F."""
    from circuitsim.cli.options import spice_number

    found: dict[str, float] = {}
    nodes = deck.circuit.node_names
    for text in sorted(texts, key=lambda text: "=" in text):
        node, equals, value = text.rpartition("=")
        farads = spice_number("--capacitance", value)
        if not equals:
            found = {str(name): farads for name in nodes[1:]}
        else:
            k = deck.circuit.node_index(node.strip())
            if k == 0:
                raise UsageError(f"--capacitance {text}: ground has no capacitance to itself")
            found[str(nodes[k])] = farads
    return found


def _formatted(found: SettlingResult, form: str) -> str:
    """The result as text."""
    from circuitsim.formats import columns
    from circuitsim.formats.columns import quantity

    if form == "json":
        from circuitsim.formats.strict_json import dumps

        return dumps(found.to_dict())
    if form == "csv":
        header = ("sample", "time", "delivered", "dissipated", "lost", "stored", *found.outputs)
        return columns.csv(header, ((str(k), *row[:-1], *row.final) for k, row in enumerate(found.rows)))
    kinds = {
        "settling time": ("time", "s"),
        "energy from the sources": ("delivered", "J"),
        "dissipated": ("dissipated", "J"),
        "lost in jumps of charge": ("lost", "J"),
        "stored": ("stored", "J"),
    }
    rows = []
    for title, (name, unit) in kinds.items():
        own = found.column(name)
        worst = int(own.argmax())
        rows.append([title, quantity(float(own[worst]), unit), str(worst), quantity(float(own.mean()), unit)])
    lines = columns.table(["until settled", "worst", "sample", "mean"], rows)
    last = f"{len(found.rows)} samples; settled within {found.share:g} of the largest change"
    return "\n".join([*lines, "", last, ""])
