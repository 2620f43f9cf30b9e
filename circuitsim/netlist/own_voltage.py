"""Formulas of currents in the voltage of their own source, and of voltages in its own current, as tapes of operations
(`circuitsim.models.formula_law`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from circuitsim.circuit.elements import VOLTAGE
from circuitsim.models import formula_operations as f
from circuitsim.models.formula_operations import Tape
from circuitsim.netlist.evaluate import Environment, Evaluator
from circuitsim.netlist.expression import NEGATE, TRUTH, Code, ExpressionError
from circuitsim.netlist.symbolic_run import SymbolicRun

if TYPE_CHECKING:
    from circuitsim.circuit import Circuit


class Formula(NamedTuple):
    """A part of a formula that depends on the voltage; ``condition``: 1 or 0."""

    tape: Tape
    condition: bool = False


Entry = float | Formula
Of = Callable[[Sequence[Entry]], Formula]


def tape_of(code: Code, signs: Sequence[float], environment: Environment, evaluator: Evaluator) -> Tape:
    """The tape of an expression with stand-ins for its controls.

    Parameters
    ----------
    code : Code
        See `circuitsim.netlist.affine.Behaviour`.
    signs : sequence of float
        1 for a control that is the voltage, −1 for one that is its negative.
    environment, evaluator
        Parameters and functions.

    Raises
    ------
    ExpressionError
        It has no value, or does something with the voltage for which there is no operation.
    """
    evaluator.depth = 0
    evaluator.need(code, environment)
    return _tape(_Run(code, environment, evaluator, signs).value())


def times(tape: Tape, factor: float) -> Tape:
    """The tape of a multiple."""
    return tape if factor == 1.0 else (*tape, (f.CONSTANT, factor), (f.MULTIPLY, 0.0))


def series_signs(circuit: Circuit, element: int, names: Sequence[str]) -> list[float] | None:
    """How the currents of an element and of sources in series with it go against its own: 1 or −1 each.

    Parameters
    ----------
    circuit : Circuit
        Complete.
    element : int
    names : sequence of str
        Of the element itself and of the sources.

    Returns
    -------
    list of float, or None
        None where some name is no voltage source that shares a node with the element and with nothing else.
    """
    kind, first, second, _ = circuit.columns()
    at: dict[int, list[int]] = {}
    for k, (a, b) in enumerate(zip(first, second)):
        for node in (a, b):
            at.setdefault(node, []).append(k)
    place = {name.lower(): k for k, name in enumerate(circuit.names)}
    signs = []
    for name in names:
        k = place.get(name.lower(), -1)
        if k == element:
            signs.append(1.0)
            continue
        shared = {first[k], second[k]} & {first[element], second[element]} - {0} if k >= 0 else set()
        alone = [node for node in shared if sorted(at[node]) == sorted((k, element))]
        if k < 0 or kind[k] != VOLTAGE or not alone:
            return None
        signs.append(1.0 if (second[k] == alone[0]) == (first[element] == alone[0]) else -1.0)
    return signs


def _tape(entry: Entry) -> Tape:
    return entry.tape if isinstance(entry, Formula) else ((f.CONSTANT, float(entry)),)


def _joined(op: int, *of: Entry, number: float = 0.0, condition: bool = False) -> Formula:
    """An operation behind the tapes of its operands."""
    return Formula((*(one for entry in of for one in _tape(entry)), (op, number)), condition)


class _Run(SymbolicRun):
    """A program on numbers and formulas."""

    symbols = (Formula,)

    def __init__(self, code: Code, environment: Environment, evaluator: Evaluator, signs: Sequence[float]) -> None:
        super().__init__(code, environment, evaluator)
        self.signs = signs

    def inside(self, code: Code) -> _Run:
        """The same on the body of a function."""
        return _Run(code, self.environment, self.evaluator, self.signs)

    def bounded(self, formula: Formula, at: int) -> Formula:
        """The formula itself, unless it is too long."""
        if len(formula.tape) > f.LONGEST:
            raise ExpressionError(
                "limit", f"the formula has more than {f.LONGEST} operations", at, "simplify it", self.code
            )
        return formula

    def control(self, number: int) -> Formula:
        """The voltage or its negative."""
        own = Formula(((f.VOLTAGE, 0.0),))
        return own if self.signs[number] > 0.0 else _joined(f.NEGATE, own)

    def need_condition(self, value: Any, at: int) -> None:
        """Refuse a number of the voltage in place of a condition."""
        if not value.condition:
            raise self.refuse("a number as condition", at)

    def refuse(self, what: str, at: int) -> ExpressionError:
        """The error for what there is no operation for."""
        return ExpressionError(
            "unsupported",
            f"{what} is not supported in a formula of the source's own voltage",
            at,
            "docs/devices.md lists what is",
            self.code,
        )

    def either(self, condition: Any, yes: Entry, no: Entry, at: int) -> Formula:
        """``yes`` where the condition holds, else ``no``."""
        holds = all(way.condition if isinstance(way, Formula) else way in (0.0, 1.0) for way in (yes, no))
        return self.bounded(_joined(f.CHOOSE, condition, yes, no, condition=holds), at)

    def sign(self, instruction: Any, value: Any, at: int) -> Formula:
        """Negation of a formula or of a condition."""
        if instruction == NEGATE:
            return _joined(f.NEGATE, value)
        self.need_condition(value, at)
        return value if instruction == TRUTH else _joined(f.SUBTRACT, 1.0, value, condition=True)

    def built_in(self, name: str, values: Sequence[Entry], at: int) -> Formula:
        """A function that has an operation."""
        made = _built_in(name, values)
        if made is None:
            raise self.refuse(f"{name}()", at)
        return self.bounded(made, at)

    def operation(self, operator: Any, left: Entry, right: Entry, at: int) -> Formula:
        """left operator right."""
        return self.bounded(self.operated(operator, left, right, at), at)

    def operated(self, operator: Any, left: Entry, right: Entry, at: int) -> Formula:
        """`operation`, however long."""
        if operator in _ARITHMETIC:
            return _joined(_ARITHMETIC[operator], left, right)
        if operator in _COMPARISONS:
            op, turned = _COMPARISONS[operator]
            return _joined(op, _joined(f.SUBTRACT, *((right, left) if turned else (left, right))), condition=True)
        if operator in ("**", "^"):
            return _raised(left, right)
        raise self.refuse(f"{operator!r}", at)


_ARITHMETIC = {"+": f.ADD, "-": f.SUBTRACT, "*": f.MULTIPLY, "/": f.DIVIDE}
_COMPARISONS = {">": (f.STEP, False), ">=": (f.REACHED, False), "<": (f.STEP, True), "<=": (f.REACHED, True)}


def _raised(base: Entry, exponent: Entry) -> Formula:
    """base ** exponent, with the domain that it has in decks (`circuitsim.netlist.functions.power`)."""
    if isinstance(exponent, Formula):
        return _joined(f.EXP, _joined(f.MULTIPLY, exponent, _joined(f.LOG, base)))
    return _joined(f.POWER if exponent % 2.0 == 0.0 else f.ROOTED, base, number=exponent)


def _signed(base: Entry, exponent: Entry) -> Formula | None:
    """``pow``: of a negative base only with a whole exponent."""
    if isinstance(exponent, Formula):
        return _raised(base, exponent)
    kinds = {0.0: f.POWER, 1.0: f.SIGNED_POWER}
    return _joined(kinds.get(exponent % 2.0, f.ROOTED), base, number=exponent)


def _with_number(op: int) -> Callable[..., Formula | None]:
    """|x|^c, or that with the sign of x."""
    return lambda x, c: None if isinstance(c, Formula) else _joined(op, x, number=c)


def _extreme(op: int) -> Callable[..., Formula | None]:
    def of(first: Entry, *rest: Entry) -> Formula | None:
        for one in rest:
            first = _joined(op, first, one)
        return first if isinstance(first, Formula) else None

    return of


def _limited(x: Entry, low: Entry, high: Entry) -> Formula:
    """``limit``: bounds in either order."""
    lower, upper = _joined(f.MINIMUM, low, high), _joined(f.MAXIMUM, low, high)
    if not isinstance(low, Formula) and not isinstance(high, Formula):
        return _joined(f.MINIMUM, _joined(f.MAXIMUM, x, min(low, high)), max(low, high))
    return _joined(f.MINIMUM, _joined(f.MAXIMUM, x, lower), upper)


def _polygon(x: Entry, *points: Entry) -> Formula | None:
    """``table``: y₁ + Σ slope · (x held between two abscissas − the first of them)."""
    numbers = [one for one in points if not isinstance(one, Formula)]
    places, values = numbers[0::2], numbers[1::2]
    if len(numbers) < len(points) or len(places) != len(values) or any(b <= a for a, b in pairwise(places)):
        return None
    total: Entry = values[0]
    for (a, b), (y, z) in zip(pairwise(places), pairwise(values)):
        if y != z:
            piece = _joined(f.SUBTRACT, _limited(x, a, b), a)
            total = _joined(f.ADD, total, _joined(f.MULTIPLY, (z - y) / (b - a), piece))
    return total if isinstance(total, Formula) else _joined(f.ADD, total, _joined(f.MULTIPLY, 0.0, x))


def _unary(op: int, condition: bool = False) -> Callable[..., Formula | None]:
    return lambda x: _joined(op, x, condition=condition)


_BUILT_IN: dict[str, Callable[..., Formula | None]] = {
    **{name: _unary(op) for op, name in f.FUNCTIONS.items()},
    "log": _unary(f.LOG),
    "arctan": _unary(f.ATAN),
    "sign": _unary(f.SIGN),
    "log10": lambda x: _joined(f.MULTIPLY, 0.4342944819032518, _joined(f.LOG, x)),
    "sqr": lambda x: _joined(f.POWER, x, number=2.0),
    "cbrt": lambda x: _joined(f.SIGNED_POWER, x, number=1.0 / 3.0),
    "tan": lambda x: _joined(f.DIVIDE, _joined(f.SIN, x), _joined(f.COS, x)),
    "hypot": lambda x, y: _joined(f.SQRT, _joined(f.ADD, *(_joined(f.POWER, one, number=2.0) for one in (x, y)))),
    "u": _unary(f.STEP, True),
    "stp": _unary(f.STEP, True),
    "buf": _unary(f.STEP, True),
    "inv": lambda x: _joined(f.SUBTRACT, 1.0, _joined(f.STEP, x), condition=True),
    "uramp": lambda x: _joined(f.MAXIMUM, x, 0.0),
    "min": _extreme(f.MINIMUM),
    "max": _extreme(f.MAXIMUM),
    "limit": _limited,
    "table": _polygon,
    "pow": _signed,
    "pwr": _with_number(f.POWER),
    "pwrs": _with_number(f.SIGNED_POWER),
}
"""Functions of formulas by their names in decks; None for arguments that they do not take."""


def _built_in(name: str, values: Sequence[Entry]) -> Formula | None:
    """A function built in; None where there is no operation for it."""
    made = _BUILT_IN.get(name)
    counts = {"hypot": 2, "pow": 2, "pwr": 2, "pwrs": 2, "limit": 3}
    several = name in ("min", "max", "table")
    if made is None or (not several and len(values) != counts.get(name, 1)):
        return None
    if name == "table" and len(values) < 5:
        return None
    return made(*values)


__all__ = ["series_signs", "tape_of", "times"]
