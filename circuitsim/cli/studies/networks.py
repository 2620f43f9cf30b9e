"""Tables of networks on images: Scellier (2024), Tables 1 and 3; Nest & Ernoult (2024), Tables 1 and 2."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from statistics import fmean, median
from typing import Any

from circuitsim.cli.studies.runner import Key, Paper, Run, Study, spread
from circuitsim.training.presets import published

MNIST = "The paper's figures are of MNIST; none stands beside a run on other data (–)."
DATASET = "dataset NAME  mnist, digits or a folder (docs/models.md)"


# ---------------------------------------------------------------------- Scellier, Tables 1 and 3
def _scellier(args: argparse.Namespace, key: Key) -> dict[str, Any]:
    """A published network; for table 1 with its method and threads, for table 3 with its tolerance."""
    model = key.get("model", "drn")
    more = {"method": key["method"], "threads": args.threads} if "method" in key else {}
    if model == "dhn":
        more = {"tolerance": args.tolerance}
    return {
        "model": model,
        "preset": f"{model}-{key['row']}",
        "dataset": args.dataset,
        "data_dir": args.data_dir,
        **more,
    }


def _preset(key: Key) -> dict[str, Any]:
    model = key.get("model", "drn")
    return published(model)[f"{model}-{key['row']}"]


def _errors(runs: list[Run]) -> Paper:
    figures = _preset(runs[0].key)["published"][runs[0].key.get("method", "ep")]
    return Paper(
        "mnist", figures["error"], {"paper: test error, %": f"{figures['error']:.2f} ± {figures['spread']:.2f}"}
    )


def _here(runs: list[Run]) -> dict[str, str]:
    """Columns of errors after the last epoch."""
    return {
        "here: test error, %": spread([run.error for run in runs]),
        "training error, %": spread([100.0 * run.history[-1]["error"] for run in runs]),
    }


def _epoch_seconds(runs: list[Run]) -> float:
    """Median over all epochs of the training time, s."""

    def seconds(run: Run) -> Iterator[float]:
        before = 0.0
        for row in run.history:
            yield float(row["train_seconds"]) / (row["epoch"] - before)
            before = row["epoch"]

    return median(second for run in runs for second in seconds(run))


def _table1_cells(runs: list[Run], every: list[Run]) -> dict[str, str]:
    return {
        **_here(runs),
        "here: s per epoch": f"{_epoch_seconds(runs):.3g}",
    }


def _table1_paper(runs: list[Run]) -> Paper:
    paper, preset = _errors(runs), _preset(runs[0].key)
    theirs = 3600.0 * preset["published"][runs[0].key["method"]]["hours"] / preset["epochs"]
    times = {"paper: s per epoch (A100)": f"{theirs:.0f}", "paper / here": f"{theirs / _epoch_seconds(runs):.3g}"}
    return paper._replace(columns={**paper.columns, **times})


TABLE1 = Study(
    "table1",
    "Deep resistive networks, Table 1",
    "After Scellier (2024), Table 1: mini-batches of 4, exact block coordinate descent, centred equilibrium "
    "propagation (ep) or backpropagation through the last sweeps (bp). Errors are those after the last epoch trained. "
    + MNIST,
    {"row": ("xs", "xl", "1h", "2h", "3h"), "method": ("ep", "bp")},
    _scellier,
    _table1_cells,
    _table1_paper,
    seeds=5,
    usual={"method": "ep"},
    more=f"{DATASET}\nthreads N = 1  threads; they change no bit",
)

SHARE, LIMIT, IMAGES = 1e-3, 400, 500
"""Fraction of each layer's largest value that counts as converged; maximum number of sweeps; test images."""


def _convergence(args: argparse.Namespace, key: Key, experiment: Any) -> dict[str, float]:
    """Sweeps to convergence of test images: from zero, and nudged by +β from the free state."""
    import numpy as np

    from circuitsim.hopfield import convergence

    net, test = experiment.trainable, experiment.evaluate
    block, beta = net.block, net.rule.beta
    dtype = block.parameters["bias1"].dtype
    x, targets = (test.x[:IMAGES] / 255).astype(dtype), np.eye(block.n_outputs, dtype=dtype)[test.y[:IMAGES]]
    found = convergence.phases(block, x, targets, beta, SHARE, LIMIT)
    return {
        f"convergence_sweeps_{state}_{of}": float(measure(sweeps))
        for state, sweeps in zip(("free", "nudged"), found)
        for of, measure in (("median", np.median), ("max", np.max))
    }


def _table3_cells(runs: list[Run], every: list[Run]) -> dict[str, str]:
    preset = _preset(runs[0].key)
    columns = {
        f"sweeps, {state}": f"{median(run.measures[f'convergence_sweeps_{state}_median'] for run in runs):g}, "
        f"{max(run.measures[f'convergence_sweeps_{state}_max'] for run in runs):g}"
        for state in ("free", "nudged")
    }
    return {
        "T, K": f"{preset['sweeps']}, {preset.get('nudged_sweeps', preset['sweeps'])}",
        **_here(runs),
        **columns,
    }


