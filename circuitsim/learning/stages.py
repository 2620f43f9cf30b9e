"""Feedforward stages: the digital part of a chain. Each maps a batch forward and a cotangent back.

Arrays have the batch first; images are (batch, rows, columns, channels). Losses are summed over a batch, so a cotangent
holds each sample's own error, and parameter gradients are sums over samples.

Chains, their elements, losses and rules are also plain values: contents of TOML files and of saved models.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from circuitsim._arrays import Array, clip_into, device, namespace
from circuitsim.blocks import convolutional
from circuitsim.blocks.convolutional import ConvolutionalHopfieldBlock, Window, gaussian_orthogonal
from circuitsim.blocks.hopfield import ACTIVATIONS, DeepHopfieldBlock
from circuitsim.blocks.layered import ResistiveBlock, Sweeps
from circuitsim.blocks.protocol import check_named
from circuitsim.errors import UsageError
from circuitsim.learning.estimate import describe_loss
from circuitsim.learning.rules import describe_rule

Gradients = dict[str, Array]

Output = tuple[Array, Callable[[Array], tuple[Gradients, Array]]]
"""What a stage returns: its output y and its pullback, a function of the cotangent ∂loss/∂y of each sample.

The pullback gives Σ_b cotangent_b · ∂y_b/∂parameters by parameter, and the cotangent of the input, cotangent · ∂y/∂x.
"""


@dataclass(eq=False)
class Stage:
    """A differentiable map. This one is the identity, without parameters.

    A stage with options is a dataclass too, of which they are the fields.

    Attributes
    ----------
    kind : str
        Its name in descriptions.
    parameters : dict of array
        What optimisers move; the stage's own memory.
    averages : dict of array
        Statistics of past batches.
    options : dict
        The arguments it was made with.
    """

    kind: ClassVar[str] = "identity"

    def __post_init__(self) -> None:
        """The first parameters are those of seed 0."""
        self.options = asdict(self)
        self.parameters: dict[str, Any] = {}
        self.averages: dict[str, Any] = {}
        self.initialise(0)

    def initialise(self, rng: Any, dtype: Any = np.float64) -> None:
        """Redraw the parameters; `rng` is a Generator or a seed.

        Parameters
        ----------
        rng : numpy.random.Generator or int
            Source of the parameters, or its seed.
        dtype : dtype
            Of the parameters.
        """

    def forward(self, x: Array, training: bool = False) -> Output:
        """The output and its pullback (`Output`).

        Parameters
        ----------
        x : (batch, …) array
            Of any array library.
        training : bool
            Whether batch statistics are taken from the batch itself, which then enters the averages.

        Returns
        -------
        output : (batch, …) array
        pullback : callable

        Raises
        ------
        UsageError
            An array of a shape that the stage does not take.
        """
        return x, lambda cotangent: ({}, cotangent)


@dataclass(eq=False)
class Weighted(Stage):
    """A product with weights, and a bias for each output; a subclass makes the product."""

    inputs: int
    outputs: int

    def _draw(self, rng: np.random.Generator, weights: np.ndarray, limit: float, bias: bool, dtype: Any) -> None:
        self.parameters = {"weights": weights.astype(dtype)}
        if bias:
            self.parameters["bias"] = rng.uniform(-limit, limit, self.outputs).astype(dtype)

    def _biased(self, product: Array, pull: Callable[[Array], tuple[Array, Array]]) -> Output:
        """Output and pullback; ``pull`` gives a cotangent's product with the input, and with the weights."""
        if "bias" in self.parameters:
            product += self.parameters["bias"]

        def pullback(cotangent: Array) -> tuple[Gradients, Array]:
            weights, back = pull(cotangent)
            gradients = {"weights": weights}
            if "bias" in self.parameters:
                gradients["bias"] = namespace(cotangent).sum(cotangent, axis=tuple(range(cotangent.ndim - 1)))
            return gradients, back

        return product, pullback


