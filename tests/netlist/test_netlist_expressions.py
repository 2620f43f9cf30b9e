"""Expressions: values, against ngspice where it is there, laziness, limits."""

from __future__ import annotations

import math
import re
import shutil
import subprocess

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from circuitsim.analysis.probes import Formula
from circuitsim.errors import NetlistError, UsageError
from circuitsim.netlist import loads
from circuitsim.netlist.expression import Signal
from circuitsim.netlist.formula import values_at_once

# With .param a=3 b=5 in sight. All of them are what ngspice 39 computes.
LIKE_NGSPICE = r"""
-2**2               -4
2**3**2             64
-2^2                -4
2**-1               0.5
2**-3**2            0.015625
2^3^2               64
(-2)**2             4
7/2                 3.5
7\2                 3
-7\2                -3
7%4                 3
-7%4                -3
5%3*2               4
10%3%2              1
8/2/2               2
3-2-1               0
1?2:3               2
0?2:1?4:5           4
1?2:0?3:4           2
a>b                 0
a<b                 1
a<=3                1
a>=4                0
a==3                1
a!=3                0
a<>3                0
!a                  0
!0                  1
-!0                 -1
!a==0               1
a&&b                1
a||0                1
1||0&&0             1
2<3&&0||1           1
1<2==1              1
1<2<3               1
10kohm              10000
1e3k                1000000
2*1k                2000
1--2                3
1+-2                -1
- -2                2
2*-3                -6
log(100)            4.605170185988092
ln(100)             4.605170185988092
log10(100)          2
sqr(3)              9
pow(-2,3)           -8
pwr(-2,3)           8
int(-2.7)           -2
floor(-2.7)         -3
ceil(-2.2)          -2
nint(2.5)           2
nint(3.5)           4
nint(-3.5)          -4
sgn(-3)             -1
sgn(0)              0
min(1,2)            1
max(1,2,3)          3
min(1)              1
ternary_fcn(1,2,3)  2
arctan(1)           0.7853981633974483
asinh(1)            0.881373587019543
acosh(2)            1.3169578969248166
atanh(.5)           0.5493061443340548
tan(1)              1.5574077246549023
exp(1)              2.718281828459045
sqrt(4)             2
abs(-3)             3
floor (2.5)         2
a?b:0               5
pow(0,0)            1
0**0                1
a ** b              243
sinh(1)             1.1752011936438014
cosh(1)             1.5430806348152437
tanh(1)             0.7615941559557649
asin(.5)            0.5235987755982989
acos(.5)            1.0471975511965979
sin(1)+cos(1)       1.3817732906760363
2*(a+b)*2           32
((a))               3
"""
OURS = r"""
pi            3.141592653589793
e             2.718281828459045
2*PI          6.283185307179586
atan2(1,2)    0.4636476090008061
if(0,2,3)     3
limit(5,1,3)  3
limit(2,3,1)  2
hypot(3,4)    5
round(2.5)    2
0 ? 1/0 : 7   7
1 || 1/0      1
0 && 1/0      0
3 || 0        1
+-+3          -3
!-1           0
1mil          2.54e-05
-2a           -2e-18
"""


def rows(table: str) -> dict[str, float]:
    """Expressions and their values."""
    return {text: float(value) for text, value in (line.rsplit(None, 1) for line in table.strip().splitlines())}


def value(text: str) -> float:
    return loads(f"t\n.param a=3 b=5\nV1 n 0 {{{text}}}\n")["V1"].value


@pytest.mark.parametrize(("text", "expected"), [*rows(LIKE_NGSPICE).items(), *rows(OURS).items()])
def test_values(text, expected):
    assert value(text) == pytest.approx(expected, rel=1e-15)


