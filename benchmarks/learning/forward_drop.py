"""Digits by a network of real diodes: accuracy against the diodes' forward drop.

Usage: ``python benchmarks/learning/forward_drop.py [--epochs 8]``. The deck is ``netlists/learn-digits.cir`` with
its 20 ideal diodes as junction diodes whose drop at 1 A is 0.1 V to 1.6 V (IS = 1 A e^{−drop/VT}, N = 1). A quarter of
the samples is held out, the same for all drops. Trained with the diodes as they are; and, for comparison,
with ideal diodes and measured with real ones. Writes
``benchmarks/results/learning/forward_drop.md`` and ``docs/images/learning-forward-drop.png``.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from common import NETLISTS, ROOT, experiment, machine, write

import circuitsim
from circuitsim.training import Trainer

DROPS = (0.0, 0.1, 0.2, 0.4, 0.8, 1.6)
THERMAL = 0.02585
"""Thermal voltage at 27 °C, V."""


def deck(drop: float, folder: Path) -> str:
    """A file of the deck with diodes of this drop, V."""
    text = (NETLISTS / "learn-digits.cir").read_text(encoding="utf-8")
    if drop > 0.0:
        ideal, saturation = ".model circuitsim_ideal D(is=1e-12 n=0.01)", math.exp(-drop / THERMAL)
        text = text.replace(ideal, f".model real D(IS={saturation!r})").replace(" circuitsim_ideal\n", " real\n")
    path = folder / f"digits-{drop:g}.cir"
    path.write_text(text, encoding="utf-8")
    return str(path)


def most_current(made: Any) -> float:
    """The largest current of a diode over 64 samples, A."""
    circuit, x = made.trainable.block.trained(), made.data[0][:64]
    found = circuitsim.batched(circuit, made.trainable.block.roles.inputs).solve(x)
    return float(max(found.current(f"D{k}").max() for k in range(20)))


def trained(path: str, epochs: int) -> tuple[Any, Any, float]:
    """The experiment, trained, the rows of its history, and the largest current of a diode before."""
    made = experiment(path, data="digits", gain=4.0, split=0.25, scatter=0.3, epochs=epochs, method="implicit",
                      batch=16, seed=0)  # fmt: skip
    before = most_current(made)
    return made, Trainer(made.trainable, made.data, made.plan, made.evaluate).train().history.rows, before


def draw(rows: list[list[float]]) -> None:
    """Accuracy over drop."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 3.4), layout="constrained")
    axes = figure.add_subplot()
    drops = [row[0] for row in rows]
    axes.plot(drops, [row[1] for row in rows], marker="o", color="#b5367a", label="trained with these diodes")
    axes.plot(drops, [row[2] for row in rows], marker="s", linestyle="--", color="#2f6fb0",
              label="trained with ideal diodes")  # fmt: skip
    axes.set(xlabel="forward drop at 1 A, V", ylabel="held-out accuracy, %", title="Digits, 20 junction diodes")
    axes.legend(frameon=False)
    figure.savefig(ROOT / "docs" / "images" / "learning-forward-drop.png", dpi=110)


def main() -> None:
    """Train at each drop, measure, draw, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=8)
    epochs = parser.parse_args().epochs
    rows, lines, ideal = [], [], None
    with tempfile.TemporaryDirectory() as folder:
        for drop in DROPS:
            began = time.process_time()
            made, history, before = trained(deck(drop, Path(folder)), epochs)
            spent, block, last = time.process_time() - began, made.trainable.block, history[-1]
            ideal = dict(block.parameters) if ideal is None else ideal
            own = {name: theta.copy() for name, theta in block.parameters.items()}
            for name, theta in ideal.items():
                block.parameters[name][:] = theta
            carried = made.evaluate(np.random.default_rng(0))["test_error"]
            for name, theta in own.items():
                block.parameters[name][:] = theta
            rows.append([drop, 100.0 * (1.0 - last["test_error"]), 100.0 * (1.0 - carried)])
            worst = max(row["certificate"] for row in history)
            skipped = sum(row["uncertified_fraction"] for row in history) / len(history)
            lines.append(f"| {drop:g} | {rows[-1][1]:.1f} | {rows[-1][2]:.1f} | {before:.1e} | {worst:.1e} | "
                         f"{skipped:.1e} | {spent:.0f} |")  # fmt: skip
            print(lines[-1], flush=True)
    draw(rows)
    write("forward_drop.md", [
        "# Digits: accuracy against the diodes' forward drop", "",
        f"`python benchmarks/learning/forward_drop.py --epochs {epochs}`: `netlists/learn-digits.cir`, 20 diodes "
        "between free nodes, implicit differentiation, Adam, gain 4, batch 16, seed 0, a quarter held out. "
        f"{machine()}", "",
        "Drop at 1 A (0: ideal diodes); trained with ideal diodes: the same conductances for all rows.", "",
        "| drop, V | accuracy, % | trained with ideal diodes, % | most current of a diode before training, A "
        "| worst certificate | share uncertified | processor time, s |",
        "|--:|--:|--:|--:|--:|--:|--:|", *lines,
    ])  # fmt: skip


if __name__ == "__main__":
    main()
