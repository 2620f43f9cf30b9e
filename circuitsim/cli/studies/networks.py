"""Tables of networks on images: Scellier (2024), Tables 1 and 3; Nest & Ernoult (2024), Tables 1 and 2."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from statistics import fmean, median
from typing import Any

from circuitsim.cli.studies.runner import Key, Run, Study, published, spread

MNIST = "The paper's figures are of MNIST; none stands beside a run on other data (–)."


def _dataset(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dataset", metavar="NAME", help="mnist, digits or a folder (docs/models.md)")


def _on_mnist(runs: list[Run]) -> bool:
    return all(run.dataset == "mnist" for run in runs)


def _preset(key: Key) -> Any:
    """The published model of a point of tables 1 and 3."""
    if key.get("model") == "dhn":
        from circuitsim.hopfield import published_models as hopfield_models

        return hopfield_models()[f"dhn-{key['row']}"]
    from circuitsim.layered.architecture import published_models

    return published_models()[f"drn-{key['row']}"]


def _paper_error(key: Key) -> tuple[float, float]:
    """The paper's test error of tables 1 and 3, %, and its deviation."""
    preset = _preset(key)
    if key.get("model") == "dhn":
        return preset.error, preset.spread
    paper = preset.published[key.get("method", "ep")]
    return paper["error"], paper["spread"]


def _figure(args: argparse.Namespace, run: Run) -> float | None:
    return _paper_error(run.key)[0] if _on_mnist([run]) else None


def _training_error(runs: list[Run]) -> str:
    return spread([100.0 * run.history[-1]["error"] for run in runs])


# ---------------------------------------------------------------------- Scellier, Table 1
def _threads(parser: argparse.ArgumentParser) -> None:
    _dataset(parser)
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="threads; they change no bit (1)")


def _drn(args: argparse.Namespace, key: Key) -> dict[str, Any]:
    return {
        "model": "drn",
        "preset": f"drn-{key['row']}",
        "method": key["method"],
        "threads": args.threads,
        "dataset": args.dataset,
        "data_dir": args.data_dir,
    }


def _epoch_seconds(run: Run) -> Iterator[float]:
    """Seconds of training alone, an epoch."""
    before = 0.0
    for row in run.history:
        yield float(row["train_seconds"]) / (row["epoch"] - before)
        before = row["epoch"]


def _table1_cells(args: argparse.Namespace, runs: list[Run], every: list[Run]) -> dict[str, str]:
    key, preset = runs[0].key, _preset(runs[0].key)
    ours = median(seconds for run in runs for seconds in _epoch_seconds(run))
    theirs = 3600.0 * preset.published[key["method"]]["hours"] / preset.epochs
    error, deviation = _paper_error(key)
    figures = {"paper: test error, %": f"{error:.2f} ± {deviation:.2f}", "paper: s per epoch (A100)": f"{theirs:.0f}"}
    return {
        "here: test error, %": spread([run.error for run in runs]),
        "training error, %": _training_error(runs),
        "here: s per epoch": f"{ours:.3g}",
        **published({**figures, "paper / here": f"{theirs / ours:.3g}"}, _on_mnist(runs)),
    }


TABLE1 = Study(
    "table1",
    "Deep resistive networks, Table 1",
    "After Scellier (2024), Table 1: mini-batches of 4, exact block coordinate descent, centred equilibrium "
    "propagation (ep) or backpropagation through the last sweeps (bp). Errors are those after the last epoch trained. "
    + MNIST,
    {"row": ("xs", "xl", "1h", "2h", "3h"), "method": ("ep", "bp")},
    _drn,
    _table1_cells,
    _figure,
    seeds=5,
    usual={"method": "ep"},
    more=_threads,
)


# ---------------------------------------------------------------------- Scellier, Table 3
SHARE, LIMIT, IMAGES = 1e-3, 400, 500
"""Share of each layer's largest value within which a state counts as converged; most sweeps; test images."""


def _tolerance(parser: argparse.ArgumentParser) -> None:
    _dataset(parser)
    parser.add_argument("--tolerance", type=float, metavar="R", help="end a phase of dhn when no unit moves by more")


def _either(args: argparse.Namespace, key: Key) -> dict[str, Any]:
    model = key["model"]
    tolerance = {"tolerance": args.tolerance} if model == "dhn" else {}
    data = {"dataset": args.dataset, "data_dir": args.data_dir}
    return {"model": model, "preset": f"{model}-{key['row']}", **data, **tolerance}


