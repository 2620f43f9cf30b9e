"""Small-signal transfer function at zero frequency (``.tf``): gain, input resistance, output resistance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from circuitsim.analysis.elementary import elementary_point
from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.analysis.parameters import Change, DependsOn, Numbers
from circuitsim.analysis.probes import Probe, parse_probes
from circuitsim.analysis.solve import solve
from circuitsim.analysis.switched import circuit_at_operating_point
from circuitsim.certificate import TOLERANCE
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CURRENT, VOLTAGE
from circuitsim.errors import UsageError
from circuitsim.formats.columns import quantity
from circuitsim.formats.result import Result, proof
from circuitsim.formats.table import OWN, Table
from circuitsim.netlist.deck import Deck, transfers_of
from circuitsim.small_signal.sensitivity import Sensitivity, derivatives

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TEST = "i_output_test"
"""Name of the 0 A source across the output; with underscores appended where the circuit has the name."""


class TwoSided(NamedTuple):
    """A value at an operating point; at a degenerate point its values towards smaller and larger sources."""

    below: float
    above: float

    @property
    def value(self) -> float:
        """The number; nan at a kink."""
        same = self.below == self.above or abs(self.above - self.below) <= 1e-9 * max(abs(self.below), abs(self.above))
        return 0.5 * (self.below + self.above) if same else float("nan")

    @property
    def kink(self) -> bool:
        """Whether the sides differ."""
        return self.value != self.value


@dataclass(frozen=True, eq=False, repr=False)
class Transfer(Result):
    """The linear two-port of a circuit for small changes of one source.

    Attributes
    ----------
    output, source : str
    gain : TwoSided
        Derivative of the output by the source.
    gain_unit : str
    input_resistance : TwoSided
        Driving-point resistance at the source, Ω; infinite where its current does not change.
    output_resistance : TwoSided
        Driving-point resistance at the output, all sources at constant values, Ω; at a degenerate point ``below`` for a
        current into the output's first node, ``above`` for a current drawn from it (of an output current: for a smaller
        and a larger voltage of its source).
    point : OperatingPoint
    """

    output: str
    source: str
    gain: TwoSided
    gain_unit: str
    input_resistance: TwoSided
    output_resistance: TwoSided
    point: OperatingPoint

    def to_dict(self) -> dict[str, Any]:
        """As plain values; None where infinite, or at a kink."""
        found: dict[str, Any] = {"output": self.output, "source": self.source, "gain_unit": self.gain_unit}
        for name, number, _ in self.numbers:
            found[name.replace(" ", "_")] = {
                "value": _finite(number.value),
                "kink": number.kink,
                "below": _finite(number.below),
                "above": _finite(number.above),
            }
        return found

    @property
    def numbers(self) -> list[tuple[str, TwoSided, str]]:
        """Names, numbers and units."""
        return [
            ("gain", self.gain, self.gain_unit),
            ("input resistance", self.input_resistance, "Ω"),
            ("output resistance", self.output_resistance, "Ω"),
        ]

    def tables(self) -> dict[str, Table]:
        """``transfer``: gain, input resistance and output resistance with value, unit, below, above."""
        rows = [(name, number.value, unit, *number) for name, number, unit in self.numbers]
        return {"transfer": Table.of("quantity, value, unit, below, above", rows, ("", OWN, "", OWN, OWN), True)}

    def _figure(self) -> Figure:
        return self.point.draw().figure()

    def _heading(self) -> tuple[str, str]:
        numbers = [f"{name} {quantity(number.value, unit)}" for name, number, unit in self.numbers]
        return self.point.circuit.title, f"{self.output} by {self.source}, {', '.join(numbers)}"

    def _proof(self) -> str:
        return proof(self.point.certificate)


def transfer_function(
    source: Circuit | Deck, output: str | None = None, input_source: str | None = None, tolerance: float = TOLERANCE
) -> Transfer:
    """Gain, input and output resistance for small changes of a source, as ``.tf`` has them.

    Parameters
    ----------
    source : Circuit or Deck
    output : str, optional
        ``v(out)``, ``v(a,b)`` or ``i(V2)``, the current of a voltage source.
    input_source : str, optional
        An independent source. Without output and source those of a deck's ``.tf`` card.
    tolerance : float
        As for `circuitsim.solve`.

    Raises
    ------
    UsageError
        Another output; no such source; neither, and no ``.tf`` card or several.

    Examples
    --------
    >>> import circuitsim
    >>> deck = circuitsim.loads('''divider
    ... V1 in 0 10
    ... R1 in out 1k
    ... R2 out 0 3k
    ... ''')
    >>> tf = circuitsim.transfer_function(deck, "v(out)", "V1")
    >>> tf.gain.value, round(tf.input_resistance.value, 6), round(tf.output_resistance.value, 6)
    (0.75, 4000.0, 750.0)
    """
    if output is None or input_source is None:
        stated = transfers_of(source) if isinstance(source, Deck) else []
        if len(stated) != 1 or output is not input_source:
            raise UsageError("a transfer function needs an output and a source, for instance v(out) and V1")
        [(output, input_source)] = stated
    circuit = circuit_at_operating_point(source, tolerance, [input_source])
    probe, k = output_and_input(circuit, output, input_source)
    kind = circuit.arrays().kind
    tested, by = _tested(circuit, k, probe)
    at_input = Probe("i", circuit.names[k]) if kind[k] == VOLTAGE else _across(circuit, k)
    at_output = probe
    point = solve(tested, tolerance=tolerance)
    numbers = Numbers.of(by, elementary_point(point).circuit.arrays().kind.size)
    found = derivatives(point, [probe, at_input, at_output], numbers)
    from_input = _resistance(found, 1, 0, kind[k] == VOLTAGE)
    from_output = _resistance(found, 2, 1, probe.kind == "i")
    unit = f"{probe.unit}/{by[0].unit}"
    gain = TwoSided(float(found.below[0, 0]), float(found.above[0, 0]))
    return Transfer(str(probe), circuit.names[k], gain, unit, from_input, from_output, found.point)


def output_and_input(circuit: Circuit, output: str, input_source: str) -> tuple[Probe, int]:
    """The arguments of ``.tf``: the output, and the position of the input source.

    Raises
    ------
    UsageError
        Another output than a voltage or the current of a voltage source; no such source.
    """
    probes = parse_probes(output, circuit)
    if len(probes) != 1:
        raise UsageError(f"{output!r}: a transfer function has one output, for instance v(out)")
    probe, k = probes[0], circuit.element_index(input_source)
    if circuit.arrays().kind[k] not in (VOLTAGE, CURRENT):
        raise UsageError(f"{circuit.names[k]} is a {circuit[k].kind}: the input must be an independent source")
    if not isinstance(probe, Probe) or not _readable(probe, circuit):
        raise UsageError(f"{probe}: the output is v(node), v(a,b), or i(V2) of a voltage source")
    return probe, k


def _readable(probe: Probe, circuit: Circuit) -> bool:
    if probe.kind == "v":
        return True
    return probe.kind == "i" and circuit.arrays().kind[circuit.element_index(probe.first)] == VOLTAGE


def _tested(circuit: Circuit, k: int, probe: Probe) -> tuple[Circuit, list[DependsOn]]:
    """The circuit with a source of 0 A out of the output's first node, and the varied parameters: the input, that
    source, or the voltage source whose current is the output."""
    value = circuit.arrays().value
    first = DependsOn(circuit.names[k], float(value[k]), (circuit[k].kind.startswith("v") and "V") or "A", _one(k))
    if probe.kind == "i":
        e = circuit.element_index(probe.first)
        return circuit, [first, DependsOn(probe.first, float(value[e]), "V", _one(e))]
    copy, name = circuit.with_values({}), TEST
    while name in circuit:
        name += "_"
    copy.current_source(name, probe.first, probe.second or "0", 0.0)
    return copy, [first, DependsOn(name, 0.0, "A", _one(len(copy) - 1))]


def _one(k: int) -> Change:
    return Change(((k, 1.0),))


def _across(circuit: Circuit, k: int) -> Probe:
    return Probe("v", circuit[k].first, circuit[k].second)


def _resistance(found: Sensitivity, output: int, by: int, held: bool) -> TwoSided:
    """−dv/di at a source: a voltage source is varied and its current read, or vice versa."""
    sides = []
    for table in (found.below, found.above):
        slope = -float(table[output, by])
        sides.append(slope + 0.0 if not held else (1.0 / slope if slope else float("inf")))
    return TwoSided(*sides)


def _finite(value: float) -> float | None:
    return value if abs(value) < float("inf") else None


__all__ = ["Transfer", "TwoSided", "transfer_function"]
