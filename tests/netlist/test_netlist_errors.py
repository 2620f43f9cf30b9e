"""Every error and warning of the language: its category, line, column and name, and that it says what to do next."""

from __future__ import annotations

import pytest

from circuitsim.errors import NetlistError
from circuitsim.netlist import loads

SUB = ".subckt s a b r=1\nR1 a b {r}\n.ends\n"

# (lines behind the title, kind, line, column, names, a part of the message)
ERRORS = [
    # ---------------------------------------------------------------- cards and words
    ("Q1 a b c npn", "unsupported", 2, 1, ("Q1",), "Q1 is a transistor (bipolar)"),
    ("  M1 a b c d nmos", "unsupported", 2, 3, ("M1",), "M1 is a transistor (MOSFET)"),
    ("J1 a b c jfet", "unsupported", 2, 1, ("J1",), "J1 is a transistor (JFET)"),
    ("Z1 a b c mes", "unsupported", 2, 1, ("Z1",), "Z1 is a transistor (MESFET)"),
    (
        "R1 a 0 1\nQ1 a b c npn\nM1 a b c d n\nQ2 a b c npn\nA1 a m",
        "unsupported",
        3,
        1,
        ("Q1", "Q2", "M1", "A1"),
        "2 × transistor (bipolar): Q1, Q2; 1 × transistor (MOSFET): M1; 1 × XSPICE code model: A1",
    ),
    ("S1 a b c d sw", "model", 2, 12, ("S1",), "S1: no model is called 'sw'"),
    ("S1 a b c d sw MAYBE\n.model sw SW", "syntax", 2, 15, (), "'MAYBE' is neither ON nor OFF"),
    ("W1 a b V1\n.model sw CSW", "syntax", 2, 9, (), "W1 needs two nodes, a source and a model"),
    ("R1 a b 1\nW1 a b V9 sw\n.model sw CSW", "controlled", 3, 8, ("W1",), "W1: 'V9' is no voltage source"),
    ("R1 a 0 1\nC1 a 0 1u ic={x}", "parameter", 3, 15, ("C1",), "no parameter is called 'x'"),
    ("A1 a b model", "unsupported", 2, 1, ("A1",), "A1 is an XSPICE code model"),
    ("1R a b 1k", "unknown-card", 2, 1, (), "'1R' begins no card"),
    ("#R1 a b 1k", "unknown-card", 2, 1, (), "'#R1' begins no card"),
    (".foo bar", "unknown-card", 2, 1, (), ".foo is no card"),
    ("C1 a 0 Q={1u*x}\nR1 a 0 1", "unsupported", 2, 8, (), "a charge by a formula (Q=) is not supported"),
    ("R1 a 0 {akima(1,0,0,1,1,2,4)}", "function", 2, 9, ("R1",), "akima() joins points by curves"),
    (".if (1)", "syntax", 2, 1, (), ".if without its .endif"),
    (".if (0)\n.if (nobody)\n.endif", "syntax", 2, 1, (), ".if without its .endif"),
    ("R1 a 0 1\n.endif", "syntax", 3, 1, (), ".endif without its .if"),
    ("R1 a 0 1\n.else", "syntax", 3, 1, (), ".else without its .if"),
    (".if (q > 1)\nR1 a 0 1\n.endif", "parameter", 2, 6, (), "no parameter is called 'q'"),
    (".param q=1\n.if (q == 1)\nR1 a 0 1\n.endif\n.param q=2", "parameter", 3, 1, (), "another value at the end"),
    (".subckt s a n=1\n.if (n > q)\nR1 a 0 1\n.endif\n.ends\nX1 a s", "parameter", 3, 10, ("X1",), "called 'q'"),
    (
        ".param n=1\n.subckt s a\n.if (n)\nR1 a 0 1\n.endif\n.param n=2\n.ends\nX1 a s",
        "parameter",
        4,
        1,
        (),
        "stands behind its condition",
    ),
    (
        ".subckt s a n=1\n" + "".join(f".if (n > {k})\nR{k} a 0 1\n.endif\n" for k in range(7)) + ".ends\nX1 a s",
        "limit",
        24,
        1,
        (),
        "more than 64 outcomes",
    ),
    (".subckt s a\n.if (1)\nR1 a 0 1\n.ends\n.endif\nX1 a s", "syntax", 6, 1, (), "in different sub-circuits"),
    ("S1 a 0 a 0 m\nR1 a 0 1\n.model m SW(vt=inf)", "parameter", 4, 16, ("S1",), "no parameter is called 'inf'"),
    ("S1 a 0 a 0 m\nR1 a 0 1\n.model m SW(vt='1+')", "expression", 4, 18, (), "the expression ends"),
    ("B1 a 0 R=v(b)", "unsupported", 2, 10, (), "B1: the resistance depends on the solution"),
    (".macro s a b", "unsupported", 2, 1, (), ".macro: sub-circuits begin with .subckt"),
    (".connect a b", "unsupported", 2, 1, (), ".connect: it would join nodes"),
    (".control\nrun", "syntax", 2, 1, (), ".control without its .endc"),
    ("+ R1 a b 1k", "syntax", 2, 1, (), "continues nothing"),
    ("ı1 a b 5", "unknown-card", 2, 1, (), "'ı1' begins no card"),
    ("R1 a b {1", "syntax", 2, 8, (), "a '{' without its '}'"),
    ("R1 a b 1}", "syntax", 2, 9, (), "a '}' without its '{'"),
    ("R1 a b '1", "syntax", 2, 8, (), "a ' without its partner"),
    ("R1 n{1} b 1k", "syntax", 2, 5, (), "glued to a name"),
    ("R1 a b = 5", "syntax", 2, 10, (), "R1 needs two nodes"),
    ("R1 a b R=", "syntax", 2, 9, (), "R= without a value"),
    ("R1 a b =", "syntax", 2, 8, (), "b= without a value"),
    ("r1 = 5", "syntax", 2, 4, (), "r1 is assigned to"),
    ("R1", "syntax", 2, 2, (), "R1 needs two nodes; the first one is missing"),
    ("R1 a", "syntax", 2, 4, (), "R1 needs two nodes; the second one is missing"),
    ("D1 a", "syntax", 2, 4, (), "the cathode one is missing"),
    ("R1 {a} b 1", "syntax", 2, 5, (), "a node name is expected"),
    ("R1 a//b c 1", "syntax", 2, 5, (), "'a//b' cannot name a node"),
    ("R1 a\u200bb c 1", "syntax", 2, 5, (), "cannot name a node"),
    ("R\u200b1 a b 1", "syntax", 2, 2, (), "cannot be seen"),
    # ---------------------------------------------------------------- values
    ("R1 a b", "syntax", 2, 6, (), "R1 needs its resistance in Ω"),
    ("L1 a b", "syntax", 2, 6, (), "L1 needs its inductance in H"),
    ("C1 a b", "syntax", 2, 6, (), "C1 needs its capacitance in F"),
    ("R1 a b 5 6", "syntax", 2, 10, (), "R1: '6' is one value too many"),
    ("R1 a b 1,5", "syntax", 2, 10, (), "R1: '5' is one value too many"),
    ("R1 a b 1 R=2", "syntax", 2, 12, (), "R1: '2' is one value too many"),
    ("R1 a b 1 foo=2", "syntax", 2, 10, (), "R1 has no parameter 'foo'"),
    ("R1 a b 1e", "number", 2, 8, (), "'1e' is not a number"),
    ("R1 a b 1.2.3", "number", 2, 8, (), "'1.2.3' is not a number"),
    ("R1 a b 5%", "number", 2, 8, (), "'5%' is not a number"),
    ("R1 a b 2*3", "number", 2, 8, (), "'2*3' is not a number"),
    ("R1 a b 0x10", "number", 2, 8, (), "'0x10' is not a number"),
    ("R1 a b 1e999", "number", 2, 8, (), "1e999 is larger than a double can hold"),
    ("R1 a b 1e-999", "number", 2, 8, (), "1e-999 is smaller than a double can hold"),
    ("R1 a b 1e-310", "number", 2, 8, (), "1e-310 is smaller than a double can hold"),
    ("V1 a 0 1e306k", "number", 2, 8, (), "1e306k is larger than a double can hold"),
    ('R1 a b "5"', "number", 2, 8, (), "a value in double quotes"),
    ("R1 a b -5 tc1=1m", "range", 2, 8, ("R1",), "R1: the resistance must not be negative (-5 Ω)"),
    ("R1 a b {2-5} tc1=1m", "range", 2, 9, ("R1",), "R1: the resistance must not be negative (-3 Ω)"),
    ("R1 a b 5 m=0", "range", 2, 12, (), "R1: the multiplier m must be positive, not 0"),
    ("R1 a b 5 m={1-3}", "range", 2, 8, ("R1",), "R1: the multiplier m must be positive, not -2"),
    ("R1 a b 1e-300 m=1e10", "number", 2, 1, ("R1",), "is out of a double's range"),
    ("R1 a b nan", "parameter", 2, 8, ("R1",), "R1: 'nan' is neither a number nor a parameter"),
    ("R1 a b rload", "parameter", 2, 8, ("R1",), "R1: 'rload' is neither a number nor a parameter"),
    ("R1 a b rm\n.model rm R(tc1=5)", "range", 2, 8, ("R1",), "R1: neither its card nor its model states a resistance"),
    ("R1 a b 1k rm\n.model rm C", "model", 2, 11, ("R1",), "R1: model rm is of type C, not R"),
    ("R1 a b 1k rm", "model", 2, 11, ("R1",), "R1: no model is called 'rm'"),
    ("R1 a b 1k tc=-0.02\n.temp 127", "range", 2, 8, ("R1",), "make the resistance -1000 Ω at 127 °C"),
    ("R1 a b 1k tc=1,2,3", "syntax", 2, 18, (), "R1 has no parameter 'tc3'"),
    ("R1 a b 1k temp=-300", "range", 2, 16, ("R1",), "-300 °C is below absolute zero"),
    ("R1 a b rm l=1u w=1u\n.model rm R(rsh=1 narrow=1u)", "range", 2, 8, ("R1",), "leave 1e-06 m of its length and"),
    ("V1 a 0 5 6", "syntax", 2, 10, (), "V1: '6' does not belong here"),
    ("V1 a 0 5 foo", "syntax", 2, 10, (), "V1: 'foo' does not belong here"),
    ("V1 a 0 PULSE(1)", "syntax", 2, 8, (), "PULSE needs at least 2 numbers"),
    ("V1 a 0 PWL(0 1 2)", "syntax", 2, 8, (), "PWL needs pairs"),
    ("V1 a 0 PWL(0 1 0 2)", "syntax", 2, 8, (), "the times of PWL must grow"),
    ("V1 a 0 SIN(0 1 1k -1m)", "range", 2, 8, (), "SIN begins before t = 0"),
    ("V1 a 0 EXTERNAL", "unsupported", 2, 8, (), "EXTERNAL has no value at the operating point"),
    ("V1 a 0 PWL", "syntax", 2, 8, (), "PWL needs at least 2 numbers"),
    ("I1 0 a 5A", "atto", 2, 8, (), "I1: 5A is 5 ampere to its writer, 5e-18 to SPICE, where A is atto"),
    ("V1 a 0 DC 10AMPS", "atto", 2, 11, (), "V1: 10AMPS is 10 ampere to its writer, 10e-18 to SPICE"),
    ("V1 a 0 DC={2A}", "atto", 2, 12, (), "V1: 2A is 2 ampere to its writer, 2e-18 to SPICE"),
    ("V1 a 0 SIN({x} 1 1k)", "parameter", 2, 13, ("V1",), "no parameter is called 'x'"),
    ("D1 a b mod 1 2", "syntax", 2, 14, (), "D1: '2' does not belong here"),
    # ---------------------------------------------------------------- names
    ("R1 a b 1\nR1 b 0 1", "duplicate", 3, 1, (), "R1 is there already (line 2)"),
    ("Rx a b 1\nrX b 0 1", "duplicate", 3, 1, (), "rX is there already (line 2)"),
    (SUB + "X1 a b s\nX1 b c s", "duplicate", 6, 1, (), "X1 is there already (line 5)"),
    (".subckt s a\nR1 a 0 1\nR1 a 0 1\n.ends\nX1 a s", "duplicate", 4, 1, (), "R1 is there already (line 3)"),
    (SUB + SUB + "X1 a b s", "duplicate", 5, 9, (), "sub-circuit s is defined already (line 2)"),
    (".func f(x) {x}\n.func F(y) {y}\nR1 a 0 1", "duplicate", 3, 7, (), "function 'f' is defined already"),
    (".subckt s a A\nR1 a 0 1\n.ends\nX1 a b s", "duplicate", 2, 13, (), "port A of s is named twice"),
    (SUB + "X1 a b s r=1 r=2", "duplicate", 5, 14, (), "r= stands on this card twice"),
    # ---------------------------------------------------------------- models
    ("D1 a 0 dx", "model", 2, 8, ("D1",), "D1: no model is called 'dx'"),
    ("D1 a 0 m\n.model m NPN", "model", 2, 8, ("D1",), "D1: model m is of type NPN, not D"),
    ("D1 a 0 m\n.model m numd level=1\n+ x.mesh loc=0 n=1", "unsupported", 2, 8, ("D1",), "D1: model m is numerical"),
    (".model m", "model", 2, 8, (), ".model needs a name and a type"),
    (".subckt s a\n.model loc D\nD1 a 0 loc\n.ends\nX1 a s\nD2 a 0 loc", "model", 7, 8, ("D2",), "no model is called"),
    # ---------------------------------------------------------------- sub-circuits
    ("X1 a b nope", "subcircuit", 2, 8, ("X1",), "X1: no sub-circuit is called 'nope'"),
    (SUB + "X1 a s", "subcircuit", 5, 6, ("X1",), "X1 connects 1 node, s has 2 ports"),
    (SUB + "X1 a b c s", "subcircuit", 5, 10, ("X1",), "X1 connects 3 nodes, s has 2 ports"),
    (SUB + "X1 a b s q=3", "parameter", 5, 10, ("X1",), "X1: sub-circuit s has no parameter 'q'"),
    (SUB + "X1", "syntax", 5, 2, (), "X1 names no sub-circuit"),
    (SUB + "X1 a b {s}", "syntax", 5, 9, (), "the name of a sub-circuit is expected"),
    (SUB + "X1 a b s m=0", "range", 5, 10, ("X1",), "X1: the multiplier m must be positive"),
    (
        SUB.replace("{r}", "{r} tc1=0") + "X1 a b s r=-2",
        "range",
        3,
        9,
        ("X1.R1",),
        "X1.R1: the resistance must not be negative (-2 Ω)",
    ),
    (".subckt s a b\nR1 a b 1", "subcircuit", 2, 1, (), ".subckt s has no .ends"),
    ("R1 a 0 1\n.ends", "subcircuit", 3, 1, (), ".ends without its .subckt"),
    (".subckt", "subcircuit", 2, 7, (), ".subckt has no name"),
    (".subckt s a\nX1 a s\n.ends\nX1 b s", "subcircuit", 3, 6, ("X1",), "sub-circuit s calls itself (s → s)"),
    (
        ".subckt s a\nX1 a t\n.ends\n.subckt t a\nX1 a s\n.ends\nX1 b s",
        "subcircuit",
        6,
        6,
        ("X1",),
        "sub-circuit s calls itself (s → t → s)",
    ),
    (".subckt s a 0\nR1 a 0 1\n.ends\nX1 a b s", "subcircuit", 5, 8, ("X1",), "X1 connects node b to a port called 0"),
    (".subckt s a\n.subckt t a\nR1 a 0 1\n.ends\nX1 a t\n.ends\nX1 a s\nX2 a t", "subcircuit", 9, 6, ("X2",), "'t'"),
    (
        ".subckt s a\nR1 a 0 1\n.ends\n.subckt t a\nX1 a s m=1e-200\n.ends\nX1 a t m=1e-200",
        "number",
        6,
        8,
        ("X1.X1",),
        "the multipliers m of the calls",
    ),
    (
        ".subckt s a\nR1 a 0 1\n.ends\n.subckt t a\nX2 a s\n.ends\nX1 a t\nX1.X2 a s",
        "duplicate",
        9,
        1,
        ("X1.X2.R1",),
        "twice",
    ),
    # ---------------------------------------------------------------- parameters, functions, expressions
    (".param", "syntax", 2, 6, (), ".param needs name=value"),
    (".param a", "syntax", 2, 8, (), ".param a has no =value"),
    (".param a=1 5", "syntax", 2, 12, (), ".param needs name=value"),
    ('.param a="x"', "expression", 2, 10, (), "a parameter cannot be a string"),
    (".param a={b}\nR1 a 0 1", "parameter", 2, 11, (), "no parameter is called 'b'"),
    (".param a={b} b={a}\nR1 a 0 {a}", "parameter", 2, 11, ("R1",), "parameter 'a' depends on itself (a → b → a)"),
    (".param a={a+1}\nR1 a 0 1", "parameter", 2, 11, (), "parameter 'a' depends on itself"),
    (".func f {x}", "function", 2, 6, (), ".func needs a name and its arguments"),
    (".func f(x,x) {x}", "function", 2, 9, (), "arguments are different names"),
    (".func f(x) {x} y", "function", 2, 16, (), "'y' does not belong to the function"),
    (".func f(x) {x}\nR1 a 0 {f(1,2)}", "function", 3, 9, ("R1",), "f() takes 1 argument, not 2"),
    (".func f(x) {f(x-1)}\nR1 a 0 {f(1)}", "function", 2, 13, ("R1",), "functions call each other"),
    ("R1 a 0 {g(1)}", "function", 2, 9, ("R1",), "no function is called 'g'"),
    ("R1 a 0 {sqrt(1,2)}", "function", 2, 9, ("R1",), "sqrt() takes 1 argument, not 2"),
    ("B1 a 0 V={rand(3)*time}", "function", 2, 11, (), "'rand' draws a random number"),
    ("R1 a 0 {v(1)}", "function", 2, 9, ("R1",), "v(…) depends on the solution"),
    ("R1 a 0 {time}", "parameter", 2, 9, ("R1",), "'time' has no value at an operating point"),
    ("R1 a 0 {}", "expression", 2, 8, (), "the expression ends where"),
    ("R1 a 0 {1+}", "expression", 2, 10, (), "the expression ends where"),
    ("R1 a 0 {1 2}", "expression", 2, 11, (), "'2' does not belong in the expression"),
    ("R1 a 0 {(1}", "expression", 2, 10, (), "')' expected at the end"),
    ("R1 a 0 {1?2}", "expression", 2, 11, (), "':' expected at the end"),
    ("R1 a 0 {1=2}", "expression", 2, 10, (), "'=2' does not belong"),
    ("R1 a 0 {1 ~ 2}", "expression", 2, 11, (), "'~' does not belong"),
    ("R1 a 0 {2*v(a)}", "parameter", 2, 13, ("R1",), "v(…) depends on the solution"),
    ("B1 a 0 V={spice_pulse(0,1,0,0,1,1)}", "number", 2, 11, (), "spice_pulse needs at least 6 numbers"),
    ("V1 a 0 SIN(0 amplitude 1k)", "parameter", 2, 14, ("V1",), "no parameter is called 'amplitude'"),
    ("V1 a 0 SIN file=a.txt", "syntax", 2, 17, (), "V1: file= belongs to PWL"),
    ("V1 a 0 PWL REPEAT FOR 3 (0 0 1 1) ENDREPEAT", "syntax", 2, 12, (), "V1: 'REPEAT' does not belong here"),
    ("V1 a 0 wavefile=a.wav", "unsupported", 2, 8, (), "V1: sound files are not read"),
    ("R1 a 0 {*3}", "expression", 2, 9, (), "a number, a parameter or '(' expected before '*'"),
    ("R1 a 0 {1/0}", "number", 2, 10, ("R1",), "1 / 0: division by zero"),
    ("R1 a 0 {sqrt(-1)}", "number", 2, 9, ("R1",), "sqrt(-1): outside the domain"),
    ("R1 a 0 {ln(0)}", "number", 2, 9, ("R1",), "ln(0): outside the domain"),
    ("R1 a 0 {exp(1000)}", "number", 2, 9, ("R1",), "exp(1000): the result is larger than a double can hold"),
    ("R1 a 0 {exp(-1000)}", "number", 2, 9, ("R1",), "exp(-1000): the result is smaller"),
    ("R1 a 0 {1e-200*1e-200}", "number", 2, 15, ("R1",), "the result is smaller than a double can hold"),
    ("R1 a 0 {1e200*1e200}", "number", 2, 14, ("R1",), "the result is larger than a double can hold"),
    ("R1 a 0 {(-8)**(1/3)}", "number", 2, 13, ("R1",), "a negative base: SPICE programs differ"),
    ("R1 a 0 {9**9**9**9}", "number", 2, 16, ("R1",), "the result is larger than a double can hold"),
    # ---------------------------------------------------------------- other cards
    (".global", "syntax", 2, 7, (), ".global names no node"),
    (".include", "include", 2, 8, (), ".include names no file"),
    (".include a b", "include", 2, 12, (), ".include takes one file"),
    (".include x.inc", "include", 2, 10, (), "x.inc lies outside the deck's folder"),
    (".lib a b c", "include", 2, 10, (), ".lib takes a file and a section"),
    (".endl", "include", 2, 1, (), ".endl without its .lib section"),
    ("V1 a 0 1\n.dc", "syntax", 3, 3, (), ".dc needs a source, start, stop and step"),
    ("V1 a 0 1\n.dc V2 0 1 1", "analysis", 3, 5, (), ".dc sweeps V2, which is not in the circuit"),
    ("D1 a 0\n.dc D1 0 1 1", "analysis", 3, 5, (), ".dc sweeps D1, which has no value to sweep"),
    ("V1 a 0 1\n.dc temp -300 1 1", "range", 3, 5, (), "-300 °C is below absolute zero"),
    ("V1 a 0 1\n.step temp list 0 -300 5", "range", 3, 7, (), "-300 °C is below absolute zero"),
    ("V1 a 0 1\n.temp 20 -300", "range", 3, 10, (), "-300 °C is below absolute zero"),
    ("V1 a 0 1\n.options temp=-274", "range", 3, 15, (), "-274 °C is below absolute zero"),
    ("V1 a 0 1\n.temp", "syntax", 3, 5, (), ".temp needs a temperature"),
    ("V1 a 0 1\n.temp {2*temper}", "parameter", 3, 10, (), "'temper' has no value where the temperature is set"),
    ("V1 a 0 1\n.dc V1 0 1 0", "analysis", 3, 12, (), "V1: the step is zero"),
    ("V1 a 0 1\n.dc V1 1 1 0", "analysis", 3, 12, (), "V1: the step is zero"),
    ("V1 a 0 1\n.dc V1 0 1 -1", "analysis", 3, 12, (), "V1: a step of -1 never leads from 0 to 1"),
    ("V1 a 0 1\n.dc V1 0 1 1n", "analysis", 3, 12, (), "V1: more than 1,000,000 points"),
    ("V1 a 0 1\n.dc V1 0 1 .1 v1 0 1 .1", "analysis", 3, 15, (), ".dc sweeps V1 twice"),
    ("V1 a 0 1\nV2 b 0 1\n.dc V1 0 1 .1m V2 0 1 .1m", "limit", 4, 5, (), ".dc has more than 1,000,000 points"),
    ("R1 a 0 1\n.dc R1 -1 1 1", "range", 3, 5, (), ".dc sweeps a resistance below zero"),
    ("R1 a 0 1\n.step", "analysis", 3, 5, (), ".step names nothing to vary"),
    ("R1 a 0 1\n.step V1 0 1 1", "analysis", 3, 7, (), ".step sweeps V1, which is not in the circuit"),
    ("R1 a 0 1\n.step data=x", "analysis", 3, 12, (), ".step: there is no such table"),
    ("R1 a 0 1\n.data x r1\n+ r2\n 1 2\n 3\n.enddata", "syntax", 6, 2, (), ".data x: 3 values do not fill rows of 2"),
    ("R1 a 0 1\n.data x r1 r2 1 2\n+ 3", "syntax", 4, 3, (), ".data x: 3 values do not fill rows of 2"),
    ("R1 a 0 1\n.step dec R1 0 1 5", "analysis", 3, 18, (), "R1: both bounds must be of one sign"),
    ("R1 a 0 1\n.tran 1m 0", "range", 3, 7, (), ".tran needs 0 ≤ start < stop"),
    ("R1 a 0 1\n.param x=1\n.step param x 0 1", "syntax", 4, 17, (), ".step x needs start, stop and step"),
    ("R1 a 0 1\n.param x=1\n.step param x list", "syntax", 4, 18, (), ".step list has no values"),
    ("R1 a 0 1\n.param x=1\n.step param x 1 0 1", "analysis", 4, 19, (), "x: a step of 1 never leads from 1 to 0"),
    # ---------------------------------------------------------------- true places
    ("R1 a\n* comment\n\n+ b\n+ 5Z5", "number", 6, 3, (), "is not a number"),
    ("R1 a b ; {\n  + 1k 2k ; }", "syntax", 3, 8, (), "'2k' is one value too many"),
    ("\tR1 a b \t5Z5", "number", 2, 10, (), "is not a number"),
    (".param x={\n+ 1 +\n+ yy}\nR1 a 0 {x}", "parameter", 4, 3, ("R1",), "no parameter is called 'yy'"),
    ("L1 a 0 1\nK1 L1 L2 0.9", "coupling", 3, 7, (), "no inductor is called 'L2'"),
    ("k = 2", "syntax", 2, 3, (), "an '=' without a name before it"),
    ("R1 a 0 1\n.temp {5", "syntax", 3, 7, (), "a '{' without its '}'"),
    ("K1 L1 0.9", "syntax", 2, 9, (), "K1 needs two inductors and a coefficient"),
]

