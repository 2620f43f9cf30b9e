"""``circuitsim train`` where a session shows too little: every method learns, killed runs, rules of one's own."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from circuitsim.cli import main

DECK = """a network with a diode between free nodes
*! input V1 V2
*! output v(out) v(p,q)
*! trainable R* min=10 max=100k
*! trainable Ib min=-5m max=5m
V1 a 0 1
V2 b 0 -1
Ib 0 q 0.1m
Ra a p 1k
Rb b p 3k
Rc p q 2k
Rd q 0 1k
Re q out 1k
Rf out a 2k
Rg out 0 1k
D1 p out
.model ideal D
.op
"""
CIRCUIT = "circuit net.cir --data data.csv --batch 4 --split 0.25"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(0).uniform(-2, 2, (12, 2))
    columns = np.column_stack([x, 0.3 * x[:, 0] + 0.1 * x[:, 1], 0.2 * x[:, 0]])
    np.savetxt("data.csv", columns, delimiter=",", header='V1,V2,v(out),"v(p,q)"', comments="")
    Path("net.cir").write_text(DECK)
    return tmp_path


def train(words: str) -> int:
    return main(["train", *words.split(), "--no-pictures"])


def rows_of(directory: Path) -> list[dict]:
    """The history without its clocks."""
    lines = (directory / "history.jsonl").read_text().splitlines()
    return [{name: x for name, x in json.loads(line).items() if not name.endswith("seconds")} for line in lines]


@pytest.mark.parametrize(
    ("words", "sides"),
    [
        ("--epochs 30", {"lower", "upper"}),
        ("--method coupled", set()),
        ("--method frequency", set()),
        ("--method agnostic --nudge resistor --optimizer sgd", set()),
        ("--method implicit --optimizer momentum", set()),
        ("--nudge resistor --variant positive --schedule cosine", {"lower"}),
        ("--nudge current --variant negative --schedule exponential", {"upper"}),
    ],
)
def test_every_method_learns(here: Path, words: str, sides: set[str]) -> None:
    assert train(f"{CIRCUIT} --epochs 12 --out run {words}") == 0
    rows = rows_of(here / "run")
    assert rows[-1]["loss"] < (0.2 if "30" in words else 0.9) * rows[0]["loss"]
    assert {name for name in ("lower", "upper") if name in rows[0]} == sides
    for row in rows:
        assert row.get("lower", 0.0) <= row["loss"] <= row.get("upper", np.inf)
        assert row["certificate"] <= 1e-9 and row["skipped"] == row["uncertified_fraction"] == 0


LONG = {
    f"{CIRCUIT} --epochs 200 --evaluate-every 10 --scatter 0.2 --seed 3": "trained.cir",
    "rbm --dataset diag --hidden 5 --batch 3 --epochs 3600 --evaluate-every 180 --k-max 4 --momentum 0.5 "
    "--persistent 3": "model.npz",
}


@pytest.mark.parametrize("words", LONG)
def test_killed_or_interrupted_and_resumed_it_is_the_same_run_bit_for_bit(here: Path, words: str) -> None:
    assert train(f"{words} --out whole") == 0
    script = "import sys; from circuitsim.cli import main; sys.exit(main())"
    for out, more in (("killed", ["--checkpoint-seconds", "0.05"]), ("stopped", [])):
        process = subprocess.Popen(
            [sys.executable, "-c", script, "train", *words.split(), "--no-pictures", "--out", out, *more],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "NUMBA_NUM_THREADS": "1"},
        )
        for path in [here / out / name for name in (*["checkpoint.npz"] * bool(more), "history.jsonl")]:
            while not (path.exists() and path.stat().st_size):
                assert process.poll() is None, process.communicate()
                time.sleep(0.01)
        process.send_signal(signal.SIGKILL if more else signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == (-signal.SIGKILL if more else 130), errors
        if not more:
            assert errors.startswith("interrupted after ")
            assert errors.endswith(f"saved in {out}; continue with circuitsim train resume --out {out}\n")
        assert 0 < len(rows_of(here / out)) < 20
        assert not (here / out / LONG[words]).exists()
        assert train(f"resume --out {out}") == 0
        assert rows_of(here / out) == rows_of(here / "whole")
        assert (here / out / LONG[words]).read_bytes() == (here / "whole" / LONG[words]).read_bytes()
        assert not list((here / out).glob("*.part"))


OWN = """from circuitsim.learning import ImplicitDifferentiation


class Mine:
    def estimate(self, problem):
        return ImplicitDifferentiation().estimate(problem)


rule, nothing = Mine(), 3
"""


LEARN = Path(__file__).parents[2] / "netlists" / "learn-divider"
DIVIDER = f"circuit {LEARN}.cir --data {LEARN}.csv"
OF_DIGITS = [f"{own} --dataset digits" for own in ("drn", "dhn --hidden 16", "ffebm --samples 256")]


@pytest.mark.parametrize("family", [*OF_DIGITS, DIVIDER], ids=lambda family: family.split()[0])
def test_rules_of_ones_own_train_what_built_in_ones_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], family: str
) -> None:
    pytest.importorskip("sklearn")
    (tmp_path / "rules_of_a_test.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    errors = []
    for method in ("implicit", "rules_of_a_test:Mine", "rules_of_a_test:rule"):
        out = tmp_path / str(len(errors))
        assert train(f"{family} --epochs 1 --method {method} --out {out}") == 0
        errors += [row.get("test_error", row["error"]) for row in rows_of(out)]
    assert errors[1] == errors[2] == pytest.approx(errors[0], abs=0.03 if family.startswith("drn") else 0.0)
    for method, message in (("nowhere:Mine", "No module named"), ("rules_of_a_test:nothing", "a method estimate")):
        assert train(f"{family} --method {method}") == 2
        assert message in capsys.readouterr().err


def test_a_run_continues_from_another_folder(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same as from its own; nor does it matter whether somebody reads its output."""
    assert train(f"{CIRCUIT} --epochs 4 --out whole") == train(f"{CIRCUIT} --epochs 2 --out run") == 0
    (here / "other").mkdir()
    monkeypatch.chdir(here / "other")
    assert main(["report", "../run", "--capacitance", "1p"]) == 0
    words = [sys.executable, "-m", "circuitsim", "train", "resume", "--out", "../run", "--epochs", "4"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline().startswith("a network")
        process.stdout.close()
    assert (here / "run/trained.cir").read_bytes() == (here / "whole/trained.cir").read_bytes()
