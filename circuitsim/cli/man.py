"""``circuitsim man``: the manual page, made from the parsers of all commands."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from circuitsim.cli.output import add_output, check_target, deliver

EPILOG = """\
examples:
  circuitsim man | man -l -
  circuitsim man --output ~/.local/share/man/man1/circuitsim.1
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where the page goes."""
    parser.epilog = EPILOG
    add_output(parser, "the page")


def run(args: argparse.Namespace) -> int:
    """Print the page."""
    check_target(args.output, [])
    deliver(page(), args.output)
    return 0


def commands() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every command and sub-command with its name and its parser; the program itself is the first."""
    from circuitsim.cli import COMMANDS, build_parser

    yield "circuitsim", build_parser(None)
    for name in COMMANDS:
        yield from _with_inner(f"circuitsim {name}", _inner(build_parser(name))[name])


def _inner(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The sub-commands of a parser."""
    found = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return {name: inner for action in found for name, inner in action.choices.items()}


def _with_inner(name: str, parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    yield name, parser
    for word, inner in _inner(parser).items():
        yield from _with_inner(f"{name} {word}", inner)


def options(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    """What a command takes, as it is typed, and its help; without the options that all commands have."""
    from circuitsim.cli import build_parser

    common = {word for action in build_parser(None)._actions for word in action.option_strings}
    formatter = parser._get_formatter()
    for action in parser._actions:
        hidden = action.help == argparse.SUPPRESS or isinstance(action, argparse._SubParsersAction)
        if not hidden and (parser.prog == "circuitsim" or not common.intersection(action.option_strings)):
            words = formatter._format_action_invocation(action)
            yield words, formatter._expand_help(action) if action.help else ""


def page() -> str:
    """The manual page, in the language of man."""
    from circuitsim._version import __version__

    (_, program), *others = commands()
    lines = [
        f'.TH CIRCUITSIM 1 "" "circuitsim {__version__}"',
        ".SH NAME",
        f"circuitsim \\- {_escaped((program.description or '').rstrip('.'))}",
        ".SH SYNOPSIS",
        ".B circuitsim",
        "[options] command ...",
        ".SH OPTIONS OF ALL COMMANDS",
        *_listed(program),
        ".SH COMMANDS",
    ]
    for name, parser in others:
        lines += [f".SS {_escaped(name)}", _escaped(parser.description or ""), *_listed(parser), *_verbatim(parser)]
    return "\n".join([*lines, ".SH NOTES", *_verbatim(program)]) + "\n"


def _listed(parser: argparse.ArgumentParser) -> list[str]:
    return [line for words, text in options(parser) for line in (".TP", f".B {_escaped(words)}", _escaped(text))]


def _verbatim(parser: argparse.ArgumentParser) -> list[str]:
    """The text below the options, as it stands in the help."""
    text = (parser.epilog or "").strip("\n")
    return [".PP", ".nf", *map(_escaped, text.split("\n")), ".fi"] if text else []


def _escaped(text: str) -> str:
    """``text`` without characters that man takes for its own at the beginning of a line, or anywhere."""
    safe = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + safe if safe.startswith((".", "'")) else safe
