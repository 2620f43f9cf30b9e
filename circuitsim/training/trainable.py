"""The interface of a model for the trainer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import numpy as np

Arrays = dict[str, np.ndarray]
Batch = tuple[np.ndarray, ...]


class Model(Protocol):
    """What every model gives the trainer: its parameters, and what else a checkpoint has to hold."""

    @property
    def parameters(self) -> Mapping[str, np.ndarray]:
        """Named arrays. Optimisers and checkpoints write into them: the model's own memory, not copies."""
        ...

    def state_arrays(self) -> Arrays:
        """All else that the next update depends on (persistent chains, running averages), for the checkpoint."""
        ...

    def load_state_arrays(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take back what `state_arrays` gave; the parameters have been put back before."""
        ...


@runtime_checkable
class Trainable(Model, Protocol):
    """A model whose parameters can be moved downhill.

    A model that maximises something (a likelihood) returns the gradient of its negative.
    """

    def gradient(self, batch: Batch, rng: np.random.Generator) -> tuple[Arrays | None, dict[str, float]]:
        """Gradient estimate of the loss on one batch, and its metrics.

        Parameters
        ----------
        batch : tuple of ndarray
            One slice of every data array, with equal first dimension.
        rng : numpy.random.Generator
            The only source of chance; its state is part of every checkpoint.

        Returns
        -------
        gradients : dict of str to ndarray, or None
            One array for each parameter, of its shape; the trainer may overwrite them. None says that this batch gave
            no gradient that can be trusted: the step is skipped and counted.
        metrics : dict of str to float
            The same keys on every call; the history holds their mean over the updates since its last row.
        """
        ...

    def project(self) -> None:
        """Move the parameters back to where they are allowed, after each step."""
        ...


@runtime_checkable
class FusedTrainable(Model, Protocol):
    """A model that makes its steps itself, many in one call, because step and gradient share one pass over its memory.

    The number of steps per call must not change their bits.
    """

    def steps(
        self, data: Batch, rows: np.ndarray, batch: int, rates: Mapping[str, float], rng: np.random.Generator
    ) -> Arrays:
        """One step for each mini-batch that ``rows`` fall into.

        Parameters
        ----------
        data : tuple of ndarray
            The whole data arrays.
        rows : (n,) ndarray of int64
            Samples in order; the last mini-batch may be smaller.
        batch : int
            Samples in a mini-batch.
        rates : mapping of str to float
            Learning rate of each parameter now.
        rng : numpy.random.Generator
            The only source of chance.

        Returns
        -------
        metrics : dict of str to (steps,) ndarray
        """
        ...
