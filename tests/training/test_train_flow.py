"""``circuitsim train`` from words to a trained model, for every family; stopped or killed and resumed, the same run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from circuitsim.cli import main
from circuitsim.cli.models import MODELS

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
BLOCK = """two inputs, a diode between free nodes
*! input V1 V2
*! output v(a) v(b)
*! trainable R* min=100 max=100k
V1 x 0 0
V2 y 0 0
R1 x a 1k
R2 y b 2k
R3 a 0 3k
R4 b 0 1.5k
D1 a b
"""
CHAIN = """
dataset = "digits"
batch = 64
lr = 5e-3
lr_final = 5e-3
samples = 256
elements = [
  { kind = "normalise" },
  { kind = "linear", inputs = 64, outputs = 12 },
  { kind = "batch-norm", channels = 12 },
  { kind = "deep-hopfield", layers = [12, 8], clamped = false, sweeps = { free = 10, nudged = 6 } },
  { kind = "linear", inputs = 8, outputs = 2 },
  { kind = "circuit", file = "block.cir" },
  { kind = "readout", inputs = 2, outputs = 10 },
]
"""


class Flow(NamedTuple):
    """A family's words, the first line of what it prints, its files, and an option with the value recorded."""

    words: str
    title: str
    files: tuple[str, ...]
    chosen: tuple[str, object]


NETWORK = ("model.npz",)
FLOWS = {
    "circuit": Flow(
        "circuit net.cir --data data.csv --batch 4 --split 0.25",
        "a network with a diode between free nodes: 2 inputs, 2 outputs, 8 trainable elements; "
        "ep, 9 samples, 3 held out",
        ("trained.cir", "conductances.png", "circuit.png"),
        ("split", 0.25),
    ),
    "drn": Flow(
        "drn --preset drn-xs --dataset digits --input-gain 30",
        "DRN-XS: layers 64-100-10, inputs doubled and times 30, ep, digits, 1437 samples",
        NETWORK,
        ("input_gain", 30.0),
    ),
    "dhn": Flow(
        "dhn --preset dhn-2h --dataset digits --hidden 24 --sweeps 12 --nudged-sweeps 8",
        "dhn-2h: 64-24-24-10, ep, 12 free and 8 nudged sweeps, 1437 samples of digits",
        NETWORK,
        ("beta", 0.2),
    ),
    "ffebm": Flow(
        "ffebm --config chain.toml",
        "ffebm: normalise, linear, batch-norm, deep-hopfield, linear, circuit, readout; ep, ",
        NETWORK,
        ("lr", 5e-3),
    ),
    "rbm": Flow(
        "rbm --dataset diag --hidden 5 --batch 3",
        "rbm: 6 visible and 5 hidden units, CD, k = 1, 7 samples",
        (*NETWORK, "filters.png", "samples.png"),
        ("k", 1),
    ),
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (12, 2))
    y = np.stack([0.3 * x[:, 0] + 0.1 * x[:, 1], 0.2 * x[:, 0]], axis=1)
    rows = "\n".join(",".join(map(repr, row)) for row in np.hstack([x, y]).tolist())
    texts = {"net.cir": DECK, "block.cir": BLOCK, "chain.toml": CHAIN}
    for name, text in {**texts, "data.csv": f'V1,V2,v(out),"v(p,q)"\n{rows}\n'}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def train(words: str, *more: str) -> int:
    return main(["train", *words.split(), *more])


def rows_of(directory: Path) -> list[dict]:
    """The history without its clocks."""
    lines = (directory / "history.jsonl").read_text().splitlines()
    return [{name: x for name, x in json.loads(line).items() if not name.endswith("seconds")} for line in lines]


def same(one: Path, other: Path) -> None:
    assert rows_of(one) == rows_of(other)
    for name in ("model.npz", "trained.cir"):
        assert not (one / name).exists() or (one / name).read_bytes() == (other / name).read_bytes()


