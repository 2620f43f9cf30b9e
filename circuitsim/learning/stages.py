"""Feedforward stages: the digital part of a chain. Each maps a batch forward and a cotangent back.

Arrays have the batch first; images are (batch, rows, columns, channels). Losses are summed over a batch, so a cotangent
holds each sample's own error, and parameter gradients are sums over samples.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from circuitsim._arrays import Array, clip_into, device, namespace
from circuitsim.blocks.hopfield import ACTIVATIONS
from circuitsim.errors import UsageError

Gradients = dict[str, Array]


class Stage:
    """A differentiable map. This one is the identity, without parameters.

    Attributes
    ----------
    kind : str
        Its name in descriptions.
    parameters : dict of array
        What optimisers move; the stage's own memory.
    averages : dict of array
        What it has observed of past batches.
    options : dict
        The arguments it was made with.
    """

    kind: ClassVar[str] = "identity"

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.parameters: dict[str, Any] = {}
        self.averages: dict[str, Any] = {}

    def __post_init__(self) -> None:
        """Of a stage that is a dataclass: its fields are its options, and its first parameters those of seed 0."""
        Stage.__init__(self, **asdict(self))  # type: ignore[call-overload]
        self.initialise(0)

    def initialise(self, rng: Any, dtype: Any = np.float64) -> None:
        """Draw the parameters anew; `rng` is a Generator or a seed.

        Parameters
        ----------
        rng : numpy.random.Generator or int
            Source of the parameters, or its seed.
        dtype : dtype
            Of the parameters.
        """

    def forward(self, x: Array, training: bool = False) -> tuple[Array, Any]:
        """The output, and what `vjp` needs to remember.

        Parameters
        ----------
        x : (batch, …) array
            Of any array library.
        training : bool
            Whether batch statistics are taken from the batch itself.

        Returns
        -------
        output : (batch, …) array
        memory : object
            For `vjp` and `observe`; its contents are the stage's own.

        Raises
        ------
        UsageError
            An array of a shape that the stage does not take.
        """
        return x, None

    def vjp(self, memory: Any, cotangent: Array, wants_input: bool = True) -> tuple[Gradients, Array | None]:
        """Vector–Jacobian products: Σ_b cotangent_b · ∂output_b/∂parameters, and cotangent · ∂output/∂x.

        Parameters
        ----------
        memory : object
            From `forward`.
        cotangent : array
            ∂loss/∂output of each sample, of the shape of the output.
        wants_input : bool
            Whether the second result is needed.

        Returns
        -------
        gradients : dict of array
            By parameter, summed over the batch.
        input : array or None
            ∂loss/∂x of each sample, of the shape of ``x``; None where a stage saves it because it is not wanted.
        """
        return {}, cotangent

    def observe(self, memory: Any) -> None:
        """Take a training batch into the averages; called once for each batch."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.options.items())})"


@dataclass(eq=False, repr=False)
class Linear(Stage):
    """``x @ weights + bias``.

    Parameters
    ----------
    inputs, outputs : int
        Length of a row; images are read as rows.
    bias : bool
    spread : float
        Weights and biases start uniform in ±spread/√inputs, PyTorch's default for spread 1.
    """

    inputs: int
    outputs: int
    bias: bool = True
    spread: float = 1.0
    kind = "linear"

    def __post_init__(self) -> None:
        if min(self.inputs, self.outputs) < 1:
            raise UsageError(f"a linear stage needs inputs and outputs, not {self.inputs} and {self.outputs}")
        super().__post_init__()

    def initialise(self, rng: Any, dtype: Any = np.float64) -> None:
        """Uniform weights and biases; the arguments are those of `Stage.initialise`."""
        rng, limit = np.random.default_rng(rng), self.spread / math.sqrt(self.inputs)
        self.parameters = {"weights": rng.uniform(-limit, limit, (self.inputs, self.outputs)).astype(dtype)}
        if self.bias:
            self.parameters["bias"] = rng.uniform(-limit, limit, self.outputs).astype(dtype)

    def forward(self, x: Array, training: bool = False) -> tuple[Array, Any]:
        """(batch, …) to (batch, outputs); the arguments are those of `Stage.forward`."""
        rows = namespace(x).reshape(x, (x.shape[0], -1))
        if rows.shape[1] != self.inputs:
            raise UsageError(f"a {self.kind} stage takes rows of {self.inputs}, but rows of {rows.shape[1]} come in")
        y = rows @ self.parameters["weights"]
        if "bias" in self.parameters:
            y += self.parameters["bias"]
        return y, (rows, x.shape)

    def vjp(self, memory: Any, cotangent: Array, wants_input: bool = True) -> tuple[Gradients, Array | None]:
        """rowsᵀ · cotangent and cotangent · weightsᵀ; the arguments are those of `Stage.vjp`."""
        xp = namespace(cotangent)
        rows, shape = memory
        gradients = {"weights": rows.T @ cotangent}
        if "bias" in self.parameters:
            gradients["bias"] = xp.sum(cotangent, axis=0)
        back = xp.reshape(cotangent @ self.parameters["weights"].T, shape) if wants_input else None
        return gradients, back


