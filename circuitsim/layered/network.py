"""Deep resistive networks as energy blocks (Scellier 2024, §3 and Appendix D): plain arrays, any batch, any gains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from circuitsim.blocks.protocol import Nudge
from circuitsim.errors import ConvergenceError, UsageError
from circuitsim.layered import baselines, numpy_layers
from circuitsim.layered.architecture import Architecture
from circuitsim.layered.numpy_layers import Drive, Tilt, output_conductance
from circuitsim.training.checkpoint import CheckpointError, load_checkpoint, save_checkpoint

Arrays = dict[str, np.ndarray]
_KIND = "deep resistive network"


def initial_parameters(architecture: Architecture, rng: np.random.Generator, dtype: Any = np.float64) -> Arrays:
    """Conductances max(0, w), w uniform in ±sqrt(1 / inputs of the layer), S; biases 0, A."""
    return {
        name: numpy_layers.initial_weights(shape, rng, dtype) if len(shape) == 2 else np.zeros(shape, dtype)
        for name, shape in architecture.parameter_shapes().items()
    }


@dataclass(frozen=True)
class ResistiveState:
    """Relaxed potentials of a batch.

    Attributes
    ----------
    layers : tuple of (batch, units) ndarray
        Volts of layers 1..L, in front of each layer's amplifiers' common scale (physical volts).
    residual : (batch,) ndarray
        Largest net current that a unit's diode cannot carry, relative to Σ g (|v_j| + |v_k|) + |b| at that unit.
    certified : (batch,) ndarray of bool
        Residual within the requested tolerance; always true for a fixed number of sweeps.
    sweeps : int
        Number of sweeps made.
    """

    layers: tuple[np.ndarray, ...]
    residual: np.ndarray
    certified: np.ndarray
    sweeps: int

    @property
    def output(self) -> np.ndarray:
        """(batch, outputs), V."""
        return self.layers[-1]

    @property
    def active(self) -> np.ndarray:
        """(batch, hidden units) bool: held at 0 V by their diode."""
        return np.concatenate([layer == 0.0 for layer in self.layers[:-1]], axis=1)


class DeepResistiveNetwork:
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
        Sweeps of a relaxation, or their limit.
    tolerance : float
        0 makes exactly ``sweeps`` sweeps; otherwise they end when every sample's residual is below it.
    dtype : dtype
        float64 or float32.
    copy : bool, optional
        None takes arrays of that type as they are, without a copy.

    Notes
    -----
    The energy is that of the network in the scale v / c in which amplifiers are wires (`Architecture.amplification`):
    E = ½ Σ g (v_j / c_j − v_k / c_k)² − Σ b v / c. A nudge acts on the physical outputs, so that contrastive estimates
    are gradients of the loss without further factors: the nudge β (c^(L))² of Scellier's Appendix D.
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
        self.architecture, self.sweeps, self.tolerance = architecture, sweeps, tolerance
        if parameters is None:
            parameters = initial_parameters(architecture, np.random.default_rng(rng), dtype)
        shapes = architecture.parameter_shapes()
        if {name: np.shape(array) for name, array in parameters.items()} != shapes:
            raise UsageError(f"the parameters must have shapes {shapes}")
        self._parameters = {name: np.array(parameters[name], dtype, copy=copy) for name in shapes}

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        """``weights.1`` (2 inputs, units; rows of +x first), ``weights.2``, …, S; ``biases.1``, …, A."""
        return self._parameters

    def at(self, parameters: Mapping[str, np.ndarray]) -> DeepResistiveNetwork:
        """The same network with parameters of its own, copies of those given."""
        dtype = self._parameters["weights.1"].dtype
        return DeepResistiveNetwork(
            self.architecture, parameters, sweeps=self.sweeps, tolerance=self.tolerance, dtype=dtype
        )

    @property
    def n_inputs(self) -> int:
        """Inputs, counted once."""
        return self.architecture.units[0]

    @property
    def n_outputs(self) -> int:
        """Outputs."""
        return self.architecture.units[-1]

    def relax(self, x: np.ndarray, nudge: Nudge | None = None, start: ResistiveState | None = None) -> ResistiveState:
        """The state of least (tilted) energy for each row of x, (batch, inputs).

        Raises
        ------
        ConvergenceError
            A unit has no conductance, or the nudge takes away more than an output has.
        """
        given, scale = self._drive(x)
        inner, biases = self._upper()
        u = self._start(len(x), start)
        sums = numpy_layers.conductances(inner, given.load)
        self._check(sums, nudge)
        residual = np.full(len(x), np.inf)
        for sweep in range(1, self.sweeps + 1):
            u = numpy_layers.sweep(inner, biases, given, sums, u, self._tilt(nudge, u[-1]))
            if self.tolerance > 0 or sweep == self.sweeps:
                tilt = self._tilt(nudge, u[-1])
                residual = numpy_layers.residual(inner, biases, given, scale, u, tilt)
                if self.tolerance > 0 and (residual <= self.tolerance).all():
                    break
        certified = residual <= self.tolerance if self.tolerance > 0 else np.ones(len(x), bool)
        certified &= self._strict(inner, sums, u, self._tilt(nudge, u[-1]))
        scales = self.architecture.amplification[1:]
        return ResistiveState(tuple(a * a.dtype.type(c) for a, c in zip(u, scales)), residual, certified, sweep)

    def energy(self, state: ResistiveState, x: np.ndarray) -> np.ndarray:
        """(batch,) the untilted energy, W."""
        total = np.zeros(len(x))
        u = self._scaled(state)
        below = np.concatenate([x, -x], axis=1) * self.architecture.input_gain
        for layer, here in enumerate(u, 1):
            g = self._parameters[f"weights.{layer}"]
            total += 0.5 * (below**2 @ g.sum(axis=1) + here**2 @ g.sum(axis=0)) - ((below @ g) * here).sum(axis=1)
            total -= here @ (self._parameters[f"biases.{layer}"] / self.architecture.amplification[layer])
            below = here
        return total

    def parameter_difference(
        self, plus: ResistiveState, minus: ResistiveState, x: np.ndarray, weight: np.ndarray
    ) -> Arrays:
        """Σ_b weight_b (∂E/∂θ at plus − ∂E/∂θ at minus), as products of differences and means."""
        pair = numpy_layers.contrast(self._scaled(plus), self._scaled(minus), np.asarray(weight))
        return self._named(baselines.contrastive(pair), x)

    def input_difference(self, plus: ResistiveState, minus: ResistiveState, x: np.ndarray) -> np.ndarray:
        """(batch, inputs): by how much the currents that the input sources deliver differ, times ± A."""
        half, first = self.n_inputs, self._parameters["weights.1"]
        difference = self._scaled(plus)[0] - self._scaled(minus)[0]
        return -self.architecture.input_gain * (difference @ (first[:half] - first[half:]).T)

    def implicit(
        self, state: ResistiveState, x: np.ndarray, cotangent: np.ndarray, weight: np.ndarray
    ) -> tuple[Arrays, np.ndarray]:
        """Exact derivatives of cotangent · output at a converged free state (see `EnergyBlock.implicit`)."""
        given, _ = self._drive(x)
        inner, _ = self._upper()
        u = self._scaled(state)
        slope = np.asarray(cotangent) * self.architecture.amplification[-1]
        adjoint = baselines.adjoint(inner, given.load, u, slope)
        half, first = self.n_inputs, self._parameters["weights.1"]
        by_input = -self.architecture.input_gain * (adjoint[0] @ (first[:half] - first[half:]).T)
        weighted = [a * np.asarray(weight)[:, None] for a in adjoint]
        return self._named(baselines.contrastive(numpy_layers.Contrast(weighted, u)), x), by_input

    def project(self) -> None:
        """Conductances back to zero or more."""
        for name, array in self._parameters.items():
            if name.startswith("weights"):
                np.maximum(array, 0, out=array)

    def save(self, path: Path | str) -> None:
        """Write architecture, settings and parameters: npz of plain arrays and one JSON text."""
        facts = {"kind": _KIND, **asdict(self.architecture), "sweeps": self.sweeps, "tolerance": self.tolerance}
        save_checkpoint(Path(path), self._parameters, facts)

    @classmethod
    def load(cls, path: Path | str) -> DeepResistiveNetwork:
        """Read what `save` wrote.

        Raises
        ------
        CheckpointError
            The file is missing, damaged or holds something else.
        """
        arrays, facts = load_checkpoint(Path(path))
        if facts.get("kind") != _KIND:
            raise CheckpointError(f"{path} does not hold a deep resistive network")
        architecture = Architecture(tuple(facts["units"]), facts["input_gain"], tuple(facts["gains"]))
        dtype = arrays["weights.1"].dtype
        return cls(architecture, arrays, sweeps=facts["sweeps"], tolerance=facts["tolerance"], dtype=dtype, copy=None)

    def to_circuit(self, x: np.ndarray) -> Any:
        """The same network for one input as a `Circuit`; see `circuitsim.layered.deck.to_circuit`."""
        from circuitsim.layered.deck import to_circuit

        return to_circuit(self, x)

    def _drive(self, x: np.ndarray) -> tuple[Drive, np.ndarray]:
        """The drive, and Σ g |A x| at each first-layer unit."""
        x = np.asarray(x, self._parameters["weights.1"].dtype)
        if x.ndim != 2 or x.shape[1] != self.n_inputs:
            raise UsageError(f"inputs must have shape (batch, {self.n_inputs}), not {x.shape}")
        first, half = self._parameters["weights.1"], self.n_inputs
        size = np.abs(x) @ (first[:half] + first[half:]) * x.dtype.type(self.architecture.input_gain)
        return numpy_layers.drive(first, x, self.architecture.input_gain), size

    def _upper(self) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Matrices of layers 2..L, and biases in the network's scale."""
        depth, scales = self.architecture.depth, self.architecture.amplification
        inner = [self._parameters[f"weights.{layer}"] for layer in range(2, depth + 1)]
        biases = [self._parameters[f"biases.{layer}"] for layer in range(1, depth + 1)]
        return inner, [b / b.dtype.type(c) for b, c in zip(biases, scales[1:])]

    def _start(self, batch: int, start: ResistiveState | None) -> list[np.ndarray]:
        if start is not None:
            return self._scaled(start)
        dtype = self._parameters["weights.1"].dtype
        return [np.zeros((batch, n), dtype) for n in self.architecture.units[1:]]

    def _scaled(self, state: ResistiveState) -> list[np.ndarray]:
        return [v / v.dtype.type(c) for v, c in zip(state.layers, self.architecture.amplification[1:])]

    def _tilt(self, nudge: Nudge | None, u: np.ndarray) -> Tilt | None:
        """The nudge in the network's scale: linear · c u + ½ stiffness ‖c u‖²."""
        if nudge is None:
            return None
        scale = self.architecture.amplification[-1]
        linear = nudge.linear if nudge.follow is None else nudge.follow(u * scale)
        return Tilt(np.asarray(linear, u.dtype) * u.dtype.type(scale), nudge.stiffness * scale**2)

    def _check(self, sums: list[np.ndarray], nudge: Nudge | None) -> None:
        for layer, here in enumerate(sums, 1):
            if not (here > 0).all():
                unit = int(np.flatnonzero(~(here > 0))[0])
                raise ConvergenceError(f"unit {unit + 1} of layer {layer} has no conductance")
        if nudge is not None and nudge.stiffness < 0:
            tilt = nudge.stiffness * self.architecture.amplification[-1] ** 2
            if not (sums[-1] + tilt > 0).all():
                raise ConvergenceError(f"a nudge of {nudge.stiffness} S takes away more conductance than an output has")

    def _strict(
        self, inner: list[np.ndarray], sums: list[np.ndarray], u: list[np.ndarray], tilt: Tilt | None
    ) -> np.ndarray:
        """(batch,) whether a nudge of negative stiffness leaves the energy convex on the units free to move."""
        strict = np.ones(len(u[0]), bool)
        if tilt is None or tilt.stiffness >= 0.0:
            return strict

        def convex(free: list[np.ndarray]) -> bool:
            return bool(np.linalg.eigvalsh(output_conductance(inner, sums, free))[0] + tilt.stiffness > 0.0)

        if convex([np.ones(layer.shape[1], bool) for layer in u[:-1]]):
            return strict  # in every state of the diodes
        for sample in range(strict.size):
            strict[sample] = convex([layer[sample] != 0.0 for layer in u[:-1]])
        return strict

    def _named(self, gradient: baselines.Gradient, x: np.ndarray) -> Arrays:
        """A gradient in the network's scale as derivatives by the parameters."""
        x = np.asarray(x, gradient.shift.dtype)
        weights = [gradient.first(x, self.architecture.input_gain), *gradient.inner]
        biases = [b / c for b, c in zip(gradient.biases, self.architecture.amplification[1:])]
        found = {f"weights.{layer}": array for layer, array in enumerate(weights, 1)}
        return found | {f"biases.{layer}": array for layer, array in enumerate(biases, 1)}