@dataclass(eq=False)
class Linear(Weighted):
    """``x @ weights + bias``.

    Parameters
    ----------
    inputs, outputs : int
        Length of a row; images are read as rows.
    bias : bool
    spread : float
        Weights and biases start uniform in ±spread/√inputs, PyTorch's default for spread 1.
    """

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
        weights = rng.uniform(-limit, limit, (self.inputs, self.outputs))
        self._draw(rng, weights, limit, self.bias, dtype)

    def forward(self, x: Array, training: bool = False) -> Output:
        """(batch, …) to (batch, outputs); the arguments are those of `Stage.forward`."""
        xp = namespace(x)
        rows = xp.reshape(x, (x.shape[0], -1))
        if rows.shape[1] != self.inputs:
            raise UsageError(f"a {self.kind} stage takes rows of {self.inputs}, but rows of {rows.shape[1]} come in")
        weights = self.parameters["weights"]
        return self._biased(rows @ weights, lambda c: (rows.T @ c, xp.reshape(c @ weights.T, x.shape)))


class Readout(Linear):
    """The linear stage that ends a chain: its outputs are the loss's logits or predictions (Laborieux et al. 2021)."""

    kind = "readout"


class Flatten(Stage):
    """Images as rows."""

    kind = "flatten"

    def forward(self, x: Array, training: bool = False) -> Output:
        """(batch, …) to (batch, product of the rest); the arguments are those of `Stage.forward`."""
        xp = namespace(x)
        return xp.reshape(x, (x.shape[0], -1)), lambda cotangent: ({}, xp.reshape(cotangent, x.shape))


@dataclass(eq=False)
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

    def forward(self, x: Array, training: bool = False) -> Output:
        """(x / scale − mean) / deviation, of ``shape`` where it is given.

        The arguments are those of `Stage.forward`.
        """
        xp = namespace(x)
        dtype, came = getattr(xp, self._dtype.name), x.shape
        if self.shape is not None:
            x = xp.reshape(x, (-1, *self.shape))
        mean, deviation = (xp.asarray(values, dtype=dtype, device=device(x)) for values in (self.mean, self.deviation))
        factor = 1.0 / (self.scale * deviation)
        y = xp.astype(x, dtype) * factor - mean / deviation
        return y, lambda cotangent: ({}, xp.reshape(cotangent * factor, came))


@dataclass(eq=False)
class Activation(Stage):
    """A function of each unit: ``ernoult`` clip(u, 0, 1), ``laborieux`` clip(u/2, 0, 1), ``relu``, ``tanh``."""

    name: str
    kind = "activation"
    NAMES = (*ACTIVATIONS, "relu", "tanh")

    def __post_init__(self) -> None:
        check_named(activation=(self.name, self.NAMES))
        super().__post_init__()

    def forward(self, x: Array, training: bool = False) -> Output:
        """The function of each unit, of the same shape; the arguments are those of `Stage.forward`."""
        xp, name = namespace(x), self.name
        if name == "tanh":
            y = xp.tanh(x)
            return y, lambda cotangent: ({}, cotangent * (1 - y * y))
        slope, top = ACTIVATIONS.get(name, 1.0), math.inf if name == "relu" else 1.0
        y = x / slope
        clip_into(xp, y, 0.0, top)
        derivative = xp.astype((y > 0) & (y < top), x.dtype) / slope
        return y, lambda cotangent: ({}, cotangent * derivative)


