"""Decks that mean harm, and decks that are merely large: bounded work, always an answer with a place."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from circuitsim.errors import NetlistError
from circuitsim.netlist import dumps, limits, loads
from circuitsim.netlist.cards import decode


def laughs(levels: int, calls: int) -> str:
    """Sub-circuits that each call the one before ``calls`` times."""
    text = [".subckt s0 a", "R1 a 0 1", ".ends"]
    for k in range(1, levels):
        text += [f".subckt s{k} a", *(f"X{j} a s{k - 1}" for j in range(calls)), ".ends"]
    return "t\n" + "\n".join([*text, f"Xtop a s{levels - 1}", ""])


@pytest.mark.parametrize(("levels", "calls"), [(12, 10), (60, 2), (190, 30), (8, 300)])
def test_billion_laughs(levels, calls):
    with pytest.raises(NetlistError) as caught:
        loads(laughs(levels, calls))
    (problem,) = caught.value.problems
    assert (problem.kind, problem.names) == ("limit", ("Xtop",))
    assert problem.location.text == f"Xtop a s{levels - 1}"


def test_an_expansion_within_the_limit_is_done():
    assert len(loads(laughs(5, 9))) == 9**4


def test_names_count_too(monkeypatch):
    monkeypatch.setattr(limits, "EXPANSION_CHARACTERS", 10_000)
    with pytest.raises(NetlistError, match="expand"):
        loads("t\n.subckt s a\n" + "".join(f"R{k} a 0 1\n" for k in range(20)) + ".ends\nX" + "y" * 1000 + " a s\n")


def test_calls_may_not_nest_too_deep():
    text = ["t", ".subckt s0 a", "R1 a 0 1", ".ends"]
    for k in range(1, limits.CALL_DEPTH + 5):
        text += [f".subckt s{k} a", f"X1 a s{k - 1}", ".ends"]
    assert loads("\n".join([*text, f"X1 a s{limits.CALL_DEPTH - 5}", ""])).names[0].count(".") == limits.CALL_DEPTH - 4
    with pytest.raises(NetlistError, match=f"deeper than {limits.CALL_DEPTH}"):
        loads("\n".join([*text, f"X1 a s{limits.CALL_DEPTH + 4}", ""]))


def test_problems_without_end_are_cut_off(monkeypatch):
    monkeypatch.setattr(limits, "PROBLEMS", 50)
    with pytest.raises(NetlistError) as caught:
        loads("t\n" + "".join(f"S{k} a b c d m\n" for k in range(1000)))
    assert len(caught.value.problems) == 50


@pytest.mark.parametrize(
    ("text", "elements"),
    [
        ("*" + "x" * 10_000_000 + "\nR1 a 0 1\n", 1),
        ("R1 a 0 1 ;" + "x $ // " * 1_000_000 + "\n", 1),
        ("R1 a$ 0 1 $" + "x$y " * 1_000_000 + "\n", 1),
        ("R1 a 0 1" + " " * 5_000_000 + "\n", 1),
        ("R1 a 0 {1" + " " * 5_000_000 + "}\n", 1),
        ("V1 a 0 PWL(\n" + "".join(f"+ {k} {k}\n" for k in range(50_000)) + "+ )\n", 1),
        (
            ".subckt s "
            + " ".join(f"p{k}" for k in range(20_000))
            + "\nR1 p7 0 1\n.ends\nX1 "
            + " ".join(f"n{k}" for k in range(20_000))
            + " s\n",
            1,
        ),
        ("\n" * 1_000_000 + "R1 a 0 1\n", 1),
        ("R1 " + "(" * 200_000 + "a" + ")" * 200_000 + " 0 1\n", 1),
        ("R" + "x" * 3_000_000 + " a 0 1\n", 1),
        ("R1 a 0 1" + "0" * 3_000_000 + "e-3000000\n", 1),
        (".param " + " ".join(f"p{k}={k}" for k in range(50_000)) + "\nR1 a 0 {p7}\n", 1),
        ("".join(f"R{k} n{k} 0 1\n" for k in range(100_000)), 100_000),
        ("".join(f".subckt s{k} a\nR1 a 0 1\n.ends\nX{k} a s{k}\n" for k in range(10_000)), 10_000),
        (
            ".func f("
            + ",".join(f"x{k}" for k in range(20_000))
            + ") {"
            + "+".join(f"x{k}" for k in range(20_000))
            + "}\nR1 a 0 {f("
            + ",".join(["1"] * 20_000)
            + ")}\n",
            1,
        ),
        ("R1 a 0 1\n\x1a", 1),
    ],
    ids=lambda v: str(v)[:12],
)
def test_long_is_legal(text, elements):
    """A guard against quadratic work: each takes well under a second; quadratic, it would take minutes."""
    assert len(loads("t\n" + text)) == elements


@pytest.mark.parametrize(
    "text",
    [
        "R1 a 0 {" + "{" * 100_000 + "}",
        "R1 a 0 " + "}" * 100_000,
        "R1 a 0 1" + "1K5" * 100_000,
        "R1 a 0 " + "9" * 400,
        "X1 " + "a " * 100_000 + "s",
        "R1 " + "=" * 100_000,
        ".param " + "a" * 100_000,
        ".param a=" + "(" * 100_000,
        ".func f(" + "x," * 100_000 + ")",
        ".include " + "a/" * 100_000,
        "." + "x" * 100_000,
        "é" * 100_000,
        "R1 a 0 {a" + "(" * 99,
        ".dc V1 0 1e308 1e-300",
        ".step param x list" + " 1" * 100_000,
        "V1 a 0 PWL(" + "1 " * 100_000 + ")",
        "R1 a 0 {" + "-" * 100_000 + "}",
        "R1 a 0 {1" + "+" * 100_000 + "}",
        ".subckt s " + "a " * 1000,
        ".lib " + "x " * 1000,
        "X" + ".x" * 100_000 + " a b",
        ".model " + "m " * 100_000,
        "D1 a b " + "m " * 1000,
        ".global " + "{" * 1000,
    ],
    ids=lambda v: str(v)[:12],
)
def test_long_and_wrong_gives_a_short_error(text):
    with pytest.raises(NetlistError) as caught:
        loads("t\n" + text + "\n")
    assert all(p.location is not None for p in caught.value.problems)
    assert len(str(caught.value)) < 4000


CARDS = st.sampled_from(
    [
        "R1 a b 1k",
        "R2 b 0 {r}",
        "V1 a 0 DC 5",
        "D1 a b m",
        ".model m D(is=1)",
        ".subckt s a b r=1",
        ".ends",
        "X1 a b s r=2",
        ".param r=3",
        ".param q={r+q2}",
        ".func f(x) {x*r}",
        "+ 5",
        "* c",
        ".end",
        ".control",
        ".endc",
        ".op",
        ".dc V1 0 1 .1",
        ".step param r 1 2 1",
        ".global a",
        ".include x",
        ".lib x y",
        ".endl",
        "L1 a 0 1",
        "C1 a 0 1",
        "I1 a 0 PULSE(1 2)",
        "*! input V1",
    ]
)
NOISE = st.text(st.sampled_from("RVDXIabs019.+-*/={}()',\"$;\n\t \\\0µ"), max_size=12)


@settings(max_examples=4 * settings().max_examples)
@given(st.lists(st.one_of(CARDS, NOISE, st.tuples(CARDS, NOISE, CARDS).map("".join)), max_size=25))
def test_fuzzed_decks_give_a_circuit_or_an_error_with_a_place(lines):
    try:
        deck = loads("t\n" + "\n".join(lines))
    except NetlistError as error:
        assert error.problems and all(p.location is not None and p.message and p.kind for p in error.problems)
        assert str(error)
    else:
        assert len(deck.circuit) and len(loads(dumps(deck.circuit))) == len(deck.circuit)


@settings(max_examples=3 * settings().max_examples)
@given(st.binary(max_size=200))
def test_fuzzed_bytes(data):
    try:
        text, _ = decode(data, "x.cir")
        loads(text)
    except NetlistError as error:
        assert error.problems and str(error)


def test_a_nul_in_a_text():
    with pytest.raises(NetlistError) as caught:
        loads("t\r\nR1 a\0 0 1\n")
    (problem,) = caught.value.problems
    assert (problem.kind, problem.location.line, problem.location.column, problem.hint) == (
        "encoding",
        2,
        5,
        "remove it",
    )


def test_the_reader_needs_no_numpy():
    code = (
        "import sys; from circuitsim.netlist import loads, dumps; dumps(loads('t\\nR1 a 0 {2*3}\\nD1 a 0\\n'));"
        "heavy = {'numpy', 'scipy', 'networkx', 'dataclasses', 'inspect', 'decimal', 'json'} & set(sys.modules);"
        "sys.exit(', '.join(sorted(heavy)) or 0)"
    )
    run = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {code}"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.returncode == 0, run.stderr


def test_nothing_depends_on_the_order_of_a_hash():
    text = "t\n" + "".join(f".param p{k}={{q{k}}}\n" for k in range(30)) + "".join(f"Q{k} a b c d\n" for k in range(5))
    shown = set()
    for seed in ("0", "1", "77"):
        code = f"from circuitsim.netlist import loads\ntry: loads({text!r})\n"
        code += "except Exception as e: print(repr(e.problems))"
        run = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            timeout=60,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
        )
        shown.add(run.stdout)
    assert len(shown) == 1 and "Q4" in shown.pop()
