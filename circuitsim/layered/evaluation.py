"""How well a network does on images it was not trained on."""

from __future__ import annotations

import time

import numpy as np

from circuitsim.layered.learner import LayeredLearner


class Evaluation:
    """Test error and loss for the history, with the seconds they took.

    Parameters
    ----------
    learner : LayeredLearner
    images : (N, D) ndarray of uint8
    labels : (N,) ndarray of int64
    """

    def __init__(self, learner: LayeredLearner, images: np.ndarray, labels: np.ndarray) -> None:
        self.learner, self.images, self.labels = learner, images, labels

    def __call__(self, rng: np.random.Generator) -> dict[str, float]:
        """``test_error`` (share of wrong answers), ``test_loss`` (mean ½‖v − y‖²), ``test_seconds``."""
        begun = time.perf_counter()
        outputs = self.learner.outputs(self.images).astype(float)
        wrong = outputs.argmax(axis=1) != self.labels
        outputs[np.arange(len(outputs)), self.labels] -= 1
        return {
            "test_error": float(wrong.mean()),
            "test_loss": float(0.5 * (outputs**2).sum() / len(outputs)),
            "test_seconds": round(time.perf_counter() - begun, 3),
        }
