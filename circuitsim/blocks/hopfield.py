"""Deep Hopfield networks as blocks: layers of clipped units, coupled symmetrically to their neighbours.

    E = Σ_l [G_l(s_l) − b_l · s_l] − s_1 · (x W_0) − Σ_{l≥1} s_{l+1} · (s_l W_l)

G is ½ s² on [0, 1] for ``ernoult`` units (Ernoult et al. 2019), s² on [0, 1] for ``laborieux`` units (Laborieux et al.
2021), ½ s² without bounds for an unclamped last layer (Nest & Ernoult 2024, App. A.4 and Table 4; their Eqs 89–90 carry
a stray ½). Without input weights W_0 is the identity: x enters the first layer as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from circuitsim.blocks.alternating import DenseCoupling, Layer
from circuitsim.blocks.layered import LayeredBlock, Sweeps
from circuitsim.blocks.protocol import check_named

#: Curvature of G for each activation: σ(u) = clip(u / slope, 0, 1).
ACTIVATIONS = {"ernoult": 1.0, "laborieux": 2.0}


def hopfield_layers(
    shapes: Sequence[tuple[int, ...]], activation: str, clamped: bool, bias: float = 0.0
) -> list[Layer]:
    """Layers of these shapes; the last one is linear unless it is clamped too."""
    check_named(activation=(activation, ACTIVATIONS))
    layers = [Layer(shape, ACTIVATIONS[activation], 0.0, 1.0, bias) for shape in shapes]
    return layers if clamped else [*layers[:-1], *map(Layer, shapes[-1:])]


@dataclass(eq=False, repr=False)
class DeepHopfieldBlock(LayeredBlock):
    """A fully connected deep Hopfield network.

    Parameters
    ----------
    layers : sequence of int
        Units of each layer, first to last.
    activation : {"ernoult", "laborieux"}
    clamped : bool
        Whether the last layer is clipped too; otherwise it is linear, with slope 1.
    inputs : int, optional
        Length of x if the block has input weights; otherwise x is the linear term of each unit of the first layer.
    sweeps : Sweeps
        How it relaxes.
    spread : float
        Weights start uniform in ±spread/√(units before them).
    gain : float, optional
        Given, the weights between layers start orthogonal, with all singular values equal to this. Below half the
        slope of the activation the energy is convex however many layers there are.
    bias : float
        Of clipped units, to start with; half the slope of the activation puts them in the middle of their range.
    rng : Generator or int
        Source of the weights.
    dtype : dtype
        Of parameters and states.
    """

    kind = "deep-hopfield"

    layers: Sequence[int]
    activation: str = "ernoult"
    clamped: bool = True
    inputs: int | None = None
    sweeps: Sweeps = field(default_factory=Sweeps)
    spread: float = 0.5
    gain: float | None = None
    bias: float = 0.0
    rng: InitVar[Any] = 0
    dtype: InitVar[Any] = np.float64

    def __post_init__(self, rng: Any, dtype: Any) -> None:
        layers = hopfield_layers([(units,) for units in self.layers], self.activation, self.clamped, self.bias)
        couplings = [DenseCoupling(lower, upper, self.spread, self.gain) for lower, upper in pairwise(self.layers)]
        entry = None if self.inputs is None else DenseCoupling(self.inputs, self.layers[0], self.spread)
        self._assemble(layers, couplings, entry, rng, dtype)
