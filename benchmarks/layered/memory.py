"""The most memory that training and testing a layered network takes, beside its weights and its data.

    python benchmarks/layered/memory.py drn-2h [--data-dir DIR]

One network a process: the highest resident size of the process is all there is to read. Run it twice: the first run may
have kernels to compile, and a compiler's memory is not a network's.
"""

from __future__ import annotations

import argparse
import resource

import numpy as np

from circuitsim.datasets import choose, load
from circuitsim.layered.architecture import published_models
from circuitsim.layered.evaluation import Evaluation
from circuitsim.layered.learner import LayeredLearner


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=list(published_models()))
    parser.add_argument("--dataset")
    parser.add_argument("--data-dir")
    args = parser.parse_args()
    data = load(choose(args.dataset, args.data_dir)[0], args.data_dir)
    preset = published_models()[args.model]
    learner = LayeredLearner(preset.architecture, preset.learning, 4, np.random.default_rng(0))
    learner.engine.train(data.train, data.train_labels, np.arange(400), preset.weight_rates, preset.bias_rates)
    Evaluation(learner, data.test, data.test_labels)(np.random.default_rng(0))
    weights = sum(array.nbytes for array in learner.parameters.values()) / 1e6
    images = (data.train.nbytes + data.test.nbytes) / 1e6
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    rest = most - weights - images
    print(f"{preset.title}: at most {most:.0f} MB; weights {weights:.0f}, images {images:.0f}, all else {rest:.0f}")


if __name__ == "__main__":
    main()
