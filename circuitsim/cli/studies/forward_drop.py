"""``circuitsim reproduce forward-drop``: digits by a network of junction diodes, over the drop of these."""

from __future__ import annotations

import argparse
import csv
import io
import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from circuitsim.cli.studies.runs import Case, run_cases, train_run, write_results
from circuitsim.cli.workers import add_workers
from circuitsim.errors import UsageError
from circuitsim.training.history import Row

DECK, IDEAL = "learn-digits.cir", ".model circuitsim_ideal D(is=1e-12 n=0.01)"
"""Bundled deck, and the card of its diodes."""

TITLES = {"digits": "Digits", "mnist": "MNIST"}
"""Of the data sets."""

DROPS, GAINS = "0,0.2,0.4,0.8", "4,16"
"""Forward drops at 1 A, V; factors of the inputs."""

THERMAL = 0.02585
"""Thermal voltage at 27 °C, V."""

BORDER, BLOCK, HELD_OUT = 2, 3, 2000
"""Pixels cut off around a picture of MNIST, side of the squares whose means remain (8 × 8 of them), and test images."""


class DropRun(NamedTuple):
    """One trained network: drop, V, factor of the inputs, its history, the largest current of a diode at the
    end, A, and its parameters."""

    drop: float
    gain: float
    history: list[Row]
    current: float
    numbers: dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the study."""
    parser.description = (
        "Train netlists/learn-digits.cir with its 20 diodes as junction diodes of several forward drops at 1 A "
        "(IS = 1 A e^(-drop/VT), N = 1; 0: ideal diodes), and measure the network trained with ideal diodes with them."
    )
    parser.add_argument("--drops", default=DROPS, metavar="LIST", help=f"forward drops at 1 A, V ({DROPS})")
    parser.add_argument("--gains", default=GAINS, metavar="LIST", help=f"factors of the inputs, V ({GAINS})")
    of_mnist = "digits, or MNIST as 8 × 8 means of 3 × 3 pixels, with 2,000 of its test images (digits)"
    parser.add_argument("--dataset", choices=["digits", "mnist"], default="digits", help=of_mnist)
    parser.add_argument("--data-dir", metavar="DIR", help="directory of data sets (docs/data.md)")
    parser.add_argument("--samples", type=int, default=4000, metavar="N", help="training images of MNIST (4000)")
    parser.add_argument("--epochs", type=int, default=4, metavar="N", help="passes over the samples (4)")
    parser.add_argument("--budget", type=float, metavar="MINUTES", help="stop training after so many minutes in all")
    parser.add_argument("--runs", metavar="DIR", help="store each run here, and continue stored ones")
    add_workers(parser, "this one")
    parser.add_argument("--out", metavar="DIR", help="write forward-drop.md, .csv and .png here, or forward-drop-mnist")


def run(args: argparse.Namespace) -> int:
    """Train, print the page, and write the requested files."""
    drops, gains = _numbers(args.drops, "--drops", 0.0), _numbers(args.gains, "--gains", 1e-3)
    with tempfile.TemporaryDirectory() as scratch:
        args.decks = scratch if args.runs is None else args.runs
        Path(args.decks).mkdir(parents=True, exist_ok=True)
        if args.dataset == "mnist":
            _write_mnist(args)
        found, interrupted = run_cases(_one, [(drop, gain) for gain in gains for drop in drops], args)
        results = [one for one in found if one is not None]
        if not results:
            raise UsageError("no network finished an epoch; give more time with --budget")
        carried = [_carried(one, results, args) for one in results]
    page = page_of(results, carried, args)
    print(page, end="")
    if args.out is not None:
        name = "forward-drop" if args.dataset == "digits" else f"forward-drop-{args.dataset}"
        write_results(Path(args.out), name, page, _table(results, carried))
        _draw(results, carried, Path(args.out) / f"{name}.png", TITLES[args.dataset])
        print(f"written to {args.out}: {name}.md, {name}.csv, {name}.png")
    return 130 if interrupted else 0


def _numbers(text: str, option: str, least: float) -> list[float]:
    """The numbers of a list."""
    try:
        found = [float(word) for word in text.split(",")]
    except ValueError:
        raise UsageError(f"{option} takes numbers with commas between them, not {text!r}") from None
    if not all(least <= number < 100.0 for number in found):
        raise UsageError(f"{option} takes numbers from {least:g} to 100, not {text}")
    return found


def deck(drop: float, folder: Path) -> str:
    """A file of the deck with diodes of this drop, V."""
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
    """Files of training images, drawn by chance, and of test images, for the 128 inputs of the deck."""
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


def _options(drop: float, gain: float, args: argparse.Namespace) -> dict[str, Any]:
    """What ``circuitsim train`` takes."""
    folder = Path(args.decks)
    data: dict[str, Any] = {"data": "digits", "split": 0.25}
    if args.dataset == "mnist":
        data = {"data": str(folder / "mnist-train.npz"), "test": str(folder / "mnist-test.npz")}
    return {
        "model": "circuit",
        "deck": deck(drop, folder),
        "gain": gain,
        "scatter": 0.3,
        "method": "implicit",
        "batch": 16,
        "seed": 0,
        **data,
    }


def _one(case: Case, late: Callable[[], bool]) -> DropRun | None:
    """One network, trained or continued; None without a finished epoch."""
    (drop, gain), args = case.key, case.args
    name, folder = f"drop-{drop:g}-gain-{gain:g}", None if args.runs is None else Path(args.runs)
    if late() and (folder is None or not (folder / name).exists()):
        return None
    made, _, history = train_run(name, _options(drop, gain, args), args.epochs, folder, late, case.shown)
    if not history:
        return None
    return DropRun(drop, gain, history, _most_current(made), _numbers_of(made))


def _numbers_of(made: Any) -> dict[str, Any]:
    """Copies of its parameters."""
    return {key: theta.copy() for key, theta in made.trainable.block.parameters.items()}


def _most_current(made: Any) -> float:
    """The largest current of a diode over 64 samples, A."""
    from circuitsim import batched

    block = made.trainable.block
    circuit = block.trained()
    found = batched(circuit, block.roles.inputs).solve(made.data[0][:64])
    return float(max(found.current(name).max() for name in circuit.names if name.startswith("D")))


def _carried(one: DropRun, results: list[DropRun], args: argparse.Namespace) -> float | None:
    """Held-out error of the network trained with ideal diodes and the same inputs, measured with the diodes of a run;
    None where that network is not among the results."""
    import numpy as np

    from circuitsim.cli.models import circuit as family
    from circuitsim.cli.train import new_options

    ideal = next((other for other in results if other.drop == 0.0 and other.gain == one.gain), None)
    if ideal is None:
        return None
    made: Any = family.build(new_options(_options(one.drop, one.gain, args)))
    for name, theta in made.trainable.block.parameters.items():
        theta[:] = ideal.numbers[name]
    return float(made.evaluate(np.random.default_rng(0))["test_error"])


# ---------------------------------------------------------------------- the page
def _rows(results: list[DropRun], carried: list[float | None]) -> list[tuple[Any, ...]]:
    """Gain, drop, epochs, accuracies, current, worst certificate, share of uncertified samples, seconds of each run."""
    return [
        (
            one.gain,
            one.drop,
            one.history[-1]["epoch"],
            100.0 * (1.0 - one.history[-1]["test_error"]),
            None if other is None else 100.0 * (1.0 - other),
            one.current,
            max(row["certificate"] for row in one.history),
            sum(row["uncertified_fraction"] for row in one.history) / len(one.history),
            one.history[-1]["seconds"],
        )
        for one, other in zip(results, carried)
    ]


def page_of(results: list[DropRun], carried: list[float | None], args: argparse.Namespace) -> str:
    """The results as a page."""
    more, held = "", "a quarter of the samples held out"
    if args.dataset == "mnist":
        more = f" --dataset mnist --samples {args.samples}"
        held = f"{args.samples} training images as 8 × 8 means, accuracy on {HELD_OUT} test images"
    for option, given, usual in (("drops", args.drops, DROPS), ("gains", args.gains, GAINS)):
        more += "" if given == usual else f" --{option} {given}"
    lines = [
        f"# {TITLES[args.dataset]}: accuracy against the diodes' forward drop",
        "",
        f"`circuitsim reproduce forward-drop{more} --epochs {args.epochs}`: `netlists/learn-digits.cir`, 20 diodes "
        f"between free nodes, implicit differentiation, Adam, batch 16, seed 0, {held}.",
        "",
        "Drop at 1 A (0: ideal diodes); trained with ideal diodes: the same conductances for all rows of a gain.",
        "",
        "| gain | drop, V | epochs | accuracy, % | trained with ideal diodes, % | most current of a diode, A "
        "| worst certificate | share uncertified |",
        "|--:" * 8 + "|",
    ]
    for gain, drop, epoch, own, other, current, worst, skipped, _ in _rows(results, carried):
        ideal = "–" if other is None else f"{other:.1f}"
        lines.append(
            f"| {gain:g} | {drop:g} | {epoch:g} | {own:.1f} | {ideal} | {current:.1e} | {worst:.1e} | {skipped:.1e} |"
        )
    return "\n".join([*lines, ""])


def _table(results: list[DropRun], carried: list[float | None]) -> str:
    """One row a run."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        ["gain", "drop", "epochs", "accuracy", "accuracy_of_ideal", "current", "certificate", "uncertified", "seconds"]
    )
    for row in _rows(results, carried):
        writer.writerow(["" if number is None else f"{number:.6g}" for number in row])
    return text.getvalue()


def _draw(results: list[DropRun], carried: list[float | None], path: Path, title: str) -> None:
    """Accuracy over drop."""
    from matplotlib.figure import Figure

    from circuitsim.training.curves import save_figure

    figure = Figure(figsize=(6.2, 3.6), layout="constrained")
    axes, rows = figure.add_subplot(), _rows(results, carried)
    for k, gain in enumerate(dict.fromkeys(row[0] for row in rows)):
        own = [row for row in rows if row[0] == gain]
        axes.plot(
            [row[1] for row in own],
            [row[3] for row in own],
            marker="o",
            color=f"C{k}",
            label=f"gain {gain:g}, trained with these diodes",
        )
        ideal = [(row[1], row[4]) for row in own if row[4] is not None]
        axes.plot(
            *zip(*ideal), marker="s", linestyle="--", color=f"C{k}", label=f"gain {gain:g}, trained with ideal diodes"
        )
    axes.set(xlabel="forward drop at 1 A, V", ylabel="held-out accuracy, %", title=f"{title}, 20 junction diodes")
    axes.legend(frameon=False, fontsize="small")
    save_figure(figure, path)
