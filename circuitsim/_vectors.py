"""Vectors of a fixed number of lanes in numba kernels, without relying on auto-vectorisation.

Numba's own vectoriser reorders sums only under fast-math, keeps no tile in registers and prefers 256 bits. Here a
vector is a value: `load` and `store` move it, `fma`, `add`, `sub`, `mul`, `div`, `maximum`, `minimum`, `magnitude` act
lane by lane, `total`, `largest` reduce its lanes in a fixed order. LLVM splits a vector over as many registers as the
processor needs, so a kernel gives identical results on every machine with a fused multiply-add.

Arrays are one-dimensional and contiguous; indices count elements; there are no bounds checks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

from circuitsim._jit import jit

Codegen = Callable[..., Any]


def kernel(parallel: bool = False, **options: Any) -> Callable[[Any], Any]:
    """Compile a function that accesses only the memory of its arguments, without reference counting."""
    settings = {"_nrt": False, **options}
    return jit(parallel=True, **settings) if parallel else jit(**settings)


def _primitive(literal: bool = False) -> Callable[[Any], Any]:
    """An operation for kernels; with ``literal``, it receives literal numbers as constants."""
    return intrinsic(prefer_literal=literal)


class Vector(types.Type):
    """The type of a vector: its scalar type and its number of lanes, a power of two."""

    def __init__(self, scalar: Any, lanes: int) -> None:
        self.scalar, self.lanes = scalar, lanes
        super().__init__(name=f"Vector({scalar} x {lanes})")

    def llvm(self) -> ir.VectorType:
        """The LLVM type."""
        return ir.VectorType(ir.FloatType() if self.scalar == types.float32 else ir.DoubleType(), self.lanes)


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Vector) -> None:
        super().__init__(manager, kind, kind.llvm())


def _place(context: Any, builder: Any, kind: Any, array: Any, index: Any, vector: Vector) -> Any:
    """The address of an element, as a pointer to a vector."""
    data = cgutils.create_struct_proxy(kind)(context, builder, value=array).data
    return builder.bitcast(builder.gep(data, [index]), vector.llvm().as_pointer())


def _is_flat(array: Any) -> bool:
    return isinstance(array, types.Array) and array.ndim == 1 and array.layout == "C"


@_primitive(literal=True)
def load(typing: Any, array: Any, index: Any, lanes: Any) -> tuple[Any, Codegen] | None:
    """``array[index : index + lanes]``; ``lanes`` is a constant."""
    if not (_is_flat(array) and isinstance(lanes, types.IntegerLiteral)):
        return None
    vector = Vector(array.dtype, lanes.literal_value)
    return vector(array, index, lanes), _loading(vector)


def _loading(vector: Vector) -> Codegen:
    """Code that loads a vector from the first two arguments, array and index."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        index = context.cast(builder, arguments[1], signature.args[1], types.intp)
        found = builder.load(_place(context, builder, signature.args[0], arguments[0], index, vector))
        found.align = vector.scalar.bitwidth // 8
        return found

    return build


@_primitive()
def store(typing: Any, array: Any, index: Any, vector: Any) -> tuple[Any, Codegen] | None:
    """``array[index : index + lanes] = vector``."""
    if not (_is_flat(array) and isinstance(vector, Vector) and vector.scalar == array.dtype):
        return None

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        index = context.cast(builder, arguments[1], signature.args[1], types.intp)
        place = _place(context, builder, signature.args[0], arguments[0], index, vector)
        builder.store(arguments[2], place).align = array.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(array, index, vector), build


@_primitive(literal=True)
def splat(typing: Any, scalar: Any, lanes: Any) -> tuple[Any, Codegen] | None:
    """A vector with the same number in every lane."""
    if not (scalar in (types.float32, types.float64) and isinstance(lanes, types.IntegerLiteral)):
        return None
    vector = Vector(scalar, lanes.literal_value)
    return vector(scalar, lanes), _filling(vector)


