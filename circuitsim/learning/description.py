"""Chains, their elements, losses and rules as plain values: contents of TOML files and of saved models."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from circuitsim.blocks.convolutional import ConvolutionalHopfieldBlock
from circuitsim.blocks.hopfield import DeepHopfieldBlock
from circuitsim.blocks.layered import Sweeps
from circuitsim.blocks.resistive import ResistiveBlock
from circuitsim.errors import UsageError
from circuitsim.learning.estimate import describe_loss
from circuitsim.learning.rules import describe_rule
from circuitsim.learning.stages import (
    Activation,
    BatchNorm,
    Conv2d,
    Flatten,
    Linear,
    MaxPool,
    Normalise,
    Readout,
    SoftPool,
)

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
