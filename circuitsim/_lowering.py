"""From numba's typed statements to LLVM's instructions, as few of them as machine code needs.

Numba gives each variable that lives beyond one block a place on the stack, copies the seven members of an array there
for each element read, and counts references of arrays that the caller keeps. LLVM removes all of it again; making,
printing, parsing and removing it is most of the time of compilation. Here a variable that is assigned once is a value,
an element is read through the array's address, and borrowed arrays are not counted.

The arithmetic is numba's own. This rests on numba's internals, like `circuitsim._compile`.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core import ir as numba_ir
from numba.core.analysis import compute_cfg_from_blocks, must_use_alloca
from numba.core.lowering import Lower as NumbaLower
from numba.np import arrayobj

from circuitsim._pointers import Pointed

_SCALARS = (types.Integer, types.Float, types.Boolean, types.Complex)


class Lower(NumbaLower):
    """Numba's lowering of a function, with values in place of variables and elements in place of arrays."""

    def init(self) -> None:
        """Before the first statement."""
        super().init()
        self._counting = True
        self._borrowed: set[str] = set()
        self._made: dict[int, tuple[Any, ...]] = {}
        if not self.func_ir.func_id.is_generator:
            self._borrowed = self._without_references()
            self._singly_assigned_vars |= _values(self.blocks) & self._borrowed
        iterators = {name for name in self.fndesc.typemap if isinstance(self.typeof(name), types.RangeIteratorType)}
        self._plain_loops = iterators <= self._singly_assigned_vars

    def _without_references(self) -> set[str]:
        """Variables whose references need not be counted: those without arrays, and those of arrays that arguments
        (or tuples in arguments) hold, which the caller keeps."""
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
        """Whether what is assigned holds references that something else keeps."""
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
        """One statement."""
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
        """Assign to a variable."""
        if name in self._borrowed and name not in self._singly_assigned_vars:
            self._alloca_var(name, self.typeof(name))
            self.builder.store(value, self.getvar(name))
        else:
            super().storevar(value, name, argidx)

    def lower_call(self, resty: Any, expr: Any) -> Any:
        """A call; ranges and slices are kept by their parts too."""
        kind, signature = self.typeof(expr.func.name), self.fndesc.calltypes[expr]
        if not isinstance(kind, types.Function) or kind.typing_key not in (range, slice) or expr.kws or expr.vararg:
            return super().lower_call(resty, expr)
        given = [self._cast_var(one, whole) for one, whole in zip(expr.args, signature.args)]
        if kind.typing_key is slice:
            value = super().lower_call(resty, expr)
            if len(given) == 2 and all(isinstance(whole, (types.Integer, types.NoneType)) for whole in signature.args):
                none = [isinstance(whole, types.NoneType) for whole in signature.args]
                self._keep(value, *(None if absent else one for one, absent in zip(given, none)))
            return value
        whole = given[0].type
        first, *others = given if len(given) > 1 else (whole(0), *given)
        parts = (first, *others, whole(1))[:3]
        return self._keep(self._struct(self.context.get_value_type(resty), *parts), *parts)

    def _keep(self, value: Any, *parts: Any) -> Any:
        self._made[id(value)] = (*parts, value)  # which lives as long
        return value

    def _struct(self, kind: Any, *members: Any) -> Any:
        value = ir.Constant(kind, ir.Undefined)
        for k, member in enumerate(members):
            value = self.builder.insert_value(value, member, k)
        return value

    def lower_expr(self, resty: Any, expr: Any) -> Any:
        """An expression."""
        found = None
        if expr.op in ("getattr", "static_getitem"):
            found = self._member(expr)
        elif expr.op in ("pair_first", "pair_second"):
            found = self.builder.extract_value(self.loadvar(expr.value.name), int(expr.op == "pair_second"))
            self.incref(resty, found)
        elif expr.op == "getiter" and isinstance(self.typeof(expr.value.name), types.RangeType) and self._plain_loops:
            found = self._begin(resty, self._made.get(id(self.loadvar(expr.value.name))))
        elif expr.op == "iternext":
            found = self._next(resty, self._made.get(id(self.loadvar(expr.value.name))))
        return super().lower_expr(resty, expr) if found is None else found

    def _member(self, expr: Any) -> Any:
        """An array's size or shape, or a member of a tuple that something else keeps; nothing if it is another."""
        of: Any = self.typeof(expr.value.name)
        if isinstance(of, types.Array) and expr.op == "getattr" and expr.attr in ("size", "shape"):
            return self._of_array(of, self.loadvar(expr.value.name), "nitems" if expr.attr == "size" else "shape")
        if self._counting or not isinstance(of, types.BaseTuple) or expr.value.name not in self._borrowed:
            return None
        k: Any = of.fields.index(expr.attr) if expr.op == "getattr" else expr.index  # type: ignore[attr-defined]
        if not isinstance(k, int):
            return None
        return self.builder.extract_value(self.loadvar(expr.value.name), k if k >= 0 else k + len(of))

    def _begin(self, kind: Any, parts: Any) -> Any:
        """The iterator of a range whose step is known."""
        if parts is None or not isinstance(parts[2], ir.Constant) or parts[2].constant == 0:
            return None
        first, stop, step, _ = parts
        place = cgutils.alloca_once(self.builder, first.type)
        self.builder.store(first, place)
        return self._keep(self._struct(self.context.get_value_type(kind), place, stop, step), place, stop, step)

    def _next(self, pair: Any, parts: Any) -> Any:
        """The next number of such an iterator, and whether there is one."""
        if parts is None:
            return None
        (place, stop, step, _), builder = parts, self.builder
        number = builder.load(place)
        compare = builder.icmp_signed if pair.first_type.signed else builder.icmp_unsigned
        there = compare("<" if step.constant > 0 else ">", number, stop)
        builder.store(builder.add(number, step), place)
        return self._struct(self.context.get_value_type(pair), number, there)

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        """What stands at an index: of an array, for whole numbers, its element."""
        of = self.typeof(value.name)
        if self._denotes_row(of, signature.args[1], resty):
            row = self._row(of, value, index, signature.args[1], resty)
            self.incref(resty, row)
            return row
        if self._denotes_stretch(of, signature.args[1], index) and resty == of:
            stretch = self._stretch(of, self.loadvar(value.name), *self._made[id(self.loadvar(index.name))][:2])
            self.incref(resty, stretch)
            return stretch
        if not self._denotes_element(of, signature.args[1]):
            return super().lower_getitem(resty, expr, value, index, signature)
        element = arrayobj.load_item(self.context, self.builder, of, self._address(of, value, index, signature.args[1]))
        return self.context.cast(self.builder, element, of.dtype, resty)

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        """Store at an index."""
        of, given = self.typeof(target_var.name), self.typeof(value_var.name)
        element = self._denotes_element(of, signature.args[1])
        if not isinstance(given, _SCALARS) or not (element or self._denotes_filled(of, signature.args[1], index_var)):
            return super().lower_setitem(target_var, index_var, value_var, signature)
        value = self.context.cast(self.builder, self.loadvar(value_var.name), given, signature.args[2])
        value = self.context.cast(self.builder, value, signature.args[2], of.dtype)
        if element:
            address = self._address(of, target_var, index_var, signature.args[1])
            arrayobj.store_item(self.context, self.builder, of, value, address)
        else:
            self._fill(of, self.loadvar(target_var.name), self._made[id(self.loadvar(index_var.name))][:2], value)
        return None

    def _denotes_filled(self, of: Any, kind: Any, index: Any) -> bool:
        """Whether an index denotes a stretch of an array, or an array as a whole."""
        if self._denotes_stretch(of, kind, index):
            return isinstance(of.dtype, _SCALARS)
        return (
            isinstance(of, types.Array)
            and of.layout == "C"
            and isinstance(of.dtype, _SCALARS)
            and isinstance(kind, types.SliceType)
            and not kind.has_step
            and self._made.get(id(self.loadvar(index.name)), (0, 0))[:2] == (None, None)
        )

    def _fill(self, of: Any, array: Any, bounds: Any, value: Any) -> None:
        """Store a number at all places of a stretch or an array."""
        stretch = array if bounds == (None, None) else self._stretch(of, array, *bounds)
        data = self._of_array(of, stretch, "data")
        with cgutils.for_range(self.builder, self._of_array(of, stretch, "nitems")) as loop:
            arrayobj.store_item(self.context, self.builder, of, value, self.builder.gep(data, [loop.index]))

    def _denotes_element(self, of: Any, index: Any) -> bool:
        indices = _each(index)
        return (
            isinstance(of, types.Array)
            and isinstance(of.dtype, _SCALARS)
            and len(indices) == of.ndim
            and of.layout in "CA"
            and all(isinstance(one, types.Integer) for one in indices)
            and not self.context.enable_boundscheck
        )

    def _denotes_row(self, of: Any, index: Any, row: Any) -> bool:
        return (
            isinstance(of, types.Array)
            and of.ndim == 2
            and of.layout == "C"
            and isinstance(index, types.Integer)
            and isinstance(row, types.Array)
            and row.layout == "C"
            and not self.context.enable_boundscheck
        )

    def _row(self, of: Any, array: Any, index: Any, kind: Any, row: Any) -> Any:
        """One row of a matrix."""
        value, builder = self.loadvar(array.name), self.builder
        at = self.context.cast(builder, self.loadvar(index.name), self.typeof(index.name), kind)
        width = self._of_array(of, value, "shape", 1)
        data = builder.gep(self._of_array(of, value, "data"), [builder.mul(self._place(of, value, 0, at, kind), width)])
        kept = [self._of_array(of, value, member) for member in ("meminfo", "parent")]
        itemsize = self._of_array(of, value, "itemsize")
        shape = cgutils.pack_array(builder, [width])
        strides = cgutils.pack_array(builder, [self._of_array(of, value, "strides", 1)])
        return self._struct(self.context.get_value_type(row), *kept, width, itemsize, data, shape, strides)

    def _denotes_stretch(self, of: Any, kind: Any, index: Any) -> bool:
        return (
            isinstance(of, types.Array)
            and of.ndim == 1
            and of.layout == "C"
            and isinstance(kind, types.SliceType)
            and not kind.has_step
            and id(self.loadvar(index.name)) in self._made
        )

    def _stretch(self, of: Any, value: Any, first: Any, stop: Any) -> Any:
        """The elements from one index to another, each counted from the end if it is negative."""
        builder, size = self.builder, self._of_array(of, value, "nitems")
        begin = size.type(0) if first is None else self._bound(first, size)
        end = size if stop is None else self._bound(stop, size)
        length = builder.sub(end, begin)
        length = builder.select(builder.icmp_signed("<", length, size.type(0)), size.type(0), length)
        data = builder.gep(self._of_array(of, value, "data"), [begin])
        for member, own in (("nitems", length), ("data", data), ("shape", cgutils.pack_array(builder, [length]))):
            value = builder.insert_value(value, own, self.context.data_model_manager[of].get_field_position(member))
        return value

    def _bound(self, bound: Any, size: Any) -> Any:
        """A bound between 0 and an array's size."""
        builder, zero = self.builder, size.type(0)
        if isinstance(bound, ir.Constant) and bound.constant >= 0:
            fixed = bound
        else:
            fixed = builder.select(builder.icmp_signed("<", bound, zero), builder.add(bound, size), bound)
            fixed = builder.select(builder.icmp_signed("<", fixed, zero), zero, fixed)
        return builder.select(builder.icmp_signed(">", fixed, size), size, fixed)

    def _address(self, of: Any, array: Any, index: Any, kind: Any) -> Any:
        """The address of an array's element."""
        context, builder = self.context, self.builder
        value = self.loadvar(array.name)
        at = context.cast(builder, self.loadvar(index.name), self.typeof(index.name), kind)
        kinds = _each(kind)
        indices = [at] if not isinstance(kind, types.BaseTuple) else cgutils.unpack_tuple(builder, at, len(kinds))
        places = [self._place(of, value, k, *pair) for k, pair in enumerate(zip(indices, kinds))]
        data = self._of_array(of, value, "data")
        if of.layout == "A":
            steps = [self._of_array(of, value, "strides", k) for k in range(of.ndim)]
            offset = _sum(builder, [builder.mul(step, place) for step, place in zip(steps, places)])
            return cgutils.pointer_add(builder, data, offset)
        place = places[0]
        for k in range(1, of.ndim):
            place = builder.add(builder.mul(place, self._of_array(of, value, "shape", k)), places[k])
        return builder.gep(data, [place])

    def _place(self, of: Any, value: Any, k: int, index: Any, kind: Any) -> Any:
        """An index along axis ``k``; only constants count from the end, as `circuitsim._compile` says."""
        if kind.signed and (not isinstance(index, ir.Constant) or index.constant < 0):
            size = self._of_array(of, value, "shape", k)
            return arrayobj.fix_integer_index(self.context, self.builder, kind, index, size)
        return self.context.cast(self.builder, index, kind, types.intp)

    def _of_array(self, of: Any, value: Any, member: str, *k: int) -> Any:
        place = self.context.data_model_manager[of].get_field_position(member)
        return self.builder.extract_value(value, [place, *k])