@pytest.mark.ngspice
@pytest.mark.skipif(shutil.which("ngspice") is None, reason="ngspice is not installed")
def test_ngspice_computes_the_same(tmp_path):
    deck, expressions = ["t", ".param a=3 b=5"], [*rows(LIKE_NGSPICE)]
    deck += [f"V{k} n{k} 0 {{{text}}}\nR{k} n{k} 0 1" for k, text in enumerate(expressions)]
    deck += [".control", "op", *(f"print v(n{k})" for k in range(len(expressions))), ".endc", ".end", ""]
    (tmp_path / "t.cir").write_text("\n".join(deck))
    run = subprocess.run(["ngspice", "-b", "t.cir"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    printed = {int(k): float(v) for k, v in re.findall(r"^v\(n(\d+)\) = (\S+)$", run.stdout, re.M)}
    assert len(printed) == len(expressions)
    for k, text in enumerate(expressions):
        assert printed[k] == pytest.approx(value(text), rel=1e-6), text


def test_a_parameter_may_shadow_a_constant_and_a_function_a_built_in():
    circuit = loads("t\n.param pi=3 e=4\n.func sqr(x) {x+1}\nV1 a 0 {pi}\nV2 b 0 {e}\nV3 c 0 {sqr(5)}\n")
    assert [element.value for element in circuit] == [3, 4, 6]


@pytest.mark.parametrize(
    "card",
    [
        ".func f(x,y) {x*y+1}",
        ".func f(x,y) = {x*y+1}",
        ".func f(x,y)='x*y+1'",
        ".func f(x,y) x*y+1",
        ".param f(x,y)={x*y+1}",
        ".FUNC F(X,Y) {X*Y+1}",
        ".func f( x , y ) { x * y + 1 }",
    ],
)
def test_functions(card):
    assert loads(f"t\n{card}\nV1 a 0 {{f(2,3)+f(0,0)}}\n")["V1"].value == 8


def test_a_function_reads_the_parameters_of_the_call_as_ngspice_does():
    text = "t\n.param r=2\n.func f(x) {r*x}\n.subckt s a\n.param r=10\nV1 a 0 {f(3)}\n.ends\nX1 n s\nV2 m 0 {f(3)}\n"
    circuit = loads(text)
    assert circuit["X1.V1"].value == 30 and circuit["V2"].value == 6


@pytest.mark.parametrize(
    "text",
    [
        ".param a=2*3 b = a+ 1\nV1 n 0 {b}",
        ".param a = 2 * 3, b={a + 1}\nV1 n 0 b",
        ".param b='a+1'\nV1 n 0 'b'\n.param a={6}",
        ".params a=6\n+ b={a\n+ +1}\nV1 n 0 DC {b} AC 1",
        ".param A=6\nV1 n 0 DC={a+1}",
        ".param a=3 a=6\nV1 n 0 {1 +\n* between\n+ a}",
    ],
)
def test_parameters(text):
    assert loads(f"t\n{text}\n")["V1"].value == 7


@pytest.mark.parametrize("reverse", [False, True])
def test_a_chain_of_parameters_may_be_long_in_either_order(reverse):
    cards = [f".param p{k}={{p{k - 1}+1}}" for k in range(1, 20_000)]
    cards = cards[::-1] if reverse else cards
    assert loads("t\n.param p0=1\n" + "\n".join(cards) + "\nV1 a 0 {p19999}\n")["V1"].value == 20_000


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("V1 a 0 {" + "(" * 5000 + "1" + ")" * 5000 + "}", "expression"),
        ("V1 a 0 {" + "abs(" * 5000 + "1" + ")" * 5000 + "}", "expression"),
        ("V1 a 0 {" + "1?" * 5000 + "1" + ":1" * 5000 + "}", "expression"),
        ("V1 a 0 {" + "9**" * 5000 + "9}", "number"),
        ("V1 a 0 {(-1)**0.5}", "number"),
        # Functions that double their work forty times over: stopped by the count of steps, not by the clock.
        (
            ".func f0(x) {x}\n"
            + "\n".join(f".func f{k}(x) {{f{k - 1}(x)+f{k - 1}(x)}}" for k in range(1, 39))
            + "\nV1 a 0 {f38(1)}",
            "limit",
        ),
        (".func f(x) {g(x)}\n.func g(x) {f(x)}\nV1 a 0 {f(1)}", "function"),
        (".param a={f(1)}\n.func f(x) {a*x}\nV1 a 0 {a}", "function"),
    ],
)
def test_work_is_bounded(text, kind):
    with pytest.raises(NetlistError) as caught:
        loads(f"t\n{text}\n")
    assert caught.value.problems[0].kind == kind
    assert caught.value.problems[0].location.line > 1


def test_a_long_sum_is_no_deep_one():
    assert value("0" + "+1" * 50_000) == 50_000
    assert value("- " * 10_000 + "1") == 1


@given(st.text(alphabet="0123456789.ekmgab+-*/%^<>=!&|?:(), \\sqrtpiminx{}'", max_size=40))
def test_any_text_gives_a_number_or_an_error_with_a_place(text):
    try:
        result = value(text)
    except NetlistError as error:
        assert all(p.location is not None and p.location.line == 3 for p in error.problems)
    else:
        assert math.isfinite(result)


@pytest.mark.parametrize(
    "text",
    [
        "v(a)*i(R1)",
        "-v(a)/2+1",
        "abs(v(a)-v(b,a))*k",
        "min(v(a),v(b))-max(i(R1),k)",
        "sqr(v(b))/-3",
        "v(a)",
    ],
)
def test_formulas_of_many_values_at_once(text: str) -> None:
    """Bit for bit as one after the other."""
    circuit = loads("t\nV1 a 0 1\nR1 a b 1\nR2 b 0 1\n")
    formula = Formula(text, circuit)
    rng = np.random.default_rng(3)
    known = {signal: rng.normal(size=50) for signal in formula.probes}
    found = values_at_once(formula.code, known, {"k": 0.7})
    assert found is not None
    single = [formula.value({s: float(v[n]) for s, v in known.items()}, {"k": 0.7}) for n in range(50)]
    assert found.tolist() == single == formula.values(known, {"k": 0.7}).tolist()


def test_formulas_that_are_no_arithmetic_or_have_no_value() -> None:
    circuit = loads("t\nV1 a 0 1\nR1 a 0 1\n")
    known = {Signal("v", "a"): np.array([1.0, -2.0, 0.0])}
    assert Formula("sin(v(a))", circuit).values(known, {}).tolist() == [math.sin(1.0), math.sin(-2.0), 0.0]
    assert Formula("v(a)>0 ? 5 : 7", circuit).values(known, {}).tolist() == [5.0, 7.0, 7.0]
    with pytest.raises(UsageError, match="division by zero"):
        Formula("1/v(a)", circuit).values(known, {})
    with pytest.raises(UsageError, match="b"):
        Formula("v(a)*b", circuit).values(known, {})
