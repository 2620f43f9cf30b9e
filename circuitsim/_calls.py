"""How compiled functions call each other and are called from Python, in few of LLVM's instructions.

Numba reads all seven members of an array where it counts a reference, takes results apart and puts them together
again, tells six ways apart in which a call may end, and releases each argument of a call from Python in two places.
LLVM removes what has no use; making, printing and removing it is a fifth of the time of compilation. What is left out
here has no use. This rests on numba's internals, like `circuitsim._compile`.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba.core import callconv, cgutils, config, types
from numba.core.callwrapper import PyCallWrapper
from numba.core.codegen import _parse_refprune_flags
from numba.core.datamodel.models import StructModel
from numba.core.runtime.context import NRTContext
from numba.core.runtime.nrtdynmod import incref_decref_ty
from numba.np import numpy_support

_as_return, _from_return, _as_data = StructModel.as_return, StructModel.from_return, StructModel.as_data
_struct_proxy = cgutils._StructProxy.__init__


def meminfos(runtime: Any, builder: Any, kind: Any, value: Any) -> list[Any]:
    """The counts of references in a value, with their types: of a tuple, in the members that have any."""
    model = runtime._context.data_model_manager[kind]
    found = [(kind, model.get_nrt_meminfo(builder, value))] if model.has_nrt_meminfo() else []
    for member, getter in model.traverse(builder):
        if runtime._context.data_model_manager[member].contains_nrt_meminfo():
            found += meminfos(runtime, builder, member, getter(value))
    return found


def as_return(model: Any, builder: Any, value: Any) -> Any:
    """A tuple or an array as it is returned: itself, unless it holds truth values."""
    return value if model.get_value_type() == model.get_data_type() else _as_return(model, builder, value)


def from_return(model: Any, builder: Any, value: Any) -> Any:
    """A tuple or an array that was returned."""
    return value if model.get_value_type() == model.get_data_type() else _from_return(model, builder, value)


def as_data(model: Any, builder: Any, value: Any) -> Any:
    """A tuple or an array as it is stored."""
    return value if model.get_value_type() == model.get_data_type() else _as_data(model, builder, value)


def place_of_value(builder: Any, value: Any, name: str = "", zfill: bool = False) -> Any:
    """A place on the stack that holds a value from here on; no zeros before."""
    with builder.goto_entry_block():
        place = builder.alloca(value.type, name=name)
    builder.store(value, place)
    return place


def struct_proxy(proxy: Any, context: Any, builder: Any, value: Any = None, ref: Any = None) -> None:
    """Make numba's proxy of a struct on the stack: it holds the value, or zeros, from here on and nothing before."""
    proxy._filled = value is not None
    _struct_proxy(proxy, context, builder, value, ref)


def places_of_struct(proxy: Any, place: Any) -> tuple[Any, Any]:
    """Where such a proxy keeps what it holds."""
    if place is None and proxy._filled:
        with proxy._builder.goto_entry_block():
            place = proxy._builder.alloca(proxy._be_type)
    elif place is None:
        place = place_of_value(proxy._builder, proxy._be_type(None))
    return place, place


class _Status:
    """How a call ended: each question is answered by instructions where it is asked."""

    def __init__(self, builder: Any, code: Any, place: Any) -> None:
        self._builder, self.code, self._place = builder, code, place

    def _is(self, code: Any) -> Any:
        return self._builder.icmp_signed("==", self.code, code)

    @property
    def is_ok(self) -> Any:
        """Whether it returned a value or None."""
        return self._builder.or_(self._is(callconv.RETCODE_OK), self.is_none)

    @property
    def is_none(self) -> Any:
        """Whether it returned None of an optional result."""
        return self._is(callconv.RETCODE_NONE)

    @property
    def is_error(self) -> Any:
        """Whether it ended with an exception."""
        return self._builder.not_(self.is_ok)

    @property
    def is_stop_iteration(self) -> Any:
        """Whether an iterator ended."""
        return self._is(callconv.RETCODE_STOPIT)

    @property
    def is_python_exc(self) -> Any:
        """Whether an exception is set already."""
        return self._is(callconv.RETCODE_EXC)

    @property
    def is_user_exc(self) -> Any:
        """Whether it raised an exception."""
        return self._builder.icmp_signed(">=", self.code, callconv.RETCODE_USEREXC)

    @property
    def excinfoptr(self) -> Any:
        """What it raised."""
        nothing = ir.Constant(callconv.excinfo_ptr_t, ir.Undefined)
        return self._builder.select(self.is_user_exc, self._builder.load(self._place), nothing)


