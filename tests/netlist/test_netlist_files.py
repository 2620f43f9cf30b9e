"""Files: includes, libraries, encodings, and what a deck may not read."""

from __future__ import annotations

import os

import pytest

from circuitsim import solve
from circuitsim.errors import NetlistError, UsageError
from circuitsim.netlist import limits, load, loads


def write(folder, **files):
    """Write files (``__`` is a slash, ``_`` before the ending a dot); returns the path of main.cir."""
    for name, text in files.items():
        path = folder / (name.replace("__", "/").replace("_", ".") if "_" in name else f"{name}.cir")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder / "main.cir"


def problem(path, **options):
    with pytest.raises(NetlistError) as caught:
        load(path, **options)
    return caught.value.problems[0]


@pytest.mark.parametrize(
    "card", [".include sub/b.inc", '.inc "sub/b.inc"', ".INCLUDE 'sub/b.inc' ; why", ".lib sub/b.inc"]
)
def test_paths_are_relative_to_the_including_file(tmp_path, card):
    main = write(
        tmp_path, main=f"t\n{card}\nR1 a 0 1\n", sub__b_inc=".include deep/c.inc\n", sub__deep__c_inc="R2 a 0 2\n"
    )
    assert list(load(main).names) == ["R2", "R1"]


def test_an_included_file_has_no_title_and_its_end_ends_only_itself(tmp_path):
    main = write(tmp_path, main="t\n.include b.inc\nR3 a 0 1\n", b_inc="R1 a 0 1\n.end\nR2 a 0 1\n")
    assert list(load(main).names) == ["R1", "R3"]


def test_places_inside_includes(tmp_path):
    main = write(
        tmp_path,
        main="t\n\n .include sub/b.inc\nR9 a 0 1Z1\n",
        sub__b_inc="* c\n.include c.inc\nR3 a 0 1Z1\n",
        sub__c_inc="R1 a\n+ 0 5Z5\n",
    )
    with pytest.raises(NetlistError) as caught:
        load(main)
    inner, middle, outer = caught.value.problems
    assert (inner.location.file, inner.location.line, inner.location.column) == (str(tmp_path / "sub/c.inc"), 2, 5)
    assert inner.location.text == "+ 0 5Z5"
    assert inner.location.callers == (f"included at {tmp_path}/sub/b.inc:2:1", f"included at {main}:3:2")
    assert (middle.location.line, outer.location.line, outer.location.callers) == (3, 4, ())


def test_origins_inside_includes(tmp_path):
    main = write(tmp_path, main="t\nR0 a 0 1\n.include b.inc\nR2 a 0 1\n", b_inc="\nR1 a 0 1\n")
    circuit = load(main)
    assert [circuit.origin(k) for k in range(3)] == [(str(main), 2), (str(tmp_path / "b.inc"), 2), (str(main), 4)]


LIBRARY = "R9 a 0 9\n.lib tt\nR1 a 0 5\n.include c.inc\n.endl tt\n.lib ff\nR1 a 0 6\n.endl\n"


@pytest.mark.parametrize(("section", "values"), [("tt", [5, 3]), ("TT", [5, 3]), ("ff", [6])])
def test_sections_of_a_library(tmp_path, section, values):
    main = write(tmp_path, main=f"t\n.lib 'x.lib' {section}\n", x_lib=LIBRARY, c_inc="R2 a 0 3\n")
    assert [e.value for e in load(main)] == values


@pytest.mark.parametrize(
    ("card", "column", "message"),
    [
        (".include ../out.inc", 10, "../out.inc lies outside the deck's folder"),
        (".include /etc/passwd", 10, "/etc/passwd lies outside the deck's folder"),
        (".include /dev/zero", 10, "/dev/zero lies outside the deck's folder"),
        (".include link.inc", 10, "link.inc lies outside the deck's folder"),
        (".include sub", 10, "sub is a directory"),
        (".include .", 10, ". lies outside the deck's folder"),
        (".include pipe", 10, "pipe is no regular file"),
        (".include none.inc", 10, "none.inc: no such file or directory"),
        ('.include "my file.inc"', 11, "my file.inc: no such file"),
        (".include main.cir", 10, "main.cir includes itself"),
        (".include loop.inc", 10, "loop.inc includes itself"),
        (".include my file.inc", 13, ".include takes one file"),
        (".lib x.lib ss", 6, "x.lib has no section 'ss'"),
        (".include " + "x" * 300, 10, "file name too long"),
        (".include " + "x/" * 3000, 10, "is too long a file name"),
    ],
)
def test_what_may_not_be_included(tmp_path, card, column, message):
    folder = tmp_path / "deck"
    main = write(folder, main=f"t\n{card}\nR1 a 0 1\n", sub__a_inc="", loop_inc=".include loop.inc\n", x_lib=LIBRARY)
    (tmp_path / "out.inc").write_text("R2 a 0 1\n")
    os.symlink(tmp_path / "out.inc", folder / "link.inc")
    os.mkfifo(folder / "pipe")
    found = problem(main)
    assert found.kind == "include" and message in found.message and found.hint
    if "loop" not in card:
        assert (found.location.line, found.location.column) == (2, column)


def test_folders_may_be_allowed(tmp_path):
    main = write(tmp_path / "deck", main="t\n.include ../lib/a.inc\n")
    write(tmp_path / "lib", a_inc="R1 a 0 1\n")
    write(tmp_path / "library", a_inc="R1 a 0 1\n")
    assert "--allow-include" in problem(main).hint
    assert len(load(main, allow_include=[tmp_path / "lib"])) == 1
    assert problem(main, allow_include=[tmp_path / "li"]).kind == "include"
    assert len(loads(f"t\n.include {tmp_path}/lib/a.inc\n", allow_include=[tmp_path / "lib"])) == 1
    assert len(loads("t\n.include a.inc\n", folder=tmp_path / "lib")) == 1