def _convergence(args: argparse.Namespace, key: Key, experiment: Any) -> dict[str, float]:
    """Sweeps to convergence of test images: from zero, and nudged by +β from the free state."""
    import numpy as np

    from circuitsim.hopfield import convergence

    net, test = experiment.trainable, experiment.evaluate
    block, beta = (net.block, net.rule.beta) if key["model"] == "dhn" else (net.network(), net.learning.beta)
    dtype = block.parameters["bias1"].dtype
    x, targets = (test.images[:IMAGES] / 255).astype(dtype), np.eye(block.n_outputs, dtype=dtype)[test.labels[:IMAGES]]
    found = convergence.phases(block, x, targets, beta, SHARE, LIMIT)
    return {
        f"convergence_sweeps_{state}_{of}": float(measure(sweeps))
        for state, sweeps in zip(("free", "nudged"), found)
        for of, measure in (("median", np.median), ("max", np.max))
    }


def _table3_cells(args: argparse.Namespace, runs: list[Run], every: list[Run]) -> dict[str, str]:
    preset = _preset(runs[0].key)
    sweeps = preset if runs[0].key["model"] == "dhn" else preset.learning
    error, deviation = _paper_error(runs[0].key)
    columns = {
        f"sweeps, {state}": f"{median(run.measures[f'convergence_sweeps_{state}_median'] for run in runs):g}, "
        f"{max(run.measures[f'convergence_sweeps_{state}_max'] for run in runs):g}"
        for state in ("free", "nudged")
    }
    return {
        "T, K": f"{sweeps.sweeps}, {sweeps.nudged_sweeps}",
        **published({"paper: test error, %": f"{error:.2f} ± {deviation:.2f}"}, _on_mnist(runs)),
        "here: test error, %": spread([run.error for run in runs]),
        "training error, %": _training_error(runs),
        **columns,
    }


TABLE3 = Study(
    "table3",
    "Resistive and Hopfield networks of the same size",
    "After Scellier (2024), Table 3: centred equilibrium propagation, exact block coordinate descent with T free and K "
    "nudged sweeps. The last columns have the sweeps to convergence, median and largest over "
    f"{IMAGES} test images, until no unit is farther from its final value than {SHARE:g} of the largest value in its "
    f"layer: free from zero, nudged by +β from the free state; {LIMIT} stands for {LIMIT} and more. " + MNIST,
    {"row": ("1h", "2h", "3h"), "model": ("drn", "dhn")},
    _either,
    _table3_cells,
    _figure,
    measure=_convergence,
    more=_tolerance,
)


# ---------------------------------------------------------------------- Nest & Ernoult, Table 2
NARROW = {"paper": 1, "small": 16}
"""Size → what the published numbers of channels are divided by."""

TABLE2_FIGURES = {
    ("cifar100", 12, "ep"): ("69.3 ± 0.2", "89.9 ± 0.5", "4:33"),
    ("cifar100", 12, "bp"): ("69.2 ± 0.1", "90.0 ± 0.2", "4:16"),
    ("cifar100", 15, "ep"): ("71.2 ± 0.2", "90.2 ± 1.2", "2:54"),
    ("cifar100", 15, "bp"): ("71.1 ± 0.3", "90.9 ± 0.1", "2:44"),
    ("imagenet32", 12, "ep"): ("44.7 ± 0.1", "61.0 ± 0.1", "65:23"),
    ("imagenet32", 12, "bp"): ("44.7 ± 0.6", "68.9 ± 0.6", "57:00"),
    ("imagenet32", 15, "ep"): ("46.0 ± 0.1", "70.0 ± 0.2", "46:00"),
    ("imagenet32", 15, "bp"): ("45.5 ± 0.1", "69.0 ± 0.1", "40:01"),
}
"""(data set, layers, method) → accuracies, %, and hours and minutes; the paper's 61.0 stands there as 61:00."""


def _size(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--size", choices=list(NARROW), default="paper", help="as published, or channels over 16")
    parser.add_argument("--samples", type=int, metavar="N", help="train on the first N samples only")


def _many_classes(args: argparse.Namespace, key: Key) -> dict[str, Any]:
    from circuitsim.cli.models.ffebm import PUBLISHED
    from circuitsim.ffebm.architectures import preset

    options = preset(f"l{key['layer']}-{key['dataset']}", NARROW[args.size])
    own = {"method": key["method"], "samples": args.samples, "data_dir": args.data_dir}
    return {"model": "ffebm", **PUBLISHED, **options, **own}


def _table2_comparable(args: argparse.Namespace) -> bool:
    return args.size == "paper" and args.samples is None


def _table2_cells(args: argparse.Namespace, runs: list[Run], every: list[Run]) -> dict[str, str]:
    key, last = runs[0].key, [run.history[-1] for run in runs]
    names = "paper: top-1, %", "paper: top-5, %", "paper: h:min"
    whole = round(fmean(row["seconds"] for row in last))
    return {
        "here: top-1, %": spread([100.0 * (1.0 - row["test_error"]) for row in last]),
        "here: top-5, %": spread([100.0 * (1.0 - row["test_top5_error"]) for row in last]),
        "here: h:min:s": f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}",
        **published(
            dict(zip(names, TABLE2_FIGURES[key["dataset"], key["layer"], key["method"]])), _table2_comparable(args)
        ),
    }


