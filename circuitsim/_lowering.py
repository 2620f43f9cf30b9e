"""Numba's lowering of kernels without reference counting of arrays that the caller keeps alive.

Compiled code counts atomically every array of a tuple at every call and each time its size or a member is read: several
microseconds per solve. This relies on numba's internals, like `circuitsim._compile`.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import ir as numba_ir
from numba.core.lowering import Lower as NumbaLower

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
