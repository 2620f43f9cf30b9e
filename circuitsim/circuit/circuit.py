"""`Circuit`: nodes and two-terminal elements (amplifiers: ground is their third), as a table of columns.

A circuit only grows, or is copied with other values (`Circuit.with_values`); `Circuit.arrays` are immutable snapshots.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from circuitsim import arguments
from circuitsim.circuit.dynamics import Dynamics, SwitchLaw
from circuitsim.circuit.elements import (
    BY_CURRENT_F,
    BY_CURRENT_H,
    BY_LETTER,
    BY_VOLTAGE_E,
    BY_VOLTAGE_G,
    ELEMENTS,
    NULLOR,
    device_code,
)
from circuitsim.circuit.laws import CurrentControl, Law, Quantity, VoltageControl
from circuitsim.circuit.table import (
    GROUND,
    ElementTable,
    check_values,
    checked_columns,
    checked_value,
    read_only,
)
from circuitsim.errors import Location, TopologyError, UsageError
from circuitsim.formats import Picture, section
from circuitsim.models import MODELS, Device
from circuitsim.models.base import IDEAL_TYPE

if TYPE_CHECKING:
    import networkx
    import numpy as np


class Circuit(ElementTable):
    """A resistive circuit: resistors, ideal diodes, voltage and current sources (L: short, C: open), amplifiers, and
    devices that consist of these (`circuitsim.models`).

    Parameters
    ----------
    title : str
        First line of the deck.

    Examples
    --------
    >>> from circuitsim import Circuit
    >>> c = Circuit("divider")
    >>> c.voltage_source("V1", "in", "0", 6.0)
    >>> c.resistor("R1", "in", "out", 1e3)
    >>> c.resistor("R2", "out", "0", 2e3)
    >>> c
    Circuit('divider': 3 nodes, 3 elements: 2 R, 1 V)
    """

    def resistor(self, name: str, first: str, second: str, resistance: float | str) -> None:
        """Add a resistor.

        Parameters
        ----------
        name : str
            Unlike all other names, whatever their case.
        first, second : str
            Names of its nodes; its current counts from ``first`` through it to ``second``.
        resistance : float or str
            Ω, not negative; zero is an ideal short. As a SPICE number: ``"1k"``, ``"4.7MEG"``.

        Raises
        ------
        TopologyError
            A repeated name, or a value that is negative or not finite.
        """
        self.add("R", name, first, second, resistance)

    def capacitor(self, name: str, first: str, second: str, capacitance: float | str) -> None:
        """Add a capacitor, open at the operating point.

        Parameters
        ----------
        name : str
            Unlike all other names, whatever their case.
        first, second : str
            Names of its nodes.
        capacitance : float or str
            F, positive.
        """
        self.add("C", name, first, second, capacitance)

    def inductor(self, name: str, first: str, second: str, inductance: float | str) -> None:
        """Add an inductor, a short at the operating point.

        Parameters
        ----------
        name : str
            Unlike all other names, whatever their case.
        first, second : str
            Names of its nodes; the first is the dotted one where it is coupled.
        inductance : float or str
            H, positive.
        """
        self.add("L", name, first, second, inductance)

    def coupled(self, first: str, second: str, factor: float) -> None:
        """Couple two inductors magnetically.

        Parameters
        ----------
        first, second : str
            Names of inductors.
        factor : float
            M / √(L₁ L₂), −1 to 1.

        Raises
        ------
        TopologyError
            No such inductors; another factor.
        """
        pair = self.names[self.element_index(first)], self.names[self.element_index(second)]
        found = arguments.SHARE("factor", factor)
        if any(self[name].kind != "inductor" for name in pair) or pair[0] == pair[1]:
            raise TopologyError(f"{first}, {second}: a coupling needs two inductors")
        self._moving().couplings[pair] = found

    def diode(self, name: str, anode: str, cathode: str, **parameters: float | str) -> None:
        """Add a diode: ideal (no reverse current, no forward drop) unless parameters say more.

        Parameters
        ----------
        name : str
            Unlike all other names, whatever their case.
        anode, cathode : str
            Names of its nodes; its current flows from ``anode`` through it to ``cathode``.
        **parameters : float or str
            Those of a ``.model … D(…)`` card in lower case; the saturation current is ``is_``. With ``is_``, ``n``,
            ``rs``, ``bv`` … it is a junction diode, with ``vfwd``, ``ron`` … a piecewise-linear one.

        Raises
        ------
        TopologyError
            A repeated name; parameters that no diode has, or out of range.

        Examples
        --------
        >>> from circuitsim import Circuit
        >>> c = Circuit()
        >>> c.diode("D1", "a", "0", is_="10f", n=1.8)
        >>> c.diode("D2", "a", "0", vfwd=0.7, ron="20m")
        """
        if not parameters:
            self.add("D", name, anode, cathode)
            return
        given = {key.lower().rstrip("_"): arguments.real(f"{name}: {key}", value) for key, value in parameters.items()}
        rows = [row for row in MODELS if row.letter == "D" and row.device is not None]
        row = next((row for row in rows if row.takes("D", IDEAL_TYPE, frozenset(given))), None)
        if row is None or row.device is None:
            known = "; ".join(f"{own.name}: {', '.join(one.name for one in own.parameters)}" for own in rows)
            raise TopologyError(f"{name}: no diode has the parameters {', '.join(given)} together; known: {known}")
        make: Any = row.device
        try:
            device = make(**given)
        except (TypeError, ValueError) as error:
            raise TopologyError(f"{name}: {error}") from None
        self.device(name, anode, cathode, device)

    def zener(self, name: str, anode: str, cathode: str, voltage: float | str, resistance: float | str = 0.0) -> None:
        """Add an ideal diode that breaks down.

        Parameters
        ----------
        name : str
            Unlike all other names, whatever their case.
        anode, cathode : str
            Names of its nodes.
        voltage : float or str
            Breakdown voltage, V, not negative.
        resistance : float or str
            In breakdown, Ω.
        """
        self.diode(name, anode, cathode, vfwd=0.0, ron=0.0, vrev=voltage, rrev=resistance)

    def voltage_source(
        self,
        name: str,
        positive: str,
        negative: str,
        voltage: float | str = 0.0,
        waveform: object = None,
        ac: complex | None = None,
    ) -> None:
        """Add an ideal source that holds v(positive) − v(negative) = ``voltage``.

        Parameters
        ----------
        name : str
            Unlike all other names, whatever their case.
        positive, negative : str
            Names of its nodes; its current counts from ``positive`` through it to ``negative``.
        voltage : float or str
            At the operating point, V; a source that delivers power has a negative current.
        waveform : Waveform, optional
            Its value over time: `circuitsim.time_domain.Sine`, `Pulse` …
        ac : complex, optional
            Its amplitude in AC analysis, V.

        Raises
        ------
        TopologyError
            A repeated name, or a value that is not finite.
        """
        self._source("V", name, (positive, negative), voltage, waveform, ac)

    def current_source(
        self,
        name: str,
        first: str,
        second: str,
        current: float | str = 0.0,
        waveform: object = None,
        ac: complex | None = None,
    ) -> None:
        """Add a source whose current flows from ``first`` through it to ``second``.

        Parameters
        ----------
        name : str
            Unlike all other names, whatever their case.
        first, second : str
            Names of its nodes.
        current : float or str
            At the operating point, A.
        waveform, ac
            As of `voltage_source`; A.

        Raises
        ------
        TopologyError
            A repeated name, or a value that is not finite.
        """
        self._source("I", name, (first, second), current, waveform, ac)

    def _source(self, letter: str, name: str, ends: tuple[str, str], value: Any, waveform: object, ac: Any) -> None:
        """Add an independent source."""
        if waveform is not None:
            from circuitsim.circuit.waveforms import WAVEFORM

            WAVEFORM(f"{name}: waveform", waveform)
        amplitude = None if ac is None else arguments.phasor(f"{name}: ac", ac)
        self.add(letter, name, *ends, value)
        if waveform is not None:
            self._moving().waves[len(self) - 1] = waveform
        if amplitude is not None:
            self._moving().phasors[len(self) - 1] = amplitude

    def switch(
        self,
        name: str,
        first: str,
        second: str,
        control: tuple[str, str] | str,
        threshold: float | str,
        hysteresis: float | str = 0.0,
        on: float | str = 1.0,
        off: float | str = 1e12,
        closed: bool = False,
    ) -> None:
        """Add a switch: closed where its control is above the threshold.

        Parameters
        ----------
        name : str
            Unlike all other names, whatever their case.
        first, second : str
            Names of its nodes.
        control : (str, str) or str
            Two nodes whose voltage controls, or the voltage source whose current does.
        threshold, hysteresis : float or str
            V or A: it closes above threshold + hysteresis and opens below threshold − hysteresis.
        on, off : float or str
            Its resistances, Ω.
        closed : bool
            Its state between both thresholds, where nothing came before.

        Raises
        ------
        TopologyError
            A repeated name, values out of range, no such source.
        """
        words = {"vt": threshold, "vh": hysteresis, "ron": on, "roff": off}
        numbers = {key: arguments.real(f"{name}: {key}", value) for key, value in words.items()}
        if min(numbers["ron"], numbers["roff"]) < 0.0:
            raise TopologyError(f"{name}: its resistances on and off must not be negative")
        by: tuple[int, int] | str
        if isinstance(control, str):
            by = self.names[self.element_index(control)]
        else:
            by = self._pair(name, control)
        state = arguments.flag(f"{name}: closed", closed)
        self.add("R", name, first, second, numbers["ron" if state else "roff"])
        self._moving().switches[len(self) - 1] = SwitchLaw(by, numbers, state)

    def _moving(self) -> Dynamics:
        """The circuit's own data for transient and AC analysis."""
        self._keep_to_itself()
        if self.dynamics is None:
            self.dynamics = Dynamics()
        return self.dynamics

    def amplifier(self, name: str, left: str, right: str, gain: float | str) -> None:
        """Add a bidirectional amplifier between two nodes and ground (Scellier 2024, App. D).

        v(right) = ``gain`` v(left), and the current out of ``right`` is ``gain`` times the current into ``left``.

        Parameters
        ----------
        name : str
            Unlike all other names, whatever their case.
        left, right : str
            Names of its nodes.
        gain : float or str
            Positive.

        Raises
        ------
        TopologyError
            A repeated name, or a gain that is not positive or not finite.
        """
        self.add("X", name, left, right, gain)

    def add(
        self,
        letter: str,
        name: str,
        first: str,
        second: str,
        value: float | str | None = None,
        origin: tuple[str, int] | None = None,
    ) -> None:
        """Add an element of any kind by its letter in the element table.

        Parameters
        ----------
        letter : str
            R, D, V, I, L, C or X, in either case.
        name : str
            Unlike all other names, whatever their case.
        first, second : str
            Names of its nodes; its current counts from ``first`` through it to ``second``.
        value : float or str, optional
            Ω, V, A, H, F, or the gain; None for a diode.
        origin : (str, int), optional
            File and line of its card, for messages.

        Raises
        ------
        TopologyError
            Unknown kind, repeated name, a value that is missing, not finite or out of range.
        """
        code = BY_LETTER.get(str(letter).upper())
        if code is None:
            raise TopologyError(f"{name}: no element kind {letter!r}; known: {', '.join(BY_LETTER)}")
        self._append(code, name, first, second, checked_value(code, name, value), Location(*origin) if origin else None)

    def device(self, name: str, first: str, second: str, device: Device) -> None:
        """Add an element that consists of others (`circuitsim.models`).

        Parameters
        ----------
        name : str
            Unlike all other names, whatever their case.
        first, second : str
            Names of its nodes; its current counts from ``first`` through it to ``second``.
        device : Device
            Its model with the model's parameters.

        Raises
        ------
        TopologyError
            A repeated name.
        """
        arguments.instance("a device of circuitsim.models", Device)(f"{name}: device", device)
        self._append(device_code(device), name, first, second, math.nan, None)
        self._devices[len(self) - 1] = device

    def controlled(
        self, code: int, name: str, first: str, second: str, law: Law, value: float | str | None = None
    ) -> None:
        """Add a controlled element of any law; `vcvs`, `vccs`, `cccs`, `ccvs` and `opamp` add the usual ones.

        Parameters
        ----------
        code : int
            ``BY_VOLTAGE_E`` … ``NULLOR`` of `circuitsim.circuit.elements`.
        name : str
            Unlike all other names, whatever their case.
        first, second : str
            Names of its output nodes; its current counts from ``first`` through it to ``second``.
        law : Law
            Its voltage or current as an affine function of voltages and currents elsewhere.
        value : float or str, optional
            The gain of the law: none, S or Ω; None for sources of expressions and nullors.

        Raises
        ------
        TopologyError
            A repeated name; a value that is missing, unexpected or not finite.
        """
        self._append(code, name, first, second, checked_value(code, name, value), None)
        self._laws[len(self) - 1] = law

    def vcvs(self, name: str, first: str, second: str, control: tuple[str, str], gain: float | str) -> None:
        """Add a voltage-controlled voltage source (E): v(first) − v(second) = ``gain`` × the controlling voltage.

        Parameters
        ----------
        name : str
            Unlike all other names, whatever their case.
        first, second : str
            Output nodes, + first; its current counts from ``first`` through it to ``second``.
        control : (str, str)
            Nodes of the controlling voltage, + first.
        gain : float or str
            Without unit.
        """
        self._by_voltage(BY_VOLTAGE_E, name, first, second, control, gain, Quantity.VOLTAGE)

    def vccs(self, name: str, first: str, second: str, control: tuple[str, str], transconductance: float | str) -> None:
        """Add a voltage-controlled current source (G), whose current flows from ``first`` through it to ``second``.

        Parameters
        ----------
        name, first, second, control
            As of `vcvs`.
        transconductance : float or str
            S.
        """
        self._by_voltage(BY_VOLTAGE_G, name, first, second, control, transconductance, Quantity.CURRENT)

    def cccs(self, name: str, first: str, second: str, control: str, gain: float | str) -> None:
        """Add a current-controlled current source (F), whose current flows from ``first`` through it to ``second``.

        Parameters
        ----------
        name, first, second
            As of `vcvs`.
        control : str
            The element whose current controls; the circuit has it already.
        gain : float or str
            Without unit.
        """
        law = Law(Quantity.CURRENT, currents=(CurrentControl(1.0, self.element_index(control)),))
        self.controlled(BY_CURRENT_F, name, first, second, law, gain)

    def ccvs(self, name: str, first: str, second: str, control: str, transresistance: float | str) -> None:
        """Add a current-controlled voltage source (H): v(first) − v(second) = ``transresistance`` × the current.

        Parameters
        ----------
        name, first, second, control
            As of `cccs`.
        transresistance : float or str
            Ω.
        """
        law = Law(Quantity.VOLTAGE, currents=(CurrentControl(1.0, self.element_index(control)),))
        self.controlled(BY_CURRENT_H, name, first, second, law, transresistance)

    def opamp(self, name: str, output: str, plus: str, minus: str, reference: str = "0") -> None:
        """Add an ideal op-amp (nullor): v(plus) = v(minus), and its output carries what that needs.

        Parameters
        ----------
        name : str
            Unlike all other names, whatever their case.
        output, plus, minus : str
            Names of its nodes.
        reference : str
            The node that its output current returns to.
        """
        inputs = VoltageControl(1.0, self.node(plus), self.node(minus))
        self.controlled(NULLOR, name, output, reference, Law(Quantity.NEITHER, voltages=(inputs,)))

    def transformer(self, name: str, first: tuple[str, str], second: tuple[str, str], ratio: float | str) -> None:
        """Add v(second) = ``ratio`` v(first), i(first) = −``ratio`` i(second): an E and an F, called ``name``.2 and .1.

        Parameters
        ----------
        name : str
            Unlike all other names, whatever their case.
        first, second : (str, str)
            The two ports, + first.
        ratio : float or str
            Turns of the second port over those of the first.
        """
        name = arguments.name("element name", name)
        near, far = arguments.pair(f"{name}: first", first), arguments.pair(f"{name}: second", second)
        self.vcvs(f"{name}.2", *far, near, ratio)
        self.cccs(f"{name}.1", *near, f"{name}.2", -arguments.real(f"{name}: ratio", ratio))

    def _by_voltage(
        self, code: int, name: str, first: str, second: str, control: tuple[str, str], gain: float | str, of: Quantity
    ) -> None:
        law = Law(of, voltages=(VoltageControl(1.0, *self._pair(name, control)),))
        self.controlled(code, name, first, second, law, gain)

    def _pair(self, name: str, nodes: tuple[str, str]) -> tuple[int, int]:
        """The controlling nodes of an element."""
        first, second = arguments.pair(f"{name}: control", nodes)
        return self.node(first), self.node(second)

    def subcircuit(self, name: str, circuit: Circuit, nodes: Mapping[str, str]) -> None:
        """Add all elements of another circuit, called ``name``.R1 and so on.

        Parameters
        ----------
        name : str
            What names of its elements and inner nodes begin with.
        circuit : Circuit
            Its ground is this circuit's.
        nodes : mapping of str to str
            Its outer nodes, and the nodes of this circuit that they are; all others become ``name``.node.

        Raises
        ------
        TopologyError
            A node that the other circuit has not; repeated names.
        UsageError
            Formulas of a deck, which belong to its own sources.

        Examples
        --------
        >>> from circuitsim import Circuit, solve
        >>> half = Circuit()
        >>> half.resistor("R1", "a", "b", "1k")
        >>> half.resistor("R2", "b", "0", "1k")
        >>> c = Circuit("a ladder")
        >>> c.voltage_source("V1", "in", "0", 4)
        >>> c.subcircuit("X1", half, {"a": "in", "b": "mid"})
        >>> c.subcircuit("X2", half, {"a": "mid", "b": "out"})
        >>> solve(c)["out"], "X2.R1" in c
        (0.8, True)
        """
        arguments.instance("a Circuit, of a deck its circuit", Circuit)("circuit", circuit)
        circuit = circuit._sharing()  # it may be this circuit
        name = arguments.name("element name", name)
        outside = arguments.table(arguments.node, "{'a': 'in'}")("nodes", nodes)
        joined = {circuit.node_index(inner): outer for inner, outer in outside.items()}
        place = [
            GROUND if k == GROUND else self.node(joined.get(k, f"{name}.{own}"))
            for k, own in enumerate(circuit.node_names)
        ]
        offset, moving = len(self), circuit.dynamics
        if moving is not None and (moving.formulas or moving.frozen):
            raise UsageError(f"{name}: sources that follow others by formulas belong to their own deck")
        kind, first, second, values = circuit.columns()
        for k, (own, value) in enumerate(zip(circuit.names, values)):
            ends = self.node_names[place[first[k]]], self.node_names[place[second[k]]]
            self._append(kind[k], f"{name}.{own}", *ends, value, circuit.origin(k))
            if k in circuit.devices:
                self._devices[offset + k] = circuit.devices[k]
            if k in circuit.laws:
                self._laws[offset + k] = circuit.laws[k].renumbered(place.__getitem__, lambda e: offset + e)
        if moving is not None:
            self._moving().take(moving, place, offset, name)

    @classmethod
    def from_arrays(
        cls,
        kind: np.ndarray,
        first: np.ndarray,
        second: np.ndarray,
        value: np.ndarray,
        n_nodes: int,
        title: str = "",
        names: Sequence[str] | None = None,
        node_names: Sequence[str] | None = None,
        laws: Mapping[int, Law] = MappingProxyType({}),
    ) -> Circuit:
        """A circuit from whole columns (see `CircuitArrays`); names are numbered where not given.

        Parameters
        ----------
        kind : (m,) integer array
            Codes of `circuitsim.circuit.elements`.
        first, second : (m,) integer arrays
            Node indices in ``range(n_nodes)``; 0 is ground.
        value : (m,) float array
            Ω, V, A, H, F; ignored for diodes.
        n_nodes : int
            Number of nodes, ground included.
        title : str
            First line of the deck.
        names, node_names : sequence of str, optional
            Of the m elements and of all nodes.
        laws : mapping of int to Law, optional
            Laws of the elements that are controlled.

        Raises
        ------
        TopologyError
            Columns of unequal length, indices or values out of range, repeated names.
        """
        arrays = checked_columns(kind, first, second, value, n_nodes, laws)
        circuit = cls(title)
        numbered = (f"{ELEMENTS[code].letter}{k}" for k, code in enumerate(arrays.kind.tolist(), 1))
        circuit._names = list(numbered if names is None else names)
        plain = [k for k in range(arrays.kind.size) if k not in laws] if laws else None
        check_values(arrays.kind, arrays.value, circuit._names, plain)
        circuit._node_names = [f"n{k}" if k else "0" for k in range(n_nodes)] if node_names is None else [*node_names]
        if len(circuit._names) != arrays.kind.size or len(circuit._node_names) != n_nodes:
            raise TopologyError("as many names as elements and as many node names as nodes are needed")
        circuit._index, circuit._node_index, circuit._laws = None, None, dict(laws)
        for column, data in zip(("_kind", "_first", "_second", "_value"), arrays[:4]):
            getattr(circuit, column).frombytes(data.tobytes())
        if names is not None and len(circuit._element_index()) != arrays.kind.size:
            raise TopologyError("element names are repeated")
        return circuit

    @classmethod
    def from_columns(
        cls,
        title: str,
        columns: tuple[array[int], array[int], array[int], array[float]],
        names: list[str],
        node_names: list[str],
        origins: Any = None,
        devices: Mapping[int, Device] | None = None,
        laws: Mapping[int, Law] | None = None,
    ) -> Circuit:
        """A circuit from checked columns, without copies or numpy (for the netlist reader).

        Parameters
        ----------
        title : str
            First line of the deck.
        columns : tuple of array.array
            ``kind`` ("b"), ``first``, ``second`` ("q"), ``value`` ("d"), as `CircuitArrays` has them.
        names, node_names : list of str
            All names; node 0 is ground. Names are unique in either case.
        origins : object, optional
            Its ``get(k)`` gives file and line of element ``k``.
        devices : mapping of int to Device, optional
            Parameters of the elements that are devices.
        laws : mapping of int to Law, optional
            Laws of the elements that are controlled.
        """
        circuit = cls(title)
        circuit._kind, circuit._first, circuit._second, circuit._value = columns
        circuit._names, circuit._node_names = names, node_names
        circuit._index = circuit._node_index = None
        circuit._deck_origins = origins
        circuit._devices, circuit._laws = dict(devices or {}), dict(laws or {})
        return circuit

    def with_values(self, values: Mapping[str, float]) -> Circuit:
        """A copy of this circuit with other element values (Ω, V, A), by element name; the topology is shared.

        ``D1.vfwd`` is the parameter ``vfwd`` of the device ``D1``. A switch that is given a value is a resistor then.

        Raises
        ------
        TopologyError
            An unknown name, an element without a value, or a value out of range.
        UsageError
            Another element is a formula of one of these and cannot follow.
        """
        values = arguments.table(arguments.anything, "{'R1': 1e3}")("values", values)
        if self.dynamics is not None:
            self.dynamics.check_changes(values)
        devices, column, given = self._devices, self._value[:], list[int]()
        for name, value in values.items():
            found = self.device_parameter(name)
            if found is not None:
                k, parameter = found
                try:
                    devices = {**devices, k: devices[k].with_value(parameter, arguments.real(name, value))}
                except ValueError as error:
                    raise TopologyError(f"{self._names[k]}: {error}") from None
                continue
            given.append(self.element_index(name))
            column[given[-1]] = checked_value(self._kind[given[-1]], name, value)
        copy = self._valued(column, given)
        copy._devices = devices
        return copy

    def _valued(self, column: array[float], given: Sequence[int]) -> Circuit:
        """A copy with these values, which differ at the given elements."""
        copy = self._sharing()
        copy._value = column
        if self.dynamics is not None:
            copy.dynamics = self.dynamics.released(given)
        if self._arrays is not None:
            import numpy as np

            copy._arrays = self._arrays._replace(value=read_only(np.array(column)))
        return copy

    def carrying(self, dynamics: Any) -> Circuit:
        """This circuit with its deck's data for transient and AC analysis; None: without."""
        if self.dynamics is dynamics or (dynamics is not None and not dynamics.acts()):
            return self
        copy = self._sharing()
        copy.dynamics = dynamics
        return copy

    def _sharing(self) -> Circuit:
        """A copy of this circuit without values."""
        copy = Circuit(self.title)
        copy._share(self)
        return copy

    def _share(self, other: Circuit) -> None:
        """Share the columns of another circuit until one of them grows."""
        other._lent = True
        self.__dict__.update((name, other.__dict__[name]) for name in Circuit().__dict__)
        self._arrays = self._index = self._node_index = None

    def column(self, values: Sequence[float] | np.ndarray) -> np.ndarray:
        """Values of all elements as a float array (m,).

        Raises
        ------
        TopologyError
            An array of another shape.
        """
        import numpy as np

        try:
            value = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise arguments.refused("values", values, "a dict such as {'R1': 1e3}, or values of all elements") from None
        if value.shape != (len(self._kind),):
            raise TopologyError(f"{len(self)} element values are needed, not an array of shape {value.shape}")
        return value

    def changes(self, values: Mapping[str, float] | Sequence[float] | np.ndarray | None) -> dict[str, float]:
        """Values by name: as given, or the entries of values of all elements (m,) that differ from this circuit's;
        entries of diodes are ignored."""
        if values is None or isinstance(values, Mapping):
            return dict(values or {})
        value = self.column(values)
        return {self._names[k]: float(value[k]) for k in self._differs(value).nonzero()[0].tolist()}

    def _differs(self, value: np.ndarray) -> np.ndarray:
        """Which values (m,) differ from this circuit's; entries of elements without a value are ignored."""
        arrays = self.arrays()
        return (value != arrays.value) & (arrays.value == arrays.value)  # nan: no value

    def with_column(self, value: np.ndarray) -> Circuit:
        """The circuit itself if it has these values (m,), else a copy with them; see `with_values`.

        Entries of diodes are ignored.
        """
        import numpy as np

        arrays, differs = self.arrays(), self._differs(value)
        changed = differs.nonzero()[0]
        if not changed.size:
            return self
        check_values(arrays.kind, value, self._names, changed)
        return self._valued(array("d", np.where(differs, value, arrays.value).tobytes()), changed.tolist())

    def to_networkx(self) -> networkx.MultiDiGraph:
        """The circuit as a directed multigraph: nodes by name, one edge first→second per element, keyed by its name,
        with the attributes ``kind`` and ``value`` (None for diodes)."""
        import networkx

        graph = networkx.MultiDiGraph(title=self.title)
        graph.add_nodes_from(str(name) for k, name in enumerate(self._node_names) if k or self.grounded)
        for element in self:
            graph.add_edge(element.first, element.second, key=element.name, kind=element.kind, value=element.value)
        return graph

    def draw(self) -> Picture:
        """A drawing without voltages and currents; a notebook shows it, `Picture.save` writes it."""
        return Picture(self)

    def _repr_html_(self) -> str:
        return section(repr(self), self.draw().inline())

    def __repr__(self) -> str:
        nodes = len(self._node_names) - (not self.grounded)
        kinds = ", ".join(f"{n} {letter}" for letter, n in self.count().items())
        counted = f"{nodes} nodes, {len(self)} elements" + (f": {kinds}" if kinds else "")
        return f"{type(self).__name__}({self.title!r}: {counted})"
