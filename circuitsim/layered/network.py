"""Deep resistive networks of an `Architecture` (Scellier 2024, §3 and Appendix D), and as circuits.

The published architectures are rows of a table. `Layout` says where everything of such a network lies in the flat
arrays that its kernels work on.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from circuitsim._vectors import aligned
from circuitsim.blocks.layered import ResistiveBlock, Sweeps, diodes
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import AMPLIFIER, CURRENT, DIODE, RESISTOR, VOLTAGE
from circuitsim.errors import UsageError
from circuitsim.layered.tiles import TILE
from circuitsim.training.presets import Preset

#: Rows of an inner matrix that are handled together, and columns in a vector.
BLOCK, LANES = 4, 16
#: Shares in which the rows of inner matrices are handed to threads. Fixed, so that sums over rows do not depend on how
#: many threads there are.
PARTS = 8
#: Inner conductances from which their step is shared at all: to call threads takes microseconds.
WORTH_SHARING = 100_000

Layout = namedtuple(
    "Layout",
    "units width at matrix stride row_layer column_layer total size blocks updates",
)
"""Layers 1..L, each padded with units of zero conductance; entry 0 of every table is the input or unused.

The matrix between layers ℓ−1 and ℓ (ℓ ≥ 2) is stored by rows of the odd one of the two, and that into the outputs by
outputs, so that a row is long and one reading of it serves both directions of a sweep.

units, width, at : (L + 1,) units of each layer, the same with padding, the place of its first in an array over all.
total : units of all layers with padding.
matrix, stride, row_layer, column_layer : (L + 1,) of each inner matrix its place (and the end of the last), the length
    of a row with padding, and which layers its rows and columns are.
size : conductances of all inner matrices.
blocks : (n, 2) layer and first row of every block of `BLOCK` rows whose layer is odd.
updates : the same for the blocks of all inner matrices, matrix and first row.
"""

Memory = namedtuple(
    "Memory",
    "tiles inner bias low high no_low no_high mask slot where pixels shift drop free load tile_sums product inverse "
    "base sums nudged partial moved diff mean",
)
"""All arrays of a step; those of (samples, units) are flat. See `allocate`, and `steps` for ``diff`` and ``mean``."""


def lay_out(units: tuple[int, ...]) -> Layout:
    """The layout of a network; ``units`` counts pixels, hidden layers and outputs."""
    last = len(units) - 1
    width = [0, *(-(-n // TILE) * TILE for n in units[1:])]
    rows, columns, stride, matrix = [0, 0], [0, 0], [0, 0], [0, 0, 0]
    for upper in range(2, last + 1):
        rows.append(upper if upper == last or upper % 2 else upper - 1)
        columns.append(2 * upper - 1 - rows[-1])
        stride.append(width[columns[-1]])
        matrix.append(matrix[-1] + -(-units[rows[-1]] // BLOCK) * BLOCK * stride[-1])
    sweeping = [(layer, r) for layer in range(1, last + 1, 2) for r in range(0, units[layer], BLOCK)]
    updating = [(m, r) for m in range(2, last + 1) for r in range(0, units[rows[m]], BLOCK)]
    lists = units, width, [0, *np.cumsum([0, *width[1:-1]])], matrix, stride, rows, columns
    tables = [np.array(given, np.int64).reshape(-1, 2) for given in (sweeping, updating)]
    return Layout._make([*(np.array(given, np.int64) for given in lists), sum(width), matrix[-1], *tables])


def allocate(layout: Layout, samples: int, groups: int, dtype: np.dtype) -> Memory:
    """All arrays of a network at rest, zero conductances; ``groups`` times the samples are the rows of a gradient."""
    pixels, n, width = int(layout.units[0]), layout.total, int(layout.width[1])
    # The nudged phases have twice as many samples.
    states, twice = samples * n, 2 * samples * n
    sizes = {
        "tiles": 2 * pixels * width,
        "inner": layout.size,
        "partial": PARTS * twice,
        "moved": PARTS,
        "inverse": 3 * states,
        **dict.fromkeys(("bias", "low", "high", "no_low", "no_high", "mask", "load"), n),
        **dict.fromkeys(("drop", "tile_sums"), width),
        **dict.fromkeys(("shift", "product"), samples * width),
        **dict.fromkeys(("diff", "mean"), groups * states),
        "free": states,
        **dict.fromkeys(("base", "sums", "nudged"), twice),
    }
    made = Memory(
        slot=np.full((2, pixels), -1, np.int32),
        where=np.zeros(pixels, np.int32),
        pixels=aligned(2 * pixels * samples, dtype).reshape(2, -1),
        **{name: aligned(size, dtype) for name, size in sizes.items()},
    )
    made.no_low[:], made.no_high[:] = -np.inf, np.inf
    last = layout.units.size - 1
    for layer in range(1, last + 1):
        here = slice(layout.at[layer], layout.at[layer] + layout.units[layer])
        made.low[here], made.high[here] = diodes(int(layout.units[layer])) if layer < last else (-np.inf, np.inf)
        made.mask[here] = 1
    return made


def inner_matrix(layout: Layout, inner: np.ndarray, layer: int) -> np.ndarray:
    """The matrix below a layer from the second on, (units below, units): a view of the memory of all."""
    start, end = layout.matrix[layer : layer + 2]
    rows = inner[start:end].reshape(-1, layout.stride[layer])
    return (rows.T if layout.row_layer[layer] == layer else rows)[: layout.units[layer - 1], : layout.units[layer]]


def first_matrix(layout: Layout, tiles: np.ndarray) -> np.ndarray:
    """The matrix of the inputs, (2 · pixels, units): a copy from its tiles."""
    return _untiled(layout, tiles).reshape(2 * layout.units[0], -1)[:, : layout.units[1]]


def fill_tiles(layout: Layout, tiles: np.ndarray, matrix: np.ndarray) -> None:
    """Write the matrix of the inputs into its tiles."""
    whole, padded = _untiled(layout, tiles), np.zeros((2 * layout.units[0], layout.width[1]))
    padded[:, : layout.units[1]] = matrix
    whole[:] = padded.reshape(whole.shape)


def _untiled(layout: Layout, tiles: np.ndarray) -> np.ndarray:
    """(2, pixels, tiles, TILE) a view."""
    return tiles.reshape(-1, layout.units[0], 2, TILE).transpose(2, 1, 0, 3)


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