# ---------------------------------------------------------------------- images
@dataclass(eq=False)
class Conv2d(Weighted):
    """A convolution.

    Parameters
    ----------
    inputs, outputs : int
        Channels.
    size, stride, padding : int
        Of the window.
    bias : bool
        Before batch normalisation a bias would have no effect.
    variance : float, optional
        V of the Gaussian orthogonal ensemble each slice is drawn from (Nest & Ernoult 2024, App. A.6.3); left out,
        weights are uniform in ±1/√(inputs · size²), PyTorch's default.
    """

    size: int = 3
    stride: int = 1
    padding: int = 1
    bias: bool = False
    variance: float | None = None
    kind = "conv2d"

    def __post_init__(self) -> None:
        super().__post_init__()
        if min(self.inputs, self.outputs, self.size, self.stride) < 1 or self.padding < 0:
            raise UsageError(f"a convolution cannot have {self.options}")
        self._window = Window(self.size, self.stride, self.padding)

    def initialise(self, rng: Any, dtype: Any = np.float64) -> None:
        """Draw kernels and biases; the arguments are those of `Stage.initialise`."""
        rng, size, channels = np.random.default_rng(rng), self.size, (self.inputs, self.outputs)
        limit = 1 / math.sqrt(self.inputs * size * size)
        if self.variance is None:
            weights = rng.uniform(-limit, limit, (size, size, *channels))
        else:
            weights = gaussian_orthogonal(rng, size, self.variance, channels)
        self._draw(rng, weights, limit, self.bias, dtype)

    def forward(self, x: Array, training: bool = False) -> Output:
        """(batch, rows, columns, inputs) to (batch, rows, columns, outputs).

        The arguments are those of `Stage.forward`.
        """
        if x.ndim != 4 or x.shape[3] != self.inputs:
            raise UsageError(f"a conv2d stage takes (batch, rows, columns, {self.inputs}), not {tuple(x.shape)}")
        xp, weights, window = namespace(x), self.parameters["weights"], self._window
        kernel = xp.reshape(weights, (-1, *weights.shape[2:]))

        def pull(cotangent: Array) -> tuple[Array, Array]:
            gradient = convolutional.kernel_gradient(x, cotangent, window)
            back = convolutional.convolve_back(cotangent, kernel, window, x.shape)
            return xp.reshape(gradient, weights.shape), back

        return self._biased(convolutional.convolve(x, kernel, window), pull)


class MaxPool(Stage):
    """Maxima of 2 × 2 squares; of equal ones the first carries the derivative."""

    kind = "max-pool"

    def forward(self, x: Array, training: bool = False) -> Output:
        """Half the rows and columns; the arguments are those of `Stage.forward`."""
        y, switches = convolutional.max_pool(x)
        return y, lambda cotangent: ({}, convolutional.unpool(cotangent, switches, x.shape[1:]))


class SoftPool(Stage):
    """Σ x eˣ / Σ eˣ over 2 × 2 squares (Stergiou et al. 2021): ∂y/∂x_i = p_i (1 + x_i − y) with p_i = e^x_i / Σ eˣ."""

    kind = "soft-pool"

    def forward(self, x: Array, training: bool = False) -> Output:
        """Half the rows and columns, an odd last one left out; the arguments are those of `Stage.forward`."""
        xp = namespace(x)
        four = xp.stack(convolutional.quarters(x))
        share = xp.exp(four - xp.max(four, axis=0))
        share = share / xp.sum(share, axis=0)
        y = xp.sum(share * four, axis=0)

        def pullback(cotangent: Array) -> tuple[Gradients, Array]:
            back = xp.zeros(x.shape, dtype=cotangent.dtype, device=device(cotangent))
            for k, part in enumerate(convolutional.quarters(back)):
                part[...] = share[k] * (1 + four[k] - y) * cotangent
            return {}, back

        return y, pullback


@dataclass(eq=False)
class BatchNorm(Stage):
    """Batch normalisation over all axes but the last (Ioffe & Szegedy 2015).

    Parameters
    ----------
    channels : int
        Length of the last axis.
    momentum : float
        Weight of a batch in the running mean and (unbiased) variance, which are used outside of training.
    epsilon : float
        Added to the variance.
    """

    channels: int
    momentum: float = 0.1
    epsilon: float = 1e-5
    kind = "batch-norm"

    def initialise(self, rng: Any, dtype: Any = np.float64) -> None:
        """Scale 1, shift 0, running mean 0 and variance 1; the arguments are those of `Stage.initialise`."""
        zeros, ones = np.zeros(self.channels, dtype), np.ones(self.channels, dtype)
        self.parameters = {"scale": ones, "shift": zeros}
        self.averages = {"mean": zeros.copy(), "variance": ones.copy()}

    def forward(self, x: Array, training: bool = False) -> Output:
        """The same shape; in training with the mean and variance of the batch, towards which the running ones move.

        The arguments are those of `Stage.forward`.
        """
        xp = namespace(x)
        if x.shape[-1] != self.channels:
            raise UsageError(f"a batch-norm stage takes {self.channels} channels last, not an array {tuple(x.shape)}")
        axes = tuple(range(x.ndim - 1))
        count = math.prod(x.shape[:-1])
        if training:
            if count < 2:
                raise UsageError("batch normalisation needs at least two values a channel: use larger batches")
            mean = xp.mean(x, axis=axes)
            variance = xp.mean((x - mean) ** 2, axis=axes)
            for name, seen in (("mean", mean), ("variance", variance * (count / (count - 1)))):
                self.averages[name] += self.momentum * (seen - self.averages[name])
        else:
            mean, variance = self.averages["mean"], self.averages["variance"]
        inverse = 1 / xp.sqrt(variance + self.epsilon)
        centred = (x - mean) * inverse

        def pullback(cotangent: Array) -> tuple[Gradients, Array]:
            scale, shift = xp.sum(cotangent * centred, axis=axes), xp.sum(cotangent, axis=axes)
            # In training also through the mean and variance of the batch.
            back = cotangent - (shift + centred * scale) / count if training else cotangent
            return {"scale": scale, "shift": shift}, back * (inverse * self.parameters["scale"])

        return centred * self.parameters["scale"] + self.parameters["shift"], pullback