class Readout(Linear):
    """The linear stage that ends a chain: its outputs are the loss's logits or predictions (Laborieux et al. 2021)."""

    kind = "readout"


class Flatten(Stage):
    """Images as rows."""

    kind = "flatten"

    def forward(self, x: Array, training: bool = False) -> tuple[Array, Any]:
        """(batch, …) to (batch, product of the rest); the arguments are those of `Stage.forward`."""
        return namespace(x).reshape(x, (x.shape[0], -1)), x.shape

    def vjp(self, memory: Any, cotangent: Array, wants_input: bool = True) -> tuple[Gradients, Array | None]:
        """The cotangent in the shape of the input; the arguments are those of `Stage.vjp`."""
        return {}, namespace(cotangent).reshape(cotangent, memory)


@dataclass(eq=False, repr=False)
class Normalise(Stage):
    """Pixels as they are stored to numbers of mean about 0 and deviation about 1, or to [0, 1].

    Parameters
    ----------
    scale : float
        Full intensity of a pixel as stored.
    mean, deviation : sequence of float, optional
        Of each channel, for pixels in [0, 1]; left out, 0 and 1.
    shape : sequence of int, optional
        Rows, columns and channels, where samples come as rows.
    """

    scale: float = 255.0
    mean: Any = (0.0,)
    deviation: Any = (1.0,)
    shape: Any = None
    kind = "normalise"
    #: Bytes come in; a chain need not turn them into numbers first.
    takes_stored = True

    def __post_init__(self) -> None:
        self.mean, self.deviation = list(self.mean), list(self.deviation)
        self.shape = self.shape and list(self.shape)
        super().__post_init__()

    def initialise(self, rng: Any, dtype: Any = np.float64) -> None:
        """Set the precision of the output; the arguments are those of `Stage.initialise`."""
        self._dtype = np.dtype(dtype)

    def forward(self, x: Array, training: bool = False) -> tuple[Array, Any]:
        """(x / scale − mean) / deviation, of ``shape`` where it is given.

        The arguments are those of `Stage.forward`.
        """
        xp = namespace(x)
        dtype, came = getattr(xp, self._dtype.name), x.shape
        if self.shape is not None:
            x = xp.reshape(x, (-1, *self.shape))
        mean, deviation = (xp.asarray(values, dtype=dtype, device=device(x)) for values in (self.mean, self.deviation))
        factor = 1.0 / (self.scale * deviation)
        return xp.astype(x, dtype) * factor - mean / deviation, (factor, came)

    def vjp(self, memory: Any, cotangent: Array, wants_input: bool = True) -> tuple[Gradients, Array | None]:
        """The cotangent over scale · deviation of its channel; the arguments are those of `Stage.vjp`."""
        factor, shape = memory
        return {}, namespace(cotangent).reshape(cotangent * factor, shape)


@dataclass(eq=False, repr=False)
class Activation(Stage):
    """A function of each unit: ``ernoult`` clip(u, 0, 1), ``laborieux`` clip(u/2, 0, 1), ``relu``, ``tanh``."""

    name: str
    kind = "activation"
    NAMES = (*ACTIVATIONS, "relu", "tanh")

    def __post_init__(self) -> None:
        if self.name not in self.NAMES:
            raise UsageError(f"there is no activation '{self.name}'; there are {', '.join(self.NAMES)}")
        super().__post_init__()

    def forward(self, x: Array, training: bool = False) -> tuple[Array, Any]:
        """The function of each unit, of the same shape; the arguments are those of `Stage.forward`."""
        xp, name = namespace(x), self.name
        if name == "tanh":
            y = xp.tanh(x)
            return y, 1 - y * y
        slope = ACTIVATIONS.get(name, 1.0)
        y = x / slope
        clip_into(xp, y, 0.0, None if name == "relu" else 1.0)
        inside = y > 0 if name == "relu" else (y > 0) & (y < 1)
        return y, xp.astype(inside, x.dtype) / slope

    def vjp(self, memory: Any, cotangent: Array, wants_input: bool = True) -> tuple[Gradients, Array | None]:
        """The cotangent times the derivative of each unit; the arguments are those of `Stage.vjp`."""
        return {}, cotangent * memory
