"""What raising k with the weights gains: measured bias of adaptive and fixed k at equal Gibbs steps and updates.

    python benchmarks/rbm/adaptive_k.py [--seeds 5] [--out FILE.md]

On 6 × 6 machines the bias is exact. Both sides train with expected CD-k from the same weights for the same number of
updates and spend the same total of Gibbs steps: fixed k alternates between two neighbouring integers.
"""

import argparse
import os
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["NUMBA_NUM_THREADS"] = "1"

import numpy as np

from circuitsim.boltzmann import (
    AdaptiveSteps,
    RestrictedBoltzmannMachine,
    bias,
    empirical_distribution,
    log_likelihood,
    pattern_set,
    train_expected,
)

BLOCKS = 200
PREAMBLE = """# Adaptive k against fixed k at equal Gibbs steps

6 × 6 machines, expected CD-k, learning rate 0.1, initial weights uniform in ±0.5, {seeds} seeds; adaptive
k = ⌈Δ / nats⌉ between 1 and 20. Each row compares runs of equally many updates and equally many Gibbs steps in all.
Ratios are adaptive / fixed of the exact largest |bias|, geometric means over the seeds: below 1 adaptive k is the less
biased. "mean" averages along training, "worst" is the largest along training, "final" is after the last update. Δ LL is
the final log-likelihood of adaptive minus fixed (nats per pattern, mean over seeds).

| patterns | updates | nats | mean k | mean | worst | final | Δ LL |
|---|---|---|---|---|---|---|---|
"""
NOTES = """
While the weights grow (the first thousands of updates) adaptive k has the lower bias on average, at its worst and at
the end. In long runs the distance between model and data, and with it the bias of any k, falls after the weights have
grown; there the final bias, which decides where learning stops, is still the lower one, but steps saved early would
have met the larger distance, and the mean along training can be the higher one.
"""


def main() -> None:
    """Run and print; write the page where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    page = PREAMBLE.format(seeds=args.seeds)
    for patterns in ("diag", "1dball"):
        for updates in (1000, 2000, 5000, 20_000):
            for nats in (2.0, 1.0, 0.5):
                page += _row(patterns, updates, nats, args.seeds)
    page += NOTES
    print(page)
    if args.out:
        args.out.write_text(page)


def _row(patterns: str, updates: int, nats: float, seeds: int) -> str:
    found = np.array([_compare(patterns, updates, nats, seed) for seed in range(seeds)])
    k, likelihood = found[:, 0].mean(), found[:, 4].mean()
    ratios = np.exp(np.log(found[:, 1:4]).mean(axis=0))
    cells = " | ".join(f"{ratio:.2f}" for ratio in ratios)
    return f"| {patterns} | {updates} | {nats} | {k:.1f} | {cells} | {likelihood:+.1e} |\n"


def _compare(patterns: str, updates: int, nats: float, seed: int) -> tuple[float, ...]:
    """Mean k, three ratios of the bias, and the difference of the final log-likelihoods."""
    rule = AdaptiveSteps(k=1, k_max=20, nats=nats)
    adaptive, spent, first = _train(patterns, updates, seed, lambda machine, block: rule.steps(machine))
    fixed, again, second = _train(
        patterns, updates, seed, lambda machine, block: (block + 1) * spent // BLOCKS - block * spent // BLOCKS
    )
    assert spent == again
    return (
        spent / BLOCKS,
        adaptive.mean() / fixed.mean(),
        adaptive.max() / fixed.max(),
        adaptive[-1] / fixed[-1],
        first - second,
    )


def _train(patterns: str, updates: int, seed: int, steps) -> tuple[np.ndarray, int, float]:
    """Exact bias at the start of each block of updates, the sum of k over the blocks, the final log-likelihood."""
    data = pattern_set(patterns, 6)
    start = empirical_distribution(data)
    weights = np.random.default_rng(seed).uniform(-0.5, 0.5, (6, 6))
    machine = RestrictedBoltzmannMachine(weights, np.zeros(6), np.zeros(6))
    sizes, spent = [], 0
    for block in range(BLOCKS):
        k = steps(machine, block)
        spent += k
        sizes.append(max(float(np.abs(part).max()) for part in bias(machine, start, k).values()))
        machine = train_expected(machine, start, 0.1, k, updates // BLOCKS)
    return np.array(sizes), spent, float(log_likelihood(machine, data).mean())


if __name__ == "__main__":
    main()
