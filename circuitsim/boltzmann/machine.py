"""The restricted Boltzmann machine: parameters, energies, conditionals, block Gibbs sampling."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from circuitsim.boltzmann import kernels
from circuitsim.errors import UsageError
from circuitsim.training.checkpoint import Arrays, load_checkpoint, save_checkpoint


@dataclass(frozen=True, eq=False, repr=False)
class RestrictedBoltzmannMachine:
    """Binary units in two layers, E(v, h) = −hᵀ W v − b·v − c·h (Fischer & Igel 2011, §1).

    Parameters
    ----------
    weights : (n, m) ndarray
        W, one row for each hidden unit, float32 or float64. Kept in Fortran order, so that the weights of one visible
        unit lie together (most visible units are 0 in most samples, and whole columns are skipped).
    visible_bias : (m,) ndarray
        b.
    hidden_bias : (n,) ndarray
        c.

    Notes
    -----
    Probabilities are p(v, h) = exp(−E) / Z. The object is frozen; a trainer writes into its arrays.
    """

    weights: np.ndarray
    visible_bias: np.ndarray
    hidden_bias: np.ndarray

    def __post_init__(self) -> None:
        weights = np.asarray(self.weights)
        if weights.ndim != 2 or 0 in weights.shape:
            raise UsageError(
                f"the weights must be a matrix (hidden units × visible units), not of shape {weights.shape}"
            )
        dtype = np.float32 if weights.dtype == np.float32 else np.float64
        # Copies: training a machine must not write into arrays that somebody else holds.
        object.__setattr__(self, "weights", np.array(weights, dtype=dtype, order="F"))
        for name, length in (("visible_bias", weights.shape[1]), ("hidden_bias", weights.shape[0])):
            bias = np.array(getattr(self, name), dtype=dtype)
            if bias.shape != (length,):
                raise UsageError(f"the {name.replace('_', ' ')} must have shape ({length},), not {bias.shape}")
            object.__setattr__(self, name, bias)
        if not all(np.isfinite(array).all() for array in self.parameters.values()):
            raise UsageError("the parameters of a Boltzmann machine must be finite")

    def __repr__(self) -> str:
        return f"RestrictedBoltzmannMachine({self.visible} visible, {self.hidden} hidden units, {self.dtype})"

    @classmethod
    def random(
        cls, visible: int, hidden: int, rng: np.random.Generator, spread: float = 0.01, dtype: Any = np.float64
    ) -> RestrictedBoltzmannMachine:
        """Normal weights of standard deviation ``spread``, zero biases.

        Parameters
        ----------
        visible, hidden : int
            Units of each layer, at least 1.
        rng : numpy.random.Generator
            Source of the weights.
        spread : float
            Standard deviation of the weights.
        dtype : dtype
            float32 or float64.

        Raises
        ------
        UsageError
            A layer without units, or a spread that makes weights infinite.
        """
        if visible < 1 or hidden < 1:
            raise UsageError(f"a Boltzmann machine needs at least one unit in each layer, not {visible} and {hidden}")
        # What is no longer finite is refused below, by name.
        with np.errstate(over="ignore"):
            weights = (spread * rng.standard_normal((visible, hidden))).astype(dtype).T
        return cls(weights, np.zeros(visible, dtype), np.zeros(hidden, dtype))

    @property
    def parameters(self) -> Arrays:
        """The three arrays by name: the machine's own memory."""
        return {"weights": self.weights, "visible_bias": self.visible_bias, "hidden_bias": self.hidden_bias}

    @property
    def visible(self) -> int:
        """Number of visible units, m."""
        return self.weights.shape[1]

    @property
    def hidden(self) -> int:
        """Number of hidden units, n."""
        return self.weights.shape[0]

    @property
    def dtype(self) -> np.dtype:
        """Type of the parameters."""
        return self.weights.dtype

    def swapped(self) -> RestrictedBoltzmannMachine:
        """The same machine with the layers' roles exchanged."""
        return RestrictedBoltzmannMachine(self.weights.T, self.hidden_bias, self.visible_bias)

    def astype(self, dtype: Any) -> RestrictedBoltzmannMachine:
        """A copy with parameters of another type."""
        return RestrictedBoltzmannMachine(*(array.astype(dtype) for array in self.parameters.values()))

    def energy(self, visible: np.ndarray, hidden: np.ndarray) -> np.ndarray:
        """E(v, h) of pairs of states.

        Parameters
        ----------
        visible : (B, m) ndarray
            Zeros and ones, one state a row.
        hidden : (B, n) ndarray
            The hidden layer's states of the same rows.

        Returns
        -------
        (B,) ndarray
            Without unit; lower is more probable.
        """
        coupling = np.einsum("sn,nm,sm->s", hidden, self.weights, visible, optimize=True)
        return -coupling - visible @ self.visible_bias - hidden @ self.hidden_bias

    def free_energy(self, visible: np.ndarray) -> np.ndarray:
        """F(v) = −b·v − Σ_i log(1 + exp(c_i + W_i·v)), so that p(v) = exp(−F(v)) / Z; (B, m) → (B,)."""
        activation = visible @ self.weights.T + self.hidden_bias
        return -(visible @ self.visible_bias) - softplus(activation).sum(axis=1)

    def hidden_probability(self, visible: np.ndarray) -> np.ndarray:
        """p(h_i = 1 | v); (B, m) → (B, n)."""
        out = np.empty((len(visible), self.hidden), self.dtype)
        kernels.affine(self.as_states(visible), self.weights.T, self.hidden_bias, out)
        kernels.logistic(out)
        return out

    def visible_probability(self, hidden: np.ndarray) -> np.ndarray:
        """p(v_j = 1 | h); (B, n) → (B, m)."""
        return self.swapped().hidden_probability(hidden)

    def gibbs(self, visible: np.ndarray, rng: np.random.Generator, steps: int = 1) -> np.ndarray:
        """Run block Gibbs chains from the given visible states; (B, m) → (B, m).

        Parameters
        ----------
        visible : (B, m) ndarray
            One chain for each row; not changed.
        rng : numpy.random.Generator
            Each step draws two keys of 64 bits, one for each layer: the same generator state gives the same bits.
        steps : int
            Steps of hidden given visible, then visible given hidden.
        """
        if steps < 0:
            raise UsageError(f"the number of Gibbs steps must not be negative, not {steps}")
        states = self.as_states(visible)
        by_visible, by_hidden = np.ascontiguousarray(self.weights.T), np.ascontiguousarray(self.weights)
        for _ in range(steps):
            hidden = sample_layer(states, by_visible, self.hidden_bias, rng)
            states = sample_layer(hidden, by_hidden, self.visible_bias, rng)
        return states

    def pseudo_log_likelihood(self, visible: np.ndarray, rng: np.random.Generator | None = None) -> np.ndarray:
        """Σ_j log p(v_j | all other v) of each row.

        With a generator, the sum is estimated by m times one term drawn at random, as scikit-learn's ``score_samples``
        does; without, all m terms are computed at m times the cost.

        Parameters
        ----------
        visible : (B, m) ndarray
            Zeros and ones.
        rng : numpy.random.Generator, optional
            Source of the terms drawn.

        Returns
        -------
        (B,) ndarray
            Natural logarithms, not above 0.

        Raises
        ------
        UsageError
            Rows of another length than m.
        """
        visible = self.as_states(visible)
        rows = np.arange(len(visible))
        activation = visible @ self.weights.T + self.hidden_bias
        here = softplus(activation).sum(axis=1)
        terms = range(self.visible) if rng is None else [rng.integers(self.visible, size=len(visible))]
        total = np.zeros(len(visible), np.float64)
        for units in terms:
            turn = 1 - 2 * visible[rows, units]
            there = softplus(activation + turn[:, None] * self.weights.T[units]).sum(axis=1)
            # log p(v_j | rest) = −log(1 + exp(F(v) − F(flipped)))
            total -= softplus(there - here + turn * self.visible_bias[units])
        return total * (self.visible / len(terms))

    def save(self, path: Path | str) -> None:
        """Write the parameters to one npz file, without pickle."""
        save_checkpoint(path, self.parameters, {"model": "rbm"})

    @classmethod
    def load(cls, path: Path | str) -> RestrictedBoltzmannMachine:
        """Read what `save` wrote, bit for bit.

        Raises
        ------
        CheckpointError
            The file is missing, damaged, or holds something else.
        """
        return cls(**load_checkpoint(path, model="rbm")[0])

    def as_states(self, batch: np.ndarray) -> np.ndarray:
        """A batch as visible states in the machine's type; bytes become fractions of 255.

        Raises
        ------
        UsageError
            Rows of another length than m.
        """
        states = np.ascontiguousarray(batch, dtype=self.dtype)
        if states.ndim != 2 or states.shape[1] != self.visible:
            raise UsageError(f"states must have shape (samples, {self.visible}), not {states.shape}")
        return states / self.dtype.type(255) if batch.dtype == np.uint8 else states


def softplus(x: np.ndarray) -> np.ndarray:
    """log(1 + exp(x)), in a fifth of the time of ``np.logaddexp(0, x)``."""
    found: np.ndarray = np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))
    return found


def sample_layer(units: np.ndarray, weights: np.ndarray, bias: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw one layer given the other: (B, m) states, (m, n) weights in C order, (n,) bias → (B, n) zeros and ones."""
    out = np.empty((len(units), weights.shape[1]), weights.dtype)
    kernels.affine(units, weights, bias, out)
    kernels.sample(out, random_key(rng))
    return out


def random_key(rng: np.random.Generator) -> np.uint64:
    """What the random numbers of one array are made from (`kernels.uniform`)."""
    return rng.integers(2**64, dtype=np.uint64)
