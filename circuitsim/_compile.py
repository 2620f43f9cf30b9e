"""Whole-program compilation of kernels: each is optimised and emitted once, together with all that it calls, and only
constant indices count from the end of an array.

Numba optimises every function, emits its machine code and links the result into each caller, which is optimised and
emitted in turn: nested kernels are compiled once a level. Here a function that a kernel calls contributes its
unoptimised LLVM module. The module of the kernel that Python calls is linked from these, optimised and emitted.

This rests on numba's internals, hence its upper version bound in setup.cfg. Where one of them is missing, this module
cannot be imported, and `circuitsim._jit` takes numba's own compilation: the same results, more slowly.
"""

from __future__ import annotations

import gc
import importlib
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numba
from llvmlite import ir
from numba.core import config, types
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary, _parse_refprune_flags
from numba.core.compiler import Compiler
from numba.core.cpu import CPUContext
from numba.core.dispatcher import _FunctionCompiler  # type: ignore[attr-defined]
from numba.core.environment import lookup_environment
from numba.core.registry import CPUDispatcher
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps
from numba.core.typed_passes import NativeLowering
from numba.np import arrayobj

from circuitsim import _shortcuts
from circuitsim._kernel_cache import KernelFiles, made_of
from circuitsim._lowering import Lower

_ENVIRONMENT = "_ZN08NumbaEnv"
"""What the names of numba's environments (one a function, for its exceptions) begin with."""


_PROCESSOR = " ".join(
    (
        getattr(config, "CPU_NAME", None) or llvm.get_host_cpu_name(),
        getattr(config, "CPU_FEATURES", None) or llvm.get_host_cpu_features().flatten(),
    )
).encode()
"""The processor that machine code is made for."""

_SHARED = tuple(Path(__file__).parent / name for name in ("_graphs.py", "_jit.py", "_pointers.py", "_vectors.py"))

_RUNTIME = "NRT_"
_OURS = "10circuitsim"
"""What the names of this package's functions contain, as numba mangles them."""
_OWN = ".whole"

PARTS, SIZE = "parts", "bytes of bitcode"
"""Of a compiled kernel's metadata: the functions linked together, and how much there was to optimise."""


def _simplify(codegen: Any, module: Any) -> None:
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


def _optimize(codegen: Any, module: Any, unroll: bool) -> None:
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


class _NoAddresses:
    """Stands for the code generator where numba writes an environment's address into a function's machine code."""

    def set_env(self, env_name: str, env: Any) -> None:
        """Nothing: a part has no machine code; `_emit` does this for the whole."""


class WholeLibrary(JITCodeLibrary):
    """The module of a kernel with all that it calls, which is optimised once all is linked."""

    unroll = False

    def _optimize_functions(self, module: Any) -> None:
        """Nothing but the layout of data."""
        module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        """Optimise; loops are unrolled where a kernel asks for it: a third of the code is copies of their bodies else,
        and sparse circuits are solved as fast without."""
        _optimize(self._codegen, self._final_module, self.unroll)


class PartLibrary(JITCodeLibrary):
    """The module of one function, for linking only: it has no machine code."""

    def _optimize_functions(self, module: Any) -> None:
        """Simplify each function a little."""
        _simplify(self._codegen, module)

    @property
    def codegen(self) -> Any:
        """What numba hands a function's environment to."""
        return _NoAddresses()

    def finalize(self) -> None:
        """Make its functions such that each module they are linked into may drop them."""
        self._raise_if_finalized()
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == llvm.Linkage.external:
                function.linkage = llvm.Linkage.linkonce_odr
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """No address: nothing was emitted."""
        return 0

    def parts(self, found: dict[Any, None]) -> None:
        """Add this library and all that it needs to ``found``, each once, in the order of need."""
        if self in found:
            return
        found[self] = None
        for library in self._linking_libraries:
            if isinstance(library, PartLibrary):
                library.parts(found)
            else:
                found[library] = None

    def _get_module_for_linking(self) -> Any:
        """For callers compiled by numba's own pipeline: the module with all that it needs."""
        self._ensure_finalized()
        if self._shared_module is None:
            module = self._final_module.clone()
            for library in list(_closure(self))[1:]:
                _link(module, library)
            self._shared_module = module
        return self._shared_module


def _closure(library: Any) -> dict[Any, None]:
    """A library, first, and all that it needs."""
    found: dict[Any, None] = {}
    if isinstance(library, PartLibrary):
        library.parts(found)
    else:  # compiled for a caller of numba's own, before
        found[library] = None
    return found


def _link(module: Any, library: Any) -> None:
    part = library._final_module if isinstance(library, PartLibrary) else library._get_module_for_linking()
    module.link_in(part, preserve=True)


_fix_integer_index = arrayobj.fix_integer_index