def _values(blocks: Any) -> set[str]:
    """Variables assigned once, in a block that comes before (and dominates) all blocks that use them."""
    assigned: dict[str, Any] = {}
    for label, block in blocks.items():
        for statement in block.find_insts(numba_ir.Assign):
            assigned[statement.target.name] = None if statement.target.name in assigned else label
    graph = compute_cfg_from_blocks(blocks)
    before, alive = graph.dominators(), set(graph.nodes()) - set(graph.dead_nodes())
    wrong = {name for name, label in assigned.items() if label is None} | must_use_alloca(blocks)
    for label, block in blocks.items():
        known: set[str] = set()
        for statement in block.body:
            for name in _used(statement):
                home = assigned.get(name)
                if name not in known and (
                    home is None or label not in alive or home == label or home > label or home not in before[label]
                ):
                    wrong.add(name)
            if isinstance(statement, numba_ir.Assign):
                known.add(statement.target.name)
    return assigned.keys() - wrong


def _used(statement: Any) -> list[str]:
    """Names of the variables that a statement reads or deletes."""
    if isinstance(statement, numba_ir.Del):
        return [statement.value]
    if isinstance(statement, numba_ir.Assign):
        value = statement.value
        return [value.name] if isinstance(value, numba_ir.Var) else [one.name for one in _members(value)]
    return [one.name for one in statement.list_vars()]


def _members(value: Any) -> list[Any]:
    return list(value.list_vars()) if isinstance(value, numba_ir.Inst) else []


def _each(kind: Any) -> tuple[Any, ...]:
    """The types in a tuple's type, or a type itself."""
    return tuple(kind) if isinstance(kind, types.BaseTuple) else (kind,)  # type: ignore[arg-type]


def _sum(builder: Any, terms: list[Any]) -> Any:
    total = terms[0]
    for term in terms[1:]:
        total = builder.add(total, term)
    return total
