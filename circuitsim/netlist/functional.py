"""Sources whose values depend on time or on other sources: time functions, and formulas of fixed voltages.

A formula may read ``time``, ``v(a,b)`` where voltage sources fix that voltage, and ``i(I1)`` of a current source. The
source then is ideal with a known value, and the circuit has its energy function. So it is if a formula reads any other
voltages and currents that do not depend on it: the circuit is solved level by level (`levels`), each with the values of
the formulas before.

The quantities of a circuit form a directed graph: a quantity points to those that its value follows from.

- Voltage sources and shorts (at an operating point inductors too) from ground on hold their nodes: the voltage of a
  held node follows from the previous node on its path and from the control of the element between them, whose current
  follows from the currents of all other elements at that node.
- The voltage of any other node follows from the currents at it, and the current of any other element from its control
  and, except for a current source, from the voltages at its ends.

A formula has a value of its own if no path leads from it back to it; what it reads is then solved before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from functools import cached_property, partial
from typing import Any, NamedTuple

from circuitsim.circuit import GROUND, Circuit
from circuitsim.circuit.dynamics import Dynamics
from circuitsim.circuit.elements import CAPACITOR, CURRENT, INDUCTOR, RESISTOR, VOLTAGE
from circuitsim.circuit.laws import CurrentControl, Law, Quantity, VoltageControl
from circuitsim.errors import NetlistError, Problem, TopologyError, UsageError
from circuitsim.netlist.cards import HINTS
from circuitsim.netlist.expression import UNKNOWN, Code, Evaluator, ExpressionError, Signal
from circuitsim.netlist.functions import STEADY, Grid
from circuitsim.netlist.scope import Frame


class Formula(NamedTuple):
    """The value of a source of a kind as an expression, in its call; ``factor`` sources in parallel; ``fixed``: for a
    controlled source the signals fixed by independent ones."""

    code: Code
    kind: int
    frame: Frame
    factor: float = 1.0
    fixed: tuple[Signal, ...] = ()

    def ends(self, signal: Signal, circuit: Circuit) -> tuple[int, int]:
        """The nodes of a voltage that the formula reads.

        Raises
        ------
        TopologyError
            One does not exist.
        """

        def node(name: str) -> int:
            local = self.frame.scope.nodes.get(name.lower())
            return circuit.node_index(name.replace(":", ".")) if local is None else self.frame.node(local)

        return node(signal.first), node(signal.second or "0")

    def element(self, name: str) -> str:
        """The element that the formula calls ``name``."""
        own = name.lower() in self.frame.scope.index
        return self.frame.prefix + name if own else name.replace(":", ".")


class FollowingSources(Dynamics):
    """The sources of one elaborated circuit whose values depend on time or on other sources.

    Parameters
    ----------
    constants : mapping of str to float
        The constants of expressions.
    names : callable
        The constants and the deck's parameters with the values of this circuit, for expressions of columns.

    Attributes
    ----------
    circuit : Circuit
        Set by `of`.
    formulas, frozen : dict of int to Formula
        Of independent sources, and of controlled ones that depend on values of these, by position.
    factors : dict of int to float
        Position → ratio of an element's value to that on its card, where they differ (``m=``, temperature).
    """

    formulas: dict[int, Formula]
    frozen: dict[int, Formula]
    circuit: Circuit
    steady = True

    def __init__(self, constants: Mapping[str, float], names: Callable[[], Mapping[str, float]]) -> None:
        super().__init__()
        self.constants, self.names = constants, names
        self.formulas, self.frozen, self.factors = {}, {}, dict[int, float]()

    def of(self, circuit: Circuit) -> FollowingSources:
        """The same sources in a circuit."""
        found = copy(self)
        found.circuit, found.formulas, found.frozen = circuit, dict(self.formulas), dict(self.frozen)
        for name in ("_paths", "fixed", "level"):
            vars(found).pop(name, None)
        return found

    def of_cards(self, given: Mapping[str, float]) -> dict[str, float]:
        """Element values for given values on cards: with elements in parallel, at their temperature."""
        if not self.factors:
            return dict(given)
        index = self.circuit.element_index
        return {
            name: value * self.factors.get(index(name), 1.0) if name in self.circuit else value
            for name, value in given.items()
        }

    def __bool__(self) -> bool:
        return bool(self.waves or self.moves)

    @property
    def moves(self) -> bool:
        """Whether there are formulas, or laws that hold values of independent sources."""
        return bool(self.formulas or self.frozen)

    def values(self, given: Mapping[str, float], time: float | None = None, grid: Grid = STEADY) -> dict[str, float]:
        """Values by element name, V or A.

        Parameters
        ----------
        given : dict of str to float
            Values of sources in a sweep; they override time functions.
        time : float, optional
            s; by default the operating point, where time functions do not act.
        grid : Grid
            Defaults of time functions' parameters.

        Raises
        ------
        NetlistError
            A formula that has no value.
        UsageError
            A controlled source would not depend on the new values; a formula of the time and of the solution.
        """
        names = self.circuit.names
        self.check_frozen([*given, *(names[k] for k in (*self.waves, *self.formulas) if time is not None)])
        stated = {self.circuit.element_index(name): value for name, value in given.items() if name in self.circuit}
        if time is not None:
            stated = {k: self._wave(k, time, grid) for k in self.waves if k not in stated} | stated
            for k in self.unfixed():
                if any(signal.kind == "time" for signal in self.formulas[k].code.signals):
                    raise UsageError(f"{names[k]} reads the time and the solution: circuitsim tran follows both")
        moment = Moment(self, stated, time or 0.0)
        found = {k: moment.placed(k) for k in self.fixed if k not in stated}
        moved = stated if time is not None else {}
        return {names[k]: value for k, value in (*moved.items(), *found.items())}

    def check_changes(self, names: Collection[str] | None) -> None:
        """Refuse new values of elements read by formulas that have fixed values in the circuit.

        Parameters
        ----------
        names : collection of str or None
            The elements; None: all, at frequencies too, where inductors are not shorts.

        Raises
        ------
        UsageError
        """
        if not self.formulas and not self.frozen:
            return
        self.check_frozen(names)
        given = {name.lower() for name in names or ()}
        late = [
            name for name in map(self.circuit.names.__getitem__, self.followers(names)) if name.lower() not in given
        ]
        if late:
            raise UsageError(
                f"{late[0]} is given by a formula of other elements but has a fixed value here; use the deck's "
                "circuit, in which affine formulas are controlled sources, or sweep the deck"
            )

    def check_frozen(self, names: Collection[str] | None) -> None:
        """Refuse new values of elements that determine a factor or a condition of a controlled source; None: of all.

        Raises
        ------
        UsageError
        """
        late = [k for k in self.followers(names) if k in self.frozen] if self.frozen else []
        if late:
            fixing = sorted(e for e in self._needs()[late[0]] if e is not None)
            by = ", ".join(map(self.circuit.names.__getitem__, fixing)) or "another element"
            raise UsageError(
                f"{self.circuit.names[late[0]]} has a factor or condition fixed by {by}, which cannot vary here; "
                "set the source by a parameter (.param) and vary that"
            )

    def not_followed(self, k: int) -> UsageError:
        """The error of an analysis that does not evaluate a formula anew."""
        return UsageError(
            f"{self.circuit.names[k]} follows other voltages or currents by a non-affine formula, which is not "
            "possible here; circuitsim sweep and montecarlo evaluate it anew at each point"
        )

    @cached_property
    def fixed(self) -> set[int]:
        """Positions of the formulas whose signals independent sources fix, directly or through such formulas, so that
        their values are known before the circuit is solved."""
        needs = self._needs()
        known, open_ = set[int](), {None, *needs}
        while new := {k for k in self.formulas.keys() - known if not needs[k] & (open_ - known)}:
            known |= new
        return known

    def unfixed(self) -> list[int]:
        """Positions of the other formulas."""
        return sorted(self.formulas.keys() - self.fixed) if self.formulas else []

    @cached_property
    def level(self) -> dict[int, int]:
        """The levels of the formulas that are not `fixed` and read nothing that depends on them
        (`levels`): they have values once the circuit is solved with those of lower levels."""
        others = {k: self.reads(self.formulas[k]) for k in self.unfixed()}
        if not others:
            return {}
        return levels(self.circuit, self, others, self.steady)

    def in_order(self) -> list[list[int]]:
        """Positions of the formulas that are not `fixed`, level by level.

        Raises
        ------
        UsageError
            A formula reads what depends on it.
        """
        for k in (k for k in self.unfixed() if k not in self.level):
            when = "at an operating point" if self.steady else "over time"
            raise UsageError(
                f"{self.circuit.names[k]} reads voltages or currents that depend on it {when}, and is not affine in "
                "them: write it with max, min, abs, limit() or TABLE, or as an S switch"
            )
        return [[k for k, own in self.level.items() if own == height] for height in sorted({*self.level.values()})]

    def reads(self, formula: Formula) -> list[tuple[int, ...]]:
        """What a formula reads: pairs of nodes of voltages, elements of currents. See `read`."""
        return [self.read(formula, signal) for signal in formula.code.signals if signal.kind in UNKNOWN]

    def read(self, formula: Formula, signal: Signal) -> tuple[int, ...]:
        """The two nodes of a voltage, or the position of the element of a current.

        Raises
        ------
        TopologyError
            An unknown name.
        """
        if signal.kind == "v":
            return formula.ends(signal, self.circuit)
        return (self.circuit.element_index(formula.element(signal.first)),)

    def followers(self, names: Collection[str] | None) -> list[int]:
        """Positions of the formulas that depend on some of the elements ``names``, directly or through such formulas;
        None: on any source, at frequencies too, where inductors are not shorts."""
        if names is None and self.steady:
            return self.over_time().followers(None)
        needs, index = self._needs(), self.circuit.element_index
        if names is not None and not names:
            return []
        moved = None if names is None else {index(name) for name in names if name in self.circuit}
        found: set[int] = set()
        while new := {
            k for k in needs.keys() - found if needs[k] and (moved is None or needs[k] & {None, *moved, *found})
        }:
            found |= new
        return sorted(found)

    def _needs(self) -> dict[int, set[int | None]]:
        """The sources that the signals of each formula depend on; None if one depends on the solution."""
        return {
            k: set().union(*(self.sources_of(formula, signal) for signal in formula.fixed or formula.code.signals))
            for k, formula in (*self.formulas.items(), *self.frozen.items())
        }

    def sources_of(self, formula: Formula, signal: Signal) -> set[int | None]:
        """The sources that a signal depends on; None if it depends on the solution."""
        try:
            terms = self.terms(formula, signal)
        except TopologyError:
            terms = None
        return {None} if terms is None else {k for k, _ in terms}

    def terms(self, formula: Formula, signal: Signal) -> list[tuple[int, float]] | None:
        """The sources whose signed sum a signal is; None where it depends on the solution.

        Raises
        ------
        TopologyError
            It names an unknown node.
        """
        circuit = self.circuit
        if signal.kind == "time":
            return []
        if signal.kind != "v":
            name = formula.element(signal.first)
            k = circuit.element_index(name) if name in circuit else -1
            return [(k, 1.0)] if k >= 0 and circuit.columns()[0][k] == CURRENT else None
        (root, up), (other, down) = map(self._path, formula.ends(signal, circuit))
        signs = {k: up.get(k, 0.0) - down.get(k, 0.0) for k in (*up, *down) if k >= 0}
        return [(k, sign) for k, sign in signs.items() if sign] if root == other else None

    def _path(self, node: int) -> tuple[int, dict[int, float]]:
        """The root of a node along voltage sources, and the sources on the path with their signs."""
        passed: dict[int, float] = {}
        while (step := self._paths.get(node)) is not None:
            node, own, sign = step
            passed[own] = sign
        return node, passed

    def over_time(self) -> FollowingSources:
        """The same sources where inductors are not shorts, and controlled sources fix nothing."""
        found = self.of(self.circuit)
        found.steady = False
        return found

    def formula_at(
        self, k: int, time: float, grid: Grid, solved: Callable[[tuple[int, ...]], float] | None = None
    ) -> tuple[float, tuple[Any, ...]]:
        """The value of a source given by a formula, V or A, at a time, s, and the decisions that led to it; "time"
        among them if it reads that. ``solved``: see `Moment`.

        Raises
        ------
        NetlistError
            The formula has no value.
        """
        moment = Moment(self, {}, time, partial(self._wave, time=time, grid=grid), solved)
        return moment.placed(k), tuple(moment.taken)

    def at_point(self, k: int, point: Any) -> float:
        """The value of a source given by a formula, V or A, at an operating point of the circuit.

        Raises
        ------
        NetlistError
            The formula has no value.
        """
        return Moment(self, {}, solved=partial(_of_point, point)).placed(k)

    def tangent(self, k: int, point: Any) -> Law:
        """The law of a source given by a formula to first order at an operating point of the circuit.

        Raises
        ------
        ExpressionError
            An operation without a derivative.
        """
        from circuitsim.models.formula_tape import evaluate, row_of
        from circuitsim.netlist.symbolic import TapeDomain

        formula = self.formulas[k]
        signals = [signal for signal in formula.code.signals if signal.kind in UNKNOWN]
        at = {signal: _of_point(point, self.read(formula, signal)) for signal in signals}
        constant, slopes = self.at_point(k, point), list[tuple[float, tuple[int, ...]]]()
        for signal in dict.fromkeys(signals):
            domain = TapeDomain({signal: 1.0}, {other: at[other] for other in at if other != signal})
            tape = Evaluator({**self.constants, "time": 0.0}).value(formula.code, formula.frame.environment, domain)
            slope = formula.factor * evaluate(row_of(tape), at[signal])[1]
            slopes.append((slope, self.read(formula, signal)))
            constant -= slope * at[signal]
        current = self.circuit.columns()[0][k] == CURRENT
        return Law(
            Quantity.CURRENT if current else Quantity.VOLTAGE,
            constant,
            tuple(VoltageControl(slope, *read) for slope, read in slopes if len(read) == 2),
            tuple(CurrentControl(slope, *read) for slope, read in slopes if len(read) == 1),
        )

    def _wave(self, k: int, time: float, grid: Grid) -> float:
        """The value of one time function."""
        wave = self.waves[k]
        try:
            return float(wave.over(grid).value(time))
        except (ValueError, UsageError, ZeroDivisionError, OverflowError) as error:
            raise UsageError(f"{self.circuit.names[k]}: {wave.name.upper()} at {time:g} s: {error}") from None

    @cached_property
    def _paths(self) -> dict[int, tuple[int, int, float] | None]:
        """A spanning forest of voltage sources and shorts, grown from ground first: for each node the next one towards
        the root, the element (−1: a short), the sign of its voltage; None for a root."""
        kind, first, second, _ = self.circuit.columns()
        beside = defaultdict[int, list[tuple[int, tuple[int, int, float]]]](list)
        for k, (code, a, b) in enumerate(zip(kind, first, second)):
            if code in (VOLTAGE, INDUCTOR) and (self.steady or (code == VOLTAGE and k not in self.circuit.laws)):
                own = k if code == VOLTAGE else -1
                beside[b].append((a, (b, own, 1.0)))
                beside[a].append((b, (a, own, -1.0)))
        steps: dict[int, tuple[int, int, float] | None] = {}
        for root in sorted(beside):
            stack: list[tuple[int, tuple[int, int, float] | None]] = [(root, None)]
            while stack:
                node, step = stack.pop()
                if node not in steps:
                    steps[node] = step
                    stack += beside[node]
        return steps


def _of_point(point: Any, read: tuple[int, ...]) -> float:
    """The voltage between two nodes, or the current of an element, at an operating point."""
    return float(point.currents[read[0]] if len(read) == 1 else point.voltages[read[0]] - point.voltages[read[1]])


class Moment:
    """The values of all sources at one time.

    Parameters
    ----------
    sources : FollowingSources
    stated : dict of int to float
        By position.
    time : float
        s.
    wave : callable, optional
        The values of time functions, by position; without it they do not act.
    solved : callable, optional
        The voltage between two nodes, or the current of an element, of the solved circuit.

    Attributes
    ----------
    taken : list
        The decisions of formulas, and "time" if one reads that.
    """

    def __init__(
        self,
        sources: FollowingSources,
        stated: Mapping[int, float],
        time: float = 0.0,
        wave: Callable[[int], float] | None = None,
        solved: Callable[[tuple[int, ...]], float] | None = None,
    ) -> None:
        self.sources, self.known, self.time, self.wave, self.solved = sources, dict(stated), time, wave, solved
        self.taken: list[Any] = []

    def placed(self, k: int) -> float:
        """The value of source ``k``; errors get its location in the deck."""
        try:
            return self.value(k)
        except ExpressionError as error:
            assert error.at is not None
            place = error.at.card.place(error.at.offset)
            hint = error.hint or HINTS.get(error.kind, "")
            when = "" if self.wave is None else f" at {self.time:.6g} s"
            raise NetlistError([Problem(error.kind, error.message + when, place, hint)]) from None

    def value(self, k: int) -> float:
        """The value of source ``k``."""
        if k not in self.known:
            if (formula := self.sources.formulas.get(k)) is not None:
                evaluator = Evaluator(self.sources.constants, partial(self.signal, formula=formula), None, self.taken)
                self.known[k] = formula.factor * evaluator.value(formula.code, formula.frame.environment)
            elif self.wave is not None and k in self.sources.waves:
                self.known[k] = self.wave(k)
            else:
                self.known[k] = float(self.sources.circuit.columns()[3][k])
        return self.known[k]

    def signal(self, signal: Signal, formula: Formula) -> float:
        """A voltage along voltage sources, a current of a current source, or the time."""
        if signal.kind == "time":
            self.taken.append(signal.kind)
            return self.time
        if self.solved is not None:
            return self.solved(self.sources.read(formula, signal))
        try:
            terms = self.sources.terms(formula, signal)
        except TopologyError as error:
            raise ValueError(str(error)) from None
        if terms is not None and signal.kind in ("v", "i"):
            return sum((sign * self.value(k) for k, sign in terms), 0.0)
        if signal.kind == "v":
            raise ValueError(f"{signal.text} is not fixed by voltage sources, and the formula is not affine in it")
        raise ValueError(
            f"{signal.text} is not fixed by a current source: a controlled source has no energy function in general"
        )


Read = tuple[int, ...]
"""The two nodes of a voltage, or the position of the element of a current."""

Used = tuple[str, int]
"""A quantity: ``("v", node)``, ``("i", element)``, or ``("f", element)`` of a formula."""


def levels(
    circuit: Circuit, dynamics: Dynamics, formulas: Mapping[int, Sequence[Read]], steady: bool
) -> dict[int, int]:
    """The level of each formula in no loop: 1 + the highest level of those it depends on.

    Parameters
    ----------
    circuit : Circuit
        Sources by formulas are independent sources in it.
    dynamics : Dynamics
        Its switches and couplings.
    formulas : dict of int to sequence of Read
        What each formula reads, by position.
    steady : bool
        At an operating point: capacitors carry no current, inductors are shorts.

    Returns
    -------
    dict of int to int
    """
    import networkx as nx

    if circuit.amplified:
        return {}
    uses = _dependences(circuit, dynamics, formulas, steady)
    height, found = dict[Used, int](), dict[int, int]()
    # Tarjan's algorithm gives each component after those that it depends on.
    for group in nx.strongly_connected_components(nx.from_dict_of_lists(uses, nx.DiGraph)):
        own = [k for what, k in group if what == "f"]
        below = max((height.get(used, 0) for one in group for used in uses.get(one, ())), default=0)
        height |= dict.fromkeys(group, below + bool(own))
        if len(group) == 1:
            found |= dict.fromkeys(own, below + 1)
    return found


def _quantities(*reads: Read) -> list[Used]:
    """The quantities that are read."""
    return [("i" if len(read) == 1 else "v", one) for read in reads for one in read]


def _dependences(
    circuit: Circuit, dynamics: Dynamics, formulas: Mapping[int, Sequence[Read]], steady: bool
) -> dict[Used, list[Used]]:
    """The quantities that the value of each follows from."""
    import networkx as nx

    (kind, first, second, value), laws = circuit.columns(), circuit.laws
    ends, reads = [*zip(first, second)], defaultdict[int, list[Read]](list)
    for k, law in laws.items():
        reads[k] = [(one.plus, one.minus) for one in law.voltages] + [(one.element,) for one in law.currents]
    for k, switch in dynamics.switches.items():
        control = switch.control
        reads[k] = [(circuit.element_index(control),) if isinstance(control, str) else control]
    for pair in () if steady else dynamics.couplings:
        one, other = map(circuit.element_index, pair)
        reads[one].append(ends[other])
        reads[other].append(ends[one])
    currents, fixes = defaultdict[int, set[Used]](set), nx.Graph()
    states: dict[int, Quantity | None] = {}  # what an element determines
    for k in range(len(circuit)):
        if steady and kind[k] == CAPACITOR:
            continue
        short = (kind[k] == RESISTOR and value[k] == 0.0) or (kind[k] == INDUCTOR and steady)
        own = Quantity.VOLTAGE if kind[k] == VOLTAGE or short else Quantity.CURRENT if kind[k] == CURRENT else None
        states[k] = laws[k].quantity if k in laws else own
        if states[k] is Quantity.VOLTAGE:
            fixes.add_edge(*ends[k], element=k)
        for node in ends[k]:
            currents[node].add(("i", k))
    paths = nx.bfs_predecessors(fixes, GROUND) if GROUND in fixes else ()
    held = {fixes.edges[before, node]["element"]: node for node, before in paths}
    free = currents.keys() - {GROUND, *held.values()}
    uses: dict[Used, list[Used]] = {("v", node): [*currents[node]] for node in free}
    uses |= {("f", k): _quantities(*read) for k, read in formulas.items()}
    for k, quantity in states.items():
        by = [*_quantities(*reads[k]), *[("f", k)] * (k in formulas)]
        if quantity is not Quantity.CURRENT:
            by += _quantities(ends[k])
        uses["i", k] = by
        if k in held:
            uses["v", held[k]], uses["i", k] = by, [*currents[held[k]] - {("i", k)}]
        if quantity is Quantity.NEITHER:  # its control determines its current, and that its control
            for node in free & {node for _, node in _quantities(*reads[k])}:
                uses["v", node].append(("i", k))
    return uses
