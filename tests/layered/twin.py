"""The training step of `steps`, written down plainly: same order, same numbers, no speed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plain_layers
from plain_layers import Tilt

from circuitsim.layered.architecture import Architecture, ResistiveLearning


class Twin:
    """What `circuitsim.layered.engine.Engine` does, for networks without amplifiers and a fixed number of sweeps."""

    def __init__(self, architecture: Architecture, learning: ResistiveLearning, batch: int) -> None:
        self.architecture, self.learning, self.batch = architecture, learning, batch
        self.weights: list[np.ndarray] = []
        self.biases: list[np.ndarray] = []
        self.states: list[np.ndarray] = []

    def set(self, parameters: Mapping[str, np.ndarray]) -> None:
        """Take parameters, and start from zero volts."""
        layers = range(1, self.architecture.depth + 1)
        self.weights = [parameters[f"conductances{i - 1}"].copy() for i in layers]
        self.biases = [parameters[f"bias{i}"].copy() for i in layers]
        dtype = self.weights[0].dtype
        self.states = [np.zeros((self.batch, n), dtype) for n in self.architecture.units[1:]]

    def get(self) -> dict[str, np.ndarray]:
        """The parameters by name."""
        found = {f"conductances{i}": w for i, w in enumerate(self.weights)}
        return found | {f"bias{i}": b for i, b in enumerate(self.biases, 1)}

    def train(
        self,
        images: np.ndarray,
        labels: np.ndarray,
        rows: np.ndarray,
        rates: Sequence[float],
        bias_rates: Sequence[float],
    ) -> np.ndarray:
        """As `Engine.train`; (steps, 3): cost, share of wrong answers, share of diodes that change."""
        parts = [rows[start : start + self.batch] for start in range(0, len(rows), self.batch)]
        return np.array([self._step(images[part] / 255, labels[part], rates, bias_rates) for part in parts])

    def _step(
        self, x: np.ndarray, labels: np.ndarray, rates: Sequence[float], bias_rates: Sequence[float]
    ) -> tuple[float, float, float]:
        count, learning, inner = len(x), self.learning, self.weights[1:]
        target = np.eye(self.architecture.units[-1])[labels]
        given = plain_layers.drive(self.weights[0], x, self.architecture.input_gain)
        start = [u[:count] for u in self.states]
        free = plain_layers.relax(inner, self.biases, given, start, learning.sweeps)
        nudged = {}
        for sign in (-1, 1):
            beta = sign * learning.beta
            tilt = Tilt(-beta * target, beta)
            nudged[sign] = plain_layers.relax(inner, self.biases, given, free, learning.nudged_sweeps, tilt)
        minus = free if learning.variant == "positive" else nudged[-1]
        plus = free if learning.variant == "negative" else nudged[1]
        distance = learning.beta * (2 if learning.variant == "centred" else 1)
        pair = plain_layers.contrast(plus, minus, np.full(count, 1 / (distance * count)))
        gradients = [plain_layers.first_gradient(x, self.architecture.input_gain, pair)]
        gradients += [plain_layers.inner_gradient(pair, layer) for layer in range(1, len(free))]
        for layer, gradient in enumerate(gradients):
            self.weights[layer] = np.maximum(0, self.weights[layer] - rates[layer] * gradient)
            self.biases[layer] = self.biases[layer] + bias_rates[layer] * pair.diff[layer].sum(axis=0)
        end = minus if learning.variant == "negative" else plus
        self.states = [np.concatenate([u, np.zeros((self.batch - count, u.shape[1]))]) for u in end]
        cost = 0.5 * ((free[-1] - target) ** 2).sum() / count
        at_zero = [np.concatenate(u[:-1], axis=1) == 0.0 for u in (free, minus, plus)]
        kinks = float(((at_zero[0] != at_zero[1]) | (at_zero[0] != at_zero[2])).mean())
        return float(cost), float((free[-1].argmax(axis=1) != labels).mean()), kinks
