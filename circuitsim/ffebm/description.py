"""Chains as plain data: contents of TOML files and saved models."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from circuitsim._arrays import to_numpy
from circuitsim.blocks.convolutional import ConvolutionalHopfieldBlock
from circuitsim.blocks.hopfield import DeepHopfieldBlock
from circuitsim.blocks.layered import Sweeps
from circuitsim.blocks.resistive import ResistiveBlock
from circuitsim.errors import UsageError
from circuitsim.ffebm.chain import Chain
from circuitsim.ffebm.chaining import Chaining
from circuitsim.ffebm.images import BatchNorm, Conv2d, MaxPool, SoftPool
from circuitsim.ffebm.stages import Activation, Flatten, Linear, Normalise, Readout
from circuitsim.training.checkpoint import CheckpointError, copy_into, load_checkpoint, pack, save_checkpoint, unpack

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
    if kind == "circuit":
        return _circuit(options)
    kinds = {**{getattr(element, "kind", element.__name__): element for element in elements}, **KINDS}
    if kind not in kinds:
        raise UsageError(
            f"there is no kind of element '{kind}'; there are {', '.join([*kinds, 'circuit'])}. Name a class of your "
            "own in elements=[...]"
        )
    allowed = inspect.signature(kinds[kind].__init__).parameters
    open_ended = inspect.Parameter.VAR_KEYWORD
    known = [name for name, a in allowed.items() if name not in ("self", "rng", "dtype") and a.kind != open_ended]
    unknown = [name for name in options if name not in known]
    if unknown:
        raise UsageError(f"'{unknown[0]}' is not an option of {kind}; it has {', '.join(known) or 'none'}")
    missing = [name for name in known if allowed[name].default is inspect.Parameter.empty and name not in options]
    if missing:
        raise UsageError(f"{kind} needs {', '.join(missing)}")
    try:
        if isinstance(options.get("sweeps"), Mapping):
            options["sweeps"] = Sweeps(**options["sweeps"])
        return kinds[kind](**options)
    except (TypeError, ValueError, AttributeError) as problem:
        raise UsageError(f"{kind} cannot be made from {options}: {problem}") from problem


def _circuit(options: dict[str, Any]) -> Any:
    from circuitsim.blocks.circuit import CircuitBlock
    from circuitsim.netlist import loads
    from circuitsim.netlist.roles import read_roles

    text = options.pop("deck", None)
    tolerance = options.pop("tolerance", None)
    if not isinstance(text, str) or options:
        raise UsageError(
            f"a circuit is described by deck (its text) and tolerance, not {', '.join(options) or 'nothing'}"
        )
    deck = loads(text)
    roles, _ = read_roles(deck)
    circuit, _ = deck.where_change(None)
    return CircuitBlock(circuit, roles) if tolerance is None else CircuitBlock(circuit, roles, float(tolerance))


def describe_chain(chain: Chain) -> dict[str, Any]:
    """A chain without the values of its parameters."""
    return {
        "elements": [describe(element) for element in chain.elements],
        "loss": chain.loss.name,
        "chaining": asdict(chain.chaining),
        "dtype": chain.dtype.name,
    }


def build_chain(
    elements: Sequence[Mapping[str, Any]],
    loss: str = "cross-entropy",
    chaining: Mapping[str, Any] | None = None,
    dtype: str = "float32",
    seed: int | None = 0,
    own: Sequence[type] = (),
) -> Chain:
    """The chain that tables describe, its parameters drawn from a seed.

    Parameters
    ----------
    elements : sequence of mapping
        One table an element (`build`), in the order of the data.
    loss : {"cross-entropy", "mse"}
        Of the last element's outputs.
    chaining : mapping, optional
        Arguments of `Chaining` by name.
    dtype : {"float32", "float64"}
        Precision of stages and layered blocks.
    seed : int or None
        Source of the parameters; None leaves them as the constructors made them.
    own : sequence of type
        Classes of your own, as in `build`.

    Raises
    ------
    UsageError
        A table, a loss, a rule or a type that does not exist; the message names the element.
    """
    if dtype not in ("float32", "float64"):
        raise UsageError(f"dtype must be float32 or float64, not {dtype}")
    try:
        rule = Chaining(**(chaining or {}))
    except TypeError as problem:
        raise UsageError(f"gradients cannot be computed as {dict(chaining or {})}: {problem}") from problem
    made = []
    for number, table in enumerate(elements):
        try:
            made.append(build(table, own))
        except UsageError as problem:
            raise UsageError(f"element {number}: {problem}") from problem
    return Chain(made, loss, rule, seed, np.dtype(dtype))


def chain_arrays(chain: Chain) -> dict[str, np.ndarray]:
    """Parameters and averages of a chain."""
    groups = {"parameters": chain.parameters, "averages": chain.state_arrays()}
    return pack(**{group: {name: to_numpy(a) for name, a in found.items()} for group, found in groups.items()})


def restored_chain(
    arrays: Mapping[str, np.ndarray], description: Mapping[str, Any], elements: Sequence[type] = ()
) -> Chain:
    """The chain of `describe_chain` with the arrays of `chain_arrays`."""
    chain = build_chain(**description, own=elements)
    copy_into(chain.parameters, unpack(arrays, "parameters"), "parameters")
    copy_into(chain.state_arrays(), unpack(arrays, "averages"), "averages")
    return chain


def save(chain: Chain, path: Path) -> None:
    """Description, parameters and averages in one npz without pickle, replaced atomically."""
    save_checkpoint(path, chain_arrays(chain), {"kind": "chain", "chain": describe_chain(chain)})


def load(path: Path, elements: Sequence[type] = ()) -> Chain:
    """Read what `save` wrote; ``elements`` are the classes of stages and blocks that `KINDS` does not have.

    Raises
    ------
    CheckpointError
        Missing, damaged, or no chain.
    """
    arrays, facts = load_checkpoint(path)
    if facts.get("kind") != "chain":
        raise CheckpointError(f"{path} does not hold a chain")
    try:
        return restored_chain(arrays, facts["chain"], elements)
    except (KeyError, TypeError) as problem:
        raise CheckpointError(f"the description in {path} is damaged ({problem})") from problem
