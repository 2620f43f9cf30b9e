"""EP, coupled learning, frequency propagation, agnostic EP and implicit differentiation: same network, same data.

Usage: ``python benchmarks/learning/methods.py``. The Iris deck with target voltages, five seeds, Adam at the same rate
for all. Writes ``benchmarks/results/learning/methods.md``, ``methods.csv`` and ``docs/images/learning-methods.png``.
"""

from __future__ import annotations

import csv
import time
from typing import Any

import numpy as np
from common import RESULTS, ROOT, experiment, machine, train, write

SEEDS = range(5)
METHODS: dict[str, dict[str, Any]] = {
    "implicit": {"method": "implicit"},
    "EP, centred, constant current": {"method": "ep"},
    "EP, centred, resistor": {"method": "ep", "nudge": "resistor"},
    "EP, positive, resistor": {"method": "ep", "nudge": "resistor", "estimator": "positive"},
    "coupled learning": {"method": "coupled"},
    "frequency propagation": {"method": "frequency"},
    "agnostic EP": {"method": "agnostic", "nudge": "resistor"},
}
SHARED = {
    "data": "iris",
    "gain": 4.0,
    "loss": "squared",
    "low": -0.5,
    "high": 0.5,
    "split": 0.25,
    "scatter": 0.3,
    "epochs": 20,
    "batch": 10,
}


def main() -> None:
    """Run, draw and write."""
    curves: dict[str, list[list[dict[str, Any]]]] = {}
    seconds: dict[str, float] = {}
    for name, options in METHODS.items():
        begun = time.perf_counter()
        curves[name] = [train(experiment("learn-iris.cir", seed=seed, **SHARED, **options)) for seed in SEEDS]
        seconds[name] = (time.perf_counter() - begun) / len(SEEDS)
    RESULTS.mkdir(parents=True, exist_ok=True)
    with open(RESULTS / "methods.csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["method", "seed", "epoch", "loss", "error", "test_loss", "test_error"])
        for name, runs in curves.items():
            for seed, rows in zip(SEEDS, runs):
                for row in rows:
                    kept = [f"{row[k]:.6g}" for k in ("loss", "error", "test_loss", "test_error")]
                    writer.writerow([name, seed, row["epoch"], *kept])
    draw(curves)
    lines = [
        "# Five methods, one network, one data set",
        "",
        f"`netlists/learn-iris.cir`, {', '.join(f'{k} {v}' for k, v in SHARED.items())}, Adam at its default rate, "
        f"seeds {SEEDS.start} to {SEEDS.stop - 1}; mean ± deviation over the seeds after the last epoch.",
        "",
        "| method | training loss, V² | held-out loss, V² | held-out accuracy, % | steps skipped | s a seed |",
        "|---|---|---|---|---|---|",
    ]
    for name, runs in curves.items():
        last = [rows[-1] for rows in runs]

        def spread(key: str, scale: float = 1.0, shift: float = 0.0, last: list[Any] = last) -> str:
            values = [shift + scale * row[key] for row in last]
            return f"{np.mean(values):.4g} ± {np.std(values, ddof=1):.2g}"

        lines.append(
            f"| {name} | {spread('loss')} | {spread('test_loss')} | {spread('test_error', -100, 100)} | "
            f"{sum(row['skipped'] for row in last):.0f} | {seconds[name]:.1f} |"
        )
    write("methods.md", [*lines, "", machine()])


def draw(curves: dict[str, list[list[dict[str, Any]]]]) -> None:
    """Held-out loss over the epochs: the mean of the seeds, and their range."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes = figure.add_subplot()
    for k, (name, runs) in enumerate(curves.items()):
        epochs = [row["epoch"] for row in runs[0]]
        values = np.array([[row["test_loss"] for row in rows] for rows in runs])
        dashed = "--" if name == "implicit" else "-"
        axes.plot(epochs, values.mean(axis=0), dashed, label=name, color=f"C{k}", zorder=3 if dashed == "--" else 2)
        axes.fill_between(epochs, values.min(axis=0), values.max(axis=0), color=f"C{k}", alpha=0.1, linewidth=0)
    axes.set(xlabel="epochs", ylabel="held-out loss, V²", yscale="log", title="Iris on one deck, five seeds")
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(ROOT / "docs" / "images" / "learning-methods.png", dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