WARNINGS = [
    ("R1 a 0 10M", "mega", 2, 8, ("R1",), "10M is 10 milliohm"),
    ("R1 a 0 10Mohm", "mega", 2, 8, ("R1",), "10Mohm is 10 milliohm"),
    ("R1 a 0 {2*10M}", "mega", 2, 9, ("R1",), "10M is 10 milliohm"),
    (".param r=10M\nR1 a 0 {r}", "mega", 2, 10, (), "10M is 10 milliohm on R1"),
    ("R1 a b 1k rm\n.model rm R(r=2)", "model-value", 2, 11, ("R1",), "both state a resistance"),
    ("R1 a 0 1\n.control\nop\n alter r1=2\n.endc", "control", 5, 2, (), "it stands behind the first analysis"),
    ("R1 a 0 1\n.control\nrepeat 2\nalter r1=2\nend\n.endc", "control", 5, 1, (), "it stands in a loop or condition"),
    ("R1 a 0 1\n.control\nalter r9=2\n.endc", "control", 4, 1, (), "alter r9=2 of .control is not done"),
    ("R1 a 0 1\n.control\nalter r1 tc1=2\n.endc", "control", 4, 1, (), "alter r1 tc1=2 of .control is not done"),
    (".model m D\n.model M D(tt=1)\nD1 a 0 m", "redefined", 3, 8, ("M",), "the first one (line 2) counts"),
    (".subckt s a\nR1 a 0 1\n.ends t\nX1 a s", "subcircuit", 4, 7, (), ".ends t ends the sub-circuit s"),
    ("C1 0 a 5A", "atto", 2, 8, ("C1",), "5A is atto (1e-18) in SPICE"),
    ("V1 a 0", "no-value", 2, 6, ("V1",), "no DC value is given: 0 is taken (V1)"),
    (".model m D(is=1f ikr=2 jtun=3)\nD1 a 0 m", "unused-parameter", 2, 1, ("m",), "not used: ikr, jtun"),
    (".param a=1\n.param A=2\nR1 a 0 {a}", "redefined", 3, 8, (), "parameter 'a' is defined again"),
    (
        ".param q=2\n.subckt s a p=1 q=5\nR1 a 0 {p}\n.ends\nX1 n s p={2*q}",
        "parameter-scope",
        6,
        8,
        ("X1",),
        "X1: in p the caller's q is meant (2); ngspice may take that of s (5)",
    ),
    (".tran 1n 1u\nR1 a 0 1\nC1 a 0 1u", "tran", 2, 1, (), ".tran: C1 stores energy"),
    (".noise v(a) V1 dec 10 1 1k\nR1 a 0 1", "analysis", 2, 1, (), ".noise is left out: there is no noise analysis"),
    (".ac dec 10 1 1k\nR1 a 0 1", "ac", 2, 1, (), ".ac: circuitsim ac runs it"),
    (".ac data=t\nR1 a 0 1", "ac", 2, 1, (), ".ac data=… is not read"),
    (".noise v(a) V1 dec 1 1 1\nR1 a 0 1", "analysis", 2, 1, (), ".noise is left out: there is no noise analysis"),
    (".sens v(a) ac dec 1 1 1\nR1 a 0 1", "analysis", 2, 1, (), ".sens: only sensitivities of the operating point"),
]
NOTES = [
    ("R1 a 0 1 l=1u w=2u", "no-effect", 2, 12, ("R1",), "l has no effect"),
    ("C1 a 0 1 tce=1 l=2", "no-effect", 2, 14, ("C1",), "tce has no effect"),
    ("D1 a 0 temp=27", "no-effect", 2, 8, ("D1",), "temp has no effect"),
    ("D1 a 0 m 2\n.model m D", "no-effect", 2, 10, ("D1",), "area has no effect"),
    ("D1 a 0 2", "no-effect", 2, 8, ("D1",), "area has no effect"),
    ("D1 a 0 m off area=3\n.model m D", "no-effect", 2, 10, ("D1",), "off has no effect"),
    ("V1 a 0 DC 5 AC 1 90", "amplitude", 2, 13, ("V1",), "ac has no effect"),
    (".options reltol=1e-6\nR1 a 0 1", "no-effect", 2, 1, ("reltol",), ".options has no effect"),
    (".ic v(a)=3\nR1 a 0 1", "no-effect", 2, 1, (".ic",), ".ic has no effect"),
    (".control\nset x\n  foo\n.endc\nR1 a 0 1", "skipped", 4, 3, ("foo",), "foo in .control is not done"),
    (".control\nprint v(a) x\n.endc\nR1 a 0 1", "skipped", 3, 1, ("print",), "print of anything but v(), i(), @name[]"),
    ("R1 a 0 1\n.control\nalter r1=2\n.endc", "altered", 4, 1, ("r1 = 2",), "r1 = 2: alter in .control sets"),
    *(
        (f"{card} x\nR1 a 0 1", "no-effect", 2, 1, (card,), card)
        for card in (".nodeset", ".width", ".savebias", ".probe", ".meas", ".measure", ".four", ".csparam")
    ),
    (".option x\nR1 a 0 1", "no-effect", 2, 1, ("x",), ".option has no effect at the operating point (x)"),
]


