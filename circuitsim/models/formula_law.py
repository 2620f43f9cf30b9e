"""A current as a monotone formula of its own voltage: ``B1 a b I={1u*sinh(v(a,b)/0.3)}``.

The law is a tape (`circuitsim.models.formula_tape`); that it does not fall is proven by interval arithmetic when it is
made (`circuitsim.models.formula_proof`).
"""

from __future__ import annotations

from typing import Any

from circuitsim.models.base import ElementModel, Region
from circuitsim.models.formula_operations import DEPTH, LONGEST, Tape, depth, text_of
from circuitsim.models.shapes import Symbol, arrow, zigzag
from circuitsim.models.smooth import Limits, SmoothDevice

FORMULA = Region("formula", False)


class _OfTape:
    """A function of `circuitsim.models.formula_tape`, imported (with numpy) when it is first asked for."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type) -> Any:
        if "__abstractmethods__" not in vars(owner):  # the class is being made, and its abstract methods are counted
            return self
        from circuitsim.models import formula_tape

        return getattr(formula_tape, self.name)


class FormulaLaw(SmoothDevice):
    """One formula of the voltage across its terminals, and ``m`` in parallel.

    Parameters
    ----------
    tape : Tape
        The formula, A (`circuitsim.models.formula_operations`).
    m : float
    label : str
        As of every device; without meaning here.

    Raises
    ------
    ValueError
        The formula is too long, has no value, jumps or falls somewhere; the message states the interval.
    """

    junction, by_parameters = _OfTape(), _OfTape()

    tape: Tape
    m: float

    def __init__(self, tape: Tape, m: float = 1.0, *, label: str = "") -> None:
        self.__dict__["tape"] = tape
        super().__init__(label=label, m=m)

    def check(self) -> None:
        """Prove that the formula does not fall."""
        if len(self.tape) > LONGEST or depth(self.tape) > DEPTH:
            raise ValueError(f"its formula has more than {LONGEST} operations, or {DEPTH} nested ones")
        from circuitsim.models.formula_proof import proven

        self.__dict__["_proof"] = proven(self.tape)

    def values(self) -> dict[str, Any]:
        """The tape and ``m``."""
        return {"tape": self.tape, "m": self.m}

    def row(self) -> tuple[float, ...]:
        """See `circuitsim.models.formula_tape.junction`."""
        proof = self.__dict__["_proof"]
        flat = [float(number) for instruction in self.tape for number in instruction]
        return 0.0, float(len(self.tape)), proof.low, proof.high, self.m, *flat

    def limits(self) -> Limits:
        """Bounds of the formula at the ends of its range."""
        proof = self.__dict__["_proof"]
        return Limits(self.m * proof.least, self.m * proof.most)

    def rises(self) -> bool:
        """Whether its slope is proven to be above zero everywhere."""
        found: bool = self.__dict__["_proof"].rises
        return found

    def formula(self, voltage: str) -> str:
        """The current, A, as text; ``voltage`` is what stands for the voltage."""
        text = text_of(self.tape, voltage)
        return text if self.m == 1.0 else f"{self.m!r}*({text})"

    def region_at(self, voltage: float) -> Region:
        """One for all voltages."""
        return FORMULA


MODEL = ElementModel(
    "B", "formula of its own voltage", ("first", "second"), "i = f(v), monotone", "∫ i dv", "",
    "{name} {first} {second} I={value}",
    Symbol(0.3, (((-0.3, -0.12), (0.3, -0.12), (0.3, 0.12), (-0.3, 0.12), (-0.3, -0.12)), *arrow(-0.2, 0.2)),
           graded=zigzag(0.3, 0.05)),
    device=FormulaLaw, counts=("m",),
)  # fmt: skip
FormulaLaw.model = MODEL
