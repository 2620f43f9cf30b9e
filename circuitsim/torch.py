"""Circuits as layers of PyTorch (extra ``torch``).

    layer = CircuitLayer("netlists/learn-divider.cir")
    volts = layer(torch.tensor([[2.0], [-1.0]]))

Forward passes are exact, certified operating points in double precision on the CPU; backward passes take one adjoint
solve per sample. Tensors of other devices and dtypes are converted, and results are converted back.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from circuitsim._layers import Evaluations
from circuitsim.blocks.circuit import CircuitBlock
from circuitsim.certificate import TOLERANCE
from circuitsim.circuit import Circuit
from circuitsim.errors import UsageError
from circuitsim.learning.function import DifferentiableBlock, Evaluation, circuit_block, evaluate

try:
    import torch
except ImportError as error:
    raise ImportError("circuitsim.torch needs PyTorch: pip install 'circuitsim-exact[torch]'") from error

if TYPE_CHECKING:
    from circuitsim.netlist.deck import Deck

__all__ = ["CircuitLayer", "EnergyLayer", "steady_state"]


def _evaluation(run: Evaluations, x: torch.Tensor, parameters: Sequence[torch.Tensor]) -> Evaluation:
    """The evaluation of a forward pass at these inputs and parameters; `torch.func.vmap` makes several per pass."""
    return run.at(_array(x), {name: _array(p) for name, p in zip(run.block.parameters, parameters, strict=True)})


class _SteadyState(torch.autograd.Function):
    """Outputs of a block at its steady states, with derivatives by the adjoint method."""

    @staticmethod
    def forward(run: Evaluations, x: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        """Rows of outputs for rows of inputs."""
        return _tensor(_evaluation(run, x, parameters).output, x.dtype, x.device)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        """Save what the backward pass needs."""
        ctx.run, *tensors = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx: Any, cotangent: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Derivatives with respect to inputs and parameters."""
        return None, *_Pullback.apply(ctx.run, cotangent, *ctx.saved_tensors)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *given: Any) -> tuple[torch.Tensor, int]:
        """One after the other."""
        return torch.stack([_SteadyState.apply(*one) for one in _elements(info.batch_size, in_dims, given)]), 0


