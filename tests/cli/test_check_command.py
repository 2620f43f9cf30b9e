"""``circuitsim check``: all problems, lints, structure."""

from __future__ import annotations

import json

import pytest

from .conftest import Command

LINTY = "lints\nV1 in 0 5\nR1 in out 1k\nR2 out 0 2k\nR3 out dangle 1k\nR5 in in 5\nR6 q r 1k\nR7 q r 2k\n"


def test_all_errors_of_the_text(command: Command, deck) -> None:
    result = command("check", deck("bad\n" + "".join(f"S{k} a b c d\n" for k in range(25))))
    assert result.code == 2
    assert result.out.count("error: my.cir:") == 25
    last = "error: my.cir:26:11: S24 needs four nodes and a model\n    S24 a b c d\n              ^\n"
    assert last in result.out
    assert result.err == "error: my.cir: 25 errors; no circuit can be made of it\n"


def test_errors_as_json(command: Command, deck) -> None:
    result = command("check", deck("bad\nR1 a b 1d5\n"), "--format", "json")
    assert result.code == 2
    assert json.loads(result.out) == {
        "schema": 2,
        "title": "",
        "ok": False,
        "problems": [
            {
                "severity": "error",
                "kind": "number",
                "message": "'1d5' is not a number",
                "file": "my.cir",
                "line": 2,
                "column": 8,
                "hint": "write the exponent with e: 1e5",
                "names": [],
                "callers": [],
            }
        ],
        "structure": None,
        "roles": None,
    }


def test_lints(command: Command, deck) -> None:
    result = command("check", deck(LINTY))
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(
        "warning: my.cir:5:1: node dangle is connected to R3 only: no current can flow there\n"
        "    hint: is the node's name spelt as elsewhere?\n"
        "warning: my.cir:6:1: both ends of R5 are on node in\n"
        "    hint: is one of its nodes misspelt?\n"
        "warning: no path to ground from q, r: potentials are relative to q\n"
        "    hint: connect one of these nodes to ground (0)\n"
        "\nlints\n"
    )
    assert result.out.endswith("\nmy.cir: 3 warnings\n")


def test_a_clean_deck(command: Command, deck) -> None:
    result = command("check", deck())
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("divider\nstructure\n")
    assert result.out.endswith("\nmy.cir: no problems\n")


def test_sens_and_tf_that_cannot_be_done_are_warnings(command: Command, deck) -> None:
    text = "t\nV1 a 0 1\nR1 a b 1k\nR2 b 0 1k\n.sens v(b) i(R1)\n.tf v(b) V1\n"
    assert command("check", deck(text)).out.endswith("no problems\n")
    result = command("check", deck(text + ".sens v(zz)\n.tf v(b) R1\n.tf v(q) V1\n.tf v(b) V9\n"))
    assert result.code == 0 and result.out.endswith("4 warnings\n")
    wrong = "no node is called 'zz'", "R1 is a resistor", "no node is called 'q'", "no element is called 'V9'"
    for line, message in enumerate(wrong, 7):
        assert f"warning: my.cir:{line}:1: " in result.out and message in result.out


def test_structure(command: Command, deck) -> None:
    text = "s\nV1 a b 10\nD1 a p\nD2 b p\nD3 0 a\nD4 0 b\nRL p 0 1k\nV2 a c 1\nV3 b c -9\nR0 x y 0\nR9 x y 1\n"
    result = command("check", deck(text), "--format", "json")
    found = json.loads(result.out)
    assert found["ok"] is True
    assert found["structure"] == {
        "nodes": 7,
        "elements": 10,
        "kinds": {"resistor": 3, "ideal diode": 4, "voltage source": 3},
        "parts": 2,
        "floating": 1,
        "islands": 3,
        "super_nodes": 2,
        "unknowns": 2,
        "free_diodes": 2,
        "voltage_loops": 1,
    }


def test_what_the_deck_asks_for(command: Command, deck) -> None:
    result = command("check", deck("a\nV1 a 0 1\nR1 a 0 1\n.op\n.dc V1 0 1 1\n.print dc v(a)\n"))
    assert "analyses          3  .op, .dc, .print\n" in result.out


def test_cards_over_time_and_frequency(command: Command, deck) -> None:
    text = "t\nV1 a 0 1\nR1 a b 1\nC1 b 0 1u\n.ac dec 1 1 10\n.tran 1u 1m\n.ic v(b)=1\n.meas tran top MAX v(b)\n.end\n"
    assert "analyses          4  .ac, .tran, .ic, .meas\n" in command("check", deck(text)).out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("l\nV1 a 0 5\nV2 a 0 6\n", "the loop V2, V1 violates Kirchhoff's voltage law by 1 V"),
        ("c\nI1 0 a 1m\nD1 0 a\n", "the sources I1 drive 0.001 A into the nodes a"),
    ],
)
def test_no_steady_state(command: Command, deck, text: str, message: str) -> None:
    result = command("check", deck(text))
    assert result.code == 3
    assert f"error: no steady state: {message}" in result.out
    assert result.err == "error: my.cir: 1 error; the circuit has no steady state\n"
    told = json.loads(command("check", deck(text), "--format", "json").out)
    assert told["ok"] is False
    assert told["problems"][-1]["kind"] == "no-steady-state"


def test_report_to_a_file(command: Command, deck, tmp_path) -> None:
    path = deck()
    printed = command("check", path).out
    assert command("check", path, "--output", "report.txt") == (0, "", "")
    assert (tmp_path / "report.txt").read_text(encoding="utf-8") == printed


def test_a_ring_of_diodes_is_a_warning(command: Command, deck) -> None:
    code, out, _ = command("check", deck("ring\nV1 in 0 5\nR1 in a 1k\nD1 a b\nD2 b a\nR2 b 0 1k\n"))
    assert code == 0
    assert out.startswith("warning: my.cir:4:1: ideal diodes around a loop short nodes a, b: D1, D2\n")
    assert out.endswith("my.cir: 1 warning\n")
