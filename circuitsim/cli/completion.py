"""``circuitsim completion``: what a shell offers after a press on the tab key."""

from __future__ import annotations

import argparse
from typing import NamedTuple

EPILOG = """\
examples:
  circuitsim completion bash > ~/.local/share/bash-completion/completions/circuitsim
  circuitsim completion zsh > "${fpath[1]}/_circuitsim"
  circuitsim completion fish > ~/.config/fish/completions/circuitsim.fish
"""


class Option(NamedTuple):
    """One option: its spellings, its help, and the values it may have where these are known."""

    names: tuple[str, ...]
    words: str
    values: tuple[str, ...] = ()


class Offer(NamedTuple):
    """What a command takes: its options, and the words of its first argument where these are known."""

    options: list[Option]
    words: list[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The shell."""
    parser.epilog = EPILOG
    parser.add_argument("shell", choices=tuple(WRITERS), help="the shell to write for")


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    print(WRITERS[args.shell](_all_offers()), end="")
    return 0


def _all_offers() -> dict[str, Offer]:
    """What every command takes; the options of its sub-commands are among its own."""
    from circuitsim.cli import COMMANDS, _below, build_parser

    found = {}
    for command in COMMANDS:
        commands = next(a for a in build_parser(command)._actions if isinstance(a, argparse._SubParsersAction))
        own = commands.choices[command]
        options = dict[tuple[str, ...], Option]()
        for parser in (own, *_below(own)):
            expand = parser._get_formatter()._expand_help
            for action in parser._actions:
                names = tuple(action.option_strings)
                if names and action.help != argparse.SUPPRESS:
                    before = options[names].values if names in options else ()
                    values = dict.fromkeys([*before, *map(str, action.choices or ())])
                    options[names] = Option(names, expand(action), tuple(values))
        first = next((a.choices for a in own._actions if not a.option_strings and a.choices), ())
        found[command] = Offer(list(options.values()), [str(word) for word in first])
    return found


def _bash(offers: dict[str, Offer]) -> str:
    cases = "".join(
        f'    {command}) words="{" ".join(name for option in own.options for name in option.names)}"'
        f' first="{" ".join(own.words)}"{_bash_values(own.options)} ;;\n'
        for command, own in offers.items()
    )
    return f"""# bash completion of circuitsim
_circuitsim() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" words="" first="" values=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{" ".join(offers)} --help --version" -- "$word"))
    return
  fi
  case "${{COMP_WORDS[1]}}" in
{cases}  esac
  case "$COMP_CWORD:$values:$first:$word" in
    *:?*:*:*) COMPREPLY=($(compgen -W "$values" -- "$word")) ;;
    *::*:-*) COMPREPLY=($(compgen -W "$words" -- "$word")) ;;
    2::?*:*) COMPREPLY=($(compgen -W "$first" -- "$word")) ;;
    *) COMPREPLY=($(compgen -f -- "$word")) ;;
  esac
}}
complete -o filenames -F _circuitsim circuitsim
"""


def _bash_values(options: list[Option]) -> str:
    """A ``case`` on the word before, with the values of each option that has some."""
    known = [f'{"|".join(option.names)}) values="{" ".join(option.values)}" ;;' for option in options if option.values]
    return f' ; case "$before" in {" ".join(known)} esac' if known else ""


def _zsh(offers: dict[str, Offer]) -> str:
    cases = "".join(
        f"    {command}) _arguments {' '.join(_zsh_option(option) for option in own.options)}"
        f"{_zsh_words(own.words)} '*:file:_files' ;;\n"
        for command, own in offers.items()
    )
    commands = " ".join(f"'{name}:{_quoted(words)}'" for name, words in _lines().items())
    return f"""#compdef circuitsim
_circuitsim() {{
  local -a commands
  commands=({commands})
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command="${{words[2]}}"
  shift words
  (( CURRENT-- ))
  case "$command" in
{cases}  esac
}}
_circuitsim "$@"
"""


def _zsh_words(words: list[str]) -> str:
    return f" '1:word:({' '.join(words)})'" if words else ""


def _zsh_option(option: Option) -> str:
    words = _quoted(option.words).replace("[", "(").replace("]", ")").replace(":", " ")
    values = f":value:({' '.join(option.values)})" if option.values else ""
    return " ".join(f"'{name}[{words}]{values}'" for name in option.names)


def _fish(offers: dict[str, Offer]) -> str:
    lines = ["# fish completion of circuitsim"]
    for command, words in _lines().items():
        lines.append(f"complete -c circuitsim -n __fish_use_subcommand -f -a {command} -d '{_quoted(words)}'")
        seen = f"-n '__fish_seen_subcommand_from {command}'"
        if offers[command].words:
            lines.append(f"complete -c circuitsim {seen} -a '{' '.join(offers[command].words)}'")
        for option in offers[command].options:
            names = " ".join(f"-l {n[2:]}" if n.startswith("--") else f"-s {n[1:]}" for n in option.names)
            values = f" -x -a '{' '.join(option.values)}'" if option.values else ""
            lines.append(f"complete -c circuitsim {seen} {names}{values} -d '{_quoted(option.words)}'")
    return "\n".join(lines) + "\n"


def _lines() -> dict[str, str]:
    """The help line of every command."""
    from circuitsim.cli import COMMANDS

    return {name: words for name, (_, words) in COMMANDS.items()}


def _quoted(words: str) -> str:
    """Text between single quotes of a shell, in one line."""
    return words.replace("\\", "").replace("'", "").replace("\n", " ")


WRITERS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
