"""Settling time and energy of a circuit after steps of its inputs: the cost of one inference of a trained network.

A sample is a step of all input sources at time 0, from the operating point before. The settling time is the last time
at which some output leaves a band around its final value: a fraction of the largest change of an output.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from circuitsim.analysis.probes import parse_probe
from circuitsim.analysis.solve import solve
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CAPACITOR, CURRENT, INDUCTOR, RESISTOR, VOLTAGE
from circuitsim.errors import ConvergenceError, UsageError
from circuitsim.formats import Result, Table
from circuitsim.netlist.deck import Deck
from circuitsim.time_domain.deck import abrupt
from circuitsim.time_domain.implicit_events import with_capacitances
from circuitsim.time_domain.result import TransientResult, columns
from circuitsim.time_domain.run import transient
from circuitsim.time_domain.signals import Signal
from circuitsim.units import format_quantity

LONGER = 4.0
"""Factor by which a run is extended until the circuit has settled."""
TRIES = 40
"""Maximum number of runs of one sample."""
LARGEST = 5000
"""Number of segments above which a run is not extended: the circuit oscillates."""
STILL = 1e-3
"""Fraction of the band within which all outputs and states must stay in the second half of a sufficiently long run."""


class Settling(NamedTuple):
    """One step of the inputs.

    Attributes
    ----------
    time : float
        Settling time, s.
    delivered, dissipated, lost : float
        Energy until then, J: from all sources, in resistors and devices, in jumps of charge.
    stored : float
        Increase in capacitors and inductors, J.
    final : tuple of float
        Of the outputs, V.
    """

    time: float
    delivered: float
    dissipated: float
    lost: float
    stored: float
    final: tuple[float, ...]


class SettlingResult(Result):
    """Settling times and energies of samples.

    Attributes
    ----------
    outputs : tuple of str
    rows : tuple of Settling
        One per sample.
    share : float
        Width of the settling band relative to the largest change of an output.
    """

    def __init__(self, outputs: Sequence[str], rows: Sequence[Settling], share: float) -> None:
        self.outputs, self.rows, self.share = tuple(outputs), tuple(rows), share

    def column(self, name: str) -> np.ndarray:
        """``time``, ``delivered``, ``dissipated``, ``lost`` or ``stored`` of all samples (n,)."""
        return np.array([getattr(row, name) for row in self.rows])

    @property
    def slowest(self) -> int:
        """The sample with the longest settling time."""
        return int(self.column("time").argmax())

    @property
    def hungriest(self) -> int:
        """The sample with the most energy from the sources."""
        return int(self.column("delivered").argmax())

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        time, energy = self.column("time"), self.column("delivered")
        return {
            "schema": 2,
            "share": self.share,
            "outputs": list(self.outputs),
            "worst": {
                "time": {"sample": self.slowest, "value": float(time.max())},
                "delivered": {"sample": self.hungriest, "value": float(energy.max())},
            },
            "mean": {"time": float(time.mean()), "delivered": float(energy.mean())},
            "samples": [{**row._asdict(), "final": list(row.final)} for row in self.rows],
        }

    def tables(self) -> dict[str, Table]:
        """``samples``: time, delivered, dissipated, lost, stored, and the final value of each output."""
        rows, units = [(*row[:-1], *row.final) for row in self.rows], ["s", *["J"] * 4, *["V"] * len(self.outputs)]
        return {"samples": Table.of(", ".join((*Settling._fields[:-1], *self.outputs)), rows, units)}

    def _figure(self) -> Any:
        from circuitsim.plotting.charts import plot_samples

        share = f"settled within {100.0 * self.share:g} %"
        columns = [("settling time", "s", self.column("time")), ("energy delivered", "J", self.column("delivered"))]
        return plot_samples(share, columns)

    def _heading(self) -> tuple[str, str]:
        worst = (format_quantity(self.column(key).max(), unit, 4) for key, unit in (("time", "s"), ("delivered", "J")))
        return "", f"{len(self.rows)} samples, at most {', '.join(worst)}"


class StepCircuit:
    """A circuit with inputs that step and outputs that settle.

    Parameters
    ----------
    circuit : Circuit
    inputs : sequence of str
        Voltage and current sources.
    outputs : sequence of str
        ``v(out)``, ``v(a,b)``.
    capacitances : mapping of str to float
        From nodes to ground, F, beside the circuit's own capacitors.
    share : float
        Width of the settling band relative to the largest change of an output.
    **options
        ``switches``, ``couplings``, ``tolerance``, ``method`` and ``accuracy`` of `circuitsim.time_domain.transient`.

    Raises
    ------
    UsageError
        No capacitor and no inductor; an input that is not a source; a share outside 0 … 1.
    """

    def __init__(
        self,
        circuit: Circuit,
        inputs: Sequence[str],
        outputs: Sequence[str],
        capacitances: Mapping[str, float] = MappingProxyType({}),
        share: float = 0.01,
        **options: Any,
    ) -> None:
        self.circuit = with_capacitances(circuit, capacitances)
        kind = self.circuit.arrays().kind
        self.inputs = [self.circuit.names[self.circuit.element_index(name)] for name in inputs]
        for name in self.inputs:
            if kind[self.circuit.element_index(name)] not in (VOLTAGE, CURRENT):
                raise UsageError(f"{name} is not a voltage or current source and cannot be an input")
        self.storing = np.flatnonzero((kind == CAPACITOR) | (kind == INDUCTOR))
        if not self.storing.size:
            raise UsageError("nothing stores energy: give capacitances, for instance 1e-12 from every node to ground")
        if not 0.0 < share < 1.0:
            raise UsageError(f"the settling band must lie between 0 and 1, not {share:g}")
        if not outputs:
            raise UsageError("no outputs: write '*! output v(out)' into the deck, or name them")
        needed = "is not a voltage; outputs are v(node) or v(a,b)"
        self.probes = [parse_probe(name, self.circuit, f"{name!r} {needed}", ("v",)) for name in outputs]
        self.outputs = [str(probe) for probe in self.probes]
        self.capacitor = kind[self.storing] == CAPACITOR
        self.share, self.options = share, options

    @classmethod
    def of_deck(cls, deck: Deck, capacitances: float | Mapping[str, float] = 0.0, **options: Any) -> StepCircuit:
        """The circuit of a deck, with the inputs and outputs that its ``*!`` lines name.

        Parameters
        ----------
        deck : Deck
        capacitances : float or mapping of str to float
            From every node, or from named nodes, to ground, F; 0: only the deck's own.
        **options
            ``share``, ``tolerance``, ``method`` and ``accuracy`` of `StepCircuit`.

        Raises
        ------
        UsageError
            The deck names no input or no output.
        """
        from circuitsim.netlist.roles import read_roles

        roles = read_roles(deck)[0]
        for word in ("input", "output"):
            if not getattr(roles, f"{word}s"):
                raise UsageError(f"the deck has no {word}: write '*! {word} …' into it")
        circuit, following = deck.where_change(roles.inputs)
        if not isinstance(capacitances, Mapping):
            capacitances = {str(name): capacitances for name in circuit.node_names[1:] if capacitances}
        options |= {"switches": abrupt(circuit, following), "couplings": following.couplings}
        return cls(circuit, roles.inputs, roles.output_names, capacitances, **options)

    def run(self, before: Sequence[float] | np.ndarray, after: Sequence[float] | np.ndarray) -> TransientResult:
        """Waveforms from a step of the inputs until the circuit has settled.

        Parameters
        ----------
        before, after : (inputs,) float arrays
            V or A.

        Raises
        ------
        ConvergenceError
            The outputs never settle.
        """
        circuit, (start, _) = self._at(after), self._rest(before)
        ohms, value = circuit.arrays().kind == RESISTOR, circuit.arrays().value
        size = float(value[ohms].max(initial=1.0)) * float(value[self.storing[self.capacitor]].sum())
        size += float(value[self.storing[~self.capacitor]].sum()) / float(value[ohms & (value > 0.0)].min(initial=1.0))
        for _ in range(TRIES):
            found = self._transient(circuit, size, start)
            if self._still(found):
                return found
            if found.segment_starts().size > LARGEST:
                break
            size *= LONGER
        raise ConvergenceError(f"the circuit still moves after {size:g} s: it oscillates, or loses too little")

    def _transient(self, circuit: Circuit, stop: float, start: Mapping[str, float]) -> TransientResult:
        return transient(circuit, stop, initial=start, points=2, **self.options)

    def _at(self, inputs: Sequence[float] | np.ndarray) -> Circuit:
        """The circuit with these values (inputs,) of its inputs."""
        return self.circuit.with_values(dict(zip(self.inputs, map(float, inputs))))

    def _rest(self, inputs: Sequence[float] | np.ndarray) -> tuple[dict[str, float], np.ndarray]:
        """Capacitor voltages, inductor currents and outputs at the operating point for these inputs."""
        point = solve(self._at(inputs))
        levels = np.where(self.capacitor, point.drops[self.storing], point.currents[self.storing])
        states = {self.circuit.names[k]: level for k, level in zip(self.storing.tolist(), levels.tolist())}
        return states, np.array([point.voltage(p.first, p.second or "0") for p in self.probes])

    def _waves(self, run: TransientResult, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Outputs (n, outputs) and capacitor voltages and inductor currents (n, q) at times (n,)."""
        voltage, current = run.at(times)
        states = np.where(self.capacitor, voltage[:, self.storing], current[:, self.storing])
        return np.stack(columns(run, self.probes, {}, times), axis=1), states

    def _still(self, run: TransientResult) -> bool:
        """Whether outputs and states are constant in the second half of a run."""
        times = run.stop * np.concatenate([[0.0], np.linspace(0.5, 1.0, 65)])
        outputs, states = self._waves(run, times)
        for waves in (outputs, states[:, self.capacitor], states[:, ~self.capacitor]):
            # Changes below the rounding of the largest value count as zero.
            moves = np.abs(waves[1:] - waves[-1]).max(initial=0.0)
            change = np.abs(waves[0] - waves[-1]).max(initial=0.0)
            if moves > max(STILL * self.share * change, 1e-12 * np.abs(waves).max(initial=0.0)):
                return False
        return True

    def settling(self, before: Sequence[float] | np.ndarray, after: Sequence[float] | np.ndarray) -> Settling:
        """Settling time and energy of one step.

        Parameters
        ----------
        before, after : (inputs,) float arrays
            V or A.
        """
        run, (start, first) = self.run(before, after), self._rest(before)
        final = self._waves(run, np.array([run.stop]))[0][0]
        band = self.share * float(np.abs(final - first).max())
        time = 0.0
        if band > 1e-12 * float(np.abs([first, final]).max()):
            for probe, level in zip(self.probes, final.tolist()):
                for edge in (level - band, level + band):
                    crossed = Signal(run, probe, {}, edge).crossings(0.0, run.stop)
                    time = max(time, crossed[-1][0] if crossed else 0.0)
        until = self._transient(self._at(after), max(time, 1e-12 * run.stop), start).energies
        return Settling(time, until.delivered, until.dissipated, until.lost, until.stored, tuple(final.tolist()))


