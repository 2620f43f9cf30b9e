"""Fourier series of waveforms against closed forms and against ngspice's own ``.four``."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from circuitsim.cli import main
from circuitsim.errors import UsageError
from circuitsim.netlist import loads
from circuitsim.time_domain import Pulse, Sine, TransientResult, fourier, transient


def rectified(method: str = "exact", stop: float = 0.06) -> TransientResult:
    """10 V at 50 Hz, half-wave rectified into 1 kΩ; a square wave of 100 Hz and half a period."""
    circuit = loads("t\nV1 in 0 0\nD1 in out\nR1 out 0 1000\nV2 square 0 0\nR2 square 0 1\nC1 square 0 1e-09\n").circuit
    waves = {"V1": Sine(0.0, 10.0, 50.0), "V2": Pulse(-1.0, 1.0, 0.0, 0.0, 0.0, 5e-3, 10e-3)}
    return transient(circuit, stop, waves, {}, points=3, method=method)


@pytest.mark.parametrize(("method", "within"), [("exact", 1e-12), ("implicit", 2e-5)])
def test_half_waves_and_square_waves(method: str, within: float) -> None:
    run = rectified(method)
    found = fourier(run, "v(out)", 50.0, 20)
    assert found.mean == pytest.approx(10.0 / math.pi, abs=10 * within)
    exact = np.zeros(20)
    exact[0] = 5.0
    even = np.arange(2, 21, 2)
    exact[even - 1] = 20.0 / math.pi / (even**2 - 1)
    assert found.amplitude == pytest.approx(exact, abs=10 * within)
    assert found.phase[0] == pytest.approx(0.0, abs=1e3 * within)
    assert found.phase[even - 1] == pytest.approx(np.full(10, -90.0), abs=1e5 * within)
    assert found.distortion == pytest.approx(np.linalg.norm(exact[1:]) / 5.0, abs=within)
    square = fourier(run, "v(square)", 100.0, 7, 5)
    odd = np.arange(1, 8, 2)
    assert square.amplitude[odd - 1] == pytest.approx(4.0 / math.pi / odd, abs=within)
    assert square.amplitude[1::2] == pytest.approx(np.zeros(3), abs=within)
    assert fourier(run, "p(R1)", 50.0).mean == pytest.approx(100.0 / 4.0 / 1e3, abs=within)
    assert fourier(run, "{2*v(in)-1}", 50.0, 3, -1).amplitude == pytest.approx([20.0, 0.0, 0.0], abs=20 * within)


def test_what_is_refused() -> None:
    run = rectified(stop=0.03)
    for quantity, frequency, harmonics, periods, said in (
        ("v(none)", 50.0, 9, 1, "none"),
        ("v(in)", 0.0, 9, 1, "positive frequency"),
        ("v(in)", 50.0, 0, 1, "harmonics"),
        ("v(in)", 50.0, 9, 2, "has 1 periods"),
        ("v(in) v(out)", 50.0, 9, 1, "not one quantity"),
        ("v(in)", 50.0, 9, -2, "periods"),
    ):
        with pytest.raises(UsageError, match=said):
            fourier(run, quantity, frequency, harmonics, periods)


DECK = """clipped sine
.param f=1k
V1 in 0 SIN(0 2 1k)
R1 in out 1k
D1 out c DI
Vc c 0 1
C1 out 0 1n
.model DI D(IS=1e-14)
.tran 1u 5m 0 1u
.four {f} v(out) i(V1)
.end
"""


IDEAL = DECK.replace(".tran", ".options diodes=ideal\n.tran")


def test_cards_and_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "deck.cir", tmp_path / "out.json"
    path.write_text(IDEAL)
    assert main(["tran", str(path), "--output", str(out)]) == 0
    said = capsys.readouterr().err
    assert "v(out) at 1000 Hz: mean" in said and "total harmonic distortion" in said
    assert ".four" not in said
    stored = json.loads(out.read_text())["fourier"]
    assert [own["quantity"] for own in stored] == ["v(out)", "i(V1)"]
    exact = fourier(transient(loads(IDEAL, ideal_diodes=True)), "v(out)", 1e3)
    assert stored[0]["amplitude"] == exact.amplitude.tolist() and stored[0]["distortion"] == exact.distortion
    words = ["tran", str(path), "--fourier", "1k 3 2 v(out)", "--format", "csv"]
    assert main(words) == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[0] == "quantity,harmonic,frequency,amplitude,phase,of the first" and len(rows) == 5
    for more, text in (
        (["--fourier", "v(out)"], "write FREQUENCY"),
        (["--fourier", "10 v(out)"], "let it end later"),
        (["--fourier", "1k 2.5 v(out)"], "whole numbers"),
        (["--fourier", "1k v(out)", "--measure", "a MAX v(out)"], "one of them"),
        (["--fourier", "1k v(out)", "--vary", "R1=1k,2k"], "one run"),
    ):
        assert main(["tran", str(path), *more]) == 2
        assert text in capsys.readouterr().err
    path.write_text(IDEAL.replace("{f}", "10"))
    assert main(["tran", str(path)]) == 0
    assert "warning: .four is left out: the run of 0.005 s has 0 periods" in capsys.readouterr().err
    path.write_text(IDEAL)
    assert main(["tran", str(path), "--vary", "R1=1k,2k"]) == 0
    assert "left out of runs at several values" in capsys.readouterr().err
    steady = ["tran", str(path), "--steady", "--fourier", "1k 9 v(out)", "--format", "csv"]
    assert main(steady) == 0
    periodic = [float(row.split(",")[3]) for row in capsys.readouterr().out.splitlines()[2:]]
    assert periodic == pytest.approx(exact.amplitude.tolist(), abs=1e-9)


@pytest.mark.ngspice
@pytest.mark.skipif(shutil.which("ngspice") is None, reason="ngspice is not installed")
def test_against_ngspice(tmp_path: Path) -> None:
    """The last period, amplitudes and phases of sines: within its interpolation on 200 points."""
    path = tmp_path / "deck.cir"
    path.write_text(DECK.replace("{f}", "1k"))
    done = subprocess.run(["ngspice", "-b", str(path)], capture_output=True, text=True, check=False, timeout=60)
    lines = done.stdout.split("Fourier analysis for v(out)")[1].splitlines()
    rows = [[float(cell) for cell in line.split()] for line in lines if line[:2] in {f" {k}" for k in range(10)}][:10]
    ours = fourier(transient(loads(DECK)), "v(out)", 1e3)
    theirs = np.array(rows)
    assert ours.mean == pytest.approx(theirs[0, 2], abs=2e-3)
    assert ours.amplitude == pytest.approx(theirs[1:, 2], abs=2e-3)
    large = ours.amplitude > 0.05
    assert ours.phase[large] == pytest.approx(theirs[1:, 3][large], abs=0.5)
