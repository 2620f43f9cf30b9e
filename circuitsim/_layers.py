"""What the layers of PyTorch and of JAX share: a block's evaluations, kept for their derivatives."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping

import numpy as np

from circuitsim.learning.function import DifferentiableBlock, Evaluation, evaluate


class Evaluations:
    """A block with its evaluations, all or the ``kept`` last ones."""

    def __init__(self, block: DifferentiableBlock, kept: int | None = None) -> None:
        self.block = block
        self._made: deque[Evaluation] = deque(maxlen=kept)

    def at(self, x: np.ndarray, parameters: Mapping[str, np.ndarray]) -> Evaluation:
        """The evaluation of rows of inputs (…, inputs) and of parameters, made if it is not kept."""
        x = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
        for made in self._made:
            known = all(np.array_equal(made.given[name], own) for name, own in parameters.items())
            if known and np.array_equal(made.x, x):
                return made
        self._made.append(evaluate(self.block, x, parameters))
        return self._made[-1]
