"""Decks that mean harm, and decks that are merely large: bounded work, always an answer with a place."""

import math
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from circuitsim import load, loads
from circuitsim.errors import NetlistError
from circuitsim.netlist import limits


def laughs(levels: int, calls: int, top: int) -> str:
    """Sub-circuits that each call the one before ``calls`` times; the deck calls that of the level ``top``."""
    text = [".subckt s0 a", "R1 a 0 1", ".ends"]
    for k in range(1, levels):
        text += [f".subckt s{k} a", *(f"X{j} a s{k - 1}" for j in range(calls)), ".ends"]
    return "\n".join([*text, f"Xtop a s{top}"])


def value(text: str) -> float:
    """Of an expression."""
    return loads(f"t\n.param a=3 b=5\nV1 n 0 {{{text}}}\n")["V1"].value


def many(text: str, count: int, between: str = "") -> str:
    """A text with @ for 0, 1, …, put together."""
    return between.join(text.replace("@", str(k)) for k in range(count))


NAMES = many("x@", 20_000, ",")
LONG = {
    "expansion": (laughs(5, 9, 4), 9**4),
    "nested calls": (laughs(limits.CALL_DEPTH, 1, limits.CALL_DEPTH - 5), 1),
    "comment": ("*" + "x" * 10_000_000 + "\nR1 a 0 1", 1),
    "comment behind ;": ("R1 a 0 1 ;" + "x $ // " * 1_000_000, 1),
    "comment behind $": ("R1 a$ 0 1 $" + "x$y " * 1_000_000, 1),
    "blanks": ("R1 a 0 1" + " " * 5_000_000, 1),
    "blanks in an expression": ("R1 a 0 {1" + " " * 5_000_000 + "}", 1),
    "continuation lines": ("V1 a 0 PWL(\n" + many("+ @ @\n", 50_000) + "+ )", 1),
    "ports": (f".subckt s {many('p@', 20_000, ' ')}\nR1 p7 0 1\n.ends\nX1 {many('n@', 20_000, ' ')} s", 1),
    "blank lines": ("\n" * 1_000_000 + "R1 a 0 1", 1),
    "parentheses": ("R1 " + "(" * 200_000 + "a" + ")" * 200_000 + " 0 1", 1),
    "a name": ("R" + "x" * 3_000_000 + " a 0 1", 1),
    "a number": ("R1 a 0 1" + "0" * 3_000_000 + "e-3000000", 1),
    "parameters": (f".param {many('p@=@', 50_000, ' ')}\nR1 a 0 {{p7}}", 1),
    "a chain of parameters": (".param p=1 q0=1\n" + "\n".join(f".param q{k + 1}={{q{k}+1}}" for k in range(20_000)), 0),
    "elements": (many("R@ n@ 0 1\n", 100_000), 100_000),
    "definitions": (many(".subckt s@ a\nR1 a 0 1\n.ends\nX@ a s@\n", 10_000), 10_000),
    "arguments": (
        f".func f({NAMES}) {{{NAMES.replace(',', '+')}}}\nR1 a 0 {{f({many('1', 20_000, ',')})}}",
        1,
    ),
    "a sum": ("V1 a 0 {0" + "+1" * 50_000 + "}", 1),
    "signs": ("V1 a 0 {" + "- " * 10_000 + "1}", 1),
}
"""Long decks that are legal, and their numbers of elements: a guard against quadratic work. Each takes well under a
second; quadratic, it would take minutes."""


@pytest.mark.parametrize("name", LONG)
def test_long_is_legal(name: str) -> None:
    text, elements = LONG[name]
    assert len(loads(f"t\n{text}\n" + ("" if elements else "R1 a 0 {q20000}\n"))) == (elements or 1)


