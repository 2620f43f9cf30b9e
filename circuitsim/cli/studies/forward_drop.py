"""``circuitsim reproduce forward-drop``: digit recognition by a network of junction diodes, versus their forward
drop."""

from __future__ import annotations

import argparse
import io
import math
import tempfile
from pathlib import Path
from typing import Any

from circuitsim.cli.studies.runner import Key, Run, Study, spread
from circuitsim.errors import UsageError

DECK, IDEAL = "learn-digits.cir", ".model circuitsim_ideal D(is=1e-12 n=0.01)"
"""Bundled deck, and the card of its diodes."""

THERMAL = 0.02585
"""Thermal voltage at 27 °C, V."""

BORDER, BLOCK, HELD_OUT = 2, 3, 2000
"""Pixels cropped around MNIST images, side of the averaged squares (8 × 8 of them), and number of test images."""


class DropStudy(Study):
    """The study with the files that its runs need."""

    def run(self, args: argparse.Namespace) -> int:
        """Write the files, train, print the page, and write the requested files."""
        with tempfile.TemporaryDirectory() as scratch:
            args.decks = scratch if args.runs is None else args.runs
            Path(args.decks).mkdir(parents=True, exist_ok=True)
            if args.dataset == "mnist":
                _write_mnist(args)
            return Study.run(self._replace(name=_name(args)), args)


def _name(args: argparse.Namespace) -> str:
    return "forward-drop" if args.dataset == "digits" else f"forward-drop-{args.dataset}"


def deck(drop: float, folder: Path) -> str:
    """A file of the deck with diodes of this forward drop, V."""
    from circuitsim._bundled import netlists
    from circuitsim._files import atomic_write

    text = Path(netlists(), DECK).read_text(encoding="utf-8")
    if drop > 0.0:
        saturation = math.exp(-drop / THERMAL)
        text = text.replace(IDEAL, f".model real D(IS={saturation!r})").replace(" circuitsim_ideal\n", " real\n")
    path = folder / f"digits-{drop:g}.cir"
    atomic_write(path, text.encode())
    return str(path)


def _write_mnist(args: argparse.Namespace) -> None:
    """Write files of randomly chosen training images, and of test images, for the 128 inputs of the deck."""
    import numpy as np

    from circuitsim._files import atomic_write
    from circuitsim.datasets import load

    images = load("mnist", args.data_dir)
    if not 0 < args.samples <= len(images.train):
        raise UsageError(f"--samples takes 1 to {len(images.train)}, not {args.samples}")
    rows = np.random.default_rng(0).permutation(len(images.train))[: args.samples]
    sets = {
        "train": (images.train[rows], images.train_labels[rows]),
        "test": (images.test[:HELD_OUT], images.test_labels[:HELD_OUT]),
    }
    for name, (pixels, labels) in sets.items():
        file = io.BytesIO()
        np.savez(file, x=features(pixels, images.shape[0]), y=labels)
        atomic_write(Path(args.decks) / f"mnist-{name}.npz", file.getvalue())


def features(pixels: Any, side: int) -> Any:
    """Means of squares of pixels, 0 … 1, and their negatives (samples, 128), from images (samples, side²) of bytes."""
    import numpy as np

    inner = pixels.reshape(-1, side, side)[:, BORDER : side - BORDER, BORDER : side - BORDER] / 255.0
    count = (side - 2 * BORDER) // BLOCK
    means = inner.reshape(-1, count, BLOCK, count, BLOCK).mean(axis=(2, 4)).reshape(len(pixels), -1)
    return np.concatenate([means, -means], axis=1)


def _options(args: argparse.Namespace, key: Key) -> dict[str, Any]:
    folder = Path(args.decks)
    data: dict[str, Any] = {"data": "digits", "split": 0.25}
    if args.dataset == "mnist":
        data = {"data": str(folder / "mnist-train.npz"), "test": str(folder / "mnist-test.npz")}
    given = {"deck": deck(key["drop"], folder), "gain": key["gain"], "scatter": 0.3, "method": "implicit", "batch": 16}
    return {"model": "circuit", **given, **data}


def _measure(args: argparse.Namespace, key: Key, made: Any) -> dict[str, float]:
    """The largest current of a diode over 64 samples, A; of ideal diodes also the held-out error of the same
    conductances with the diodes of every other drop."""
    import numpy as np

    from circuitsim import batched
    from circuitsim.cli.train import experiment

    block = made.trainable.block
    circuit = block.trained()
    found = batched(circuit, block.roles.inputs).solve(made.data[0][:64])
    measures = {"current": float(max(found.current(name).max() for name in circuit.names if name.startswith("D")))}
    if key["drop"] > 0.0:
        return measures
    for word in args.drops.split(","):
        other: Any = experiment(**_options(args, {**key, "drop": float(word)}), seed=made.plan.seed)
        for name, theta in other.trainable.block.parameters.items():
            theta[:] = block.parameters[name]
        measures[f"error_at_{float(word):g}"] = float(other.evaluate(np.random.default_rng(0))["test_error"])
    return measures


def _cells(runs: list[Run], every: list[Run]) -> dict[str, str]:
    gain, name = runs[0].key["gain"], f"error_at_{runs[0].key['drop']:g}"
    ideal = [one.measures[name] for one in every if one.key["gain"] == gain and name in one.measures]
    rows = [row for run in runs for row in run.history]
    return {
        "accuracy, %": spread([100.0 - run.error for run in runs]),
        "trained with ideal diodes, %": spread([100.0 * (1.0 - error) for error in ideal]) if ideal else "–",
        "most current of a diode, A": f"{max(run.measures['current'] for run in runs):.1e}",
        "worst certificate": f"{max(row['certificate'] for row in rows):.1e}",
        "share uncertified": f"{sum(row['uncertified_fraction'] for row in rows) / len(rows):.1e}",
    }


FORWARD_DROP = DropStudy(
    "forward-drop",
    "Accuracy against the diodes' forward drop",
    f"`netlists/{DECK}` with its 20 diodes between free nodes as junction diodes of several forward drops at 1 A, V "
    "(IS = 1 A e^(-drop/VT), N = 1; 0: ideal diodes); implicit differentiation, Adam, batch 16; of digits a "
    f"quarter is held out, of MNIST {HELD_OUT} test images. Trained with ideal diodes: the same conductances for all "
    "drops of a gain.",
    {"gain": (4.0, 16.0), "drop": (0.0, 0.2, 0.4, 0.8)},
    _options,
    _cells,
    measure=_measure,
    more=f"""\
dataset NAME = digits {{digits mnist}}  digits, or mnist: \
8 × 8 means of 3 × 3 pixels, with {HELD_OUT} of its test images
samples N = 4000  training images of MNIST
epochs N = 4  passes over the data""",
    over="drop",
)
