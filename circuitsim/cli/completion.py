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
    """One option: its spellings and its help."""

    names: tuple[str, ...]
    words: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The shell."""
    parser.epilog = EPILOG
    parser.add_argument("shell", choices=tuple(WRITERS), help="the shell to write for")


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    print(WRITERS[args.shell](_all_options()), end="")
    return 0


def _all_options() -> dict[str, list[Option]]:
    """The options of every command."""
    from circuitsim.cli import COMMANDS, build_parser

    found = {}
    for command in COMMANDS:
        commands = next(a for a in build_parser(command)._actions if isinstance(a, argparse._SubParsersAction))
        own = commands.choices[command]
        shown = (action for action in own._actions if action.option_strings and action.help != argparse.SUPPRESS)
        found[command] = [Option(tuple(a.option_strings), (a.help or "").split(";")[0]) for a in shown]
    return found


def _bash(options: dict[str, list[Option]]) -> str:
    cases = "".join(
        f'    {command}) words="{" ".join(name for option in own for name in option.names)}" ;;\n'
        for command, own in options.items()
    )
    return f"""# bash completion of circuitsim
_circuitsim() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{" ".join(options)} --help --version" -- "$word"))
    return
  fi
  case "${{COMP_WORDS[1]}}" in
{cases}  esac
  case "$word" in
    -*) COMPREPLY=($(compgen -W "$words" -- "$word")) ;;
    *) COMPREPLY=($(compgen -f -- "$word")) ;;
  esac
}}
complete -o filenames -F _circuitsim circuitsim
"""


def _zsh(options: dict[str, list[Option]]) -> str:
    cases = "".join(
        f"    {command}) _arguments {' '.join(_zsh_option(option) for option in own)} '*:file:_files' ;;\n"
        for command, own in options.items()
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


def _zsh_option(option: Option) -> str:
    words = _quoted(option.words).replace("[", "(").replace("]", ")").replace(":", " ")
    return " ".join(f"'{name}[{words}]'" for name in option.names)


def _fish(options: dict[str, list[Option]]) -> str:
    lines = ["# fish completion of circuitsim"]
    for command, words in _lines().items():
        lines.append(f"complete -c circuitsim -n __fish_use_subcommand -f -a {command} -d '{_quoted(words)}'")
        for option in options[command]:
            names = " ".join(f"-l {n[2:]}" if n.startswith("--") else f"-s {n[1:]}" for n in option.names)
            seen = f"-n '__fish_seen_subcommand_from {command}'"
            lines.append(f"complete -c circuitsim {seen} {names} -d '{_quoted(option.words)}'")
    return "\n".join(lines) + "\n"


def _lines() -> dict[str, str]:
    """The help line of every command."""
    from circuitsim.cli import COMMANDS

    return {name: words for name, (_, words) in COMMANDS.items()}


def _quoted(words: str) -> str:
    """Text between single quotes of a shell."""
    return words.replace("\\", "").replace("'", "").replace("%(default)g", "").replace("\n", " ")


WRITERS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
