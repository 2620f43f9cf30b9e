"""Suggestions for a command or an option that does not exist."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable

from circuitsim._moved import hint
from circuitsim.cli.options import below
from circuitsim.errors import similar

_CHOICE = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)")
_UNKNOWN = re.compile(r"^unrecognized arguments: (.*)$")


def meant(message: str, parser: argparse.ArgumentParser, above: argparse.ArgumentParser) -> str:
    """A question that names the closest choices or options, for a message of `argparse`; empty if there are none.

    ``above`` is the parser whose other sub-commands may have the option.
    """
    choice = _CHOICE.search(message)
    if choice:
        return similar(choice[1], re.findall(r"[^\s,'\"]+", choice[2]), least=0.7)
    unknown = _UNKNOWN.match(message)
    wrong = next((word for word in unknown[1].split() if word.startswith("-")), "") if unknown else ""
    name = wrong.partition("=")[0]
    if name in options_of(above):
        return f"{name} is an option of another sub-command;"
    return similar(name, options_of(parser), least=0.7) if wrong else ""


def moved(words: Iterable[str], command: str) -> str | None:
    """The replacement for a command or an option of an earlier version in a command line."""
    for word in (word.partition("=")[0] for word in words):
        if (text := hint(f"{command} {word}") or hint(f"circuitsim COMMAND {word}")) is not None:
            return text
    return None


def options_of(parser: argparse.ArgumentParser) -> list[str]:
    """All option strings of a parser and of its sub-parsers."""
    return [name for own in (parser, *below(parser)) for action in own._actions for name in action.option_strings]
