"""Named tuples of arrays passed between kernels by one pointer.

Compiled code passes a tuple of sixty arrays as four hundred numbers, and packing them takes most of the compile time.
`pointer` stores such a tuple once, on the stack of the kernel that owns it; its callees read the members that they
name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from typing import Any

from numba import typeof, types
from numba.core import cgutils
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_builtin,
    lower_getattr_generic,
    models,
    register_model,
    type_callable,
    unbox,
)


class Pointed(types.Type):
    """The type of a pointer to a named tuple ``members`` (a numba type), with the same attributes."""

    def __init__(self, members: Any) -> None:
        self.members = members
        # Part of the names of compiled functions; listing all members would take hundreds of characters.
        digest = hashlib.sha256(str(members).encode()).hexdigest()[:16]
        super().__init__(name=f"Pointed({digest})")

    @property
    def literal_type(self) -> Pointed:
        """Itself: numba needs it to prune a branch on ``argument is None``."""
        return self


@register_model(Pointed)
class _PointedModel(models.PrimitiveModel):
    """Data model: the address of the tuple."""

    def __init__(self, manager: Any, pointed: Pointed) -> None:
        super().__init__(manager, pointed, manager.lookup(pointed.members).get_value_type().as_pointer())

    def from_argument(self, builder: Any, value: Any) -> Any:
        """Load an argument; its target never changes, so no store elsewhere invalidates a load."""
        value.add_attribute("noalias")
        return value


@infer_getattr
class _PointedAttributes(AttributeTemplate):
    """Types of the attributes."""

    key = Pointed

    def generic_resolve(self, pointed: Any, name: str) -> Any:
        """The type of the tuple's member of this name."""
        return pointed.members.types[pointed.members.fields.index(name)]


@lower_getattr_generic(Pointed)
def _member(context: Any, builder: Any, pointed: Pointed, value: Any, name: str) -> Any:
    """Read one member."""
    k = pointed.members.fields.index(name)
    return builder.load(cgutils.gep_inbounds(builder, value, 0, k))


_PINNED: dict[object, Pointed] = {}


def pinned_type(members: Any, kinds: tuple[object, ...]) -> Pointed:
    """The type of a pinned tuple, determined by ``kinds``: see `circuitsim.engine.small.pointers.Pinned`."""
    if kinds not in _PINNED:
        _PINNED[kinds] = Pointed(_in_words(typeof(members)))
    return _PINNED[kinds]


def _in_words(kind: Any) -> Any:
    """The type of a tuple with 64-bit integers in place of booleans, so that all members are words of eight bytes."""
    if isinstance(kind, types.Array) or kind is types.float64:
        return kind
    if isinstance(kind, types.BaseNamedTuple):
        return types.NamedTuple([_in_words(member) for member in kind.types], kind.instance_class)
    if isinstance(kind, types.BaseTuple):
        return types.Tuple([_in_words(member) for member in kind.types])
    if isinstance(kind, (types.Boolean, types.Integer)):
        return types.int64
    raise TypeError(f"{kind} cannot be pinned")


@unbox(Pointed)
def _address(kind: Any, value: Any, c: Any) -> NativeValue:
    """The address of a pinned tuple."""
    number = c.pyapi.object_getattr_string(value, "address")
    address = c.pyapi.number_as_ssize_t(number)
    c.pyapi.decref(number)
    return NativeValue(c.builder.inttoptr(address, c.context.get_value_type(kind)))


def _uncounted(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """The value with its arrays as views without reference counting."""
    if isinstance(kind, types.Array):
        model = context.data_model_manager[kind]
        for member in ("meminfo", "parent"):
            k = model.get_field_position(member)
            value = builder.insert_value(value, cgutils.get_null_value(value.type.elements[k]), k)
        return value
    if isinstance(kind, types.BaseTuple):
        for k, member in enumerate(kind.types):
            if context.data_model_manager[member].contains_nrt_meminfo():
                part = _uncounted(context, builder, member, builder.extract_value(value, k))
                value = builder.insert_value(value, part, k)
    return value


@cache
def register(pointer: Callable[[Any], Any], retain: Callable[[Any], None], kept: Callable[[Any], Any]) -> None:
    """Compile three functions of one argument inline (a call would free its stack).

    Parameters
    ----------
    pointer
        Returns a pointer to a named tuple, valid in the calling function and its callees while the tuple's arrays
        exist; None of None.
    retain
        Keeps its argument alive up to this call.
    kept
        Returns a view of an array without reference counting, for kernels whose caller keeps the array alive. Compiled
        code counts atomically every array of a tuple at every call: several microseconds per solve.
    """

    @type_callable(pointer)
    def pointed(context: Any) -> Any:
        def result(members: Any) -> Any:
            """From a named tuple, or a pinned one, to a pointer; from None to None."""
            return members if isinstance(members, Pointed) or members is types.none else Pointed(members)

        return result

    @type_callable(retain)
    def retained(context: Any) -> Any:
        return lambda members: types.none

    @lower_builtin(pointer, types.BaseNamedTuple)
    def store(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        with builder.goto_entry_block():
            place = builder.alloca(arguments[0].type)
        builder.store(_uncounted(context, builder, signature.args[0], arguments[0]), place)
        return place

    @lower_builtin(pointer, Pointed)
    @lower_builtin(pointer, types.NoneType)
    def same(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return arguments[0]

    @lower_builtin(retain, types.Any)
    def nothing(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.get_dummy_value()

    @type_callable(kept)
    def viewed(context: Any) -> Any:
        return lambda array: array

    @lower_builtin(kept, types.Array)
    def view(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _uncounted(context, builder, signature.args[0], arguments[0])