class _Pullback(torch.autograd.Function):
    """Derivatives of Σ cotangent · output with respect to inputs and parameters."""

    @staticmethod
    def forward(run: Evaluations, cotangent: torch.Tensor, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Inputs first."""
        parameters, inputs = _evaluation(run, tensors[0], tensors[1:]).pullback(_array(cotangent))
        arrays = [inputs, *(parameters[name] for name in run.block.parameters)]
        return tuple(_tensor(a, like.dtype, like.device) for a, like in zip(arrays, tensors, strict=True))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
        """Do nothing."""

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor) -> None:
        """Not differentiable again."""
        raise UsageError("a circuit can be differentiated once: its derivatives cannot be differentiated again")

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], *given: Any
    ) -> tuple[tuple[torch.Tensor, ...], tuple[int, ...]]:
        """One after the other."""
        found = [_Pullback.apply(*one) for one in _elements(info.batch_size, in_dims, given)]
        stacked = tuple(torch.stack(column) for column in zip(*found, strict=True))
        return stacked, (0,) * len(stacked)


def _elements(count: int, in_dims: tuple[int | None, ...], given: tuple[Any, ...]) -> Iterator[list[Any]]:
    """The arguments of each element along a mapped axis."""
    for k in range(count):
        yield [value if axis is None else value.select(axis, k) for value, axis in zip(given, in_dims, strict=True)]


def steady_state(block: DifferentiableBlock, x: torch.Tensor, **parameters: torch.Tensor) -> torch.Tensor:
    """Outputs of a block as a function of its inputs and parameters, for custom parametrisations.

    Parameters
    ----------
    block : DifferentiableBlock
        A `CircuitBlock`, `DeepResistiveNetwork`, `ResistiveBlock` …; it is not changed.
    x : (…, inputs) tensor
        V or A, for circuits; ``(…, 0)`` without inputs.
    **parameters : tensor
        Named and shaped as in ``block.parameters``, whose values are the defaults. Values are clipped to their bounds.

    Returns
    -------
    (…, outputs) tensor
        With the dtype and device of ``x``; differentiable once. At a degenerate point (a diode without current and
        voltage) the derivative is one element of the generalised Jacobian.

    Raises
    ------
    UsageError
        Unknown parameters, or arrays of the wrong shape.
    ConvergenceError
        Samples without a certified steady state.
    """
    return _applied(Evaluations(block), x, parameters)


@torch.compiler.disable
def _applied(run: Evaluations, x: torch.Tensor, parameters: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """`steady_state`."""
    block = run.block
    unknown = sorted(set(parameters) - set(block.parameters))
    if unknown:
        raise UsageError(f"the block has no parameter {unknown[0]!r}, only {', '.join(block.parameters)}")
    _require_tensor(x)
    if not x.dtype.is_floating_point:
        raise UsageError(f"inputs must be real numbers in floating point, not {x.dtype}: convert them with x.float()")
    if x.ndim == 0 or x.shape[-1] != block.n_inputs:
        raise UsageError(f"the last axis must have {block.n_inputs} inputs; the shape is {tuple(x.shape)}")
    given = [
        parameters[name] if name in parameters else torch.from_numpy(own) for name, own in block.parameters.items()
    ]
    rows = _SteadyState.apply(run, x.reshape(-1, x.shape[-1]), *given)
    return rows.reshape(*x.shape[:-1], block.n_outputs)


class EnergyLayer(torch.nn.Module):
    """An energy-based block as a module: its outputs at the steady state.

    Parameters
    ----------
    block : DifferentiableBlock
        `CircuitBlock`, `DeepResistiveNetwork`, `ResistiveBlock`, `DeepHopfieldBlock` …; the module does not change it.
    device, dtype : optional
        Of the parameters; torch's defaults if not given.

    Attributes
    ----------
    conductance, current, … : torch.nn.Parameter
        One for each of ``block.parameters``, by its name with ``_`` for dots: S and A, for circuits.
    """

    def __init__(self, block: DifferentiableBlock, device: Any = None, dtype: torch.dtype | None = None) -> None:
        super().__init__()
        self.block = block
        dtype = torch.get_default_dtype() if dtype is None else dtype
        for name, own in block.parameters.items():
            parameter = torch.nn.Parameter(torch.tensor(own, dtype=dtype, device=device))
            self.register_parameter(name.replace(".", "_"), parameter)

    def _own(self) -> dict[str, torch.Tensor]:
        """The parameters by the block's names."""
        return {name: getattr(self, name.replace(".", "_")) for name in self.block.parameters}

    def _arrays(self) -> dict[str, np.ndarray]:
        return {name: _array(own) for name, own in self._own().items()}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(…, outputs) for inputs (…, inputs); see `steady_state`."""
        return _applied(Evaluations(self.block), x, self._own())

    def evaluate(self, x: torch.Tensor) -> Evaluation:
        """The steady states (potentials, currents, certificates) as numpy arrays, for rows (batch, inputs)."""
        _require_tensor(x)
        return evaluate(self.block, _array(x), self._arrays())

    def kinks(self, x: torch.Tensor) -> torch.Tensor:
        """(batch,) number of units or diodes at degenerate points, where the derivative is not unique, for rows (batch,
        inputs)."""
        found = self.evaluate(x)
        count = getattr(found.block, "kinks", None)
        if count is None:
            raise UsageError(f"{type(found.block).__name__} does not count kinks")
        return torch.from_numpy(np.asarray(count(found.state)[0]))

    @torch.no_grad()
    def project_(self) -> EnergyLayer:
        """Project the parameters onto their bounds, in place; returns the layer."""
        here = self.block.at(self._arrays())
        here.project()
        for name, parameter in self._own().items():
            parameter.copy_(_tensor(here.parameters[name], parameter.dtype, parameter.device))
        return self

    def extra_repr(self) -> str:
        """Numbers of inputs and outputs."""
        return f"{type(self.block).__name__}, inputs={self.block.n_inputs}, outputs={self.block.n_outputs}"


class CircuitLayer(EnergyLayer):
    """A circuit as a module: input sources → voltages between output nodes.

    Parameters
    ----------
    deck : path, Deck or Circuit
    inputs : str or sequence of str, optional
        Sources whose values are the inputs, V or A (``"V1 V2"``); the deck's own ``*! input`` if not given.
    outputs : str or sequence of str, optional
        Node pairs (``"v(out) v(p,q)"``); the deck's own ``*! output`` if not given.
    trainable : str or sequence of str, optional
        Resistors and current sources with bounds (``"R* min=1k max=1MEG"``); the deck's own ``*! trainable`` if not
        given.
    tolerance : float
        Largest relative residual of the certificates, on local scales.
    device, dtype : optional
        Of the parameters; torch's defaults if not given.

    Attributes
    ----------
    conductance : torch.nn.Parameter (resistors,)
        S, in the order of the circuit's elements; present if resistors are trainable.
    current : torch.nn.Parameter (sources,)
        A, SPICE sign; present if current sources are trainable.

    Raises
    ------
    NetlistError, UsageError
        A deck that cannot be read; roles that are missing or wrong.
    """

    def __init__(
        self,
        deck: str | os.PathLike[str] | Deck | Circuit,
        inputs: str | Sequence[str] | None = None,
        outputs: str | Sequence[str] | None = None,
        trainable: str | Sequence[str] | None = None,
        *,
        tolerance: float = TOLERANCE,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(circuit_block(deck, inputs, outputs, trainable, tolerance), device, dtype)

    def trained(self) -> Circuit:
        """The circuit with the current parameters, within its bounds."""
        assert isinstance(self.block, CircuitBlock)
        return self.block.at(self._arrays()).trained()


def _require_tensor(x: object) -> None:
    if not isinstance(x, torch.Tensor):
        raise UsageError(f"inputs must be a tensor, not {type(x).__name__}: convert them with torch.as_tensor(x)")


def _array(tensor: torch.Tensor) -> np.ndarray:
    """As a double-precision array on the CPU, without a copy if possible."""
    if tensor.device.type == "meta":
        raise UsageError("tensors of the device meta hold no values: move the layer with to_empty() and load a state")
    return tensor.detach().to(device="cpu", dtype=torch.float64).contiguous().numpy()


def _tensor(array: np.ndarray, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(array)).to(dtype=dtype, device=device)
