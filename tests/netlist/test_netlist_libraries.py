"""Libraries that a deck names and that are elsewhere; `--lib`, folders to look in; numbers such as 2K2; schematics."""

from __future__ import annotations

import pytest

import circuitsim
from circuitsim.errors import NetlistError, UsageError
from circuitsim.netlist import load, loads

WINDOWS = r"C:\Program Files\LTC\lib\cmp\standard.dio"
DECK = f't\nV1 a 0 5\nD1 a b DX\nR1 b 0 1k\n.lib "{WINDOWS}"\n'
MODELS = "* diodes\n.model DX D(vfwd=0.5 ron=0)\n.model DY D(vfwd=0.5 ron=1)\n.subckt amp a\nQ1 a b c n\n.ends\n"


def test_models_of_a_missing_library_are_named():
    with pytest.raises(NetlistError) as caught:
        loads(DECK)
    (problem,) = caught.value.problems
    assert problem.message == "D1: no model is called 'DX'"
    assert "standard.dio" in problem.hint and "--lib FILE" in problem.hint and "CIRCUITSIM_LIB_PATH" in problem.hint


@pytest.mark.parametrize("path", [WINDOWS, "/nowhere/standard.dio", "standard.dio"])
def test_a_missing_library_that_is_not_needed_is_noted(path):
    deck = loads(f'{DECK.replace("DX", "")[: DECK.index(".lib") - 2]}.lib "{path}"\n', folder="/tmp")
    (note,) = deck.notes
    assert note.kind == "skipped" and "nothing is read from it" in note.message and "--lib" in note.hint


def test_a_library_of_the_command_line(tmp_path):
    (tmp_path / "my.lib").write_text(MODELS)
    deck = loads(DECK, libraries=[tmp_path / "my.lib"])
    assert deck.circuit.devices[1].label == "DX"
    own = loads(DECK + ".model DX D(vfwd=0.7)\n", libraries=[tmp_path / "my.lib"])
    assert own.circuit.devices[1].values()["vfwd"] == 0.7
    with pytest.raises(UsageError, match=r"--lib none\.lib: No such file"):
        loads(DECK, libraries=["none.lib"])
    (tmp_path / "bad.lib").write_text("R1 a 0 1\n")
    with pytest.raises(NetlistError, match="a library holds definitions, not elements"):
        loads(DECK, libraries=[tmp_path / "bad.lib"])


def test_folders_to_look_in(tmp_path):
    (tmp_path / "standard.dio").write_text(MODELS)
    assert loads(DECK, search=[tmp_path]).circuit.devices[1].label == "DX"
    include = DECK.replace(".lib", ".include")
    assert loads(include, search=[tmp_path]).circuit.devices[1].label == "DX"
    with pytest.raises(NetlistError, match="-I DIR or CIRCUITSIM_LIB_PATH"):
        loads(include)


def test_what_a_library_holds_beside_matters_only_where_it_is_called(tmp_path):
    (tmp_path / "my.lib").write_text(MODELS)
    with pytest.raises(NetlistError) as caught:
        loads(DECK + "X1 b amp\n", libraries=[tmp_path / "my.lib"])
    (problem,) = caught.value.problems
    place = problem.location
    assert (problem.kind, place.file, place.line) == ("unsupported", str(tmp_path / "my.lib"), 5)


RKM = "IEC 60062; ngspice drops what follows the letter"


def test_numbers_with_the_scale_in_the_place_of_the_point():
    deck = loads("t\n.param p=4R7\nR1 a 0 2K2\nR2 a 0 {p+1Meg5}\nR3 a 0 3k\n")
    assert [e.value for e in deck.circuit] == [2200, 1500004.7, 3000]
    assert [n.message for n in deck.notes] == [
        f"4R7 is read as 4.7 ({RKM})",
        f"2K2 is read as 2200 ({RKM})",
        f"1Meg5 is read as 1500000 ({RKM})",
    ]
    with pytest.raises(NetlistError, match="'2K2K2' is not a number"):
        loads("t\nR1 a 0 2K2K2\n")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_schematic_is_no_deck(tmp_path, encoding):
    path = tmp_path / "x.asc"
    path.write_bytes("Version 4\nSHEET 1 880 680\nWIRE 0 0 1 1\n".encode(encoding))
    with pytest.raises(UsageError, match="schematic of LTspice"):
        load(path)


KICAD = "(kicad_sch (version 20231120) (generator eeschema))\n"
COMMAND = """#!/bin/sh
[ "$*" = "sch export netlist --format spice --output $7 $8" ] || exit 9
[ -s "$8.fails" ] && { cat "$8.fails" >&2; exit 1; }
printf '.title KiCad schematic\\nV1 in 0 5\\nR1 in out 4k7\\nR2 out 0 4.7k\\n.end\\n' > "$7"
"""


def test_a_schematic_of_kicad_is_read_by_its_own_command(tmp_path, monkeypatch):
    path, tool = tmp_path / "x.kicad_sch", tmp_path / "kicad-cli"
    path.write_text(KICAD)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    with pytest.raises(UsageError, match=r"schematic of KiCad.*\n.*File > Export > Netlist > SPICE"):
        load(path)
    tool.write_text(COMMAND)
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert circuitsim.solve(load(path))["out"] == pytest.approx(2.5)
    (tmp_path / "x.kicad_sch.fails").write_text("loading\nFailed to load schematic\n")
    with pytest.raises(UsageError, match="kicad-cli wrote no netlist: Failed to load schematic"):
        load(path)
