"""Iris and digits on decks that learn, beside a logistic regression and an MLP of like size; five seeds each.

Usage: ``python benchmarks/learning/classify.py [iris] [digits]``. Every seed splits the data anew (the same share of
each class), scatters the deck's resistances anew, and shuffles anew; all three models see the same split.
Hyper-parameters were chosen on seeds 10 to 17. Writes ``benchmarks/results/learning/classify-….md``.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np
from common import experiment, machine, train, write

SEEDS = range(5)
TASKS: dict[str, dict[str, Any]] = {
    "iris": {"gain": 4.0, "epochs": 80, "batch": 10, "split": 0.25, "loss": "squared", "low": -0.5, "high": 0.5,
             "hidden": 10},
    "digits": {"gain": 4.0, "epochs": 12, "batch": 16, "split": 0.25, "hidden": 20},
}  # fmt: skip


def run(name: str, seed: int) -> dict[str, float]:
    """Held-out accuracies of the three models on one split."""
    options = dict(TASKS[name])
    hidden = options.pop("hidden")
    made = experiment(
        f"learn-{name}.cir", data=name, seed=seed, scatter=0.3, schedule="cosine", evaluate_every=options["epochs"],
        **options,
    )  # fmt: skip
    begun = time.perf_counter()
    row = train(made)[-1]
    seconds = time.perf_counter() - begun
    from circuitsim.cli import learning
    from circuitsim.datasets.samples import bundled, split

    learner = made.trainable
    samples = learning.amplified(bundled(name, learner.block.roles), options["gain"])
    x, y = made.data
    _, test = split(samples, options["split"], np.random.default_rng((seed, 5)))
    state = learner.block.relax(test.x)
    half = x.shape[1] // 2  # the others are their negatives
    found = {"circuit": 1.0 - row["test_error"], "seconds": seconds, "conducting": float(state.closed.mean())}
    found["worst certificate"] = max(row["certificate"], float(state.residual.max()))
    found["skipped"] = row["skipped"]
    found |= others(x[:, :half] / options["gain"], y, test.x[:, :half] / options["gain"], test.y, hidden, seed)
    return found


def others(x: Any, y: Any, xt: Any, yt: Any, hidden: int, seed: int) -> dict[str, float]:
    """scikit-learn's logistic regression, and an MLP with as many hidden units as the circuit has diodes."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        linear = LogisticRegression(max_iter=5000).fit(x, y)
        mlp = MLPClassifier((hidden,), max_iter=2000, random_state=seed).fit(x, y)
    return {"logistic regression": linear.score(xt, yt), "MLP": mlp.score(xt, yt)}


def main(names: list[str]) -> None:
    """Run and write."""
    for name in names:
        rows = [run(name, seed) for seed in SEEDS]
        task = TASKS[name]
        lines = [
            f"# {name}: held-out accuracy, %", "",
            f"`netlists/learn-{name}.cir`, centred EP with constant currents, Adam, "
            f"{', '.join(f'{k} {v}' for k, v in task.items())}; seeds {SEEDS.start} to {SEEDS.stop - 1}.", "",
            "| model | " + " | ".join(f"seed {s}" for s in SEEDS) + " | mean ± deviation |",
            "|---|" + "---|" * (len(rows) + 1),
        ]  # fmt: skip
        for model in ("circuit", "logistic regression", "MLP"):
            values = [100 * row[model] for row in rows]
            spread = f"{np.mean(values):.2f} ± {np.std(values, ddof=1):.2f}"
            lines.append(f"| {model} | " + " | ".join(f"{v:.1f}" for v in values) + f" | **{spread}** |")
        lines += [
            "",
            f"Diodes, all between free nodes, that conduct: {np.mean([r['conducting'] for r in rows]):.0%}. "
            f"Worst certificate {max(r['worst certificate'] for r in rows):.1e}; steps skipped "
            f"{sum(r['skipped'] for r in rows):.0f}; {np.mean([r['seconds'] for r in rows]):.0f} s a seed.",
            "", machine(),
        ]  # fmt: skip
        write(f"classify-{name}.md", lines)


if __name__ == "__main__":
    main(sys.argv[1:] or list(TASKS))
