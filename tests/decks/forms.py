"""What is read of the forms that SPICE programs write, found by reading an example of each: a table.

Each form has an example; what happens to it is what the reader says of a deck that holds it. Nothing in the table is
stated by hand but the example and the programs that write it. `python tests/decks/forms.py` writes it into its page,
docs/dialects.md.
"""

import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from circuitsim.errors import NetlistError

PROGRAMS = {"N": "ngspice", "L": "LTspice", "X": "Xyce", "P": "PSpice"}
"""Letters of the programs, as the examples name them."""

PAGE = Path(__file__).parents[2] / "docs" / "dialects.md"

BEGIN, END = "<!-- forms -->", "<!-- end of forms -->"
"""Markers of the table in a page."""

BASE = "Vbase in 0 5\nRbase in out 1k\nRload out 0 1k\n"
"""Elements that every example may use."""


class Outcome(Enum):
    """What the reader does with a form."""

    READ = "read"
    NOTED = "noted"
    APPROXIMATED = "approximated"
    REFUSED = "refused"


MEANING = {
    Outcome.READ: "acts as written",
    Outcome.NOTED: "accepted; a note says that it is ignored, or which value is used",
    Outcome.APPROXIMATED: "accepted; a warning says what is assumed or omitted",
    Outcome.REFUSED: "an error with its position and, where there is one, a replacement",
}


class Form(NamedTuple):
    """One form: letters of the programs that write it, cards that show it (with `BASE`), what the page shows."""

    programs: str
    cards: str
    shown: str = ""

    def outcome(self) -> Outcome:
        """What happens to a deck with these cards."""
        from circuitsim.netlist import loads

        try:
            deck = loads(f"a form\n{BASE}{self.cards}\n")
        except NetlistError:
            return Outcome.REFUSED
        if deck.problems:
            return Outcome.APPROXIMATED
        return Outcome.NOTED if deck.notes else Outcome.READ


def groups() -> Iterator[tuple[str, list[Form]]]:
    """The headings and forms of the text below."""
    for part in TEXT.strip().split("\n\n"):
        heading, *lines = part.split("\n")
        yield heading, [parsed(*line.split("  ", 1)) for line in lines]


def parsed(programs: str, text: str) -> Form:
    """A form of the text below.

    >>> parsed("N", "V1 a 0 «10A» // R1 a 0 1")
    Form(programs='N', cards='V1 a 0 10A\\nR1 a 0 1', shown='10A')
    """
    marked = re.findall("«(.*?)»", text) or [text.strip()]
    cards = re.sub("[«»]", "", text).strip().replace(" // ", "\n")
    return Form(programs.strip(), cards, "\n".join(marked).replace(" // ", "\n"))


def figure(outcomes: list[Outcome]) -> str:
    """The counts of all outcomes in a sentence.

    >>> figure([Outcome.READ, Outcome.READ, Outcome.REFUSED])
    '3 forms: 2 read, 0 noted, 0 approximated, 1 refused'
    """
    counts = ", ".join(f"{outcomes.count(outcome)} {outcome.value}" for outcome in Outcome)
    return f"{len(outcomes)} forms: {counts}"


def table() -> str:
    """The forms as a Markdown table, those of a group with the same outcome in one row, with a count before it."""
    lines = ["| outcome | forms |", "|---|---|"]
    outcomes = []
    for heading, forms in groups():
        cells: dict[Outcome, dict[str, None]] = {outcome: {} for outcome in Outcome}
        for form in forms:
            outcomes.append(form.outcome())
            shown = "` `".join(form.shown.replace("|", "\\|").split("\n"))
            letters = "" if set(form.programs) == set(PROGRAMS) else f"<sup>{form.programs}</sup>"
            cells[outcomes[-1]][f"`{shown}`{letters}"] = None
        lines.append(f"| **{heading}** | |")
        lines += [f"| {outcome.value} | {', '.join(cell)} |" for outcome, cell in cells.items() if cell]
    meaning = [f"- **{outcome.value}**: {text}." for outcome, text in MEANING.items()]
    return "\n".join([f"{figure(outcomes)}.", "", *meaning, "", *lines]) + "\n"


def replaced(page: str, table_: str) -> str:
    """``page`` with the text between its two markers replaced.

    Raises
    ------
    ValueError
        The markers are not there.
    """
    start, end = page.find(BEGIN), page.find(END)
    if start < 0 or end < start:
        raise ValueError(f"there is no {BEGIN} … {END}")
    return page[: start + len(BEGIN)] + "\n" + table_ + page[end:]