def _filling(vector: Vector) -> Codegen:
    """Code that fills a vector with its first argument."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        empty = ir.Constant(vector.llvm(), ir.Undefined)
        first = builder.insert_element(empty, arguments[0], ir.Constant(ir.IntType(32), 0))
        return builder.shuffle_vector(first, empty, _indices([0] * vector.lanes))

    return build


def _indices(values: list[int]) -> ir.Constant:
    return ir.Constant(ir.VectorType(ir.IntType(32), len(values)), values)


def _lanewise(build: Callable[[Any, Any, Any], Any], what: str) -> Any:
    """An operation on two vectors of one type."""

    def operation(typing: Any, a: Any, b: Any) -> tuple[Any, Codegen] | None:
        if not (isinstance(a, Vector) and a == b):
            return None
        return a(a, b), lambda context, builder, signature, arguments: build(builder, *arguments)

    operation.__doc__ = what
    return _primitive()(operation)


def _maximum(builder: Any, a: Any, b: Any) -> Any:
    # This order of comparison propagates NaN lanes of `a`: no silent divergence.
    return builder.select(builder.fcmp_ordered(">", b, a), b, a)


def _minimum(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", b, a), b, a)


add = _lanewise(lambda builder, a, b: builder.fadd(a, b), "a + b")
sub = _lanewise(lambda builder, a, b: builder.fsub(a, b), "a − b")
mul = _lanewise(lambda builder, a, b: builder.fmul(a, b), "a · b")
div = _lanewise(lambda builder, a, b: builder.fdiv(a, b), "a / b")
maximum = _lanewise(_maximum, "max(a, b)")
minimum = _lanewise(_minimum, "min(a, b)")


@_primitive()
def magnitude(typing: Any, a: Any) -> tuple[Any, Codegen] | None:
    """|a|, lane by lane."""
    if not isinstance(a, Vector):
        return None

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = a.llvm()
        name = f"llvm.fabs.v{a.lanes}f{a.scalar.bitwidth}"
        operation = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind]), name)
        return builder.call(operation, arguments)

    return a(a), build


@_primitive()
def fma(typing: Any, a: Any, b: Any, c: Any) -> tuple[Any, Codegen] | None:
    """a · b + c in one rounding."""
    if not (isinstance(a, Vector) and a == b == c):
        return None

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = a.llvm()
        name = f"llvm.fma.v{a.lanes}f{a.scalar.bitwidth}"
        operation = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind] * 3), name)
        return builder.call(operation, arguments)

    return a(a, b, c), build


zip_low = _lanewise(lambda builder, a, b: _zipped(builder, a, b, 0), "a₀ b₀ a₁ b₁ …: the lower halves, in turns.")
zip_high = _lanewise(lambda builder, a, b: _zipped(builder, a, b, 1), "The upper halves, in turns.")


def _zipped(builder: Any, a: Any, b: Any, half: int) -> Any:
    lanes = a.type.count
    places = range(half * lanes // 2, (half + 1) * lanes // 2)
    return builder.shuffle_vector(a, b, _indices([k + side for k in places for side in (0, lanes)]))


def _folding(fold: Callable[[Any, Any, Any], Any], what: str) -> Any:
    """A reduction of the lanes of one vector by halves."""

    def operation(typing: Any, a: Any) -> tuple[Any, Codegen] | None:
        if not isinstance(a, Vector):
            return None

        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            vector, lanes = arguments[0], a.lanes
            while lanes > 1:
                lanes //= 2
                empty = ir.Constant(vector.type, ir.Undefined)
                low = builder.shuffle_vector(vector, empty, _indices(list(range(lanes))))
                high = builder.shuffle_vector(vector, empty, _indices(list(range(lanes, 2 * lanes))))
                vector = fold(builder, low, high)
            return builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))

        return a.scalar(a), build

    operation.__doc__ = what
    return _primitive()(operation)


total = _folding(lambda builder, a, b: builder.fadd(a, b), "The sum of the lanes: upper half onto lower half.")
largest = _folding(_maximum, "The largest of the lanes.")


def aligned(size: int, dtype: Any) -> np.ndarray:
    """Zeros aligned to 64 bytes, so that no vector straddles two cache lines."""
    itemsize = np.dtype(dtype).itemsize
    memory = np.zeros(size * itemsize + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size * itemsize].view(dtype)