@pytest.mark.parametrize("family", MODELS)
def test_a_run_leaves_all_behind_and_stopped_and_resumed_is_the_same(here: Path, family: str, capsys) -> None:
    flow = FLOWS[family]
    assert train(flow.words, "--epochs", "2", "--out", "whole") == 0
    shown = capsys.readouterr()
    assert shown.out.startswith(flow.title) and shown.err == ""
    assert "written to whole: " in shown.out and "history, checkpoint\n" in shown.out
    run = {".lock", "checkpoint.npz", "config.json", "history.csv", "history.jsonl", "learning.png"}
    assert {file.name for file in (here / "whole").iterdir()} == run | set(flow.files)
    assert all(file.read_bytes()[:4] == b"\x89PNG" for file in (here / "whole").glob("*.png"))
    config = json.loads((here / "whole/config.json").read_text())
    assert config["options"]["model"] == family and config["versions"]["numpy"]
    assert config["options"][flow.chosen[0]] == flow.chosen[1]
    assert [row["epoch"] for row in rows_of(here / "whole")] == [1, 2]
    assert train(flow.words, "--epochs", "1", "--no-pictures", "--out", "parts") == 0
    assert not list((here / "parts").glob("*.png"))
    for name in ("block.cir", "chain.toml"):
        (here / name).unlink()  # a chain's run holds its deck
    threads = ["--threads", "2"] if family == "drn" else []
    assert train("resume --out parts --epochs 2 --no-pictures", *threads) == 0
    assert "cosine" not in capsys.readouterr().err  # nor other software
    same(here / "parts", here / "whole")


@pytest.mark.parametrize("family", MODELS)
def test_without_out_nothing_is_written(here: Path, family: str) -> None:
    before = sorted(here.iterdir())
    assert train(FLOWS[family].words, "--epochs", "1") == 0
    assert sorted(here.iterdir()) == before


LONG = {
    "circuit": "--epochs 200 --evaluate-every 10 --scatter 0.2 --seed 3",
    "rbm": "--epochs 3600 --evaluate-every 180 --k-max 4 --momentum 0.5 --persistent 3",
}


@pytest.mark.parametrize("family", LONG)
def test_killed_or_interrupted_and_resumed_it_is_the_same_run_bit_for_bit(here: Path, family: str) -> None:
    words = [*FLOWS[family].words.split(), *LONG[family].split(), "--no-pictures", "--out"]
    assert main(["train", *words, "whole"]) == 0
    script = "import sys; from circuitsim.cli import main; sys.exit(main())"
    for out, more in (("killed", ["--checkpoint-seconds", "0.05"]), ("stopped", [])):
        process = subprocess.Popen(
            [sys.executable, "-c", script, "train", *words, out, *more],
            stdout=subprocess.PIPE,
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
        assert not (here / out / "model.npz").exists() and not (here / out / "trained.cir").exists()
        assert train(f"resume --out {out} --no-pictures") == 0
        same(here / out, here / "whole")
        assert not list((here / out).glob("*.part"))


OWN = """from circuitsim.learning import ImplicitDifferentiation


class Mine:
    def estimate(self, problem):
        return ImplicitDifferentiation().estimate(problem)


rule, nothing = Mine(), 3
"""


@pytest.mark.parametrize("words", ["drn", "dhn --hidden 16", "ffebm --samples 256"])
def test_rules_of_ones_own_train_what_built_in_ones_do(tmp_path, monkeypatch, capsys, words: str) -> None:
    pytest.importorskip("sklearn")
    (tmp_path / "rules_of_a_test.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    family, *more = words.split()
    errors = []
    for number, method in enumerate(("implicit", "rules_of_a_test:Mine", "rules_of_a_test:rule")):
        out = tmp_path / str(number)
        given = ["train", family, "--dataset", "digits", "--epochs", "1", "--method", method, "--out", str(out)]
        assert main([*given, *more, "--no-pictures"]) == 0
        errors.append(json.loads((out / "history.jsonl").read_text())["test_error"])
    assert errors[1] == errors[2] == pytest.approx(errors[0], abs=0.03 if family == "drn" else 0.0)
    for method, message in (("nowhere:Mine", "No module named"), ("rules_of_a_test:nothing", "a method estimate")):
        assert main(["train", family, "--dataset", "digits", "--method", method]) == 2
        assert message in capsys.readouterr().err
