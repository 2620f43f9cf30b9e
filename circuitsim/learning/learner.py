"""`Learner`: a block, an estimator and a loss as something the trainer can train."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from circuitsim.blocks.protocol import Arrays, State
from circuitsim.errors import ConvergenceError, UsageError
from circuitsim.learning.estimate import Estimate, Estimator, GradientProblem
from circuitsim.learning.losses import Loss, error
from circuitsim.training.checkpoint import CheckpointError

UNCERTIFIED = ("skip", "stop")


class Learner:
    """Trainable by `circuitsim.training.Trainer`: parameters of the block, gradients by the estimator.

    Parameters
    ----------
    block : EnergyBlock
    estimator : Estimator
    loss : Loss
    uncertified : {"skip", "stop"}
        Treatment of a batch with an uncertified state: skip the step (the trainer counts it), or raise
        `ConvergenceError`. Such a state never enters a gradient.
    fingerprint : bytes
        Stored with checkpoints; a run resumes only with the same (of circuit and data).

    Notes
    -----
    Metrics of a batch: ``loss``, ``error`` (share of wrong classes, or mean squared distance, V²), the bracket
    ``lower ≤ loss ≤ upper`` where the estimator measures it, ``certificate`` (worst residual of the states used),
    ``kinks`` (diodes and clamped units a sample that change between the phases; of the implicit gradient those at a
    kink) and ``kink_share`` (their share of all), ``beta`` where the estimator chooses it, ``clamped`` (parameters on a
    bound), ``uncertified_fraction`` (of the samples, those without a certified state).
    """

    def __init__(
        self, block: Any, estimator: Estimator, loss: Loss, uncertified: str = "skip", fingerprint: bytes = b""
    ) -> None:
        if uncertified not in UNCERTIFIED:
            raise UsageError(f"uncertified states are handled by {' or '.join(UNCERTIFIED)}, not {uncertified!r}")
        self.block, self.estimator, self.loss, self.uncertified = block, estimator, loss, uncertified
        self.fingerprint = fingerprint

    def __repr__(self) -> str:
        return f"Learner({self.block!r}, {self.estimator!r}, {self.loss!r})"

    @property
    def parameters(self) -> Mapping[str, np.ndarray]:
        """The block's own."""
        parameters: Mapping[str, np.ndarray] = self.block.parameters
        return parameters

    def gradient(
        self, batch: tuple[np.ndarray, ...], rng: np.random.Generator
    ) -> tuple[Arrays | None, dict[str, float]]:
        """Mean gradient of a batch, and its metrics.

        Parameters
        ----------
        batch : (x, target) or (x, target, weights)
            (batch, inputs) in the units of the block's inputs; (batch, outputs) voltages, V, or (batch,) classes;
            (batch,) factors on the samples' losses.
        rng : numpy.random.Generator
            Not used: the estimators of this package draw nothing.

        Returns
        -------
        gradient : dict of ndarray, or None
            By parameter, loss per unit of the parameter; None where a state is not certified and the batch is skipped.
        metrics : dict of str to float
            See the notes of the class.

        Raises
        ------
        ConvergenceError
            A state is not certified and ``uncertified`` is stop.
        """
        x, target, *weights = batch
        share = weights[0] if weights else None
        free = self.block.relax(x)
        good = free.certified
        estimate = None
        if good.all():
            weight = np.full(len(x), 1.0 / len(x)) if share is None else share / len(x)
            estimate = self.estimator.estimate(GradientProblem(self.block, x, target, self.loss, free, weight))
            good = estimate.certified
        metrics = self._metrics(free, target, good, estimate, share)
        if good.all():
            assert estimate is not None
            return estimate.parameters, metrics
        if self.uncertified == "stop":
            raise ConvergenceError(
                f"{int((~good).sum())} of {len(x)} samples have no state certified to the tolerance; accept less with "
                "a larger --tolerance, or leave such steps out with --uncertified skip"
            )
        return None, metrics

    def _metrics(
        self,
        free: State,
        target: np.ndarray,
        good: np.ndarray,
        estimate: Estimate | None,
        share: np.ndarray | None = None,
    ) -> dict[str, float]:
        """Means over the samples with a certified state; zero without any (see ``uncertified_fraction``)."""
        output, target = free.output[good], target[good]
        any_good = bool(good.any())

        def mean(values: np.ndarray) -> float:
            return float(values.mean() if share is None else np.average(values, weights=share[good]))

        metrics = {"loss": mean(self.loss.value(output, target)) if any_good else 0.0}
        for name in ("lower", "upper"):
            bound = None if estimate is None else getattr(estimate, name)
            if bound is not None:
                metrics[name] = mean(bound[good]) if any_good else 0.0
            elif self._brackets(name):
                metrics[name] = metrics["loss"]
        metrics["error"] = mean(error(output, target)) if any_good else 0.0
        residual = free.residual if estimate is None else estimate.residual
        metrics["certificate"] = float(residual[good].max(initial=0.0))
        metrics |= self._kinks(estimate)
        metrics["clamped"] = float(getattr(self.block, "at_bound", int)())
        metrics["uncertified_fraction"] = float((~good).mean())
        return metrics

    def _kinks(self, estimate: Estimate | None) -> dict[str, float]:
        """Kinks a sample, their share of all diodes and clamped units; the strength where the estimator chooses it."""
        found = {"kinks": 0.0, "kink_share": 0.0}
        if estimate is not None and estimate.kinks is not None:
            found = {"kinks": float(estimate.kinks.changes.mean()), "kink_share": estimate.kinks.share}
        if getattr(self.estimator, "beta", None) == "auto":
            found["beta"] = 0.0 if estimate is None or estimate.beta is None else estimate.beta
        return found

    def _brackets(self, name: str) -> bool:
        """Whether the estimator measures this side of the bracket; the columns must be the same on every call."""
        if not getattr(self.block, "has_energy", True):
            return False
        variant = getattr(self.estimator, "variant", None)
        return variant == "centred" or variant == {"lower": "positive", "upper": "negative"}[name]

    def predict(self, x: np.ndarray, batch: int = 256) -> np.ndarray:
        """Outputs at the free state.

        Parameters
        ----------
        x : (samples, inputs) ndarray
            In the units of the block's inputs.
        batch : int
            Samples relaxed at a time; no influence on the result.

        Returns
        -------
        (samples, outputs) ndarray
            V.
        """
        parts = []
        for at in range(0, len(x), batch):
            state = self.block.relax(x[at : at + batch])
            if not state.certified.all():
                raise ConvergenceError(
                    f"{int((~state.certified).sum())} samples have no operating point certified to the tolerance"
                )
            parts.append(state.output)
        return np.concatenate(parts) if parts else np.empty((0, self.block.n_outputs))

    def evaluate(self, x: np.ndarray, target: np.ndarray) -> dict[str, float]:
        """Loss and error over a data set.

        Parameters
        ----------
        x : (samples, inputs) ndarray
            In the units of the block's inputs.
        target : ndarray
            (samples, outputs) voltages, V, or (samples,) classes.

        Returns
        -------
        dict of str to float
            ``loss``, the mean; ``error``, the share of wrong classes or the mean squared distance, V².

        Raises
        ------
        ConvergenceError
            Some state is not certified.
        """
        output = self.predict(x)
        return {"loss": float(self.loss.value(output, target).mean()), "error": float(error(output, target).mean())}

    def project(self) -> None:
        """Parameters back within their bounds."""
        self.block.project()

    def state_arrays(self) -> Arrays:
        """The fingerprint, the only state between steps."""
        return {"fingerprint": np.frombuffer(self.fingerprint, dtype=np.uint8).copy()}

    def load_state_arrays(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Check that circuit and data are those of the run to resume.

        Raises
        ------
        CheckpointError
            They are not.
        """
        if arrays.get("fingerprint", np.zeros(0)).tobytes() != self.fingerprint:
            raise CheckpointError("the deck or the data have changed since the run to resume was begun")
