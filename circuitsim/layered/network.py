"""Deep resistive networks of an `Architecture` (Scellier 2024, §3 and Appendix D), and as circuits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from circuitsim.blocks.layered import Sweeps
from circuitsim.blocks.resistive import Crossbar, ResistiveBlock
from circuitsim.layered.architecture import Architecture

Arrays = dict[str, np.ndarray]


def initial_parameters(architecture: Architecture, rng: np.random.Generator, dtype: Any = np.float64) -> Arrays:
    """Conductances max(0, w), w uniform in ±sqrt(1 / inputs of the layer), S; biases 0, A."""
    return {
        name: Crossbar(*shape).draw(rng).astype(dtype) if len(shape) == 2 else np.zeros(shape, dtype)
        for name, shape in architecture.parameter_shapes().items()
    }


class DeepResistiveNetwork(ResistiveBlock):
    """A layered network of resistors, ideal diodes, sources and bidirectional amplifiers; an `EnergyBlock`.

    Inputs x enter as voltage sources +A x and −A x, each with its row of conductances. The first half of a hidden layer
    has diodes that hold it at v ≥ 0, the rest at v ≤ 0; outputs have none. Biases are current sources into units.

    Parameters
    ----------
    architecture : Architecture or sequence of int
        A sequence counts units: inputs, hidden layers, outputs.
    parameters : mapping, optional
        Arrays as `Architecture.parameter_shapes` names them (S and A); random otherwise.
    rng : numpy.random.Generator or int
        Source of random parameters.
    sweeps : int
        Sweeps of a relaxation, or their limit; free and nudged ones take the layers in the same order.
    tolerance : float
        0 makes exactly ``sweeps`` sweeps; otherwise they end when no unit moves by more than this, relative to the sum
        of the magnitudes of the terms of its balance of currents.
    dtype : dtype
        float64 or float32.
    copy : bool, optional
        None takes arrays of that type as they are, without a copy.
    """

    def __init__(
        self,
        architecture: Architecture | tuple[int, ...] | list[int],
        parameters: Mapping[str, np.ndarray] | None = None,
        rng: np.random.Generator | int = 0,
        sweeps: int = 1000,
        tolerance: float = 1e-9,
        dtype: Any = np.float64,
        copy: bool | None = True,
    ) -> None:
        if not isinstance(architecture, Architecture):
            architecture = Architecture(tuple(architecture))
        self.architecture = architecture
        rule = Sweeps(sweeps, sweeps, tolerance or None, reverse_nudged=False)
        super().__init__(
            architecture.units[1:],
            architecture.units[0],
            architecture.input_gain,
            0.0,
            rule,
            1.0,
            rng,
            dtype,
            architecture.gains,
            parameters,
            copy,
        )

    @classmethod
    def _restored(cls, options: Mapping[str, Any], parameters: Mapping[str, np.ndarray], dtype: Any) -> Self:
        units, rule = (options["inputs"], *options["layers"]), options["sweeps"]
        architecture = Architecture(units, options["gain"], options["gains"])
        return cls(architecture, parameters, 0, rule.free, rule.tolerance or 0.0, dtype, None)

    def to_circuit(self, x: np.ndarray) -> Any:
        """The same network for one input as a `Circuit`; see `circuitsim.layered.deck.to_circuit`."""
        from circuitsim.layered.deck import to_circuit

        return to_circuit(self, x)
