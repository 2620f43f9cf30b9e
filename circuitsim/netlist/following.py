"""Sources whose values follow time or other sources, in each call: time functions and formulas."""

from __future__ import annotations

import cmath
import math
from itertools import combinations
from typing import TYPE_CHECKING

from circuitsim.circuit.dynamics import SwitchLaw
from circuitsim.circuit.elements import CURRENT
from circuitsim.netlist import controlled_laws, switches
from circuitsim.netlist.expression import Code, ExpressionError
from circuitsim.netlist.functional import Formula
from circuitsim.netlist.scope import Wave
from circuitsim.netlist.waveform import Waveform

if TYPE_CHECKING:
    from circuitsim.netlist.protocols import Elaboration, Frame


class Followers:
    """The sources of one elaboration that follow others.

    Attributes
    ----------
    waves : dict of int to Waveform
        By position in the circuit.
    formulas : dict of int to Formula
        By position in the circuit.
    initials : dict of int to float
        Values of ``ic=``, V and A, by position in the circuit.
    switches : dict of int to SwitchLaw
        By position.
    couplings : dict of (str, str) to float
        Coupling factors of pairs of inductors.
    phasors : dict of int to complex
        Amplitudes of ``AC``, V and A, by position in the circuit.
    """

    def __init__(self, elaborator: Elaboration) -> None:
        self.elaborator = elaborator
        self.waves: dict[int, Waveform] = {}
        self.formulas: dict[int, Formula] = {}
        self.initials: dict[int, float] = {}
        self.phasors: dict[int, complex] = {}
        self.switches: dict[int, SwitchLaw] = {}
        self.couplings: dict[tuple[str, str], float] = {}

    def take(self, frame: Frame, k: int, position: int) -> None:
        """Note source ``k`` of a scope, at ``position`` of the circuit."""
        scope = frame.scope
        if k in scope.initials:
            self.initials[position] = self.elaborator.number(scope.initials[k], frame)
        if k in scope.switches and (law := switches.law(self.elaborator, frame, k)) is not None:
            self.switches[position] = law
        if k in scope.phasors:
            self.phasor(frame, k, position)
        if k in scope.waves:
            self.wave(frame, k, position)
        if k in scope.formulas:
            self.formulas[position] = self.formula(frame, scope.formulas[k])._replace(factor=self.factor(frame, k))

    def couple(self, frame: Frame) -> None:
        """Note the couplings of inductors in one call."""
        scope = frame.scope
        for coupling in scope.couplings:
            try:
                factor = self.elaborator.number(coupling.factor, frame)
            except ExpressionError as error:
                self.elaborator.reporter.failure(error, coupling.card, (), self.elaborator.callers())
                continue
            names = [token.text.lower() for token in coupling.inductors]
            coils = [frame.prefix + scope.names[scope.index[name]] for name in names if name in scope.index]
            for first, second in combinations(coils, 2):
                self.couplings[first, second] = factor

    def waveform(self, frame: Frame, wave: Wave) -> Waveform:
        """The time function with its numbers evaluated in this call."""
        number = self.elaborator.number
        repeat = None if wave.repeat is None else number(wave.repeat, frame)
        numbers = tuple(number(v, frame) for v in wave.numbers)
        return Waveform(wave.name, numbers, repeat, number(wave.delay, frame))

    def wave(self, frame: Frame, k: int, position: int) -> None:
        """Note a time function; what is wrong with its numbers is reported."""
        try:
            found = self.waveform(frame, frame.scope.waves[k])
            self.waves[position] = found._replace(factor=self.factor(frame, k))
        except ExpressionError as error:
            self.wrong(frame, k, error)

    def phasor(self, frame: Frame, k: int, position: int) -> None:
        """Note an amplitude; what is wrong with its numbers is reported."""
        try:
            magnitude, phase = (self.elaborator.number(value, frame) for value in frame.scope.phasors[k])
            self.phasors[position] = cmath.rect(magnitude * self.factor(frame, k), math.radians(phase))
        except ExpressionError as error:
            self.wrong(frame, k, error)

    def factor(self, frame: Frame, k: int) -> float:
        """Sources in parallel, of which the currents add up; of a formula its temperature, too."""
        formula = frame.scope.controlled.get(k) if k in frame.scope.formulas else None
        if formula is not None:
            return controlled_laws.cells(self.elaborator, frame, formula)
        if frame.scope.kind[k] != CURRENT:
            return 1.0
        special = frame.scope.specials.get(k)
        own = special.multiplier if special is not None else 1.0
        return frame.multiplier * self.elaborator.number(own, frame)

    def wrong(self, frame: Frame, k: int, error: ExpressionError) -> None:
        """Report an expression on the card of source ``k``."""
        special = frame.scope.specials.get(k)
        at = error.code.card if error.code is not None else special.card if special is not None else None
        if at is not None:
            name = frame.prefix + frame.scope.names[k]
            self.elaborator.reporter.failure(error, at, [name], self.elaborator.callers())

    def formula(self, frame: Frame, code: Code) -> Formula:
        """The formula of a source with the names that it may use in this call."""
        nodes, local, out = frame.nodes, frame.scope.nodes, self.elaborator.out

        def node(name: str) -> str:
            k = local.get(name.lower())
            return name.replace(":", ".") if k is None else out.node_names[k if nodes is None else nodes[k]]

        def element(name: str) -> str:
            return frame.prefix + name if name.lower() in frame.scope.index else name.replace(":", ".")

        return Formula(code, frame.environment, node, element)
