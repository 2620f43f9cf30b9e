"""Features of MNIST: seconds per epoch and pseudo-likelihood beside scikit-learn's BernoulliRBM, in one run.

    python benchmarks/rbm/mnist_features.py --data-dir DIR [--epochs 3] [--seeds 4] [--batches 10 100] [--out FILE.md]

Both train with persistent CD-1 (what BernoulliRBM does), in turns in one process, on one thread, from the same kind of
start with the same settings, on the same 60,000 images.
"""

import argparse
import os
import platform
import time
from functools import partial
from pathlib import Path

# Before numpy is imported: both sides on one thread.
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["NUMBA_NUM_THREADS"] = "1"

import numpy as np
from sklearn.neural_network import BernoulliRBM

from circuitsim.boltzmann import ContrastiveDivergenceRBM
from circuitsim.datasets import load
from circuitsim.training import software_versions

PREAMBLE = """# MNIST features: circuitsim's ContrastiveDivergenceRBM beside scikit-learn's BernoulliRBM

{machine}; {versions}; one thread; load average {load}.
{hidden} hidden units, learning rate {rate}, persistent CD-1 with as many chains as samples in a batch, {epochs} epochs
over {samples} images (grey values as probabilities), no shuffling. PLL: pseudo-log-likelihood,
the mean of `score_samples` by BernoulliRBM's own code over the {tests} test images, averaged over 10 draws.

Seconds are processor seconds (one thread) of an epoch, medians over {seeds} seeds whose fits are made in turns, least
to most in brackets; the PLL is the mean over the seeds, ± their standard deviation.

| type | batch | circuitsim s/epoch | BernoulliRBM s/epoch | ratio | circuitsim PLL | BernoulliRBM PLL |
|---|---|---|---|---|---|---|
"""

NOTES = """
What is unfair about it: circuitsim's kernels are compiled before the clock starts ({compiled:.1f} s from numba's cache;
some seconds once for each installation); it skips units that are 0, so that its ratio grows with the sparsity of the
data and would shrink on dense ones; BernoulliRBM would gain from more BLAS threads at large batches, circuitsim's
kernels use one thread.
"""


def main() -> None:
    """Run and print; write the page where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batches", type=int, nargs="+", default=[10, 100])
    parser.add_argument("--types", nargs="+", default=["float32", "float64"])
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    images = load("mnist", args.data_dir)
    compiled = time.perf_counter()
    for name in args.types:
        ContrastiveDivergenceRBM(8, max_iter=1).fit(images.train[:20].astype(name) / 255)
    compiled = time.perf_counter() - compiled
    rows = [_row(args, images, np.dtype(name), batch) for name in args.types for batch in args.batches]
    versions = ", ".join(f"{name} {version}" for name, version in software_versions().items() if name != "machine")
    page = PREAMBLE.format(
        machine=_processor(),
        versions=versions,
        load=" ".join(f"{x:.1f}" for x in os.getloadavg()),
        hidden=args.hidden,
        rate=args.rate,
        epochs=args.epochs,
        seeds=args.seeds,
        samples=len(images.train),
        tests=len(images.test),
    )
    page += "\n".join(rows) + "\n" + NOTES.format(compiled=compiled)
    print(page)
    if args.out:
        args.out.write_text(page)


def _row(args: argparse.Namespace, images: object, dtype: np.dtype, batch: int) -> str:
    train, test = (data.astype(dtype) / dtype.type(255) for data in (images.train, images.test))
    kinds = (
        partial(ContrastiveDivergenceRBM, learning_rate_init=args.rate, batch_size=batch, max_iter=args.epochs),
        partial(BernoulliRBM, learning_rate=args.rate, batch_size=batch, n_iter=args.epochs),
    )
    seconds, scores = np.empty((2, args.seeds)), np.empty((2, args.seeds))
    for seed in range(args.seeds):
        for side, kind in enumerate(kinds):
            time_taken, model = _fit(kind(args.hidden, random_state=seed), train)
            seconds[side, seed] = time_taken / args.epochs
            scores[side, seed] = _pseudo_likelihood(model, test)
    ratio = np.median(seconds[1]) / np.median(seconds[0])
    quality = " | ".join(f"{side.mean():.2f} ± {side.std(ddof=1):.2f}" for side in scores)
    return f"| {dtype} | {batch} | {_spread(seconds[0])} | {_spread(seconds[1])} | **{ratio:.2f}** | {quality} |"


def _fit(model: object, train: np.ndarray) -> tuple[float, object]:
    """Processor seconds of one fit: on one thread they are the time it takes, whoever else uses the machine."""
    began = time.process_time()
    model.fit(train)
    return time.process_time() - began, model


def _spread(seconds: np.ndarray) -> str:
    return f"{np.median(seconds):.2f} ({seconds.min():.2f}–{seconds.max():.2f})"


def _pseudo_likelihood(model: object, test: np.ndarray) -> float:
    """Both sides by scikit-learn's own code, the same ten draws of the flipped pixel."""
    judge = BernoulliRBM(len(model.components_))
    judge.components_ = np.ascontiguousarray(model.components_, np.float64)
    judge.intercept_hidden_ = model.intercept_hidden_.astype(np.float64)
    judge.intercept_visible_ = model.intercept_visible_.astype(np.float64)
    judge.n_features_in_ = test.shape[1]
    draws = []
    for seed in range(10):
        judge.random_state = seed
        draws.append(judge.score_samples(test.astype(np.float64)).mean())
    return float(np.mean(draws))


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        model = platform.processor()
    return f"{model}, {os.cpu_count()} processors"


if __name__ == "__main__":
    main()