def test_includes_that_explode_are_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "INCLUDES", 1000)
    files = {f"f{k}_inc": f".include f{k + 1}.inc\n" * 10 for k in range(12)}
    main = write(tmp_path, main="t\n.include f0.inc\n", f12_inc="* nothing\n", **files)
    assert "explode" in problem(main).message
    deep = {f"d{k}_inc": f".include d{k + 1}.inc\n" for k in range(100)}
    main = write(tmp_path, main="t\n.include d0.inc\n", **deep)
    assert "more than 64 deep" in problem(main).message


def test_latin_1_is_read_with_a_warning(tmp_path):
    main = write(tmp_path, main="t\nC1 a 0 5µ\nR1 a 0 1\n".encode("latin-1"))
    deck = load(main)
    assert deck.circuit["C1"].value == 5e-6
    (warning,) = deck.problems
    assert (warning.kind, warning.location.line, warning.location.column) == ("encoding", 2, 9)
    assert "0xB5" in warning.message


@pytest.mark.parametrize("data", [b"\xef\xbb\xbft\nR1 a 0 1\n", b"t\r\nR1 a 0 1\r\n", b"t\rR1 a 0 1", b"t\nR1 a 0 1"])
def test_marks_and_line_ends(tmp_path, data):
    assert load(write(tmp_path, main=data))["R1"].value == 1


@pytest.mark.parametrize(
    ("data", "line", "column", "message"),
    [(b"t\nR1 a\0 0 1\n", 2, 5, "NUL"), ("t\nR1 a 0 1\n".encode("utf-16")[:-1], 1, 1, "UTF-16")],
)
def test_files_that_are_no_text(tmp_path, data, line, column, message):
    found = problem(write(tmp_path, main=data))
    assert (found.kind, found.location.line, found.location.column) == ("encoding", line, column)
    assert message in found.message and found.hint
    inside = problem(write(tmp_path, main="t\n.include b.inc\n", b_inc=data))
    assert (inside.kind, inside.location.line) == ("encoding", line) and inside.location.file.endswith("b.inc")


def test_the_deck_itself_must_be_a_regular_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, reason in (
        (tmp_path, "directory"),
        (tmp_path / "none", "No such file"),
        ("/dev/zero", "regular"),
        (tmp_path / "pipe", "regular"),
        ("a\0b", "null"),
    ):
        with pytest.raises(UsageError, match=reason):
            load(path)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_with_its_mark_is_read(tmp_path, encoding):
    mark = "" if encoding == "utf-16" else "\ufeff"
    path = tmp_path / "deck.net"
    path.write_bytes(f"{mark}* µ\r\nR1 a 0 1µ\r\nV1 a 0 2\r\n.end\r\n".encode(encoding))
    assert load(path)["R1"].value == 1e-6


def test_points_of_a_file(tmp_path):
    main = write(
        tmp_path,
        main="t\nV1 a 0 PWL file=p.txt r=0\nI1 0 b PWL FILE 'sub/q.csv'\n",
        p_txt="* points\n0 1\n1m, 2 # x\n2m;3\n",
        sub__q_csv="time value\n(0 5) (1 6)\n",
    )
    circuit = load(main)
    assert (circuit["V1"].value, circuit["I1"].value) == (1.0, 5.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "holds no pairs"), ("0 1 2", "holds no pairs"), ("0 1\nx 2", "'x' is not a number"), ("a b\n", "no pairs")],
)
def test_files_without_points_are_refused(tmp_path, text, message):
    main = write(tmp_path, main="t\nV1 a 0 PWL file=p.txt\nR1 a 0 1\n", p_txt=text)
    with pytest.raises(NetlistError, match=message) as caught:
        load(main)
    assert caught.value.problems[0].location.column == 17


def test_points_outside_the_folder_are_refused(tmp_path):
    (tmp_path / "secret.txt").write_text("0 1\n")
    main = write(tmp_path / "deck", main="t\nV1 a 0 PWL file=../secret.txt\nR1 a 0 1\n")
    with pytest.raises(NetlistError, match="outside the deck's folder"):
        load(main)


@pytest.mark.parametrize("folder", ["/home/someone/parts/", "C:\\Users\\someone\\"])
def test_a_library_of_another_machine_is_looked_up_by_its_name(tmp_path, folder):
    (tmp_path / "lib.mod").write_text(".model DX D(vfwd=0.5)\n")
    (tmp_path / "own.cir").write_text(f't\n.include "{folder}lib.mod"\nV1 a 0 1\nR1 a b 1k\nD1 b 0 DX\n')
    deck = load(tmp_path / "own.cir")
    assert solve(deck)["b"] == pytest.approx(0.5, abs=1e-3)
    assert any("read by their names" in note.message for note in deck.notes)


def test_parts_without_a_model_are_left_open():
    """As KiCad writes connectors and test points; one whose model the deck defines is what that says."""
    text = "t\nV1 a 0 1\nR1 a b 1k\nR2 b 0 1k\nJ1 a b __J1\nU1 __U1\n"
    deck = loads(text)
    assert solve(deck)["b"] == 0.5
    (warning,) = deck.problems
    assert warning.kind == "no-model"
    assert warning.message.endswith("left open (J1, U1)")
    with pytest.raises(NetlistError, match="J1 is a transistor"):
        loads(text + ".model __J1 NJF\n")