def _index(context: Any, builder: Any, kind: Any, index: Any, size: Any) -> Any:
    """An index into an array, as numba makes it, without the test whether it counts from the end.

    In kernels of this package only constants are negative.
    """
    if isinstance(index, ir.Constant) or _OURS not in builder.function.name:
        return _fix_integer_index(context, builder, kind, index, size)
    return context.cast(builder, index, kind, types.intp)


def _no_wrapper(*arguments: Any) -> None:
    """Nothing: no part is called from C."""


_STANDING_IN = (
    (arrayobj, "fix_integer_index", _index),
    (CPUContext, "create_cfunc_wrapper", _no_wrapper),
    (NativeLowering, "lowering_class", Lower),
    *_shortcuts.STANDING_IN,
)
"""What stands for attributes of numba's while it compiles parts."""


@contextmanager
def _parts_only(codegen: Any) -> Iterator[None]:
    """While this lasts, what numba compiles are parts (the compiler's lock is held)."""
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
    """While this lasts, the collector of reference cycles waits: it would walk the compiler's many objects.

    Afterwards they count as old: it looks at them when it looks at all, not at once.
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
    """Compiles a kernel as a part, then links, optimises and emits it with all that it needs."""

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
            return _emit(part.overloads[tuple(args)], bool(self.targetoptions.get("nogil")), self._kernel.unroll)


def _emit(part: Any, nogil: bool, unroll: bool) -> Any:
    """The compiled kernel, ready to be called from Python, and to be saved."""
    context, fndesc = part.target_context, part.fndesc
    codegen = context.codegen()
    library = WholeLibrary(codegen, fndesc.qualname)
    library.unroll = unroll
    library.enable_object_caching()
    with context.push_code_library(library):
        context.create_cpython_wrapper(library, fndesc, part.environment, call_helper=None, release_gil=nogil)
    module = library._final_module
    parts = _closure(part.library)
    for other in parts:
        _link(module, other)
        library._reload_init.update(other._reload_init)
    for function in module.functions:
        # LLVM's pass that leaves out needless counting of references knows numba's runtime by its names.
        kept = function.name == fndesc.llvm_cpython_wrapper_name or function.name.startswith(_RUNTIME)
        if not function.is_declaration and not kept:
            # Of this module alone: inlined, it goes. The linker finds such functions by name, hence a name of its own.
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
    """Compiled code on disk, of the contents of all sources in the kernel's folder and of those that it names."""

    def __init__(self, py_func: Any) -> None:
        super().__init__(py_func)
        own = Path(py_func.__code__.co_filename).parent
        sources = made_of((*_sources(own), *getattr(py_func, "sources", ())), numba.__version__.encode(), _PROCESSOR)
        self._files = KernelFiles(Path(self._cache_path), self._impl.filename_base, sources)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Compiled code, with the two modules of numba whose names machine code refers to.

        Numba would first import its implementations of all functions, which only compilation needs: 0.3 s a process.
        """
        rtsys.initialize(target_context)
        importlib.import_module("numba.cpython.hashing")
        kept = self._files.load(self._key(sig, target_context.codegen()))
        return None if kept is None else self._impl.rebuild(target_context, kept)

    def holds(self) -> bool:
        """Whether there is compiled code of these sources, for some types of arguments."""
        return self._files.holds()

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep compiled code; on a full disk, for instance, do without."""
        if not self._impl.check_cachable(data):
            return
        try:
            self._impl.locator.ensure_cache_path()
            self._files.save(self._key(sig, data.codegen), dumps(self._impl.reduce(data)))
        except OSError as error:
            logging.getLogger("circuitsim.compilation").warning("note: compiled kernels cannot be kept: %s", error)

    def _key(self, sig: Any, codegen: Any) -> tuple[object, ...]:
        return tuple(self._index_key(sig, codegen))


@cache
def _sources(folder: Path) -> tuple[Path, ...]:
    """The sources in a folder, whose kernels call each other, and those that all folders share."""
    return (*sorted(folder.glob("*.py")), *_SHARED)


class Kernel(CPUDispatcher):
    """A function that Python calls compiled as a whole, its loops unrolled or not, and other kernels as a part."""

    def __init__(
        self, py_func: Callable[..., Any], targetoptions: dict[str, Any], unroll: bool = False, **others: Any
    ) -> None:
        super().__init__(py_func=py_func, targetoptions=targetoptions, **others)
        self.unroll = unroll
        self.part = CPUDispatcher(py_func=py_func, targetoptions={**targetoptions, "no_cpython_wrapper": True})
        self._compiler: Any = _Whole(self, py_func, self.targetdescr, targetoptions, {}, Compiler)

    def enable_caching(self) -> None:
        """Keep compiled code on disk."""
        self._cache: Any = _Cache(self.py_func)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """What a kernel that calls this one is typed with."""
        return self.part.get_call_template(args, kws)

    def get_overload(self, sig: Any) -> Any:
        """What a kernel that calls this one is linked with."""
        return self.part.get_overload(sig)