def title(text: str) -> str:
    return f"a title\n{text}\n"


@pytest.mark.parametrize(
    ("text", "kind", "line", "column", "names", "message"), ERRORS, ids=[e[0][:40] for e in ERRORS]
)
def test_errors(text, kind, line, column, names, message):
    with pytest.raises(NetlistError) as caught:
        loads(title(text), file="my.cir")
    found = [p for p in caught.value.problems if message in p.message]
    assert found, [p.message for p in caught.value.problems]
    problem = found[0]
    assert (problem.kind, problem.location.file) == (kind, "my.cir")
    assert (problem.location.line, problem.location.column) == (line, column)
    assert problem.names == names
    assert problem.location.text == title(text).split("\n")[line - 1]


@pytest.mark.parametrize(
    ("text", "kind", "line", "column", "names", "message"), WARNINGS, ids=[e[0][:40] for e in WARNINGS]
)
def test_warnings(text, kind, line, column, names, message):
    deck = loads(title(text))
    (problem,) = deck.problems
    assert message in problem.message
    assert (problem.kind, problem.location.line, problem.location.column, problem.names) == (kind, line, column, names)
    assert problem in deck.circuit.notes


@pytest.mark.parametrize(("text", "kind", "line", "column", "names", "message"), NOTES, ids=[e[0][:40] for e in NOTES])
def test_notes(text, kind, line, column, names, message):
    deck = loads(title(text))
    problem = next(p for p in deck.notes if message in p.message)
    assert (problem.kind, problem.location.line, problem.location.column, problem.names) == (kind, line, column, names)
    assert not deck.problems


