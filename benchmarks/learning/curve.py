"""A network of diodes learns a curve of current over voltage: resistances, breakdown voltages and saturation currents.

Usage: ``python benchmarks/learning/curve.py``. The deck is ``netlists/learn-curve.cir``, the targets are 30 points
of 1 mA (v / 2 V)². The trained curve is measured by ``circuitsim curve`` between the points, too. Writes
``benchmarks/results/learning/curve.md`` and ``docs/images/learn-curve.png``.
"""

from __future__ import annotations

import numpy as np
from common import NETLISTS, ROOT, experiment, machine, train, write

from circuitsim import Circuit, curve

EPOCHS = 600
VOLTS = np.linspace(0.0, 3.0, 121)


def wanted(volts: np.ndarray) -> np.ndarray:
    """The curve to learn, A."""
    return 1e-3 * (volts / 2.0) ** 2


def measured(circuit: Circuit) -> np.ndarray:
    """The currents between the terminals, A."""
    return np.array(curve(circuit, ("in", "0"), VOLTS.tolist(), without=["I1"]).points["i"])


def draw(before: np.ndarray, after: np.ndarray) -> None:
    """Both curves over the one to learn."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 3.4), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(VOLTS, 1e3 * wanted(VOLTS), color="#8a919c", linewidth=5, alpha=0.5, label="to learn: 1 mA (v / 2 V)²")
    axes.plot(VOLTS, 1e3 * before, color="#2f6fb0", linestyle="--", label="before")
    axes.plot(VOLTS, 1e3 * after, color="#b5367a", label="after")
    axes.set(xlabel="voltage, V", ylabel="current, mA", title="Five diodes and six resistors learn a curve")
    axes.legend(frameon=False)
    figure.savefig(ROOT / "docs" / "images" / "learn-curve.png", dpi=110)


def main() -> None:
    """Train, measure, draw, write."""
    rows = []
    for method in ("implicit", "ep"):
        made = experiment(
            "learn-curve.cir",
            data=str(NETLISTS / "learn-curve.csv"),
            method=method,
            epochs=EPOCHS,
            batch=30,
            schedule="cosine",
            lr_device=0.1,
        )
        block = made.trainable.block
        start = measured(block.trained())
        last = train(made)[-1]
        end = measured(block.trained())
        off = [1e6 * float(np.sqrt(np.mean((i - wanted(VOLTS)) ** 2))) for i in (start, end)]
        worst = 1e6 * float(np.abs(end - wanted(VOLTS)).max())
        rows.append(
            f"| `{method}` | {1e3 * float(np.sqrt(last['error'])):.1f} | {off[0]:.0f} | {off[1]:.1f} | "
            f"{worst:.1f} | {last['certificate']:.1e} |"
        )
        if method == "implicit":
            draw(start, end)
    write(
        "curve.md",
        [
            "# A network of diodes learns a curve",
            "",
            f"`python benchmarks/learning/curve.py`: `netlists/learn-curve.cir`, {EPOCHS} updates of all 30 points "
            f"(2.5 µA to 2.25 mA). {machine()}",
            "",
            "Currents at 121 voltages from 0 to 3 V, by `circuitsim curve`, against 1 mA (v / 2 V)².",
            "",
            "| method | error of the points, mV (rms) | before, µA (rms) | after, µA (rms) | after, µA (most) "
            "| worst certificate |",
            "|---|--:|--:|--:|--:|--:|",
            *rows,
        ],
    )


if __name__ == "__main__":
    main()
