"""Statements of other SPICE programs that are recognised but not simulated: refused with a reason, or accepted without
effect."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


def _rows(text: str) -> dict[str, str]:
    """A line for each name: the name, then what it is."""
    return {name: what.strip() for name, _, what in (line.partition(" ") for line in text.strip().splitlines())}


def _advised(text: str) -> dict[str, tuple[str, str]]:
    """A line for each name: the name, what it is, after a semicolon what to write instead."""
    return {name: (what, advice) for name, row in _rows(text).items() for what, _, advice in [row.partition("; ")]}


LINE_HINT = "write sections of R, L and C; for the operating point alone a resistor between its ends (0 Ω without loss)"
"""Hint for transmission lines."""

FOREIGN = _rows("""
a  an XSPICE code model
j  a transistor (JFET)
m  a transistor (MOSFET)
n  a Verilog-A device
q  a transistor (bipolar)
z  a transistor (MESFET)
""")
"""First letter → element with a model of its own kind; those of a deck are refused together."""

ELEMENTS = FOREIGN | _rows("""
o  a lossy transmission line
p  a coupled transmission line
t  a transmission line
u  a distributed RC line
y  a lossy transmission line
""")
"""First letter → kind of element that is refused."""

FOREIGN_HINT = (
    "simulate the deck with ngspice, or replace each by its operating-point equivalent: a resistor, an open circuit, a "
    "diode or a source"
)
"""Hint for such elements."""

NUMERICAL = ("NUMD", "NBJT", "NUMOS")
"""Types of the numerical models of ngspice (CIDER)."""

NUMERICAL_HINT = (
    "use ngspice built with CIDER, or state the diode's I–V curve: .model NAME D(IS=… N=… RS=…), or measured points: "
    ".model NAME PWL(v1 i1 v2 i2 …)"
)
"""Hint for elements with a numerical model."""

CARDS = _advised("""
.macro    sub-circuits begin with .subckt; write .subckt
.eom      sub-circuits end with .ends; write .ends
.connect  it would join nodes; write a resistor of 0 Ω
.alter    a deck is one circuit; use .step param, or a deck for each
""")

OVER_TIME = words(".ic .meas .measure .four .fourier")
"""Cards that affect transient analysis but not the operating point."""

OTHER_MEASUREMENTS = words("op tf noise sp pz fft hb")
"""Analyses whose measurements are not supported."""

NO_EFFECT = OVER_TIME | words(
    """.nodeset .width .probe .probe64 .csparam .backanno .title .protect .unprotect .prot .unprot .graph .savebias
    .loadbias .wave .net .watch .autoconverge .text .stmlib .dcvolt .result .preprocess"""
)
"""Cards without effect on the operating point."""

OPTIONS = words(".option .options .opt")
"""Spellings of the options card."""

BARE = words(".else .endif .control .endc .end .enddata")
"""Cards of one word."""

ANALYSES = words(".op .dc .step .tran .ac .temp .print .plot .save .tf .sens")
"""Cards of analyses and of outputs."""

OTHER_ANALYSES = _rows("""
.noise             noise
.disto             distortion
.pz                pole-zero
.sp                scattering-parameter
.pss               periodic-steady-state
.hb                harmonic-balance
.mc                Monte Carlo
.wcase             worst-case
.sampling          Monte Carlo
.embeddedsampling  Monte Carlo
.pce               polynomial-chaos
""")
"""Unsupported analyses; the operating point is solved instead."""

ADVICE = _rows("""
.mc     circuitsim montecarlo samples the deck's DEV, LOT and tol= tolerances
.wcase  circuitsim worst-case finds the extremes over the deck's DEV, LOT and tol= tolerances
""")
"""Commands for some of these."""

PRINTED = words("dc op tran ac noise disto tf pz sp hb sens es pce homotopy ac_ic")
"""Words after ``.print`` that name its analysis."""

INSTANCE = words("pj off ic scale ac noisy noiseless nt bv_max")
"""Words on an element's card without effect on the operating point of an ideal circuit."""

RATINGS = words("pwr irms vrms ipk mfg type pn cpar lser rlshunt load")
"""Attributes of R, L, C, V and I without effect (LTspice)."""

MODELS_IDLE = words("kf af lf wf ef bv_max noise level temp")
"""Parameters of the models of R, L, C, S and W without effect on any steady state."""

FORMULAS = _advised("""
q         a charge by a formula (Q=); write the capacitance near the operating point: C=1u
wavefile  a sound file; write times and values to a text file: PWL file=points.txt
flux      a flux by a formula (FLUX=); write the inductance near the operating point: L=1m
""")
"""Parameters of capacitors and inductors in LTspice and Xyce: their meaning, and what to write instead."""

_TRANSFER = "write it as R, C and controlled sources, or its gain at s = 0"
_FREQUENCY = "circuits are solved at DC: write its gain at zero frequency"
_LIMITS = "its output is not affine in its control: use the sub-circuit limited_opamp, or clamp with diodes"

SOURCES = _advised(f"""
laplace      a LAPLACE transfer function; {_TRANSFER}
freq         a table over frequency (FREQ); {_FREQUENCY}
foster       a FOSTER transfer function; {_TRANSFER}
pole         a POLE transfer function; {_TRANSFER}
chebyshev    a CHEBYSHEV filter; {_FREQUENCY}
delay        a DELAY element; circuits are solved at DC: write its gain
vcr          a voltage-controlled resistor (VCR); its current is a product of two voltages
vccap        a voltage-controlled capacitor (VCCAP); capacitors are open at the operating point: leave it out
transformer  a TRANSFORMER card; use the sub-circuit ideal_transformer, or an E and an F
pwl          a PWL function; {_LIMITS}
npwl         an NPWL function; {_LIMITS}
ppwl         a PPWL function; {_LIMITS}
and          a logic function; {_LIMITS}
or           a logic function; {_LIMITS}
nand         a logic function; {_LIMITS}
nor          a logic function; {_LIMITS}
""")
"""Keywords after the nodes of a controlled source: their meaning, and what to write instead."""

OF_SOURCES = {word: SOURCES[word] for word in ("laplace", "freq", "pwl")} | _advised(f"""
min    a limit (min); {_LIMITS}
max    a limit (max); {_LIMITS}
abs    an absolute value; {_LIMITS}
table  a TABLE without an expression; write TABLE {{v(a,b)}} = (x1,y1) (x2,y2) …
td     a delay (td); circuits are solved at DC: leave it out
""")
"""Further parameters of controlled sources: their meaning, and what to write instead."""