def test_all_problems_at_once_in_the_order_of_the_deck():
    lines = [f"R{k} a b 1 m=0" if k % 2 else f"S{k} a b c d m" for k in range(30)]
    with pytest.raises(NetlistError) as caught:
        loads("t\n" + "\n".join(lines))
    problems = caught.value.problems
    assert [p.location.line for p in problems] == list(range(2, 32))
    shown = str(caught.value)
    assert shown.count("my.cir") == 0 and shown.count("<deck>:") == 20
    assert shown.endswith("… and 10 more")


def test_text_of_an_error_points_at_the_word():
    with pytest.raises(NetlistError) as caught:
        loads("t\nR1 a\n\t+ b 1d5\n", file="my.cir")
    assert str(caught.value) == (
        "my.cir:3:6: '1d5' is not a number\n     + b 1d5\n         ^\n    hint: write the exponent with e: 1e5"
    )


def test_an_error_in_a_subcircuit_names_its_callers_once():
    text = "t\n.subckt in a r=1\nR1 a 0 1 m={r}\n.ends\n.subckt out a r=1\nXi a in r={r}\n.ends\n"
    text += "Xo n out r=-1\nXp n out r=-2\n"
    with pytest.raises(NetlistError) as caught:
        loads(text, file="f.cir")
    first, second = caught.value.problems
    assert first.location.callers == ("in Xo.Xi, called at f.cir:6:1", "in Xo, called at f.cir:8:1")
    assert second.location.callers == ("in Xp.Xi, called at f.cir:6:1", "in Xp, called at f.cir:9:1")
    assert first.names == ("Xo.Xi.R1",)


