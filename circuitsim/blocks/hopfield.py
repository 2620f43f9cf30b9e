"""Deep Hopfield networks as blocks: layers of clipped units, coupled symmetrically to their neighbours.

    E = Σ_l [G_l(s_l) − b_l · s_l] − s_1 · (x W_0) − Σ_{l≥1} s_{l+1} · (s_l W_l)

G is ½ s² on [0, 1] for ``ernoult`` units (Ernoult et al. 2019), s² on [0, 1] for ``laborieux`` units (Laborieux et al.
2021), ½ s² without bounds for an unclamped last layer (Nest & Ernoult 2024, App. A.4 and Table 4; their Eqs 89–90 carry
a stray ½). Without input weights W_0 is the identity: x enters the first layer as it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import numpy as np

from circuitsim.blocks.alternating import Layer
from circuitsim.blocks.couplings import Coupling, DenseCoupling
from circuitsim.blocks.layered import LayeredBlock, LayeredState, Sweeps
from circuitsim.errors import UsageError

__all__ = ["ACTIVATIONS", "DeepHopfieldBlock", "HopfieldBlock", "LayeredState", "Sweeps"]

#: Curvature of G for each activation: σ(u) = clip(u / slope, 0, 1).
ACTIVATIONS = {"ernoult": 1.0, "laborieux": 2.0}


class HopfieldBlock(LayeredBlock):
    """A Hopfield energy on layers of any shape; `DeepHopfieldBlock` and `ConvolutionalHopfieldBlock` build it.

    Attributes
    ----------
    parameters : dict of array
        ``weights0`` of the inputs (if any), ``weights1`` … between layers l and l + 1, ``bias1`` … of the layers.
    sweeps : Sweeps
    """

    def __init__(
        self,
        shapes: Sequence[tuple[int, ...]],
        couplings: Sequence[Coupling],
        sweeps: Sweeps,
        activation: str = "ernoult",
        clamped: bool = True,
        inputs: DenseCoupling | None = None,
        bias: float = 0.0,
        rng: Any = 0,
        dtype: Any = np.float64,
    ) -> None:
        if activation not in ACTIVATIONS:
            raise UsageError(f"there is no activation '{activation}'; there are {', '.join(ACTIVATIONS)}")
        layers = [Layer(tuple(shape), ACTIVATIONS[activation], 0.0, 1.0, bias) for shape in shapes]
        if layers and not clamped:
            layers[-1] = Layer(tuple(shapes[-1]), 1.0, -math.inf, math.inf)
        self.activation = activation
        self.clamped = clamped
        super().__init__(layers, couplings, inputs, sweeps, rng, dtype)


class DeepHopfieldBlock(HopfieldBlock):
    """A fully connected deep Hopfield network.

    Parameters
    ----------
    layers : sequence of int
        Units of each layer, first to last.
    activation : {"ernoult", "laborieux"}
    clamped : bool
        Whether the last layer is clipped too; otherwise it is linear, with slope 1.
    inputs : int, optional
        Length of x where the block has input weights of its own; otherwise x is a pull on each unit of the first layer.
    sweeps : Sweeps, optional
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

    def __init__(
        self,
        layers: Sequence[int],
        activation: str = "ernoult",
        clamped: bool = True,
        inputs: int | None = None,
        sweeps: Sweeps | None = None,
        spread: float = 0.5,
        gain: float | None = None,
        bias: float = 0.0,
        rng: Any = 0,
        dtype: Any = np.float64,
    ) -> None:
        couplings = [DenseCoupling(lower, upper, spread, gain) for lower, upper in pairwise(layers)]
        entry = None if inputs is None else DenseCoupling(inputs, layers[0], spread)
        sweeps = sweeps or Sweeps()
        self.options = {
            "layers": list(layers),
            "activation": activation,
            "clamped": clamped,
            "inputs": inputs,
            "sweeps": asdict(sweeps),
            "spread": spread,
            "gain": gain,
            "bias": bias,
        }
        super().__init__(
            [(units,) for units in layers], couplings, sweeps, activation, clamped, entry, bias, rng, dtype
        )