# Programs, two blanks or more, cards; // between cards; the page shows what stands between « and », or all of it.
TEXT = r"""
Values
NLXP  R1 in 0 «4.7k»
NLXP  R1 in 0 «2MEG»
NLXP  R1 in 0 «{2*3k}»
NLXP  «.param r=1k» // R1 in 0 «{r}»
N     R1 in 0 «'2*3k'»
N     .param r=1k // R1 in 0 «r»
L     R1 in 0 «2K2»
N     R1 in 0 «5M»
N     V1 a 0 «10A» // R1 a 0 1
X     «.global_param g=2» // R1 in 0 {g*1k}
NLX   «.func f(x) {x*2}» // R1 in 0 {f(1k)}
L     «.function f(x) {x*2}» // R1 in 0 {f(1k)}
N     «.param f(x)={x*2}» // R1 in 0 {f(1k)}
NLXP  R1 in 0 {1k*«sqrt(2)*max(1,2)»}
NLXP  R1 in 0 {«1>0?1k:2k»}
LXP   R1 in 0 {«if(1>0,1k,2k)»}
X     R1 in 0 «{1k*{2+1}}»
LX    R1 in 0 {«table(1,0,1k,2,3k)»}
X     R1 in 0 {«fmod(7k,4k)»}
X     R1 in 0 {1k*«EXP/PI»}
NLXP  R1 in 0 {1k*«(1+temp/100)»}
X     V1 a 0 «{VT}» // R1 a 0 1
NLXP  R1 in 0 {«gauss(1k,0.1,3)»}
NX    R1 in 0 {«limit(1k,50)»}
X     R1 in 0 {1k*(1+«rand()»/10)}
L     R1 in 0 {1k*(1+«rand(7)»/10)}
LX    R1 in 0 {1k*«(1&1|0)»}

Resistors, capacitors, inductors
NLXP  R1 in 0 1k «tc=0.01»
NXP   R1 in 0 rm 1k // «.model rm R(tc1=0.01)»
NX    R1 in 0 rm «L=10u W=1u» // .model rm R(«rsh=100»)
NL    R1 in 0 1k «temp=50»
N     R1 in 0 1k «dtemp=10»
NX    R1 in 0 1k «tce=1»
N     R1 in 0 1k «scale=2»
NL    R1 in 0 {«10*temper»}
NXP   R1 in 0 «rm 1k» // .model rm R(«r=2»)
NXP   C1 in 0 cm L=10u W=1u // «.model cm C(cj=1u)»
N     C1 in 0 «-1u»
L     R1 in 0 1k «tol=1 pwr=0.25»
L     R1 in 0 1k «noiseless»
NLXP  C1 in 0 1u «ic=2»
L     C1 in 0 1u «Rser=0.1 Lser=1n V=50 Irms=1»
L     C1 in 0 1u «Rpar=1MEG»
L     L1 in a 1m «Rser=0.1 Rpar=1k» // R1 a 0 1
NLXP  L1 in a 1m // L2 b 0 1m // «K1» L1 L2 0.9 // R1 a 0 1 // R2 b 0 1
NLXP  R1 in 0 «-1k»
NLX   R1 in 0 «R='v(out)*1k'»

Sources
NLXP  V1 a 0 «DC 5 AC 1» // R1 a 0 1
NLXP  V1 a 0 «SIN(0 1 1k)» // R1 a 0 1
N     .param f=1k // V1 a 0 «SIN(0 1 f)» // R1 a 0 1
N     V1 a 0 «SIN» // R1 a 0 1
NLXP  V1 a 0 «PULSE»(0 5 0 1n 1n 1u 2u) // R1 a 0 1
NLXP  V1 a 0 «EXP»(0 5 1u 1u) // R1 a 0 1
NLXP  V1 a 0 «PWL»(0 0 1m 5) // R1 a 0 1
N     V1 a 0 PWL(0 0 1m 5) «r=0 td=1m» // R1 a 0 1
NLXP  V1 a 0 «SFFM»(0 1 1k 2 100) // R1 a 0 1
N     V1 a 0 «AM»(1 1 1k 10k) // R1 a 0 1
N     V1 a 0 «AC SIN(0 1 1k)» // R1 a 0 1
N     V1 a 0 «TRNOISE»(1m 1u 0 0) // R1 a 0 1
N     V1 a 0 «TRRANDOM»(1 1m 0 1 2) // R1 a 0 1
L     V1 a 0 «SINE»(0 1 1k) // R1 a 0 1
L     V1 a 0 «SINE(0 1 1k 0 0 90 5)» // R1 a 0 1
L     V1 a 0 «PWL(0 0 +1m 5)» // R1 a 0 1
LX    V1 a 0 «PWL file=none.txt» // R1 a 0 1
L     V1 a 0 «PWL REPEAT FOREVER» (0 0 1m 5 2m 0) ENDREPEAT // R1 a 0 1
L     V1 a 0 «5 Rser=1 Cpar=1n» // R1 a 0 1
NLX   B1 a 0 «V={2*3}» // R1 a 0 1
L     B1 in 0 «R=1k»
NLX   B1 a 0 «V=2*v(in)» // R1 a 0 1
NLX   B1 a 0 «V=time*1k» // R1 a 0 1
NLX   B1 a 0 «V=2*v(out)» // R1 a 0 1
N     B1 a 0 «V=2*v(out) tc1=0.01» // R1 a 0 1
NLX   B1 a 0 «V={min(max(v(out),1),abs(i(Vbase)))}» // R1 a 0 1
L     B1 a 0 «V=limit(v(out),0,1)+uramp(v(in,out))» // R1 a 0 1
LX    B1 a 0 «I={table(v(out),0,0,1,1m)}» // R1 a 0 1
N     B1 a 0 «V=pwl(v(out),0,0,1,1,2,3)» // R1 a 0 1
NLX   B1 a 0 «V={v(out)*v(out)}» // R1 a 0 1
NLX   B1 a 0 «V={v(out)>1?2*v(out)-1:1}» // R1 a 0 1
LX    B1 a 0 «V={if(v(out)<0,0,v(out))}» // R1 a 0 1
NLX   B1 a 0 «V={v(out)>1?1:2}» // R1 a 0 1
X     B1 a 0 «V={spice_pulse(0,5,0,1u,1u,1m)}» // R1 a 0 1
X     B1 a 0 «V={tablefile("none.dat")}» // R1 a 0 1
NLXP  «E1 a 0 in 0 2» // R1 a 0 1
NLXP  «E1 a 0 out 0 2» // R1 a 0 1
NLXP  E1 a 0 «VALUE={v(in)*2}» // R1 a 0 1
NLXP  «G1» 0 a in 0 1m // R1 a 0 1
LP    E1 a 0 in 0 «LAPLACE={1/(1+1m*s)}» // R1 a 0 1
LP    E1 a 0 out 0 «LAPLACE={1/(1+1m*s)}» // R1 a 0 1
LXP   E1 a 0 «TABLE» {v(in)} = (0,0) (5,1) // R1 a 0 1
LXP   E1 a 0 «TABLE» {v(out)} = (0,0) (5,1) // R1 a 0 1
NLXP  E1 a 0 «POLY(1)» in 0 0 2 // R1 a 0 1
NLXP  «F1» a 0 Vbase 2 // R1 a 0 1
NLXP  «H1» a 0 Vbase 2 // R1 a 0 1

Diodes
NLXP  «D1 in a» // R1 a 0 1k
NLXP  D1 in a dm // «.model dm D» // R1 a 0 1k
NLXP  D1 in a dm // .model dm «D(is=1e-14 n=1.5 rs=1)» // R1 a 0 1k
NLXP  D1 in a dm // .model dm «D(is=1e-14 cjo=2p tt=10n)» // R1 a 0 1k
L     D1 in a dm // .model dm «D(ron=1 roff=1G vfwd=0.7)» // R1 a 0 1k
NLXP  «D1 in a dm 2» // .model dm D // R1 a 0 1k
NLXP  «D1 in a nomodel» // R1 a 0 1k

Sub-circuits
NLXP  «.subckt s a b r=1k» // R1 a b {r} // .ends // «X1 in 0 s r=2k»
LXP   .subckt s a b «params: r=1k» // R1 a b {r} // .ends // X1 in 0 s params: r=2k
NLXP  «.subckt s a // .ends other» // R1 in 0 1k
N     «.global vdd» // R1 vdd 0 1k // V1 vdd 0 1
NX    «X1 in 0 s m=2» // .subckt s a b // R1 a b 1k // .ends

Files
N     .include "none.inc"
NXP   .lib "none.lib" tt
L     .lib C:\LTC\lib\cmp\standard.dio
P     .lib NOM.LIB

Other elements
NLXP  «Q1» a b c npn
NLXP  «M1» a b c d nmos
NLXP  «J1» a b c njf
NLXP  «S1» in 0 out 0 sw // .model sw SW
NLXP  «W1» in 0 Vbase sw // .model sw CSW
NLXP  «T1» in 0 a 0 Z0=50 TD=1n // R1 a 0 1k
NL    «O1» in 0 a 0 lm // .model lm LTRA(R=1 L=1u C=1p LEN=2) // R1 a 0 1k
NLXP  «T1» in 0 a b Z0=50 TD=1n // R1 a b 1k
N     «Y1» in 0 a 0 ym LEN=2 // .model ym TXL(R=1 L=1n C=1p) // R1 a 0 1k
N     «U1» in a 0 um L=1 // .model um URC(rperl=1k) // R1 a 0 1k
N     «U1» in a 0 um L=1 // .model um URC(isperl=1p) // R1 a 0 1k
NLXP  «P1» a b 0 c d 0 pm
N     «A1» a b gain

Sweeps
NLXP  .dc Vbase 0 5 1
NLXP  .dc «Vbase 0 5 1 Vbase2 0 1 1» // Vbase2 a 0 1 // R1 a 0 1
NX    .dc Rload 1k 2k 1k
NXP   .dc temp 0 100 50
P     «.dc param r 1 2 1» // .param r=1 // R1 in 0 {r}
XP    .dc dec Vbase 1 100 1
LXP   .dc Vbase list 1 2 5
X     «.dc data=t» // .data t Rload 1k 2k .enddata
LP    «.step param r 1 3 1» // .param r=1 // R1 in 0 {r}
L     «.step param r list 1 2» // R1 in 0 {r}
L     «.step dec param r 1 100 1» // .param r=1 // R1 in 0 {r}
LX    .step Vbase 1 5 1
X     .step Rload:R 1k 2k 1k
X     .step Rload list 1k 2k
LXP   «.step RES rm(R) 1 3 1» // .model rm RES(R=1) // R1 a 0 rm 1k
LP    «.step D dm(vfwd) list 0.5 0.7» // .model dm D(vfwd=0.5) // D1 in a dm // R1 a 0 1
LXP   .step temp 0 100 50
X     «.step data=t» // «.data» t Rload 1k 2k .enddata
NP    .temp 0 27 100
NLXP  .tran 1u 1m
L     .tran 1m
L     «.tran 1m startup» // C1 in 0 1u
L     «.tran 1m steady nodiscard» // C1 in 0 1u
NLXP  «.tran 1u 1m» // «C1 in 0 1u»

Output
NLXP  .print dc v(out) i(Rload)
X     .print dc «FORMAT=CSV PRECISION=9» v(out) «{v(in)-v(out)}»
X     .print dc «v(*) i(*) Rload:R»
NP    .plot dc v(out) (0,5)
NL    .save v(out)
NLXP  .probe
NLX   «.measure» dc m max v(out)
NLP   «.four» 1k v(out)

Other cards
NLXP  .op
NLXP  «.model rm R(r=1) // .model rm R(r=2)» // R1 in 0 rm
NLXP  .options reltol=1e-4
NXP   .temp 50
NXP   .options temp=50
X     .options device temp=50
NLXP  .nodeset v(out)=2
NLXP  .ic v(out)=2
L     .savebias b.txt
L     .backanno
NLXP  .tf v(out) Vbase
NLX   .sens v(out)
NLXP  «.ac» dec 10 1 1k
NLXP  «.noise» v(out) Vbase dec 10 1 1k
P     «.mc» 100 dc v(out) ymax
N     «.if (1)» // R1 in 0 1 // .endif
N     «.subckt s a n=1 // .if (n == 2)» // R1 a 0 1k // .endif // .ends // X1 in s n=2
N     .csparam a=1

Inside .control
N     .control // «op» // «print v(out)» // .endc
N     .control // «dc Vbase 0 5 1» // «plot v(out)» // .endc
N     .control // «alter Rload = 2k // op» // .endc
N     .control // «let r = 2k» // alter Rload = r // run // .endc
N     .control // «set temp=50» // op // .endc
N     .control // «op // alter Rload = 2k» // op // .endc
N     .control // «set numdgt=15» // op // «write out.raw» // .endc
"""

if __name__ == "__main__":
    PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8"), table()), encoding="utf-8")
