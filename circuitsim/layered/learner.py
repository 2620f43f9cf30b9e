"""Layered networks as something the trainer can train, at the speed of the compiled engine."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from circuitsim.blocks.layered import Sweeps
from circuitsim.errors import ConvergenceError, TopologyError, UsageError
from circuitsim.layered.architecture import Architecture, ResistiveLearning
from circuitsim.layered.engine import Engine, as_inputs
from circuitsim.layered.network import DeepResistiveNetwork
from circuitsim.learning.chain import Chain
from circuitsim.learning.equilibrium import EquilibriumPropagation
from circuitsim.learning.estimate import Rule
from circuitsim.learning.nudges import ResistorNudge
from circuitsim.training.checkpoint import CheckpointError, copy_into
from circuitsim.training.trainable import Arrays, Batch

#: States of so many units at most are held at once when the network is tested.
TEST_STATES = 600_000


def resistive_chain(
    architecture: Architecture,
    learning: ResistiveLearning,
    batch: int,
    rng: np.random.Generator,
    rule: Rule | None = None,
    dtype: np.dtype | type = np.float32,
    parameters: Mapping[str, np.ndarray] | None = None,
) -> Chain:
    """What `LayeredLearner` trains, as a chain of one block and without compiled steps, for any rule.

    Parameters
    ----------
    architecture, learning, batch, rng, dtype, parameters
        As for `LayeredLearner`.
    rule : Rule, optional
        Equilibrium propagation as ``learning`` has it if not given.
    """
    sweeps = Sweeps(learning.sweeps, learning.nudged_sweeps, learning.tolerance or None, reverse_nudged=False)
    block = DeepResistiveNetwork(architecture, parameters, rng, dtype=dtype)
    block.sweeps = sweeps
    nudged = EquilibriumPropagation(learning.beta, learning.variant, ResistorNudge(), bracket=False)
    return Chain([block], "mse", rule or nudged, None, dtype, warm=batch)


class LayeredLearner:
    """A deep resistive network that classifies images; satisfies `circuitsim.training.FusedTrainable`.

    The compiled form of `resistive_chain`: the same steps to rounding.

    Parameters
    ----------
    architecture : Architecture
    learning : ResistiveLearning
        Sweeps of all methods; nudges of equilibrium propagation. ``nudged_sweeps`` is how many sweeps are
        backpropagated through.
    batch : int
    method : {"ep", "bp", "implicit"}
        See `Engine`.
    rng : numpy.random.Generator
        Source of the initial conductances.
    dtype : dtype
        float32 or float64.
    threads : int
        See `Engine`.
    parameters : mapping, optional
        Arrays by name to start at, in place of ``rng``.
    """

    def __init__(
        self,
        architecture: Architecture,
        learning: ResistiveLearning,
        batch: int,
        rng: np.random.Generator,
        method: str = "ep",
        dtype: np.dtype | type = np.float32,
        threads: int = 1,
        parameters: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        self.method, self.learning = method, learning
        self.engine = Engine(architecture, learning, batch, dtype, threads, method)
        if parameters is None:
            self.engine.initialise(rng)
        else:
            self.engine.set({name: array.astype(dtype) for name, array in parameters.items()})
        self._unchecked, self._checked = 0, False

    def __repr__(self) -> str:
        units = "-".join(map(str, self.engine.architecture.units))
        return f"LayeredLearner({units}, {self.method}, {self.learning!r}, batch={self.engine.batch})"

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        """As they are stored; see `Engine.parameters`."""
        return self.engine.parameters()

    def steps(
        self, data: Batch, rows: np.ndarray, batch: int, rates: Mapping[str, float], rng: np.random.Generator
    ) -> dict[str, np.ndarray]:
        """Train on images (bytes, 255 for one, or floats) and labels (int64).

        The metrics are ``loss``, ``error`` and ``residual``, all at the free state before each step, and with
        equilibrium propagation ``kink_share``, the share of hidden units whose diode changes between the phases.

        Parameters
        ----------
        data : (images, labels), or with weights (images, labels, weight)
            (N, inputs) bytes or floats, and (N,) int64; (N,) factors on the samples' losses.
        rows : (n,) ndarray of int64
            Samples to train on, in this order.
        batch : int
            Samples in a step: that of the constructor.
        rates : mapping of str to float
            Learning rate of each parameter.
        rng : numpy.random.Generator
            Not used: a step draws nothing.

        Returns
        -------
        dict of str to (steps,) ndarray

        Raises
        ------
        ConvergenceError
            A unit is left without conductance, an adjoint does not converge, or (looked at once an epoch) a nudge of −β
            leaves the energy not convex in some state of the diodes.
        """
        images, labels, *given = data
        weight = given[0] if given else None
        if batch != self.engine.batch:
            raise UsageError(f"the network was built for mini-batches of {self.engine.batch}, not {batch}")
        self._checked_in_turn(len(rows), len(images))
        depth = self.engine.architecture.depth
        weights = [rates[f"conductances{i}"] for i in range(depth)]
        biases = [rates[f"bias{i}"] for i in range(1, depth + 1)]
        metrics = self.engine.train(images, labels, rows, weights, biases, weight)
        names = ("loss", "error", "residual", "kink_share")
        return dict(zip(names if self.method == "ep" else names[:3], metrics.T))

    def _checked_in_turn(self, rows: int, samples: int) -> None:
        """Once an epoch: hold β against the least conductance that the outputs have with all hidden units free."""
        if self.method != "ep" or self.learning.variant == "positive":
            return
        self._unchecked += rows
        if self._unchecked < samples and self._checked:
            return
        self._unchecked, self._checked = 0, True
        try:
            least = self.network().least_output_conductance()
        except TopologyError:
            return  # the engine names the unit
        if least <= self.learning.beta:
            raise ConvergenceError(
                f"a nudge of -{self.learning.beta} S leaves no convex energy: the outputs have {least:.3g} S at least, "
                "seen through free hidden units; lower beta, or nudge with the positive variant"
            )

    def warm_up(self, images: np.ndarray, labels: np.ndarray) -> None:
        """Compile all kernels of a step ahead of time measurements; parameters are unchanged.

        Parameters
        ----------
        images : (N, inputs) ndarray
            Bytes or floats: kernels are compiled for their type.
        labels : (N,) ndarray of int64
            Classes.
        """
        zeros = [0.0] * self.engine.architecture.depth
        self.engine.train(images, labels, np.empty(0, np.int64), zeros, zeros)
        self.engine.pending = False

    def state_arrays(self) -> Arrays:
        """Final states of the last mini-batch, and the step kept for the first layer."""
        m = self.engine.memory
        return {
            "free": m.free,
            "shift": m.shift,
            "drop": m.drop,
            "slot": m.slot[0],
            "pixels": m.pixels[0],
            "pending": np.array(self.engine.pending),
        }

    def load_state_arrays(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take back what `state_arrays` gave."""
        if "pending" not in arrays:
            raise CheckpointError("the checkpoint is not one of a layered network")
        mine = self.state_arrays()
        copy_into(mine, arrays, "states")
        self.engine.pending = bool(mine["pending"])
        self.engine.refresh()

    def outputs(self, images: np.ndarray) -> np.ndarray:
        """(N, outputs) volts after the free sweeps, from zero."""
        network, size = self.network(), max(1, TEST_STATES // sum(self.engine.architecture.units[1:]))
        parts = [as_inputs(images[start : start + size], self.engine.dtype) for start in range(0, len(images), size)]
        return np.concatenate([network.relax(part).output for part in parts])

    def network(self) -> DeepResistiveNetwork:
        """A copy of the network as it is now, which makes as many sweeps as its training did."""
        engine = self.engine
        tolerance = self.learning.tolerance
        return DeepResistiveNetwork(
            engine.architecture,
            engine.get(),
            sweeps=self.learning.sweeps,
            tolerance=tolerance,
            dtype=engine.dtype,
            copy=None,
        )