def call_function(
    convention: Any, builder: Any, callee: Any, kind: Any, kinds: Any, given: Any, attrs: Any = None
) -> tuple[_Status, Any]:
    """Call a compiled function: how the call ended, and the result, which counts unless the call ended otherwise."""
    with builder.goto_entry_block():
        result = builder.alloca(convention.get_return_type(kind).pointee)
        raised = builder.alloca(callconv.excinfo_ptr_t)
    arguments = convention._get_arg_packer(kinds).as_arguments(builder, given)
    code = builder.call(callee, [result, raised, *arguments], attrs=tuple(attrs or ()))
    value = convention.context.get_returned_value(builder, kind, builder.load(result))
    return _Status(builder, code, raised), value


def simplify(codegen: Any, module: Any) -> None:
    """Simplify the functions of a part a little: what is left is copied and linked into each kernel that needs it."""
    module.data_layout = codegen._data_layout
    for function in module.functions:
        if not function.is_declaration:
            passes = llvm.create_new_function_pass_manager()
            passes.add_sroa_pass()
            passes.add_instruction_combine_pass()
            passes.add_simplify_cfg_pass()
            passes.add_refprune_pass(_parse_refprune_flags())
            passes.run(function, codegen._pass_builder())


def optimize(codegen: Any, module: Any, unroll: bool) -> None:
    """Optimise the module of a kernel with all that it calls, as numba does, with or without unrolled loops."""
    passes, builder = codegen._module_pass_manager(loop_vectorize=False, slp_vectorize=False, opt=0, cost="cheap")
    passes.run(module, builder)  # functions in place of calls, for the pass that leaves out counting of references
    options = llvm.create_pipeline_tuning_options()
    settings: Any = config
    options.speed_level = settings.OPT
    options.loop_vectorization, options.slp_vectorization = settings.LOOP_VECTORIZE, settings.SLP_VECTORIZE
    options.loop_unrolling = unroll
    builder = llvm.create_pass_builder(codegen._tm, options)
    passes = builder.getModulePassManager()
    passes.add_refprune_pass(_parse_refprune_flags())
    passes.run(module, builder)


class Wrapper(PyCallWrapper):
    """What Python calls: takes the arguments' values, calls the kernel, releases all arguments in one place."""

    def build_wrapper(self, api: Any, builder: Any, closure: Any, args: Any, kws: Any) -> None:
        """Its code."""
        context, kinds = self.context, self.fndesc.argtypes
        objects = [api.alloca_obj() for _ in kinds]
        given = api.unpack_tuple(args, self.fndesc.qualname, len(kinds), len(kinds), *objects)
        with cgutils.if_unlikely(builder, cgutils.is_null(builder, given)):
            builder.ret(api.get_null_object())
        environment = self.get_env(api, builder)
        result = cgutils.alloca_once(builder, api.pyobj)
        arguments = _Arguments(context, builder, api, sum(_references(context, kind) for kind in kinds))
        values = [arguments.take(builder.load(one), kind) for one, kind in zip(objects, kinds)]
        running = api.save_thread() if self.release_gil else None
        # Not inlined: one copy of the kernel, optimised by itself.
        status, value = call_function(
            context.call_conv, builder, self.func, self.fndesc.restype, kinds, values, attrs=("noinline",)
        )
        if self.release_gil:
            api.restore_thread(running)
        with builder.if_then(status.is_ok, likely=True):
            with builder.if_then(status.is_none):
                builder.store(api.make_none(), result)
                builder.branch(arguments.release)
            builder.store(api.from_native_return(self._simplified_return_type(), value, environment), result)
            builder.branch(arguments.release)
        context.call_conv.raise_error(builder, api, status)
        builder.branch(arguments.release)
        arguments.finish(result)


