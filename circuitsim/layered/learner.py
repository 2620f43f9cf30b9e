"""Deep resistive networks as something the trainer can train, in compiled steps."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping
from typing import Any

import numpy as np

from circuitsim.blocks.protocol import check_named, strengths
from circuitsim.errors import ConvergenceError, TopologyError, UsageError
from circuitsim.layered import steps
from circuitsim.layered.network import (
    WORTH_SHARING,
    DeepResistiveNetwork,
    allocate,
    fill_tiles,
    first_matrix,
    inner_matrix,
    lay_out,
)
from circuitsim.learning.chain import Chain
from circuitsim.learning.estimate import Rule
from circuitsim.learning.rules import rule_named
from circuitsim.training.checkpoint import Arrays, Batch, copy_into

#: Steps whose images are made numbers of the network's type at a time.
STEPS = 256

Numbers = namedtuple("Numbers", "samples sweeps nudged_sweeps tolerance beta lower upper backpropagates gain")
"""Of a step: samples, rounded up to a multiple of 4; the network's sweeps; the nudge; whether the states at −β and
at +β are used (an unused one is replaced by the free state), or backpropagation; A, the factor of the pixels."""

COMPILED = ("ep", "bp")
"""Methods of the compiled steps."""

METRICS = ("loss", "error", "residual", "kink_share")


def resistive_chain(
    network: DeepResistiveNetwork,
    batch: int,
    method: str | Rule = "ep",
    beta: float = 1.0,
    variant: str = "centred",
) -> Chain:
    """A chain of one deep resistive network that learns classes, as published: outputs are nudged by resistors.

    Parameters
    ----------
    network : DeepResistiveNetwork
        Its ``sweeps`` are those of free and nudged phases.
    batch : int
        Samples in a step; each starts at the nudged state of its slot in the step before.
    method : str or Rule
        Equilibrium propagation, truncated backpropagation (``bp``), or any other rule.
    beta : float
        Strength of the nudge, S.
    variant : {"centred", "positive", "negative"}
        Which nudged states equilibrium propagation contrasts.
    """
    rule = rule_named(method, beta=beta, variant=variant, nudging="resistor", bracket=False)
    return Chain([network], "mse", rule, None, network.parameters["bias1"].dtype, warm=batch)


class LayeredLearner:
    """A deep resistive network that classifies images; satisfies `circuitsim.training.FusedTrainable`.

    The compiled form of `resistive_chain`: the same steps to rounding.

    Parameters
    ----------
    network : DeepResistiveNetwork
        The start, without amplifiers (all gains 1); it is not changed. Its type, float32 or float64, is that of
        everything.
    batch, beta, variant
        As for `resistive_chain`.
    method : {"ep", "bp"}
        Equilibrium propagation; truncated backpropagation, through as many sweeps as a nudged phase makes.
    threads : int
        Number of threads for the large matrices. The bits of the result do not depend on it.

    Notes
    -----
    The step of the first layer is made during the products with the next mini-batch, or by `flush`; later results have
    the same bits.
    """

    def __init__(
        self,
        network: DeepResistiveNetwork,
        batch: int,
        method: str = "ep",
        beta: float = 1.0,
        variant: str = "centred",
        threads: int = 1,
    ) -> None:
        check_named(method=(method, COMPILED))
        if set(network.architecture.gains) != {1.0}:
            raise UsageError(
                "the compiled engine has no amplifiers between layers; train the network as a block instead"
            )
        chain = resistive_chain(network.at(network.parameters), batch, method, beta, variant)
        self.batch, self.method, self.beta, self.variant, self.threads = batch, method, beta, variant, threads
        self.rule, self.dtype = chain.rule, chain.dtype
        self._block, self.layout = chain.block, lay_out(network.architecture.units)
        sweeps, samples, nudges = network.sweeps, -(-batch // 4) * 4, strengths(variant, beta)
        groups = 2 * sweeps.nudged if method == "bp" else 1
        self.memory = allocate(self.layout, samples, groups, self.dtype)
        # Small matrices are never shared: nothing more to compile for them.
        large = self.memory.tiles.size >= steps.WORTH_THREADS or self.layout.size > WORTH_SHARING
        self._shared = threads > 1 and large
        # Whole numbers are of another type: the kernels would be compiled again.
        self._numbers = Numbers(
            samples,
            sweeps.free,
            sweeps.nudged,
            sweeps.tolerance or 0.0,
            float(beta),
            method == "ep" and min(nudges) < 0,
            max(nudges) > 0,
            method == "bp",
            float(network.gain),
        )
        self._pending, self._changed, self._unchecked = False, True, float("inf")
        start, stored = network.parameters, self.parameters
        fill_tiles(self.layout, stored.pop("conductances0"), start["conductances0"])
        for name, memory in stored.items():
            memory[...] = start[name]

    def __repr__(self) -> str:
        units = "-".join(map(str, self.layout.units))
        return f"LayeredLearner({units}, {self.method}, {self._block.sweeps!r}, batch={self.batch})"

    @property
    def parameters(self) -> Arrays:
        """The memory of each parameter as it is stored; the pending step of the first layer is not in it."""
        layout, bias = self.layout, self.memory.bias
        layers = range(1, layout.units.size)
        found = {"conductances0": self.memory.tiles}
        found |= {f"conductances{i - 1}": inner_matrix(layout, self.memory.inner, i) for i in layers[1:]}
        return found | {f"bias{i}": bias[layout.at[i] :][: layout.units[i]] for i in layers}

    def steps(
        self, data: Batch, rows: np.ndarray, batch: int, rates: Mapping[str, float], rng: np.random.Generator
    ) -> Arrays:
        """Train on images (bytes, 255 for one, or floats) and labels (int64).

        The metrics are ``loss``, ``error`` and ``residual``, all at the free state before each step, and with
        equilibrium propagation ``kink_share``, the fraction of hidden units whose diode changes between the phases.

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
            A unit is left without conductance, or (checked once an epoch) a nudge of −β makes the energy nonconvex
            in some state of the diodes.
        """
        if batch != self.batch:
            raise UsageError(f"the network was built for mini-batches of {self.batch}, not {batch}")
        if self.method == "ep" and self.variant != "positive":
            self._unchecked += len(rows)
            if self._unchecked >= len(data[0]):
                self._unchecked = 0
                self._check_nudge()
        return self._made(data, rows, rates)

    def _made(self, data: Batch, rows: np.ndarray, rates: Mapping[str, float]) -> Arrays:
        images, labels, *given = data
        weight = given[0] if given else np.ones(len(images))
        by_layer = np.array([rates[name] for name in self.parameters], self.dtype).reshape(2, -1)
        metrics = np.full((-(-len(rows) // self.batch), len(METRICS)), np.nan)
        for start in range(0, max(1, len(metrics)), STEPS):
            some = rows[start * self.batch : (start + STEPS) * self.batch]
            done, status, layer, unit = self._threaded(
                steps.train,
                *by_layer,
                as_inputs(images[some], self.dtype),
                labels[some],
                weight[some].astype(np.float64),
                self.batch,
                metrics[start : start + STEPS],
                self._changed,
            )
            self._pending, self._changed = True, False
            if status == steps.NEGATIVE_CONDUCTANCE:
                raise ConvergenceError(
                    f"output {unit + 1} has less conductance than the nudge of -{self.beta} S takes away; "
                    "lower beta, or nudge with the positive variant"
                )
            if status == steps.ZERO_CONDUCTANCE:
                raise ConvergenceError(
                    f"unit {unit + 1} of layer {layer} has no conductance left after {done} more steps; "
                    "try a lower learning rate"
                )
        return dict(zip(METRICS if self.method == "ep" else METRICS[:3], metrics.T))

    def _check_nudge(self) -> None:
        """Hold β against the least conductance that the outputs have with all hidden units free."""
        try:
            least = self.network().least_output_conductance()
        except TopologyError:
            return  # the steps name the unit
        if least <= self.beta:
            raise ConvergenceError(
                f"a nudge of -{self.beta} S makes the energy nonconvex: the outputs have only "
                f"{least:.3g} S through free hidden units; lower beta, or nudge with the positive variant"
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
        self._made((images, labels), np.empty(0, np.int64), dict.fromkeys(self.parameters, 0.0))
        self._pending = False

    def flush(self) -> None:
        """Make the pending step of the first layer."""
        if self._pending:
            self.memory.slot[1] = -1
            self._threaded(steps.advance, 0)
            self.memory.slot[0], self.memory.drop[:] = -1, 0
            self._pending = False

    def state_arrays(self) -> Arrays:
        """Final states of the last mini-batch, and the step kept for the first layer."""
        m = self.memory
        pending = np.array(self._pending)
        return {
            "free": m.free,
            "shift": m.shift,
            "drop": m.drop,
            "slot": m.slot[0],
            "pixels": m.pixels[0],
            "pending": pending,
        }

    def load_state_arrays(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take back what `state_arrays` gave."""
        mine = self.state_arrays()
        copy_into(mine, arrays, "states")
        # The inner matrices were changed from outside: the next step sums them again.
        self._pending, self._changed = bool(mine["pending"]), True

    def outputs(self, images: np.ndarray) -> np.ndarray:
        """(N, outputs) volts after the free sweeps, from zero."""
        return Chain([self.network()], "mse", None, None, self.dtype).output(as_inputs(images, self.dtype))

    output = outputs

    def network(self) -> DeepResistiveNetwork:
        """A copy of the network at its present parameters, with the sweeps of the training."""
        self.flush()
        first = first_matrix(self.layout, self.memory.tiles)
        return self._block.at({**self.parameters, "conductances0": first})

    @property
    def block(self) -> DeepResistiveNetwork:
        """`network`, as chains call theirs."""
        return self.network()

    def _threaded(self, kernel: Any, *arguments: Any) -> Any:
        arguments = (self.memory, self.layout, self._numbers, *arguments)
        if not self._shared:
            return kernel(*arguments, None)
        from circuitsim._jit import with_threads

        return with_threads(self.threads, kernel, *arguments, True)


def as_inputs(images: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Bytes as fractions of 255; numbers as they are."""
    return images / dtype.type(255) if images.dtype == np.uint8 else images.astype(dtype)
