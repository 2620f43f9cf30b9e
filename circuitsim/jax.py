"""Circuits as functions of JAX (extra ``jax``).

    layer = circuit_layer("netlists/learn-divider.cir")
    volts = layer.apply(layer.parameters, jax.numpy.array([[2.0], [-1.0]]))

Steady states are computed by numpy on the CPU (`jax.pure_callback`) in double precision; results have the dtype of the
inputs. `jax.jit`, `jax.grad` and `jax.vmap` work; derivatives are of first order and in reverse mode.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from circuitsim._layers import Evaluations
from circuitsim.blocks.protocol import Arrays
from circuitsim.certificate import TOLERANCE
from circuitsim.circuit import Circuit
from circuitsim.errors import UsageError
from circuitsim.learning.function import DifferentiableBlock, circuit_block

try:
    import jax
    import jax.numpy as jnp
except ImportError as error:
    raise ImportError("circuitsim.jax needs JAX: pip install 'circuitsim-exact[jax]'") from error

if TYPE_CHECKING:
    from circuitsim.netlist.deck import Deck

__all__ = ["Layer", "circuit_layer", "energy_layer"]

_Arguments = tuple[dict[str, jax.Array], jax.Array]


class Layer(NamedTuple):
    """A block as a pure function.

    Attributes
    ----------
    apply : callable
        ``apply(parameters, x)``: (…, inputs) → (…, outputs).
    parameters : dict of str to jax.Array
        The initial ones: ``conductance`` (S) and ``current`` (A), for circuits.
    block : DifferentiableBlock
    """

    apply: Callable[[Mapping[str, jax.Array], jax.Array], jax.Array]
    parameters: dict[str, jax.Array]
    block: DifferentiableBlock

    def __reduce__(self) -> tuple[Callable[..., Layer], tuple[DifferentiableBlock, dict[str, np.ndarray]]]:
        """Copies and pickles recreate the function."""
        return _restored, (self.block, {name: np.asarray(own) for name, own in self.parameters.items()})


def circuit_layer(
    deck: str | os.PathLike[str] | Deck | Circuit,
    inputs: str | Sequence[str] | None = None,
    outputs: str | Sequence[str] | None = None,
    trainable: str | Sequence[str] | None = None,
    tolerance: float = TOLERANCE,
) -> Layer:
    """A circuit as a function of JAX.

    Parameters
    ----------
    deck : path, Deck or Circuit
    inputs, outputs, trainable : str or sequence of str, optional
        ``"V1 V2"``, ``"v(out) v(p,q)"``, ``"R* min=1k max=1MEG"``; the deck's own directives if not given.
    tolerance : float
        Largest relative residual of the certificates, on local scales.

    Raises
    ------
    NetlistError, UsageError
        A deck that cannot be read; roles that are missing or wrong.
    """
    return energy_layer(circuit_block(deck, inputs, outputs, trainable, tolerance))


def energy_layer(block: DifferentiableBlock) -> Layer:
    """An energy-based block (`CircuitBlock`, `DeepResistiveNetwork`, `ResistiveBlock` …) as a function of JAX.

    Notes
    -----
    Parameters are clipped to their bounds. At a degenerate point (a diode without current and voltage) the derivative
    is one element of the generalised Jacobian. Samples without a certified steady state raise an error, which JAX
    reports as a runtime error.
    """
    host = _Host(block, kept=1)

    @jax.custom_vjp
    def applied(parameters: Mapping[str, jax.Array], x: jax.Array) -> jax.Array:
        if x.ndim == 0 or x.shape[-1] != block.n_inputs or not jnp.issubdtype(x.dtype, jnp.floating):
            raise UsageError(
                f"inputs must be floating-point numbers, {block.n_inputs} along the last axis, not {x.dtype}{x.shape}"
            )
        shape = jax.ShapeDtypeStruct((*x.shape[:-1], block.n_outputs), x.dtype)
        return jax.pure_callback(host.outputs, shape, dict(parameters), x, vmap_method="expand_dims")

    def forward(parameters: Mapping[str, jax.Array], x: jax.Array) -> tuple[jax.Array, _Arguments]:
        return applied(parameters, x), (dict(parameters), x)

    def backward(known: _Arguments, cotangent: jax.Array) -> _Arguments:
        parameters, x = known
        shapes = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), (parameters, x))
        return jax.pure_callback(host.pullback, shapes, parameters, x, cotangent, vmap_method="expand_dims")

    applied.defvjp(forward, backward)

    def apply(parameters: Mapping[str, jax.Array], x: jax.Array) -> jax.Array:
        """(…, outputs) for inputs (…, inputs)."""
        found = {name: jnp.shape(own) for name, own in parameters.items()}
        wanted = {name: own.shape for name, own in block.parameters.items()}
        if found != wanted:
            raise UsageError(f"the parameters must be {_listed(wanted)}, not {_listed(found)}")
        return applied({name: jnp.asarray(own) for name, own in parameters.items()}, jnp.asarray(x))

    initial = {name: jnp.asarray(own) for name, own in block.parameters.items()}
    return Layer(apply, initial, block)


def _restored(block: DifferentiableBlock, parameters: Mapping[str, np.ndarray]) -> Layer:
    return energy_layer(block)._replace(parameters={name: jnp.asarray(own) for name, own in parameters.items()})


class _Host(Evaluations):
    """Computations of the callbacks.

    `jax.vmap` prepends axes, of length 1 for an unmapped argument.
    """

    def outputs(self, parameters: Mapping[str, jax.Array], x: jax.Array) -> np.ndarray:
        """(…, outputs)."""
        (axes, given), (full, elements) = self._elements(parameters), self._elements(parameters, x)
        if math.prod(axes) == 1:
            found = self.at(np.asarray(x, dtype=np.float64), next(given)[0]).output
        else:
            found = np.concatenate([self.at(rows, own).output for own, rows in elements])
        return found.reshape(*full, *x.shape[len(full) : -1], self.block.n_outputs).astype(x.dtype)

    def pullback(
        self, parameters: Mapping[str, jax.Array], x: jax.Array, cotangent: jax.Array
    ) -> tuple[Arrays, np.ndarray]:
        """Derivatives with respect to parameters and inputs, for each element of the `jax.vmap` axes."""
        full, elements = self._elements(parameters, x, cotangent)
        pulled = [self.at(rows, own).pullback(given.reshape(-1, given.shape[-1])) for own, rows, given in elements]

        def stacked(found: list[np.ndarray], like: jax.Array) -> np.ndarray:
            return np.stack(found).reshape(*full, *like.shape[len(full) :]).astype(like.dtype)

        by_parameter = {name: stacked([own[name] for own, _ in pulled], like) for name, like in parameters.items()}
        return by_parameter, stacked([found for _, found in pulled], x)

    def _elements(
        self, parameters: Mapping[str, jax.Array], *others: jax.Array
    ) -> tuple[tuple[int, ...], Iterator[tuple[Any, ...]]]:
        """The leading axes, and for each of their elements the parameters and the other arguments, in double
        precision."""
        names = list(self.block.parameters)
        every = [np.asarray(array, dtype=np.float64) for array in (*(parameters[name] for name in names), *others)]
        n = max(array.ndim - own.ndim for array, own in zip(every, self.block.parameters.values()))
        full = np.broadcast_shapes(*(array.shape[:n] for array in every))
        whole = [np.broadcast_to(array, full + array.shape[n:]) for array in every]
        parts = ([array[place] for array in whole] for place in np.ndindex(full))
        return full, ((dict(zip(names, part)), *part[len(names) :]) for part in parts)


def _listed(shapes: Mapping[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{name} {shape}" for name, shape in shapes.items()) or "none"
