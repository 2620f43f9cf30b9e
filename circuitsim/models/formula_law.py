"""A current as a monotone formula of its own voltage, ``B1 a b I={1u*sinh(v(a,b)/0.3)}``; and a voltage as one of its
own current, ``B1 a b V={0.3*asinh(i(B1)/1u)}``.

The formula is a tape (`circuitsim.models.formula_tape`). Interval arithmetic proves at construction that a current does
not fall and a voltage rises (`circuitsim.models.formula_proof`).
"""

from __future__ import annotations

from abc import abstractmethod
from importlib import import_module
from typing import Any, ClassVar

from circuitsim.models.base import BOX, ElementModel, Region, Symbol, arrow, zigzag
from circuitsim.models.formula_operations import DEPTH, LONGEST, Tape, depth, text_of
from circuitsim.models.smooth import Limits, SmoothDevice

FORMULA = Region("formula", False)


class _OfTape:
    """A function of `circuitsim.models.formula_tape`, imported (with numpy) on first use."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type) -> Any:
        if "__abstractmethods__" not in vars(owner):  # still collecting the abstract methods of the class
            return self
        return getattr(import_module("circuitsim.models.formula_tape"), self.name)


class OfFormula(SmoothDevice):
    """One formula, and ``m`` devices in parallel.

    Parameters
    ----------
    tape : Tape
        The formula (`circuitsim.models.formula_operations`).
    m : float
    label : str
        Ignored.

    Raises
    ------
    ValueError
        The formula is too long, undefined, discontinuous or falling somewhere; the message states the interval.
    """

    tape: Tape
    m: float
    quantity: ClassVar[str]
    """What the formula states: ``current`` or ``voltage``."""
    junction, by_parameters, row_of = _OfTape(), _OfTape(), _OfTape()

    def __init__(self, tape: Tape, m: float = 1.0, *, label: str = "") -> None:
        self.__dict__["tape"] = tape
        super().__init__(label=label, m=m)

    @abstractmethod
    def formula(self, name: str, first: str, second: str) -> str:
        """The formula as text, for an element's name and nodes."""

    def check(self) -> None:
        """Prove that the formula is monotone."""
        if len(self.tape) > LONGEST or depth(self.tape) > DEPTH:
            raise ValueError(f"its formula has more than {LONGEST} operations, or {DEPTH} nested ones")
        from circuitsim.models.formula_proof import proven

        self.__dict__["_proof"] = proven(self.tape, self.quantity)

    def values(self) -> dict[str, Any]:
        """The tape and ``m``."""
        return {"tape": self.tape, "m": self.m}

    def row(self) -> tuple[float, ...]:
        """0, number of instructions, ends of the argument's range, m, whether the formula states a voltage, then the
        tape."""
        proof = self.__dict__["_proof"]
        made: tuple[float, ...] = self.row_of(self.tape, proof.low, proof.high, self.m, self.quantity == "voltage")
        return made

    def region_at(self, voltage: float) -> Region:
        """The same for all voltages."""
        return FORMULA


class FormulaLaw(OfFormula):
    """A formula of the voltage across its terminals, A."""

    quantity = "current"

    def limits(self) -> Limits:
        """Bounds of the formula at the ends of its range."""
        proof = self.__dict__["_proof"]
        return Limits(self.m * proof.least, self.m * proof.most)

    def rises(self) -> bool:
        """Whether its slope is proven positive everywhere."""
        found: bool = self.__dict__["_proof"].rises
        return found

    def formula(self, name: str, first: str, second: str) -> str:
        """The current, A."""
        text = text_of(self.tape, f"v({first},{second})")
        return text if self.m == 1.0 else f"{self.m!r}*({text})"


class FormulaVoltage(OfFormula):
    """A formula of the device's own current, V; its junction is the inverse."""

    quantity = "voltage"

    def formula(self, name: str, first: str, second: str) -> str:
        """The voltage, V."""
        return text_of(self.tape, f"i({name})" if self.m == 1.0 else f"(i({name})/{self.m!r})")


_SYMBOL = Symbol(0.3, (BOX, *arrow(-0.2, 0.2)), graded=zigzag(0.3, 0.05))

MODEL = ElementModel(
    "B",
    "formula of its own voltage",
    ("first", "second"),
    "i = f(v), monotone",
    _SYMBOL,
    device=FormulaLaw,
    counts=("m",),
    spice="{name} {first} {second} I={value}",
)
OF_CURRENT = ElementModel(
    "B",
    "formula of its own current",
    ("first", "second"),
    "v = f(i), rising",
    _SYMBOL,
    device=FormulaVoltage,
    counts=("m",),
    spice="{name} {first} {second} V={value}",
)
FormulaLaw.model, FormulaVoltage.model = MODEL, OF_CURRENT
