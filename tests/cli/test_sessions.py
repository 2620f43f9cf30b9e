"""Sessions at the command line, one a heading of ``sessions/*.txt``: files, commands, what they print, exit codes.

    # what is shown               a session, in a folder of its own
    my.cir:                       a file, indented by four blanks; those above the first session are in all of them
    $ solve my.cir                a command, and below it, indented, its standard output
    !                             below it, indented, its standard error
    = 2                           its exit code, if it is not 0

``%`` in place of ``$``: a line of the shell, where circuitsim is a process. ``...`` stands for any text; long numbers
agree to nine digits. ``cat FILE`` and ``ls`` show files, ``< FILE`` is standard input, {netlists} the folder of the
bundled decks.
"""

import doctest
import io
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from circuitsim.cli import main

HERE = Path(__file__).parent
LONG = re.compile(r"-?\d+\.\d{9,}(?:e-?\d+)?")
BLOCK = re.compile(r"^(\S.*)\n((?: {4}.*\n|\n)*)", re.MULTILINE)


def sessions() -> Iterator[Any]:
    """The text of each session."""
    for path in sorted(HERE.glob("sessions/*.txt")):
        common, *rest = re.split(r"^# (.*)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        for title, text in zip(rest[::2], rest[1::2]):
            yield pytest.param(common + text, id=f"{path.stem}: {title}")


def run(line: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """The exit code of one command, in this process unless the line is one of the shell."""
    if line[0] == "%":
        script = f'circuitsim() {{ "{sys.executable}" -m circuitsim "$@"; }}\n{line[2:]}'
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=120, check=False)
        print(done.stdout, end="")
        print(done.stderr, end="", file=sys.stderr)
        return done.returncode
    words = shlex.split(line[2:].format(netlists=HERE.parents[1] / "netlists"))
    if "<" in words:
        at = words.index("<")
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(Path(words[at + 1]).read_bytes())))
        words[at:] = []
    if words[:1] == ["cat"]:
        print(Path(words[1]).read_text(encoding="utf-8"), end="")
    elif words[:1] == ["ls"]:
        print(*sorted(str(path) for path in Path().rglob("*")), sep="\n")
    else:
        try:
            return main(words)
        except SystemExit as end:
            return int(end.code or 0)
    return 0


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize("text", [*sessions()])
def test_session(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    commands = list[tuple[str, dict[str, str]]]()
    for head, block in BLOCK.findall(text):
        body = re.sub("^ {4}", "", block.rstrip("\n"), flags=re.MULTILINE) + "\n" if block.strip() else ""
        if head[0] in "$%":
            commands.append((head, {"output": body, "errors": "", "code": "0"}))
        elif head[0] in "!=":
            commands[-1][1].update({"errors": body} if head[0] == "!" else {"code": head[2:]})
        else:
            Path(head[:-1]).parent.mkdir(parents=True, exist_ok=True)
            Path(head[:-1]).write_text(body, encoding="utf-8")
    for line, expected in commands:
        code = run(line, monkeypatch)
        found = dict(zip(("output", "errors"), capsys.readouterr()), code=str(code))
        for key, want in expected.items():
            texts = (LONG.sub(lambda long: repr(float(f"{float(long[0]):.9g}")), text) for text in (want, found[key]))
            assert doctest.OutputChecker().check_output(*texts, doctest.ELLIPSIS), (line, found[key], want)
