"""Whole-program compilation of kernels: each is optimised and emitted once, together with all its callees; only
constant indices may be negative.

Numba optimises every function, emits its machine code and links it into each caller, which is optimised and emitted in
turn: nested kernels are compiled once per level. Here, a callee contributes its unoptimised LLVM module. The module of
the kernel that Python calls is linked from these, optimised and emitted.

This relies on numba's internals, hence `circuitsim._jit.TESTED`.

Lowering does not count references of arrays that the caller keeps alive: compiled code would count atomically every
array of a tuple at every call and each time its size or a member is read, several microseconds per solve. Numba's
repeated work per function is done once or on demand: the same code in less time.
"""

from __future__ import annotations

import gc
import importlib
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numba
from llvmlite import ir
from numba import types
from numba.core import config
from numba.core import ir as numba_ir
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary, _parse_refprune_flags
from numba.core.compiler import Compiler
from numba.core.dispatcher import _FunctionCompiler  # type: ignore[attr-defined]
from numba.core.environment import lookup_environment
from numba.core.ir_utils import fixup_var_define_in_scope
from numba.core.lowering import Lower as NumbaLower
from numba.core.postproc import PostProcessor, VariableLifetime
from numba.core.registry import CPUDispatcher
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps
from numba.core.targetconfig import TargetConfig
from numba.core.transforms import canonicalize_cfg
from numba.core.typed_passes import NativeLowering, NopythonRewrites
from numba.core.types.functions import BaseFunction
from numba.core.untyped_passes import InlineClosureLikes
from numba.np import arrayobj
from numba.np.ufunc.array_exprs import _is_ufunc

from circuitsim._kernel_cache import KernelFiles, made_of
from circuitsim._pointers import Pointed


class Lower(NumbaLower):
    """Numba's lowering of a function, without reference counting of borrowed arrays."""

    def init(self) -> None:
        """Prepare for the first statement."""
        super().init()
        self._counting = True
        self._borrowed = set[str]() if self.func_ir.func_id.is_generator else self._without_references()

    def _without_references(self) -> set[str]:
        """Variables that need no reference counting: those without arrays, and those whose arrays belong to arguments
        (or tuples in arguments), which the caller keeps alive."""
        sources: dict[str, list[Any]] = {}
        for block in self.blocks.values():
            for statement in block.find_insts(numba_ir.Assign):
                sources.setdefault(statement.target.name, []).append(statement.value)
        found = {name for name in sources if not self._counted(name)}
        while True:
            more = {name for name in sources.keys() - found if all(self._borrows(one, found) for one in sources[name])}
            if not more:
                return found
            found |= more

    def _counted(self, name: str) -> bool:
        return bool(self.context.data_model_manager[self.typeof(name)].contains_nrt_meminfo())

    def _borrows(self, value: Any, borrowed: set[str]) -> bool:
        """Whether the assigned value borrows its references."""
        if isinstance(value, numba_ir.Arg):
            return True
        if isinstance(value, numba_ir.Var):
            return value.name in borrowed
        if not isinstance(value, numba_ir.Expr) or value.op not in ("getattr", "static_getitem", "exhaust_iter"):
            return False
        of = self.typeof(value.value.name)
        if value.op == "static_getitem" and not isinstance(value.index, int):
            return False
        return isinstance(of, Pointed) or (isinstance(of, types.BaseTuple) and value.value.name in borrowed)

    def lower_inst(self, inst: Any) -> None:
        """Lower one statement."""
        if isinstance(inst, numba_ir.Del) and inst.value in self._borrowed:
            return
        self._counting = not (isinstance(inst, numba_ir.Assign) and inst.target.name in self._borrowed)
        super().lower_inst(inst)
        self._counting = True

    def incref(self, typ: Any, val: Any) -> None:
        """Count a reference."""
        if self._counting:
            super().incref(typ, val)

    def storevar(self, value: Any, name: str, argidx: int | None = None) -> None:
        """Lower an assignment to a variable."""
        if name in self._borrowed and name not in self._singly_assigned_vars:
            self._alloca_var(name, self.typeof(name))
            self.builder.store(value, self.getvar(name))
        else:
            super().storevar(value, name, argidx)

    def lower_expr(self, resty: Any, expr: Any) -> Any:
        """Lower an expression."""
        found = self._member(expr) if expr.op in ("getattr", "static_getitem") else None
        return super().lower_expr(resty, expr) if found is None else found

    def _member(self, expr: Any) -> Any:
        """Lower an array's size or shape, or a member of a borrowed tuple; None for anything else."""
        of = self.typeof(expr.value.name)
        if isinstance(of, types.Array) and expr.op == "getattr" and expr.attr in ("size", "shape"):
            return self._of_array(of, self.loadvar(expr.value.name), "nitems" if expr.attr == "size" else "shape")
        if self._counting or not isinstance(of, types.BaseTuple) or expr.value.name not in self._borrowed:
            return None
        k = of.fields.index(expr.attr) if expr.op == "getattr" else expr.index
        if not isinstance(k, int):
            return None
        return self.builder.extract_value(self.loadvar(expr.value.name), k if k >= 0 else k + len(of))

    def _of_array(self, of: Any, value: Any, member: str, *k: int) -> Any:
        place = self.context.data_model_manager[of].get_field_position(member)
        return self.builder.extract_value(value, [place, *k])


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


