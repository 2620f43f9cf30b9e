"""Deep resistive networks of an `Architecture` (Scellier 2024, §3 and Appendix D), and as circuits.

The published architectures are rows of a table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from circuitsim.blocks.layered import Sweeps
from circuitsim.blocks.resistive import ResistiveBlock
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import AMPLIFIER, CURRENT, DIODE, RESISTOR, VOLTAGE
from circuitsim.errors import UsageError
from circuitsim.training.presets import Preset


@dataclass(frozen=True)
class Architecture:
    """Layers and gains.

    Attributes
    ----------
    units : tuple of int
        Inputs (counted once; each becomes two voltage sources, +A x and −A x), hidden layers, outputs.
    input_gain : float
        A, V for an input of one.
    gains : tuple of float
        a^(ℓ) of the bidirectional amplifiers after each layer 1..L (Scellier 2024, App. D); empty for none.
    """

    units: tuple[int, ...]
    input_gain: float = 1.0
    gains: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "units", tuple(int(n) for n in self.units))
        object.__setattr__(self, "gains", tuple(float(a) for a in self.gains) or (1.0,) * self.depth)
        if len(self.units) < 3 or min(self.units) < 1:
            raise UsageError(f"a network has inputs, at least one hidden layer and outputs, not layers {self.units}")
        if min(self.units[1:-1]) < 2:
            raise UsageError(
                "a hidden layer needs at least 2 units: one that may be positive, one that may be negative"
            )

    @property
    def depth(self) -> int:
        """L, the number of layers without the input."""
        return len(self.units) - 1


class ResistivePreset(Preset):
    """A published model (`circuitsim.training.presets`)."""

    @property
    def architecture(self) -> Architecture:
        """For MNIST."""
        return Architecture((784, *self.hidden, 10), self.input_gain)


def published_models() -> dict[str, ResistivePreset]:
    """The published models by name."""
    return ResistivePreset.models("drn")


class DeepResistiveNetwork(ResistiveBlock):
    """A layered network of resistors, ideal diodes, sources and bidirectional amplifiers; an `EnergyBlock`.

    Inputs x enter as voltage sources +A x and −A x, each with its row of conductances. The first half of a hidden layer
    has diodes that hold it at v ≥ 0, the rest at v ≤ 0; outputs have none. Biases are current sources into units.

    Parameters
    ----------
    architecture : Architecture or sequence of int
        A sequence counts units: inputs, hidden layers, outputs.
    parameters : mapping, optional
        Arrays ``conductances0``, … (S; rows of +x first) and ``bias1``, … (A); random otherwise.
    rng : numpy.random.Generator, int or tuple of int
        Source of random parameters, or its seed.
    sweeps : int
        Sweeps of a relaxation, or their limit; free and nudged ones take the layers in the same order.
    tolerance : float
        0 makes exactly ``sweeps`` sweeps; otherwise they end when no unit moves by more than this, relative to the sum
        of the magnitudes of the terms of its balance of currents.
    dtype : dtype
        float64 or float32.
    """

    def __init__(
        self,
        architecture: Architecture | tuple[int, ...] | list[int],
        parameters: Mapping[str, np.ndarray] | None = None,
        rng: np.random.Generator | int | tuple[int, ...] = 0,
        sweeps: int = 1000,
        tolerance: float = 1e-9,
        dtype: Any = np.float64,
    ) -> None:
        if not isinstance(architecture, Architecture):
            architecture = Architecture(tuple(architecture))
        super().__init__(
            architecture.units[1:],
            architecture.units[0],
            architecture.input_gain,
            0.0,
            Sweeps(sweeps, sweeps, tolerance or None, reverse_nudged=False),
            rng=rng if parameters is None else parameters,
            dtype=dtype,
            gains=architecture.gains,
        )

    @property
    def architecture(self) -> Architecture:
        """Its layers and gains."""
        assert self.inputs is not None
        return Architecture((self.inputs, *self.layers), self.gain, tuple(self.gains))

    def least_output_conductance(self) -> float:
        """Minimum conductance, S, that the outputs have together, with inputs at 0 V and all hidden units free to move.

        Raises
        ------
        TopologyError
            A node has no conductance at all.
        """
        sums, known = self._conductance_sums(), np.empty(0)
        for layer in range(1, len(self.layers)):
            between = self.parameters[f"conductances{layer}"].astype(float)
            # Nothing joins units of the first layer: its matrix is diagonal.
            solved = between / sums[0][:, None] if layer == 1 else np.linalg.solve(known, between)
            known = np.diag(sums[layer].astype(float)) - between.T @ solved
        return float(np.linalg.eigvalsh(known)[0])

    def to_circuit(self, x: np.ndarray) -> Circuit:
        """The network with one input x, (inputs,), as a circuit.

        Nodes are called ``p1``, ``n1``, … (inputs +A x and −A x), ``h1_1``, ``h2_1``, … (hidden layer, unit) and
        ``out1``, …; with amplifiers a unit has its own name on their right side and ``…_in`` on their left.
        Conductances of zero are not elements; biases of zero neither.

        Raises
        ------
        UsageError
            x has another shape.
        """
        x = np.asarray(x, float)
        if x.shape != (self.n_inputs,):
            raise UsageError(f"one input has shape ({self.n_inputs},), not {x.shape}")
        nodes, branches = ["0"], list[list[np.ndarray]]()

        def named(names: Sequence[str]) -> np.ndarray:
            nodes.extend(names)
            return np.arange(len(nodes) - len(names), len(nodes))

        def add(kind: int, first: Any, second: Any, value: Any) -> None:
            branches.append([column.ravel() for column in np.broadcast_arrays(kind, first, second, value)])

        below = named([f"{sign}{k}" for sign in "pn" for k in range(1, len(x) + 1)])
        add(VOLTAGE, below, 0, np.concatenate([x, -x]) * self.gain)
        for layer, (units, gain) in enumerate(zip(self.layers, self.gains), start=1):
            is_output = layer == len(self.layers)
            names = [f"out{k}" if is_output else f"h{layer}_{k}" for k in range(1, units + 1)]
            right = left = named(names)
            if gain != 1:
                left = named([f"{name}_in" for name in names])
                add(AMPLIFIER, left, right, gain)
            conductance = self.parameters[f"conductances{layer - 1}"].astype(float)
            j, k = np.nonzero(conductance)
            add(RESISTOR, below[j], left[k], 1 / conductance[j, k])
            bias = self.parameters[f"bias{layer}"].astype(float)
            add(CURRENT, 0, right[bias != 0], bias[bias != 0])
            if not is_output:
                add(DIODE, 0, right[: units // 2], 0.0)
                add(DIODE, right[units // 2 :], 0, 0.0)
            below = right
        kind, first, second, value = (np.concatenate(column) for column in zip(*branches))
        title = f"deep resistive network {'-'.join(map(str, self.architecture.units))}"
        return Circuit.from_arrays(kind, first, second, value, len(nodes), title, node_names=nodes)
