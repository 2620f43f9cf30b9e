"""MNIST through digital stages, a deep resistive network, and a netlist with diodes between free nodes.

    python benchmarks/ffebm/hybrid.py --data-dir DIR --out benchmarks/results/ffebm

trains one chain by EP (both analog blocks are nudged, never differentiated) and by implicit differentiation, for
several seeds, and writes hybrid.md, hybrid.csv and hybrid.png. Runs that hybrid.csv holds are not repeated.
"""

from __future__ import annotations

import argparse
import csv
import io
import time
from pathlib import Path

import numpy as np

from circuitsim.datasets import load
from circuitsim.ffebm import BatchNorm, Chain, Chaining, Linear, Normalise, Readout, ResistiveBlock, Sweeps, build
from circuitsim.training import Adam, Cosine

COLUMNS = ("method", "seed", "accuracy", "loss", "residual", "conducting", "seconds", "samples", "epochs")


def netlist(size: int) -> str:
    """A ring of free nodes, each driven through a resistor and leaking to ground, with diodes between neighbours.

    The diodes point to every other node from both sides; all in one direction they would make one node of all.
    """
    lines = [f"ring of {size} free nodes with diodes between neighbours"]
    lines += ["*! input " + " ".join(f"V{k}" for k in range(size))]
    lines += ["*! output " + " ".join(f"v(n{k})" for k in range(size))]
    lines += ["*! trainable R* min=100 max=100k"]
    for k in range(size):
        after = (k + 1) % size
        lines += [f"V{k} s{k} 0 0", f"R{k} s{k} n{k} 1k", f"Rg{k} n{k} 0 2k", f"Rc{k} n{k} n{after} 4k"]
        lines += [f"D{k} n{k} n{after}" if k % 2 else f"D{k} n{after} n{k}"]
    return "\n".join(lines) + "\n"


def chain(method: str, seed: int, width: int = 64, ring: int = 12) -> Chain:
    """Digital, resistive, digital, netlist, digital."""
    elements = [
        Normalise(),
        Linear(784, width),
        BatchNorm(width),
        ResistiveBlock([width, width], inputs=width, leak=0.1, sweeps=Sweeps(8, 6)),
        BatchNorm(width),
        Linear(width, ring),
        BatchNorm(ring),
        build({"kind": "circuit", "deck": netlist(ring)}),
        BatchNorm(ring),
        Readout(ring, 10),
    ]
    return Chain(elements, chaining=Chaining(method, beta=0.01), seed=seed)


def run(method: str, seed: int, data, samples: int, epochs: int) -> tuple:  # type: ignore[type-arg, no-untyped-def]
    """One training; returns the values of `COLUMNS` from accuracy on."""
    made = chain(method, seed)
    began = time.process_time()
    made.fit(
        data.train[:samples],
        data.train_labels[:samples],
        epochs,
        batch=128,
        seed=seed,
        optimizer=Adam(made.rates(5e-3)),
        schedule=Cosine(epochs),
    )
    seconds = time.process_time() - began
    x = data.test[:512]
    for element in made.elements[:7]:
        x = element.forward(x)[0] if hasattr(element, "forward") else element.relax(x).output
    conducting = made.elements[7].relax(x).closed.mean()
    last = made.history.rows[-1]
    accuracy = 100 * made.score(data.test, data.test_labels)
    measured = round(accuracy, 3), last["loss"], last["residual"], round(float(conducting), 4), round(seconds, 1)
    return *measured, samples, epochs


def page(rows: list[dict[str, str]]) -> str:
    """The table."""
    made = chain("ep", 0)
    sizes = {type(e).__name__: sum(a.size for a in e.parameters.values()) for e in made.elements[3:8:4]}
    lines = [
        "# MNIST through digital stages, a resistive network and a netlist",
        "",
        "Normalise, linear 784→64, batch norm, **deep resistive network** 64-64-64 (voltage inputs), batch norm, "
        "linear 64→12, batch norm, **netlist**: 12 free nodes in a ring of diodes (certified operating "
        "points), batch norm, readout. Trainable values in the analog blocks: "
        f"{', '.join(f'{k} {v}' for k, v in sizes.items())}. {rows[0]['samples']} training images, {rows[0]['epochs']} "
        "epochs, batch 128, Adam 0.005 along a cosine. EP nudges both analog blocks; ID differentiates them exactly "
        "(adjoint).",
        "",
        "| gradients | seeds | test accuracy, % | diodes conducting | processor seconds |",
        "|---|---|---|---|---|",
    ]
    for method, name in (("ep", "EP"), ("implicit", "ID")):
        own = [row for row in rows if row["method"] == method]
        if own:
            values = np.array([float(row["accuracy"]) for row in own])
            spread = f" ± {values.std(ddof=1):.2f}" if len(own) > 1 else ""
            conducting = np.mean([float(row["conducting"]) for row in own])
            seconds = np.mean([float(row["seconds"]) for row in own])
            lines.append(f"| {name} | {len(own)} | {values.mean():.2f}{spread} | {conducting:.2f} | {seconds:.0f} |")
    return "\n".join([*lines, "", "![accuracy](hybrid.png)", ""])


def draw(rows: list[dict[str, str]], path: Path) -> None:
    """Accuracy of each run."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4, 3.2), layout="constrained")
    axes = figure.add_subplot()
    for place, method in enumerate(("ep", "implicit")):
        points = [float(row["accuracy"]) for row in rows if row["method"] == method]
        axes.plot([place] * len(points), points, "o", alpha=0.7)
    axes.set_xticks([0, 1], ["EP", "ID"])
    axes.set(xlim=(-0.5, 1.5), ylabel="test accuracy, %", title="digital + resistive + netlist")
    figure.savefig(path, dpi=120)


def main() -> None:
    """Train what is missing, write all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir")
    parser.add_argument("--out", default="benchmarks/results/ffebm")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--samples", type=int, default=60_000)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    directory = Path(args.out)
    directory.mkdir(parents=True, exist_ok=True)
    table = directory / "hybrid.csv"
    rows = list(csv.DictReader(table.read_text().splitlines())) if table.is_file() else []
    data = load("mnist", args.data_dir)
    for seed in range(args.seeds):
        for method in ("ep", "implicit"):
            if any((row["method"], int(row["seed"])) == (method, seed) for row in rows):
                continue
            values = (method, seed, *run(method, seed, data, args.samples, args.epochs))
            rows.append({name: str(value) for name, value in zip(COLUMNS, values, strict=True)})
            text = io.StringIO()
            writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
            table.write_text(text.getvalue(), encoding="utf-8")
            (directory / "hybrid.md").write_text(page(rows), encoding="utf-8")
            draw(rows, directory / "hybrid.png")
            print(values, flush=True)


if __name__ == "__main__":
    main()
