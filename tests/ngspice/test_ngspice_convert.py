"""ngspice gives the same on ``circuitsim convert --ngspice`` of a bundled deck as on the deck itself."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import circuitsim
from circuitsim.circuit.elements import DIODE
from circuitsim.cli import main

NETLISTS = Path(__file__).parents[2] / "netlists"
PROGRAM = shutil.which("ngspice")
OPTIONS = ".options gmin=1e-21 reltol=1e-6 abstol=1e-18 vntol=1e-9"
NOT_RUN = {
    "op-amps of circuitsim": ("amplifier-instrumentation", "amplifier-logarithm", "negative-resistance"),
    "other cards or files": ("first/amplifier", "first/diode", "first/linear", "frozen-descent", "step-load"),
    "a singular matrix, a step too small": ("floating-reference", "learn-ripple", "parallel-sources"),
}
"""Decks that ngspice does not run, by the reason. Ideal diodes are junction diodes there: decks that have them are
compared in `test_ngspice_decks`, with a model of their own."""


def compared() -> list[str]:
    """The decks without ideal diodes that ngspice runs."""
    left_out = {name for names in NOT_RUN.values() for name in names}
    paths = [*NETLISTS.glob("*.cir"), *NETLISTS.glob("first/*.cir")]
    names = sorted(path.relative_to(NETLISTS).with_suffix("").as_posix() for path in paths)
    return [name for name in names if name not in left_out and not ideal(name)]


def ideal(name: str) -> bool:
    """Whether a deck has diodes without a model of a junction."""
    circuit = circuitsim.load(NETLISTS / f"{name}.cir")
    return any(code == DIODE and k not in circuit.devices for k, code in enumerate(circuit.columns()[0]))


def vectors(folder: Path, text: str) -> list[tuple[str, dict[str, np.ndarray]]]:
    """What each analysis of a deck gives in ngspice, by plot."""
    body = re.sub(r"(?im)^\.end\s*$", "", text)
    (folder / "run.cir").write_text(f"{body}\n{OPTIONS}\n.end\n", encoding="utf-8")
    (folder / "run.raw").unlink(missing_ok=True)
    assert PROGRAM is not None
    subprocess.run(
        [PROGRAM, "-b", "-r", "run.raw", "run.cir"], cwd=folder, capture_output=True, timeout=60, check=False
    )
    data, found, place = (folder / "run.raw").read_bytes(), list[tuple[str, dict[str, np.ndarray]]](), 0
    while (begin := data.find(b"Binary:\n", place)) >= 0:
        head = data[place:begin].decode()
        names = re.findall(r"^\s*\d+\t(\S+)\t", head, re.MULTILINE)
        many = int(re.search(r"No. Points: (\d+)", head)[1])  # type: ignore[index]
        kind = np.complex128 if "complex" in head else np.float64
        values = np.frombuffer(data, kind, many * len(names), begin + 8).reshape(many, -1)
        plot = re.search(r"Plotname: (.*)", head)[1]  # type: ignore[index]
        found.append((plot, dict(zip(names, values.T))))
        place = begin + 8 + values.nbytes
    return found


@pytest.mark.skipif(PROGRAM is None, reason="ngspice is not installed")
@pytest.mark.parametrize("name", compared())
def test_the_converted_deck_is_the_deck(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(NETLISTS, tmp_path / "netlists")
    assert main(["convert", str(NETLISTS / f"{name}.cir"), "--ngspice"]) == 0
    folder = (tmp_path / "netlists" / name).parent
    own = vectors(folder, (NETLISTS / f"{name}.cir").read_text(encoding="utf-8"))
    converted = vectors(folder, capsys.readouterr().out)
    assert [plot for plot, _ in own] == [plot for plot, _ in converted] and own
    for (_, one), (_, other) in zip(own, converted):
        shared, axis = [key for key in one if key in other], next(iter(one))
        assert {key for key in one if key.startswith("v(")} <= set(shared)
        for key in shared:
            if key in ("time", "frequency"):
                continue
            there = np.interp(one["time"], other["time"], other[key]) if axis == "time" else other[key]
            near = (
                1e-6 if one[axis].size == other[axis].size else 1e-3
            )  # a source in series with a current: other steps
            assert np.abs(one[key] - there).max() <= near * max(np.abs(one[key]).max(), 1e-12), key
