"""Eight numbers as one vector register in compiled kernels: what `circuitsim.engine.small.lanes` compiles to.

Numba leaves a loop over eight neighbours to LLVM, which cannot tell that arrays do not overlap and does one number at a
time. Here the operations are LLVM's own on vectors. Nothing is contracted or reordered: bits are those of numpy.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.datamodel.registry import register_default
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import intrinsic, overload

WIDTH = 8
_VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)


class Lanes(types.Type):
    """The type of eight doubles in a register."""

    def __init__(self) -> None:
        super().__init__(name="Lanes")


LANES = Lanes()


@register_default(Lanes)
class _LanesModel(models.PrimitiveModel):
    """A vector, whatever it is kept in."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)


def _filled(builder: ir.IRBuilder, number: Any) -> Any:
    """One number in all lanes."""
    empty = ir.Constant(_VECTOR, ir.Undefined)
    lane = builder.insert_element(empty, number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(lane, empty, ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH))


_OPERATORS = {
    operator.add: "fadd",
    operator.iadd: "fadd",
    operator.sub: "fsub",
    operator.mul: "fmul",
    operator.truediv: "fdiv",
}


def _operators() -> None:
    """Sums, differences, products, quotients of eight numbers, or of eight and one; change of sign."""
    pairs = [(LANES, LANES), (LANES, types.float64), (types.float64, LANES)]
    for function, name in _OPERATORS.items():
        infer_global(function)(
            type("LanesTemplate", (ConcreteTemplate,), {"cases": [signature(LANES, *pair) for pair in pairs]})
        )
        for pair in pairs:

            def lower(context: Any, builder: Any, sig: Any, arguments: Any, name: str = name) -> Any:
                sides = [a if t == LANES else _filled(builder, a) for t, a in zip(sig.args, arguments, strict=True)]
                return getattr(builder, name)(*sides)

            lower_builtin(function, *pair)(lower)
    infer_global(operator.neg)(type("LanesTemplate", (ConcreteTemplate,), {"cases": [signature(LANES, LANES)]}))
    lower_builtin(operator.neg, LANES)(lambda context, builder, sig, arguments: builder.fneg(arguments[0]))


def _place(context: Any, builder: ir.IRBuilder, kind: Any, array: Any, at: Any) -> Any:
    """Where eight neighbours are in memory."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [at]), _VECTOR.as_pointer())


@intrinsic
def _load(typing_context: Any, array: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        return builder.load(_place(context, builder, sig.args[0], *arguments), align=8)

    return LANES(array, types.int64), generate


@intrinsic
def _store(typing_context: Any, array: Any, at: Any, lanes: Any) -> Any:
    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        builder.store(arguments[2], _place(context, builder, sig.args[0], *arguments[:2]), align=8)
        return context.get_dummy_value()

    return types.void(array, types.int64, LANES), generate


@intrinsic
def _spread(typing_context: Any, number: Any) -> Any:
    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        return _filled(builder, arguments[0])

    return LANES(types.float64), generate


def _unary(name: str) -> Any:
    @intrinsic
    def function(typing_context: Any, lanes: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
            kind = ir.FunctionType(_VECTOR, [_VECTOR])
            return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)

        return LANES(LANES), generate

    return function


@intrinsic
def _where_above(typing_context: Any, one: Any, other: Any, this: Any, that: Any) -> Any:
    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        one, other, this, that = arguments
        return builder.select(builder.fcmp_ordered(">", one, other), this, that)

    return LANES(LANES, LANES, LANES, LANES), generate


@intrinsic
def _any_above(typing_context: Any, one: Any, other: Any) -> Any:
    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        found = builder.bitcast(builder.fcmp_ordered(">", *arguments), ir.IntType(WIDTH))
        return builder.icmp_unsigned("!=", found, ir.Constant(ir.IntType(WIDTH), 0))

    return types.boolean(LANES, LANES), generate


_magnitude, _root = _unary("llvm.fabs.v8f64"), _unary("llvm.sqrt.v8f64")


def register(lanes: Any) -> None:
    """Compile the functions of the module ``lanes`` to these."""
    _operators()
    functions: tuple[Any, ...] = _load, _store, _spread, _where_above, _any_above
    load, store, spread, above, any_above = functions
    compile_to: Any = overload
    compile_to(lanes.load)(lambda array, at: lambda array, at: load(array, at))
    compile_to(lanes.store)(lambda array, at, lanes: lambda array, at, lanes: store(array, at, lanes))
    compile_to(lanes.spread)(lambda number: lambda number: spread(number))
    compile_to(lanes.magnitude)(lambda lanes: lambda lanes: _magnitude(lanes))
    compile_to(lanes.root)(lambda lanes: lambda lanes: _root(lanes))
    compile_to(lanes.larger)(lambda one, other: lambda one, other: above(one, other, one, other))
    compile_to(lanes.smaller)(lambda one, other: lambda one, other: above(other, one, one, other))
    compile_to(lanes.where_above)(
        lambda one, other, this, that: lambda one, other, this, that: above(one, other, this, that)
    )
    compile_to(lanes.any_above)(lambda one, other: lambda one, other: any_above(one, other))