#: What a description's ``kind`` may be, besides ``circuit``.
KINDS: dict[str, Any] = {
    element.kind: element
    for element in (
        Linear,
        Readout,
        Flatten,
        Normalise,
        Activation,
        Conv2d,
        BatchNorm,
        MaxPool,
        SoftPool,
        DeepHopfieldBlock,
        ConvolutionalHopfieldBlock,
        ResistiveBlock,
    )
}


def describe(element: Any) -> dict[str, Any]:
    """An element as a table of plain values.

    Raises
    ------
    UsageError
        It is of a kind that has no description.
    """
    kind, options = getattr(element, "kind", None), getattr(element, "options", None)
    if isinstance(kind, str) and isinstance(options, Mapping):
        if kind in (*KINDS, "circuit") and not isinstance(element, KINDS.get(kind, ())):
            raise UsageError(f"{type(element).__name__} has the kind {kind!r} of another element: give it its own")
        return {"kind": kind, **options}
    if hasattr(element, "circuit") and hasattr(element, "roles"):
        from circuitsim.netlist import dumps

        return {"kind": "circuit", "deck": dumps(element.trained(), element.roles), "tolerance": element.tolerance}
    raise UsageError(
        f"{type(element).__name__} cannot be described in a file: it needs 'kind', a name in its class, and 'options', "
        "the arguments of its constructor as JSON values"
    )


def build(description: Mapping[str, Any], elements: Sequence[type] = ()) -> Any:
    """The element a table describes; ``elements`` are classes besides those of `KINDS`.

    Parameters
    ----------
    description : mapping of str to object
        ``kind``, and the arguments of its constructor by name; of a circuit ``deck`` and ``tolerance``.
    elements : sequence of type
        Classes of your own, each with a name ``kind``.

    Returns
    -------
    Stage or EnergyBlock

    Raises
    ------
    UsageError
        An unknown kind, an option it does not have, or one it needs.
    """
    options = dict(description)
    kind = options.pop("kind", None)
    kinds: dict[str, Any] = {getattr(element, "kind", element.__name__): element for element in elements}
    kinds |= {**KINDS, "circuit": _circuit}
    if kind not in kinds:
        raise UsageError(
            f"there is no kind of element '{kind}'; there are {', '.join(kinds)}. Name a class of your "
            "own in elements=[...]"
        )
    try:
        if isinstance(options.get("sweeps"), Mapping):
            options["sweeps"] = Sweeps(**options["sweeps"])
        return kinds[kind](**options)
    except (TypeError, ValueError, AttributeError) as problem:
        known = inspect.signature(kinds[kind])
        raise UsageError(f"{kind} cannot be made from {options}: {problem}; its options are {known}") from problem


def _circuit(deck: str, **tolerance: Any) -> Any:
    """The block of a deck, given as text."""
    from circuitsim.learning.function import circuit_block
    from circuitsim.netlist import loads

    return circuit_block(loads(deck), **tolerance)


def describe_chain(chain: Any) -> dict[str, Any]:
    """A chain without the values of its parameters."""
    return {
        "elements": [describe(element) for element in chain.elements],
        "loss": describe_loss(chain.loss),
        "chaining": describe_rule(chain.rule),
        "dtype": chain.dtype.name,
    }