def test_an_error_in_a_parameter_says_where_it_was_used():
    with pytest.raises(NetlistError) as caught:
        loads("t\n.param a={1/0}\nR1 n 0 {a}\n", file="f.cir")
    problem = caught.value.problems[0]
    assert (problem.location.line, problem.location.column) == (2, 12)
    assert problem.location.callers == ("used at f.cir:3",)
    assert len(caught.value.problems) == 1


def test_the_first_line_is_never_a_card_but_one_that_looks_like_one_is_named():
    deck = loads("R1 a 0 1k\nR2 a 0 2k\n")
    assert list(deck.circuit.names) == ["R2"]
    (problem,) = deck.problems
    assert (problem.kind, problem.location.line) == ("title", 1)
    assert not loads("* R1 a 0 1k\nR2 a 0 2k\n").problems
    assert not loads("Resistor from a to b\nR2 a 0 2k\n").problems


@pytest.mark.parametrize("text", ["", "only a title", "t\n.op\n.end\n", "t\n* R1 a 0 1\n", "t\n.end\nR1 a 0 1\n"])
def test_a_deck_without_elements_is_refused(text):
    with pytest.raises(NetlistError, match="the deck has no elements") as caught:
        loads(text)
    assert caught.value.problems[0].kind == "empty"


def test_every_error_says_what_to_do_next():
    silent = set()
    for text, *_ in ERRORS:
        with pytest.raises(NetlistError) as caught:
            loads(title(text))
        silent |= {p.message for p in caught.value.problems if not p.hint}
    assert not silent