TABLE3 = Study(
    "table3",
    "Resistive and Hopfield networks of the same size",
    "After Scellier (2024), Table 3: centred equilibrium propagation, exact block coordinate descent with T free and K "
    "nudged sweeps. The columns of sweeps have those to convergence, median and largest over "
    f"{IMAGES} test images, until no unit is farther from its final value than {SHARE:g} of the largest value in its "
    f"layer: free from zero, nudged by +β from the free state; {LIMIT} stands for {LIMIT} and more. " + MNIST,
    {"row": ("1h", "2h", "3h"), "model": ("drn", "dhn")},
    _scellier,
    _table3_cells,
    _errors,
    measure=_convergence,
    more=f"{DATASET}\ntolerance R  end a phase of dhn when no unit moves by more",
)


# ---------------------------------------------------------------------- Nest & Ernoult, Tables 1 and 2
def _nest_name(key: Key) -> str:
    return f"l{key['layer']}-" + (f"bs{key['block']}" if "block" in key else key["dataset"])


def _accuracies(runs: list[Run]) -> Paper:
    preset = published("ffebm")[_nest_name(runs[0].key)]
    figures = preset["published"][runs[0].key["method"]]
    names = {"accuracy": "paper: accuracy, %", "top5": "paper: top-5, %", "time": "paper: h:min"}
    columns = {names[name]: figure for name, figure in figures.items()}
    return Paper(preset["dataset"], 100.0 - float(figures["accuracy"].split()[0]), columns)


def _accuracy(runs: list[Run], name: str = "test_error") -> str:
    return spread([100.0 * (1.0 - run.history[-1][name]) for run in runs])


def _published(args: argparse.Namespace, key: Key, divisor: int = 1) -> dict[str, Any]:
    """The options of a published network."""
    from circuitsim.cli.models.ffebm import PUBLISHED
    from circuitsim.ffebm.architectures import preset

    own = {"method": key["method"], "data_dir": args.data_dir}
    return {"model": "ffebm", **PUBLISHED, **preset(_nest_name(key), divisor), **own}


def _many_classes(args: argparse.Namespace, key: Key) -> dict[str, Any]:
    return {**_published(args, key, 1 if args.size == "paper" else 16), "samples": args.samples}


def _table2_cells(runs: list[Run], every: list[Run]) -> dict[str, str]:
    whole = round(fmean(run.history[-1]["seconds"] for run in runs))
    return {
        "here: top-1, %": _accuracy(runs),
        "here: top-5, %": _accuracy(runs, "test_top5_error"),
        "here: h:min:s": f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}",
    }


TABLE2 = Study(
    "table2",
    "Many classes, deep networks in blocks of two",
    "After Nest & Ernoult (2024), Table 2: equilibrium propagation (ep) beside implicit differentiation (bp); accuracy "
    "on the test images. The paper's figures are of whole networks on all images; none stands beside another run (–).",
    {"dataset": ("cifar100", "imagenet32"), "layer": (12, 15), "method": ("ep", "bp")},
    _many_classes,
    _table2_cells,
    _accuracies,
    seeds=3,
    more="""\
size NAME = paper {paper small}  paper: as published, small: channels over 16
samples N  train on the first N samples only""",
)


def _cut(args: argparse.Namespace, key: Key) -> dict[str, Any]:
    """Batch normalisation precedes the first block (of 6 layers) or every block (of 12) and before the readout,
    whose input is small deep inside a block. Units of slope one half and small steps keep couplings weak: sweeps
    converge faster than at slope 1, and accuracy is higher (docs/models.md)."""
    from circuitsim.ffebm.architectures import LayerSizes

    if args.size == "paper":
        return _published(args, key)
    layers, block, digits = key["layer"], key["block"], args.dataset == "digits"
    width = args.width or (64 if digits else 100)
    network = LayerSizes(
        dense=[width] * layers,
        activation="laborieux",
        spread=0.6,
        readout_norm=True,
        free=12,
        nudged=8,
        batch_norm="first" if layers == 6 else "all",
    )
    return {
        "model": "ffebm",
        "elements": network.cut((64 if digits else 784,), [block] * (layers // block), 10),
        "dataset": args.dataset,
        "batch": 32 if digits else 128,
        "lr": 1e-3,
        "epochs": 12 if digits else 5,
        "method": key["method"],
        "data_dir": args.data_dir,
    }


def _split_cells(runs: list[Run], every: list[Run]) -> dict[str, str]:
    last = [run.history[-1] for run in runs]
    return {
        "here: accuracy, %": _accuracy(runs),
        "s": f"{fmean(row['seconds'] for row in last):.3g}",
        "residual": f"{max(row['residual'] for row in last):.1e}",
    }


def _is_cut(key: Key) -> bool:
    return _nest_name(key) in published("ffebm")


SPLIT = Study(
    "split",
    "One network, cut into blocks",
    "After Nest & Ernoult (2024), Table 1: equilibrium propagation (ep) beside implicit differentiation (bp). The "
    "paper's figures are of the published networks on CIFAR-10; none stands beside another run (–).",
    {"layer": (6, 12), "block": (6, 4, 3, 2), "method": ("ep", "bp")},
    _cut,
    _split_cells,
    _accuracies,
    seeds=3,
    keys=_is_cut,
    more="""\
size NAME = small {small paper}  small: fully connected layers on digits or MNIST, \
paper: the published networks on CIFAR-10
dataset NAME = digits {digits mnist}  of the small size: digits or mnist
width N  units of each layer of the small size (64, 100)""",
    over="block",
)