_ENVIRONMENT = "_ZN08NumbaEnv"
"""Prefix of the names of numba's environments (one per function, for its exceptions)."""


_PROCESSOR = " ".join(
    (
        getattr(config, "CPU_NAME", None) or llvm.get_host_cpu_name(),
        getattr(config, "CPU_FEATURES", None) or llvm.get_host_cpu_features().flatten(),
    )
).encode()
"""The target processor."""

_RUNTIME = "NRT_"
_OURS = "10circuitsim"
"""Part of the mangled names of this package's functions."""
_OWN = ".whole"

PARTS, SIZE = "parts", "bytes of bitcode"
"""Metadata of a compiled kernel: the linked functions and the size of the optimised code."""


def _simplify(codegen: Any, module: Any) -> None:
    """Simplify the functions of a part slightly, as its code is copied into each kernel that needs it."""
    module.data_layout = codegen._data_layout
    for function in module.functions:
        if not function.is_declaration:
            passes = llvm.create_new_function_pass_manager()
            passes.add_sroa_pass()
            passes.add_instruction_combine_pass()
            passes.add_simplify_cfg_pass()
            passes.add_refprune_pass(_parse_refprune_flags())
            passes.run(function, codegen._pass_builder())


class _NoAddresses:
    """A code generator that writes no address of an environment into a function's machine code."""

    def set_env(self, env_name: str, env: Any) -> None:
        """Do nothing: a part has no machine code; `_emit` does this for the whole."""


class WholeLibrary(JITCodeLibrary):
    """The module of a kernel and its callees, optimised once linked."""

    def _optimize_functions(self, module: Any) -> None:
        """Set the data layout only."""
        module.data_layout = self._codegen._data_layout


class PartLibrary(JITCodeLibrary):
    """The module of one function, for linking only, without machine code."""

    _shared_module: Any

    def _optimize_functions(self, module: Any) -> None:
        """Simplify each function slightly."""
        _simplify(self._codegen, module)

    @property
    def codegen(self) -> Any:
        """The code generator that numba gives a function's environment to."""
        return _NoAddresses()

    def finalize(self) -> None:
        """Let each module that its functions are linked into drop them."""
        self._raise_if_finalized()
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == llvm.Linkage.external:
                function.linkage = llvm.Linkage.linkonce_odr
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """None: nothing was emitted."""
        return 0

    def parts(self, found: dict[Any, None]) -> None:
        """Add this library and its dependencies to ``found``, each once, in order of need."""
        if self in found:
            return
        found[self] = None
        for library in self._linking_libraries:
            if isinstance(library, PartLibrary):
                library.parts(found)
            else:
                found[library] = None

    def _get_module_for_linking(self) -> Any:
        """The module with its dependencies, for callers compiled by numba's own pipeline."""
        self._ensure_finalized()
        if self._shared_module is None:
            module = self._final_module.clone()
            for library in list(_closure(self))[1:]:
                _link(module, library)
            self._shared_module = module
        return self._shared_module


def _closure(library: Any) -> dict[Any, None]:
    """A library followed by its dependencies."""
    found: dict[Any, None] = {}
    if isinstance(library, PartLibrary):
        library.parts(found)
    else:  # already compiled for a caller in numba's own pipeline
        found[library] = None
    return found


def _link(module: Any, library: Any) -> None:
    part = library._final_module if isinstance(library, PartLibrary) else library._get_module_for_linking()
    module.link_in(part, preserve=True)


_fix_integer_index = arrayobj.fix_integer_index


def _index(context: Any, builder: Any, kind: Any, index: Any, size: Any) -> Any:
    """An array index as numba makes it, without the test for negative values.

    In this package's kernels, only constant indices are negative.
    """
    if isinstance(index, ir.Constant) or _OURS not in builder.function.name:
        return _fix_integer_index(context, builder, kind, index, size)
    return context.cast(builder, index, kind, types.intp)


_STANDING_IN = (
    (arrayobj, "fix_integer_index", _index),
    (NativeLowering, "lowering_class", Lower),
    *STANDING_IN,
)
"""Replacements for attributes of numba while it compiles parts."""


