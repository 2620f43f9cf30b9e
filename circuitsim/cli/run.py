"""``circuitsim run``: every analysis that a deck requests."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
from collections.abc import Iterator, Sequence

from circuitsim.cli.deck import elsewhere, read, report, run_together
from circuitsim.errors import Problem, UsageError
from circuitsim.netlist.deck import Deck, FourierCard, MeasurementRequest, analyses_of

EPILOG = """\
Runs .op, .dc, .step, .tran with .meas and .four, .ac, .tf and .sens in the order of the deck, or the
operating point of a deck without any. If one fails, the others still run; the exit code is the worst.
Long tables are shortened on the terminal only.

examples:
  circuitsim run netlists/boost-converter.cir
  circuitsim run netlists/lowpass-butterworth.cir --output results --plot results
"""

COMMANDS: dict[str, tuple[str, str, str]] = {
    "op": ("op", "Operating point", "solve"),
    "dc": ("dc", "DC sweep", "sweep"),
    "tran": ("tran", "Transient analysis", "tran"),
    "ac": ("ac", "AC analysis", "ac"),
    "tf": ("sens", "Transfer functions and sensitivities", "sensitivity"),
    "sens": ("sens", "Transfer functions and sensitivities", "sensitivity"),
}
"""For each analysis, the name of its files, its heading and its command."""
SHOWN, LAST = 40, 5
"""Maximum number of lines of a table on the terminal, and how many of them are from its end."""
SEVERITY = (0, 3, 2, 1, 130)
"""Exit codes in order of severity, the worst last."""


OPTIONS = """
@deck
--output, -o DIR  write each result to a CSV file in DIR
--plot DIR  draw each result as a PNG file in DIR
"""


def run(args: argparse.Namespace) -> int:
    """Run all analyses of the deck, one after another."""
    for option, folder in (("--output", args.output), ("--plot", args.plot)):
        if folder and os.path.exists(folder) and not os.path.isdir(folder):
            raise UsageError(f"{option} {folder!r} is a file; name a folder (created if missing)")
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
            code = _one(args, name, command)
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


def _one(args: argparse.Namespace, name: str, command: str) -> int:
    """Run one command on the deck: print its table, shortened, and write its files."""
    from circuitsim.cli import main

    words = [command, args.deck, "--color", args.color, *["-v"] * args.verbose, *["--debug"] * args.debug]
    words += ["--plot", os.path.join(args.plot, f"{name}.png")] if args.plot else []
    if args.output:
        path = os.path.join(args.output, f"{name}.csv")
        code = main([*words, "--output", path])
        if not code:
            print(f"written to {path}")
        return code
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        code = main([*words, "--format", "table"])
    print("\n\n".join(map(_shortened, text.getvalue().rstrip().split("\n\n"))))
    return code


def _shortened(table: str) -> str:
    """A table shortened to at most `SHOWN` lines."""
    lines = table.splitlines()
    if len(lines) > SHOWN:
        left = len(lines) - SHOWN
        lines[SHOWN - LAST : -LAST] = [f"… {left:,} more rows (--output DIR writes all, --plot DIR draws them)"]
    return "\n".join(lines)