def _table2_figure(args: argparse.Namespace, run: Run) -> float | None:
    figure = TABLE2_FIGURES[run.key["dataset"], run.key["layer"], run.key["method"]][0]
    return 100.0 - float(figure.split()[0]) if _table2_comparable(args) else None


TABLE2 = Study(
    "table2",
    "Many classes, deep networks in blocks of two",
    "After Nest & Ernoult (2024), Table 2: equilibrium propagation (ep) beside implicit differentiation (bp); accuracy "
    "on the test images. The paper's figures are of whole networks on all images; none stands beside another run (–).",
    {"dataset": ("cifar100", "imagenet32"), "layer": (12, 15), "method": ("ep", "bp")},
    _many_classes,
    _table2_cells,
    _table2_figure,
    seeds=3,
    more=_size,
)


# ---------------------------------------------------------------------- Nest & Ernoult, Table 1
SPLIT_FIGURES = {
    (6, 6): {"ep": 88.8, "bp": 87.3},
    (6, 3): {"ep": 89.5, "bp": 89.2},
    (6, 2): {"ep": 90.1, "bp": 90.0},
    (12, 4): {"ep": 91.6, "bp": 91.6},
    (12, 3): {"ep": 92.2, "bp": 92.2},
    (12, 2): {"ep": 91.7, "bp": 91.8},
}
"""(layers, layers of a block) → accuracy of a method on CIFAR-10, %."""


def _split_options(parser: argparse.ArgumentParser) -> None:
    small = "fully connected layers on digits or MNIST (small), or the published convolutional networks on CIFAR-10"
    parser.add_argument("--size", choices=["small", "paper"], default="small", help=small)
    parser.add_argument("--dataset", choices=["digits", "mnist"], default="digits", help="of the small size (digits)")
    parser.add_argument("--width", type=int, metavar="N", help="units of each layer of the small size (64, 100)")


def _cut(args: argparse.Namespace, key: Key) -> dict[str, Any]:
    """Batch normalisation stands before the first block (of 6 layers) or every block (of 12) and before the readout,
    whose input is small deep inside a block. Units of slope one half and small steps keep couplings weak: sweeps
    converge faster than at slope 1, and accuracy is higher (docs/models.md)."""
    from circuitsim.cli.models.ffebm import PUBLISHED
    from circuitsim.ffebm.architectures import LayerSizes, preset

    layers, block = key["layer"], key["block"]
    if args.size == "paper":
        options = {**PUBLISHED, **preset(f"l{layers}-bs{block}")}
    else:
        digits = args.dataset == "digits"
        width, epochs = args.width or (64 if digits else 100), 12 if digits else 5
        network = LayerSizes(
            dense=[width] * layers,
            activation="laborieux",
            spread=0.6,
            readout_norm=True,
            free=12,
            nudged=8,
            batch_norm="first" if layers == 6 else "all",
        )
        elements = network.cut((64 if digits else 784,), [block] * (layers // block), 10)
        options = {"elements": elements, "dataset": args.dataset, "batch": 32 if digits else 128, "lr": 1e-3}
        options["epochs"] = epochs
    return {"model": "ffebm", **options, "method": key["method"], "data_dir": args.data_dir}


def _split_figure(args: argparse.Namespace, run: Run) -> float | None:
    figures = SPLIT_FIGURES[run.key["layer"], run.key["block"]]
    return 100.0 - figures[run.key["method"]] if args.size == "paper" else None


def _split_cells(args: argparse.Namespace, runs: list[Run], every: list[Run]) -> dict[str, str]:
    error, last = _split_figure(args, runs[0]), [run.history[-1] for run in runs]
    return {
        "here: accuracy, %": spread([100.0 - run.error for run in runs]),
        "s": f"{fmean(row['seconds'] for row in last):.3g}",
        "residual": f"{max(row['residual'] for row in last):.1e}",
        **published({"paper: accuracy, %": f"{100.0 - (error or 0.0):.1f}"}, error is not None),
    }


def _is_cut(key: Key) -> bool:
    return (key["layer"], key["block"]) in SPLIT_FIGURES


SPLIT = Study(
    "split",
    "One network, cut into blocks",
    "After Nest & Ernoult (2024), Table 1: equilibrium propagation (ep) beside implicit differentiation (bp). The "
    "paper's figures are of the published networks on CIFAR-10; none stands beside another run (–).",
    {"layer": (6, 12), "block": (6, 4, 3, 2), "method": ("ep", "bp")},
    _cut,
    _split_cells,
    _split_figure,
    seeds=3,
    keys=_is_cut,
    more=_split_options,
    over="block",
)