@contextmanager
def _parts_only(codegen: Any) -> Iterator[None]:
    """A context in which numba compiles parts (the compiler's lock is held)."""
    standing_in = ((codegen, "_library_class", PartLibrary), *_STANDING_IN)
    before = [getattr(owner, name) for owner, name, _ in standing_in]
    for owner, name, other in standing_in:
        setattr(owner, name, other)
    try:
        yield
    finally:
        for (owner, name, _), own in zip(standing_in, before):
            setattr(owner, name, own)


@contextmanager
def _without_collection() -> Iterator[None]:
    """A context without garbage collection, which would traverse the compiler's many objects.

    Afterwards these objects belong to the oldest generation, which is rarely collected.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()


class _Whole(_FunctionCompiler):
    """Compiles a kernel as a part, then links it with its dependencies, optimises and emits the result."""

    def __init__(self, kernel: Kernel, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._kernel = kernel

    def _compile_core(self, args: Any, return_type: Any) -> Any:
        context: Any = self._kernel.targetctx
        context.refresh()
        with _without_collection():
            part = self._kernel.part
            with _parts_only(context.codegen()):
                part.compile(args)
            return _emit(part.overloads[tuple(args)], bool(self.targetoptions.get("nogil")))


def _emit(part: Any, nogil: bool) -> Any:
    """The compiled kernel, callable from Python and ready to be saved."""
    context, fndesc = part.target_context, part.fndesc
    codegen = context.codegen()
    library = WholeLibrary(codegen, fndesc.qualname)
    library.enable_object_caching()
    with context.push_code_library(library):
        context.create_cpython_wrapper(library, fndesc, part.environment, call_helper=None, release_gil=nogil)
    module = library._final_module
    parts = _closure(part.library)
    for other in parts:
        _link(module, other)
        library._reload_init.update(other._reload_init)
    for function in module.functions:
        # LLVM's pass that removes redundant reference counting identifies numba's runtime by name.
        kept = function.name == fndesc.llvm_cpython_wrapper_name or function.name.startswith(_RUNTIME)
        if not function.is_declaration and not kept:
            # Private to this module, and dropped once inlined. The linker finds functions by name, hence a unique name.
            function.linkage = llvm.Linkage.internal
            function.name += _OWN
    size = len(module.as_bitcode())
    library.finalize()
    entry = context.get_executable(library, fndesc, part.environment)
    for variable in module.global_variables:
        if variable.name.startswith(_ENVIRONMENT):
            environment = lookup_environment(variable.name)
            if environment is not None:
                codegen.set_env(variable.name, environment)
    return part._replace(library=library, entry_point=entry, metadata={PARTS: len(parts), SIZE: size})


class _Cache(FunctionCache):
    """Compiled code on disk, keyed by what the kernel is made of."""

    @cached_property
    def _files(self) -> KernelFiles:
        sources = made_of(self._py_func, numba.__version__.encode(), _PROCESSOR)
        return KernelFiles(Path(self._cache_path), self._impl.filename_base, sources)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load compiled code, and the two modules of numba that machine code refers to by name.

        Numba would first import its implementations of all functions (0.3 s), which only compilation needs.
        """
        rtsys.initialize(target_context)
        importlib.import_module("numba.cpython.hashing")
        kept = self._files.load(self._key(sig, target_context.codegen()))
        return None if kept is None else self._impl.rebuild(target_context, kept)

    def holds(self) -> bool:
        """Whether compiled code of these sources exists for some argument types."""
        return self._files.holds()

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save compiled code; ignore failures such as a full disk."""
        if not self._impl.check_cachable(data):
            return
        try:
            self._impl.locator.ensure_cache_path()
            self._files.save(self._key(sig, data.codegen), dumps(self._impl.reduce(data)))
        except OSError as error:
            logging.getLogger("circuitsim.compilation").warning("note: compiled kernels cannot be kept: %s", error)

    def _key(self, sig: Any, codegen: Any) -> tuple[object, ...]:
        return tuple(self._index_key(sig, codegen))


class Kernel(CPUDispatcher):
    """A function compiled as a whole for Python, and as a part for other kernels."""

    def __init__(self, py_func: Callable[..., Any], targetoptions: dict[str, Any], **others: Any) -> None:
        super().__init__(py_func=py_func, targetoptions=targetoptions, **others)
        self.part = CPUDispatcher(py_func=py_func, targetoptions={**targetoptions, "no_cpython_wrapper": True})
        self._compiler: Any = _Whole(self, py_func, self.targetdescr, targetoptions, {}, Compiler)

    def enable_caching(self) -> None:
        """Cache compiled code on disk."""
        self._cache: Any = _Cache(self.py_func)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """The call template for typing a kernel that calls this one."""
        return self.part.get_call_template(args, kws)

    def get_overload(self, sig: Any) -> Any:
        """The part to link into a kernel that calls this one."""
        return self.part.get_overload(sig)
