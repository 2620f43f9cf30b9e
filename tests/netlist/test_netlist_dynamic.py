"""Couplings, charges and temperature of what stores energy; what is refused as it would be another deck."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from circuitsim import solve, transient
from circuitsim.errors import NetlistError
from circuitsim.netlist import loads
from circuitsim.time_domain import measure

DECK = """t
V1 in 0 DC 2 AC 1 PULSE(0 2 0 1u 1u 1m 2m)
R1 in a 50
{card}
R2 b 0 50
C1 b 0 1p
.ac dec 5 1 1k
.tran 10u 2m
.end
"""


@pytest.mark.parametrize(
    ("card", "said"),
    [
        ("T1 a 0 b 0 Z0=50 TD=1n", "T1 is a transmission line"),
        ("O1 a 0 b 0 loss\n.model loss LTRA(R=1 L=1u C=1n LEN=1)", "O1 is a lossy transmission line"),
        ("Y1 a 0 b 0 loss LEN=1\n.model loss TXL(R=1 L=1u C=1n)", "Y1 is a lossy transmission line"),
        ("U1 a b 0 loss L=1\n.model loss URC", "U1 is a distributed RC line"),
        ("E1 b 0 in 0 LAPLACE={1/(1+1m*s)}", "E1 has a LAPLACE transfer function"),
        ("I1 b 0 DC 1 TRNOISE(1m 1u 0 0)", r"I1: random waveforms \(TRNOISE\)"),
        ("I1 b 0 TRRANDOM(1 1m 0 1 2)", r"I1: random waveforms \(TRRANDOM\)"),
        ("X1 a b part\n.subckt part p q\nT1 p 0 q 0 Z0=50 TD=1n\n.ends", "T1 is a transmission line"),
    ],
)
def test_what_would_be_another_deck_is_refused_by_name(card: str, said: str) -> None:
    with pytest.raises(NetlistError, match=said):
        loads(DECK.format(card=card))


@pytest.mark.parametrize("card", [".noise v(b) V1 dec 10 1 1k", ".disto dec 10 1 1k", ".pz a 0 b 0 vol pz"])
def test_other_analyses_are_left_out_with_one_warning(card: str) -> None:
    deck = loads(DECK.format(card=f"R9 a b 1\n{card}"))
    (message,) = [problem.message for problem in deck.problems if problem.kind == "analysis"]
    assert "is left out" in message
    assert solve(deck).certificate.certified


@pytest.mark.ngspice
@pytest.mark.skipif(shutil.which("ngspice") is None, reason="ngspice is not installed")
def test_capacitances_and_inductances_over_temperature(tmp_path: Path) -> None:
    """Coefficients on cards and in models, scale: as ngspice."""
    cards = (
        "t\n.options temp=77\nV1 a 0 SIN(0 1 1k)\nR1 a b 1k\nC1 b 0 cm 100n\n.model cm C(tc1=2m tc2=1u)\n"
        "C2 b c 100n tc1=2m\n"
        "R2 c 0 1k tc1=1m\nL1 c d 10m tc1=-3m tc2=1u\nL2 d e lm 20m\n.model lm L(tc1=4m)\n"
        "R3 e 0 1k\nC3 e 0 10n scale=3\n"
    )
    measures = "meas tran x find v(b) at=0.74m\nmeas tran y find v(e) at=4.3m\n"
    control = f".control\ntran 1u 5m 0 0.2u\n{measures}.endc\n.end\n"
    (tmp_path / "deck.cir").write_text(cards + control)
    words = ["ngspice", "-b", str(tmp_path / "deck.cir")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    theirs = [float(line.split("=")[1]) for line in done.stdout.splitlines() if line[:2] in ("x ", "y ")]
    run = transient(loads(cards + ".tran 10u 5m\n.end\n"))
    ours = [measure(run, text).value for text in ("x FIND v(b) AT=0.74m", "y FIND v(e) AT=4.3m")]
    assert ours == pytest.approx(theirs, rel=1e-4) and len(theirs) == 2
