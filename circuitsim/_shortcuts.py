"""Numba's repeated work per function, done once or on demand: the same code in less time.

This relies on numba's internals, like `circuitsim._compile`.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import ir as numba_ir
from numba.core.ir_utils import fixup_var_define_in_scope
from numba.core.postproc import PostProcessor, VariableLifetime
from numba.core.targetconfig import TargetConfig
from numba.core.transforms import canonicalize_cfg
from numba.core.typed_passes import NopythonRewrites
from numba.core.types.functions import BaseFunction
from numba.core.untyped_passes import InlineClosureLikes
from numba.np.ufunc.array_exprs import _is_ufunc

_equal_flags = TargetConfig.__eq__
_call_type = BaseFunction.get_call_type
_BUILT_IN = ("_operator", "builtins")
_post_process_generator = PostProcessor.run
_resolved: dict[tuple[int, Any], tuple[Any, Any]] = {}
_inline_closures, _rewrite = InlineClosureLikes.run_pass, NopythonRewrites.run_pass


def _flags_hash(flags: TargetConfig) -> int:
    """A hash of compiler flags. Numba's own sorts and hashes all options at each look-up of an overloaded function (an
    eighth of the compile time); nearly all functions of one kernel have equal flags."""
    return hash(type(flags))


def _same_flags(one: TargetConfig, other: Any) -> bool:
    """Whether compiler flags are equal; compares only the options that one of them sets (numba compares all)."""
    if type(other) is not type(one):
        return _equal_flags(one, other) is True
    mine, its = one._values, other._values
    if mine == its:
        return True
    set_apart = [name for name in {**mine, **its} if name not in mine or name not in its or mine[name] != its[name]]
    return all(getattr(one, name) == getattr(other, name) for name in set_apart)


def _known_call_type(function: Any, context: Any, args: Any, kws: Any) -> Any:
    """The signature of a function for argument types, cached for Python's operators and built-in functions.

    Numba tries all implementations for each expression, again in each typing pass. New implementations create a new
    function object.
    """
    if kws or getattr(function.key[0], "__module__", None) not in _BUILT_IN:
        return _call_type(function, context, args, kws)
    key = id(function), args
    if key not in _resolved:
        _resolved[key] = function, _call_type(function, context, args, kws)
    return _resolved[key][1]


def _post_process(processor: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
    """Numba's work after each pass over a function, with lifetimes of variables computed on demand.

    Nine passes compute them; only generators and the last pass use them.
    """
    function = processor.func_ir
    if function.is_generator:
        _post_process_generator(processor, emit_dels, extend_lifetimes)
        return
    function.blocks = canonicalize_cfg(function.blocks)
    function.variable_lifetime = VariableLifetime(function.blocks)
    function.generator_info = None
    if emit_dels:
        processor._insert_var_dels(extend_lifetimes=extend_lifetimes)


def _expressions(state: Any) -> list[Any]:
    """All assignments of expressions in a function."""
    return [
        statement
        for block in state.func_ir.blocks.values()
        for statement in block.find_insts(numba_ir.Assign)
        if isinstance(statement.value, numba_ir.Expr)
    ]


def _inline_closures_if_any(own: Any, state: Any) -> bool:
    """Numba's pass that inlines closures, list comprehensions, `reduce` and stencils."""
    if any(one.value.op in ("make_function", "build_list") for one in _expressions(state)) or any(
        one.value.name in ("reduce", "stencil")
        for block in state.func_ir.blocks.values()
        for one in block.find_insts(numba_ir.Assign)
        if isinstance(one.value, (numba_ir.Global, numba_ir.FreeVar))
    ):
        return bool(_inline_closures(own, state))
    PostProcessor(state.func_ir).run()
    fixup_var_define_in_scope(state.func_ir.blocks)
    return True


def _rewrite_if_any(own: Any, state: Any) -> bool:
    """Numba's pass that rewrites whole-array sums and products, arrays of constants and text indices."""
    if any(isinstance(kind, types.StringLiteral) for kind in state.typemap.values()) or any(
        _of_whole_arrays(one, state.typemap) for one in _expressions(state)
    ):
        return bool(_rewrite(own, state))
    return False


def _of_whole_arrays(statement: Any, kinds: Any) -> bool:
    """Whether an expression creates a list, or an array by an operator or a universal function."""
    value = statement.value
    if value.op == "build_list":
        return True
    if value.op == "call":
        function = kinds.get(value.func.name)
        return isinstance(function, types.Function) and bool(_is_ufunc(function.typing_key))
    return value.op in ("unary", "binop") and isinstance(kinds.get(statement.target.name), types.Array)


STANDING_IN: tuple[tuple[Any, str, Any], ...] = (
    (TargetConfig, "__hash__", _flags_hash),
    (TargetConfig, "__eq__", _same_flags),
    (BaseFunction, "get_call_type", _known_call_type),
    (PostProcessor, "run", _post_process),
    (InlineClosureLikes, "run_pass", _inline_closures_if_any),
    (NopythonRewrites, "run_pass", _rewrite_if_any),
)
"""Replacements for attributes of numba while it compiles parts."""