def settling_energy(
    step: StepCircuit,
    x: np.ndarray,
    previous: bool = False,
    progress: Callable[[float, float], bool | None] | None = None,
) -> SettlingResult:
    """Settling times and energies of samples.

    Parameters
    ----------
    step : StepCircuit
    x : (n, inputs) float array
        Values of the inputs after each step, V or A.
    previous : bool
        Whether each step begins at the sample before (the first at its last); otherwise all inputs are 0 before.
    progress : callable, optional
        Called after each sample with their number and n; True ends the run there.

    Returns
    -------
    SettlingResult

    Raises
    ------
    UsageError
        Samples of another shape.
    ConvergenceError, InfeasibleError, UnboundedError
        Of the runs.

    Examples
    --------
    ``settling_energy(StepCircuit(circuit, ["V1"], ["v(out)"], {"out": 1e-12}), [[1.0]]).rows[0].time``
    """
    x = np.asarray(x, dtype=float)
    if x.ndim != 2 or x.shape[1] != len(step.inputs) or not len(x):
        raise UsageError(f"samples are (n, {len(step.inputs)}) numbers, not {x.shape}")
    before = np.roll(x, 1, axis=0) if previous else np.zeros(x.shape)
    rows = []
    for k in range(len(x)):
        rows.append(step.settling(before[k], x[k]))
        if progress is not None and progress(k + 1, len(x)):
            break
    return SettlingResult(step.outputs, rows, step.share)
