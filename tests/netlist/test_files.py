"""Files: encodings, what is no text, schematics."""

import os
from pathlib import Path

import pytest

from circuitsim import load, loads, solve
from circuitsim.errors import NetlistError, UsageError

DECK = "* µ\r\nR1 a 0 1µ\r\nV1 a 0 2\r\n.end\r\n"


@pytest.mark.parametrize(
    "data",
    [
        *(f"\ufeff{DECK}".encode(encoding) for encoding in ("utf-8", "utf-16-le", "utf-16-be")),
        *(DECK.encode(encoding) for encoding in ("utf-8", "utf-16")),
        *(DECK.replace("\r\n", end).encode() for end in ("\r", "\n")),
        f"{DECK}\x1a".encode(),
    ],
)
def test_encodings_and_line_ends(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "my.cir").write_bytes(data)
    deck = load(tmp_path / "my.cir")
    assert deck["R1"].value == 1e-6 and not deck.problems


def test_latin_1_is_read_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "my.cir").write_bytes("t\nC1 a 0 5µ\nR1 a 0 1\n".encode("latin-1"))
    deck = load(tmp_path / "my.cir")
    (warning,) = deck.problems
    assert deck["C1"].value == 5e-6
    assert (warning.kind, warning.location.line, warning.location.column) == ("encoding", 2, 9)
    assert "0xB5" in warning.message


@pytest.mark.parametrize(
    ("data", "line", "column", "message"),
    [(b"t\nR1 a\0 0 1\n", 2, 5, "NUL"), ("t\nR1 a 0 1\n".encode("utf-16")[:-1], 1, 1, "UTF-16")],
)
def test_files_that_are_no_text(tmp_path: Path, data: bytes, line: int, column: int, message: str) -> None:
    (tmp_path / "main.cir").write_text("t\n.include my.cir\n")
    (tmp_path / "my.cir").write_bytes(data)
    for name in ("my.cir", "main.cir"):
        with pytest.raises(NetlistError, match=message) as caught:
            load(tmp_path / name)
        (problem,) = caught.value.problems
        place = problem.location
        assert (problem.kind, place.line, place.column) == ("encoding", line, column) and problem.hint
        assert place.file.endswith("my.cir")


def test_the_deck_itself_must_be_a_regular_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    places = {tmp_path: "directory", tmp_path / "none": "No such file", "/dev/zero": "regular", "a\0b": "null"}
    for path, reason in {**places, tmp_path / "pipe": "regular"}.items():
        with pytest.raises(UsageError, match=reason):
            load(path)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_schematic_is_no_deck(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "x.asc").write_bytes("Version 4\nSHEET 1 880 680\nWIRE 0 0 1 1\n".encode(encoding))
    with pytest.raises(UsageError, match="LTspice schematic"):
        load(tmp_path / "x.asc")


COMMAND = """#!/bin/sh
[ "$*" = "sch export netlist --format spice --output $7 $8" ] || exit 9
[ -s "$8.fails" ] && { cat "$8.fails" >&2; exit 1; }
printf '.title KiCad schematic\\nV1 in 0 5\\nR1 in out 4k7\\nR2 out 0 4.7k\\n.end\\n' > "$7"
"""


def test_a_schematic_of_kicad_is_read_by_its_own_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, tool = tmp_path / "x.kicad_sch", tmp_path / "kicad-cli"
    path.write_text("(kicad_sch (version 20231120) (generator eeschema))\n")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    with pytest.raises(UsageError, match=r"KiCad schematic.*\n.*File > Export > Netlist > SPICE"):
        load(path)
    tool.write_text(COMMAND)
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert solve(load(path))["out"] == pytest.approx(2.5)
    (tmp_path / "x.kicad_sch.fails").write_text("loading\nFailed to load schematic\n")
    with pytest.raises(UsageError, match="kicad-cli wrote no netlist: Failed to load schematic"):
        load(path)


def test_texts_include_from_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a.inc").write_text("R1 a 0 1\n")
    assert len(loads("t\n.include a.inc\n", folder=tmp_path)) == 1
    assert len(loads(f"t\n.include {tmp_path}/a.inc\n", allow_include=[tmp_path])) == 1
    for name in ("x" * 300, "x/" * 3000):
        with pytest.raises(NetlistError, match="too long"):
            loads(f"t\n.include {name}\n", folder=tmp_path)
    for k in range(100):
        (tmp_path / f"d{k}.inc").write_text(f".include d{k + 1}.inc\n")
    with pytest.raises(NetlistError, match="deeper than 64"):
        loads("t\n.include d0.inc\n", folder=tmp_path)
    for k in range(12):
        (tmp_path / f"f{k}.inc").write_text(f".include f{k + 1}.inc\n" * 10)
    (tmp_path / "f12.inc").write_text("* nothing\n")
    with pytest.raises(NetlistError, match="exceeds the limit"):
        loads("t\n.include f0.inc\n", folder=tmp_path)