class _Arguments:
    """The arguments of a call from Python and the references that are counted meanwhile.

    Attributes
    ----------
    release
        The block that gives the references back and returns.
    """

    def __init__(self, context: Any, builder: Any, api: Any, count: int) -> None:
        self._context, self._builder, self._api, self._count, self._taken = context, builder, api, count, 0
        self._cleanups: list[Any] = []
        self._held = cgutils.alloca_once(builder, ir.ArrayType(cgutils.voidptr_t, max(count, 1)))
        self.release, self._mismatch = (builder.append_basic_block(name) for name in ("release", "mismatch"))

    def take(self, obj: Any, kind: Any) -> Any:
        """The value of an object; another kind of array ends the call."""
        builder = self._builder
        if isinstance(kind, types.Omitted):
            return None
        if isinstance(kind, types.Array):
            place = self._context.make_array(kind)(self._context, builder)
            address = builder.bitcast(place._getpointer(), cgutils.voidptr_t)
            counted, api = self._context.enable_nrt, self._api
            adapt = api.nrt_adapt_ndarray_from_python if counted else api.numba_array_adaptor
            failed = cgutils.is_not_null(builder, adapt(obj, address))
            size = numpy_support.as_dtype(kind.dtype).itemsize
            other = builder.icmp_unsigned("!=", place.itemsize, place.itemsize.type(size))
            value, failed, target = place._getvalue(), builder.or_(failed, other), self._mismatch
        else:
            native = self._api.to_native_value(kind, obj)
            if native.cleanup is not None:
                raise TypeError(f"{kind} cannot be an argument of a kernel: it would have to be written back")
            value, failed, target = native.value, native.is_error, self.release
        for _, meminfo in meminfos(self._context.nrt, builder, kind, value) if self._context.enable_nrt else ():
            slot = cgutils.gep_inbounds(builder, self._held, 0, self._taken)
            builder.store(builder.bitcast(meminfo, cgutils.voidptr_t), slot)
            self._taken += 1
        with cgutils.if_unlikely(builder, failed):
            builder.branch(target)
        return value

    def finish(self, result: Any) -> None:
        """Write the blocks that end a call."""
        builder = self._builder
        builder.position_at_end(self._mismatch)
        self._api.err_set_string(
            "PyExc_TypeError", "can't unbox array from PyObject into native value. The object maybe of a different type"
        )
        builder.branch(self.release)
        builder.position_at_end(self.release)
        if self._count:
            decref = cgutils.get_or_insert_function(builder.module, incref_decref_ty, "NRT_decref")
            with cgutils.for_range(builder, cgutils.intp_t(self._count)) as loop:
                slot = cgutils.gep_inbounds(builder, self._held, 0, loop.index)
                builder.call(decref, [builder.load(slot)])
        builder.ret(builder.load(result))


def _references(context: Any, kind: Any) -> int:
    """How many counts of references a value holds; none in a kernel that counts none."""
    if not context.enable_nrt:
        return 0
    model = context.data_model_manager[kind]
    own = int(model.has_nrt_meminfo())
    return own + sum(_references(context, member) for member, _ in model.traverse(None))


def create_wrapper(context: Any, library: Any, fndesc: Any, environment: Any, release_gil: bool) -> None:
    """Add the function that Python calls to a kernel's library."""
    module = context.create_module("wrapper")
    kind = context.call_conv.get_function_type(fndesc.restype, fndesc.argtypes)
    callee = ir.Function(module, kind, fndesc.llvm_func_name)
    Wrapper(context, module, callee, fndesc, environment, call_helper=None, release_gil=release_gil).build()
    library.add_ir_module(module)


STANDING_IN: tuple[tuple[Any, str, Any], ...] = (
    (NRTContext, "get_meminfos", meminfos),
    (StructModel, "as_return", as_return),
    (StructModel, "from_return", from_return),
    (StructModel, "as_data", as_data),
    (callconv.CPUCallConv, "call_function", call_function),
    (cgutils, "alloca_once_value", place_of_value),
    (cgutils._StructProxy, "_make_refs", places_of_struct),
    (cgutils._StructProxy, "__init__", struct_proxy),
)
"""What stands for attributes of numba's while it compiles parts."""