WRONG = {
    "expression": [
        "V1 a 0 {" + "(" * 5000 + "1" + ")" * 5000 + "}",
        "V1 a 0 {" + "abs(" * 5000 + "1" + ")" * 5000 + "}",
        "V1 a 0 {" + "1?" * 5000 + "1" + ":1" * 5000 + "}",
        "R1 a 0 {1" + "+" * 100_000 + "}",
        "R1 a 0 {" + "-" * 100_000 + "}",
    ],
    "limit": [
        *(laughs(levels, calls, levels - 1) for levels, calls in ((12, 10), (60, 2), (190, 30), (8, 300))),
        # Functions that double their work forty times over: stopped by the count of steps, not by the clock.
        ".func f0(x) {x}\n"
        + "\n".join(f".func f{k}(x) {{f{k - 1}(x)+f{k - 1}(x)}}" for k in range(1, 39))
        + "\nV1 a 0 {f38(1)}",
    ],
    "number": ["V1 a 0 {" + "9**" * 5000 + "9}", "R1 a 0 1" + "1K5" * 100_000, "R1 a 0 " + "9" * 400],
    "": [
        "R1 a 0 {a" + "(" * 99,
        laughs(limits.CALL_DEPTH + 5, 1, limits.CALL_DEPTH + 4),
        "R1 a 0 {" + "{" * 100_000 + "}",
        "R1 a 0 " + "}" * 100_000,
        "X1 " + "a " * 100_000 + "s",
        "R1 " + "=" * 100_000,
        ".param " + "a" * 100_000,
        ".param a=" + "(" * 100_000,
        ".func f(" + "x," * 100_000 + ")",
        ".include " + "a/" * 100_000,
        "." + "x" * 100_000,
        "é" * 100_000,
        ".dc V1 0 1e308 1e-300",
        ".step param x list" + " 1" * 100_000,
        "V1 a 0 PWL(" + "1 " * 100_000 + ")",
        ".subckt s " + "a " * 1000,
        ".lib " + "x " * 1000,
        "X" + ".x" * 100_000 + " a b",
        ".model " + "m " * 100_000,
        "D1 a b " + "m " * 1000,
        ".global " + "{" * 1000,
        many("S@ a b c d m\n", 10_000),
    ],
}


@pytest.mark.parametrize(("kind", "text"), [(k, t) for k, texts in WRONG.items() for t in texts], ids=lambda t: t[:12])
def test_long_and_wrong_gives_a_short_error(kind: str, text: str) -> None:
    with pytest.raises(NetlistError) as caught:
        loads(f"t\n{text}\n")
    problems = caught.value.problems
    assert all(problem.location is not None for problem in problems) and len(problems) <= limits.PROBLEMS
    assert kind in ("", problems[0].kind) and len(str(caught.value)) < 6000


@settings(max_examples=3 * settings().max_examples)
@given(st.binary(max_size=200))
def test_fuzzed_bytes(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path: Path = tmp_path_factory.getbasetemp() / "fuzzed.cir"
    path.write_bytes(data)
    try:
        load(path)
    except NetlistError as error:
        assert error.problems and str(error)


@given(st.text(alphabet="0123456789.ekmgab+-*/%^<>=!&|?:(), \\sqrtpiminx{}'", max_size=40))
def test_any_expression_gives_a_number_or_an_error_with_a_place(text: str) -> None:
    try:
        assert math.isfinite(value(text))
    except NetlistError as error:
        assert all(p.location is not None and p.location.line == 3 for p in error.problems)


def test_the_reader_needs_no_numpy() -> None:
    code = (
        f"import sys; sys.path[:0] = {sys.path!r}\nfrom circuitsim.netlist import loads, dumps\n"
        "dumps(loads('t\\nR1 a 0 {2*3}\\nD1 a 0\\n'))\n"
        "heavy = {'numpy', 'scipy', 'networkx', 'dataclasses', 'inspect', 'decimal', 'json'} & set(sys.modules)\n"
        "sys.exit(', '.join(sorted(heavy)) or 0)"
    )
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
