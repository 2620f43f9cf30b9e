"""``circuitsim reproduce split``: Nest & Ernoult (2024), Table 1: one network, cut into blocks of different sizes."""

from __future__ import annotations

import argparse
import csv
import io
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from circuitsim.cli.studies.runs import check_extent, published, write_results
from circuitsim.errors import UsageError

if TYPE_CHECKING:
    import numpy as np

#: (layers, block size) → accuracy % of EP and ID on CIFAR-10 in the paper.
PAPER = {
    (6, 6): (88.8, 87.3),
    (6, 3): (89.5, 89.2),
    (6, 2): (90.1, 90.0),
    (12, 4): (91.6, 91.6),
    (12, 3): (92.2, 92.2),
    (12, 2): (91.7, 91.8),
}
COLUMNS = ("layers", "block", "method", "seed", "accuracy", "residual", "seconds", "dataset", "epochs", "width")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the study."""
    parser.add_argument(
        "--size",
        choices=["small", "paper"],
        default="small",
        help="fully connected layers on digits or MNIST, or the published convolutional networks on CIFAR-10",
    )
    parser.add_argument("--dataset", choices=["digits", "mnist"], default="digits", help="of the small size (digits)")
    parser.add_argument("--data-dir", metavar="DIR", help="directory of data sets (docs/data.md)")
    parser.add_argument("--layers", type=int, nargs="+", default=[6, 12], metavar="L", help="depths (6 12)")
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="runs of each (3)")
    parser.add_argument("--epochs", type=int, metavar="N", help="passes over the data (digits 12, MNIST 5, paper 200)")
    parser.add_argument("--width", type=int, metavar="N", help="units of each layer of the small size (64, 100)")
    parser.add_argument("--out", metavar="DIR", help="write split.md, split.csv, split.png here; reuse finished runs")


def run(args: argparse.Namespace) -> int:
    """Train all, print the page, write the requested files."""
    from circuitsim.training import ProgressLine

    check_extent(args)
    cases = [
        (layers, block, method, seed)
        for seed in range(args.seeds)
        for layers in args.layers
        for (depth, block) in PAPER
        if depth == layers
        for method in ("ep", "bp")
    ]
    if not cases:
        raise UsageError(f"there are networks of 6 and of 12 layers, not of {', '.join(map(str, args.layers))}")
    directory = None if args.out is None else Path(args.out)
    rows = _done(directory, args)
    line = ProgressLine(sys.stderr, "split")
    data = _data(args)
    for number, case in enumerate(cases):
        line.update(number / len(cases), f"{case[0]} layers in blocks of {case[1]}, {case[2]}, seed {case[3]}")
        if case not in {tuple(row[name] for name in COLUMNS[:4]) for row in rows}:
            rows.append(dict(zip(COLUMNS, (*case, *_train(args, data, case)), strict=True)))
            _write(directory, rows, _page(args, rows))
    line.close()
    page = _page(args, rows)
    print(page, end="")
    if directory is not None:
        _write(directory, rows, page)
        _draw(rows, directory / "split.png")
        print(f"written to {directory}: split.md, split.csv, split.png")
    return 0


def _epochs(args: argparse.Namespace) -> int:
    defaults = {"paper": 200, "digits": 12, "mnist": 5}
    return args.epochs if args.epochs is not None else defaults["paper" if args.size == "paper" else args.dataset]


def _width(args: argparse.Namespace) -> int:
    """Units of a layer; those of the published networks are what they are."""
    if args.size == "paper":
        return 0
    return args.width if args.width is not None else {"digits": 64, "mnist": 100}[args.dataset]


def _data(args: argparse.Namespace) -> Any:
    if args.size == "paper":
        from circuitsim.datasets.colour import load_colour

        return load_colour("cifar10", args.data_dir)
    from circuitsim.datasets import load

    return load(args.dataset, args.data_dir)


def _train(args: argparse.Namespace, data: Any, case: tuple[int, int, str, int]) -> tuple[Any, ...]:
    """One run: accuracy %, residual of the last epoch, processor seconds, and what it was."""
    from circuitsim.training import Adam

    layers, block, method, seed = case
    chain, batch, rate, final, decay = _chain(args, data, layers, block, method, seed)
    from circuitsim.training import Cosine

    epochs = _epochs(args)
    began = time.process_time()
    chain.fit(
        data.train,
        data.train_labels,
        epochs,
        batch,
        seed=seed,
        optimizer=Adam(rate, decay=decay),
        schedule=Cosine(max(1, epochs), final / rate),
        evaluate_every=max(1, epochs),
    )
    seconds = time.process_time() - began
    accuracy = 100 * chain.score(data.test, data.test_labels)
    residual = chain.history.rows[-1]["residual"]
    return round(accuracy, 3), float(f"{residual:.3g}"), round(seconds, 1), data.name, epochs, _width(args)


def _chain(args: argparse.Namespace, data: Any, layers: int, block: int, method: str, seed: int) -> tuple[Any, ...]:
    """The cut network, and how it is trained: batch, rate, final rate, weight decay."""
    from circuitsim.datasets.augment import FlipAndCrop
    from circuitsim.ffebm.architectures import LayerSizes, preset
    from circuitsim.ffebm.description import build_chain

    if args.size == "paper":
        options = preset(f"l{layers}-bs{block}")
        rule = {"method": method, "beta": 0.2, "last": "elastic", "scale_errors": False}
        chain = build_chain(options["elements"], chaining=rule, seed=seed)
        chain.augment = FlipAndCrop((32, 32, 3))
        return chain, options["batch"], options["lr"], options["lr_final"], 3e-4
    # The readout's input is normalised: deep inside a block signals are small. Units of slope one half and
    # small steps keep couplings weak: sweeps converge faster than at slope 1, and accuracy is higher (docs/ffebm.md).
    network = LayerSizes(
        dense=[_width(args)] * layers,
        activation="laborieux",
        spread=0.6,
        readout_norm=True,
        free=12,
        nudged=8,
        batch_norm="first" if layers == 6 else "all",
    )
    elements = network.cut((data.train.shape[1],), [block] * (layers // block), 10)
    chain = build_chain(elements, chaining={"method": method}, seed=seed)
    return chain, 32 if data.name == "digits" else 128, 1e-3, 0.0, 0.0


def _done(directory: Path | None, args: argparse.Namespace) -> list[dict[str, Any]]:
    """Runs that an earlier call has written, if they are of the same kind."""
    if directory is None or not (directory / "split.csv").is_file():
        return []
    with open(directory / "split.csv", encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    kinds = (int, int, str, int, float, float, float, str, int, int)
    try:
        rows = [{name: kind(row[name]) for name, kind in zip(COLUMNS, kinds, strict=True)} for row in found]
    except (KeyError, TypeError, ValueError) as problem:
        raise UsageError(f"{directory / 'split.csv'} is not of this study ({problem}); choose another --out") from None
    wanted = ("cifar10" if args.size == "paper" else args.dataset, _epochs(args), _width(args))
    if any((row["dataset"], row["epochs"], row["width"]) != wanted for row in rows):
        raise UsageError(f"{directory} holds runs of another data set, width or number of epochs; choose another --out")
    return rows


def _write(directory: Path | None, rows: Sequence[dict[str, Any]], page: str) -> None:
    """Table and page of what is done so far."""
    if directory is None:
        return
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_results(directory, "split", page, text.getvalue())


def _page(args: argparse.Namespace, rows: Sequence[dict[str, Any]]) -> str:
    """Accuracy of EP beside ID, and processor time."""
    import numpy as np

    first = rows[0]
    network = (
        f"fully connected layers of {first['width']} units, laborieux, batch normalisation before the first block (of "
        "6 layers) or every block (of 12) and before the readout"
        if args.size == "small"
        else "the published networks"
    )
    lines = [
        "# One network, cut into blocks",
        "",
        f"{first['dataset']}, {network}, {first['epochs']} epoch{'s' * (first['epochs'] > 1)}. Test accuracy in "
        "percent, mean ± deviation over seeds; seconds of processor time of one run. The paper's "
        "figures (Nest & Ernoult 2024, Table 1) are of the published networks on CIFAR-10; none stands beside another "
        "run (–).",
        "",
        "| layers | in blocks of | seeds | EP | ID | EP − ID | EP, s | ID, s | paper EP | paper ID |",
        "|---" * 10 + "|",
    ]
    for (layers, block), paper in PAPER.items():
        own = {
            method: [row for row in rows if (row["layers"], row["block"], row["method"]) == (layers, block, method)]
            for method in ("ep", "bp")
        }
        if not (own["ep"] and own["bp"]):
            continue
        values = {method: np.array([row["accuracy"] for row in found]) for method, found in own.items()}
        seconds = {method: np.mean([row["seconds"] for row in found]) for method, found in own.items()}
        cells = [_spread(v) for v in values.values()]
        lines.append(
            f"| {layers} | {block} | {len(values['ep'])} | {cells[0]} | {cells[1]} | "
            f"{values['ep'].mean() - values['bp'].mean():+.2f} | {seconds['ep']:.3g} | {seconds['bp']:.3g} | "
            f"{' | '.join(published([str(value) for value in paper], args.size == 'paper'))} |"
        )
    least = min(row["accuracy"] for row in rows)
    return "\n".join([*lines, "", f"least accuracy of a run: {least:.2f} %", ""])


def _spread(values: np.ndarray) -> str:
    """Mean ± deviation; of one run its value."""
    mean = f"{values.mean():.2f}"
    return mean if values.size == 1 else f"{mean} ± {values.std(ddof=1):.2f}"


def _draw(rows: Sequence[dict[str, Any]], path: Path) -> None:
    from matplotlib.figure import Figure

    from circuitsim.training.curves import save_figure

    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.add_subplot()
    cases = [case for case in PAPER if any((row["layers"], row["block"]) == case for row in rows)]
    for shift, method, marker in ((-0.12, "ep", "o"), (0.12, "bp", "s")):
        points = [
            (place + shift, row["accuracy"])
            for place, case in enumerate(cases)
            for row in rows
            if (row["layers"], row["block"], row["method"]) == (*case, method)
        ]
        axes.plot(*zip(*points, strict=True), marker, label={"ep": "EP", "bp": "ID"}[method], alpha=0.7)
    axes.set_xticks(range(len(cases)), [f"{layers} in {block}s" for layers, block in cases])
    axes.set(ylabel="test accuracy, %", xlabel="layers in blocks of")
    axes.legend(frameon=False)
    save_figure(figure, path)
