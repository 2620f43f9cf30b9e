"""The numbers that runs of the implicit method can be differentiated by, and their gradient."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from circuitsim.circuit.elements import CURRENT, ELEMENTS, INDUCTOR, VOLTAGE
from circuitsim.errors import UsageError
from circuitsim.time_domain.formula_sources import check_by_source
from circuitsim.time_domain.functionals import Functional
from circuitsim.time_domain.implicit_gradients import ImplicitSweep
from circuitsim.time_domain.implicit_result import ImplicitResult
from circuitsim.time_domain.numbers import COUPLING, HELD, NAMES, SWITCH
from circuitsim.time_domain.result import Beginning
from circuitsim.time_domain.tangents import Sizes, Tangents
from circuitsim.time_domain.waveforms import value


def implicit_gradient(
    result: ImplicitResult, functionals: Sequence[Functional], names: Sequence[str], weights: np.ndarray
) -> tuple[np.ndarray, dict[str, float]]:
    """Values of functionals (f,), and the gradient of their sum with weights (f,); see
    `circuitsim.time_domain.waveform_gradient`."""
    numbers = _Numbers(result)
    for name in names:
        numbers.check(name)
    sweep = ImplicitSweep(result, functionals, weights)
    begin = sweep.back()
    rest = None if result.begun.point is None else _Rest(result, begin)
    return sweep.values, {name: numbers.of(name, sweep, begin, rest) for name in names}


class _Rest:
    """The operating point at the beginning, backwards.

    Parameters
    ----------
    result : ImplicitResult
    by_x : (q,) float array
        By the states there.
    """

    def __init__(self, result: ImplicitResult, by_x: np.ndarray) -> None:
        point, companion = result.begun.point, result.run.companion
        assert point is not None
        circuit, storing, capacitor = point.circuit, companion.storing, companion.capacitor
        self.tangents = Tangents(circuit, np.zeros(0, dtype=np.int64))
        _, first, second, column, _ = circuit.arrays()
        potentials, currents = np.zeros(self.tangents.nodes), np.zeros(self.tangents.kind.size)
        np.add.at(potentials, first[storing[capacitor]], by_x[capacitor])
        np.add.at(potentials, second[storing[capacitor]], -by_x[capacitor])
        coils = np.flatnonzero(companion.elements & (circuit.arrays().kind[: companion.elements.size] == INDUCTOR))
        currents[coils] += companion.by_levels(by_x)[coils]
        sizes = Sizes(*(float(np.abs(own).max(initial=0.0)) or 1.0 for own in (point.drops, point.currents)))
        inner = self.tangents.column_at(point, column, sizes)
        none = np.zeros(inner.size, dtype=bool)
        self.tangents.backward(
            point, inner, self.tangents.conducting(point, none, sizes), (potentials, currents), sizes
        )
        self.held = {}
        place = len(result.circuit)
        for name in result.begun.held:
            if name in circuit:
                self.held[name.lower()] = circuit.element_index(name)
            else:
                self.held[name.lower()], place = place, place + 1


class _Numbers:
    """The circuit's numbers by name."""

    def __init__(self, result: ImplicitResult) -> None:
        self.result, self.run, self.circuit = result, result.run, result.circuit
        self.kind, self.value = self.circuit.arrays().kind, self.circuit.arrays().value
        companion = self.run.companion
        self.states = {int(k): j for j, k in enumerate(companion.storing)}
        self.stores, self.windings = companion.elements, companion.windings
        self.coupled = {} if self.windings is None else {int(k): j for j, k in enumerate(self.windings.coils)}
        self.switched = {int(k): s for s, k in enumerate(self.run.switching.places)}
        self.held = {name.lower() for name in result.begun.held if result.begun.begins is Beginning.HELD}

    def check(self, name: str) -> None:
        """Refuse what is no number.

        Raises
        ------
        UsageError
        """
        circuit = self.circuit
        couple, holds = COUPLING.fullmatch(name.strip()), HELD.fullmatch(name.strip())
        if name in circuit and circuit.element_index(name) not in circuit.devices:
            self._check_element(circuit.element_index(name), name)
        elif couple is not None:
            a, b = (self.coupled.get(circuit.element_index(own), -1) for own in couple.groups())
            if self.windings is None or min(a, b) < 0 or a == b or self.windings.mutual[a, b] == 0.0:
                raise UsageError(f"{name} couples nothing: {NAMES}")
            change = np.zeros(self.windings.mutual.shape)
            change[a, b] = change[b, a] = 1.0
            if not self.windings.keeps_rank(change):
                raise UsageError(f"{name} is an ideal coupling: what a smaller one stores has no gradient")
        elif holds is not None and holds[1].lower() in self.held:
            return
        elif circuit.device_parameter(name) is None:
            self._check_part(name)

    def _check_element(self, k: int, name: str) -> None:
        varies = bool(ELEMENTS[self.kind[k]].parameter) and k not in self.switched and not np.isnan(self.value[k])
        source = k in self.run.waves or self.kind[k] in (VOLTAGE, CURRENT) or k in self.circuit.laws
        if not varies or (self.value[k] == 0.0 and not source):
            raise UsageError(f"{name} has no such value: {NAMES}")
        if source:
            check_by_source(self.run.waves.values(), name)

    def _check_part(self, name: str) -> None:
        element, _, which = name.rpartition(".")
        if element not in self.circuit:
            raise UsageError(f"{name} is no number of the circuit: {NAMES}")
        k, which = self.circuit.element_index(element), which.lower()
        if k in self.switched and which in SWITCH:
            return
        if which == "ic" and self.stores[k]:
            held = self.kind[k] == INDUCTOR and element.lower() in self.held
            if held or self.result.begun.begins is Beginning.STATED:
                return
            raise UsageError(f"{name} has no effect (the run begins at the operating point): {NAMES}")
        raise UsageError(f"{name} is no number of the circuit: {NAMES}")

    def of(self, name: str, sweep: ImplicitSweep, begin: np.ndarray, rest: _Rest | None) -> float:
        """The derivative by one of them."""
        circuit, stages = self.circuit, sweep.stages
        couple, holds = COUPLING.fullmatch(name.strip()), HELD.fullmatch(name.strip())
        if name in circuit and circuit.element_index(name) not in circuit.devices:
            return self._of_element(circuit.element_index(name), sweep, begin, rest)
        if couple is not None:
            a, b = (self.coupled[circuit.element_index(own)] for own in couple.groups())
            by, own = self._by_inductances(sweep, begin)
            return float((by[a, b] + by[b, a]) * np.sqrt(own[a, a] * own[b, b]))
        if holds is not None:
            assert rest is not None
            return float(rest.tangents.by_value[rest.held[holds[1].lower()]])
        place = circuit.device_parameter(name)
        if place is not None:
            found = stages.tangents.of_device(*place, name)
            return found if rest is None else found + rest.tangents.of_device(*place, name)
        element, _, which = name.rpartition(".")
        k, which = circuit.element_index(element), which.lower()
        if which == "ic" and rest is not None:
            return float(rest.tangents.by_value[rest.held[element.lower()]])
        if which == "ic":
            return float(self.run.companion.by_levels(begin)[k])
        return self._of_switch(k, SWITCH.index(which), sweep, rest)

    def _by_inductances(self, sweep: ImplicitSweep, begin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives by the inductances of coupled inductors (n, n), and these, H; ``begin``: by the first states."""
        windings, stages, place = self.windings, sweep.stages, self.run.companion.place
        assert windings is not None and stages.by_turns is not None
        by_turns, by_own = stages.by_turns.copy(), np.zeros(windings.inductance.size)
        by_turns[: place.size] += np.outer(begin[place], self.result.begun.level[windings.coils])
        by_own[: place.size] = stages.by_weight[place]
        return windings.by_inductances(by_own, by_turns), windings.mutual

    def _of_element(self, k: int, sweep: ImplicitSweep, begin: np.ndarray, rest: _Rest | None) -> float:
        stages = sweep.stages
        if k in self.coupled:
            # M = k √(L₁ L₂) with k as it is.
            j, (by, own) = self.coupled[k], self._by_inductances(sweep, begin)
            return 0.5 * float((by[j] + by[:, j]) @ own[j]) / float(own[j, j])
        if k in self.states:
            return float(stages.by_weight[self.states[k]])
        factor = value(self.run.waves[k], 0.0) if k in self.run.waves else 1.0
        found = stages.by_wave[k] if k in self.run.waves else float(stages.tangents.by_value[k])
        return found if rest is None else found + factor * float(rest.tangents.by_value[k])

    def _of_switch(self, k: int, which: int, sweep: ImplicitSweep, rest: _Rest | None) -> float:
        s = self.switched[k]
        if which < 2:
            return float(sweep.by_threshold[which, s])
        found = float(sweep.stages.by_ohms[which - 2, s])
        if rest is not None and self.result.begun.closed[s] == (which == 2):
            found += float(rest.tangents.by_value[k])
        return found


__all__ = ["implicit_gradient"]
