"""A crossbar of devices with wire resistance, as a layer: exact matrix, derivatives, voltage losses."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.solve import solve
from circuitsim.certificate import TOLERANCE
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import RESISTOR, VOLTAGE
from circuitsim.effective.matrix import EffectiveMatrix, effective_matrix
from circuitsim.errors import UsageError


class WireVoltages(NamedTuple):
    """Potentials along the wires of a crossbar at one input.

    Attributes
    ----------
    word_lines, bit_lines : (rows, columns) float arrays
        Potentials at both ends of each device, V.
    inputs : (rows,) float array
        Voltages at the word lines' sources, V.
    """

    word_lines: np.ndarray
    bit_lines: np.ndarray
    inputs: np.ndarray

    @property
    def loss(self) -> np.ndarray:
        """(rows, columns) fraction of the input voltage lost at each device; nan in rows without input."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return 1.0 - (self.word_lines - self.bit_lines) / self.inputs[:, None]


class Gradient(NamedTuple):
    """Derivatives of a loss.

    Attributes
    ----------
    conductance : (rows, columns) float array
        With respect to the devices, 1/S.
    inputs : (samples, rows) float array
        With respect to the input voltages, 1/V.
    """

    conductance: np.ndarray
    inputs: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class CrossbarLayer:
    """A passive crossbar: sources at the left ends of the word lines, bit lines held at 0 V at their lower ends.

    A device connects word line and bit line at each crossing. Every wire segment between two crossings has a
    resistance, as do those between source and first column and between last row and ground.

    Parameters
    ----------
    conductance : (rows, columns) array
        Of the devices, S, all positive.
    word_wire, bit_wire : float
        Resistance of a segment of word line (bit line), Ω; 0 for ideal wires.
    source, sense : float
        Resistance in series with each source, and between each bit line and its virtual ground, Ω.
    tolerance : float
        See `circuitsim.effective_matrix`.

    Raises
    ------
    UsageError
        Conductances that are not a matrix of positive, finite values; negative resistances.

    Examples
    --------
    >>> import numpy as np
    >>> from circuitsim import CrossbarLayer
    >>> layer = CrossbarLayer(np.full((3, 2), 1e-3), word_wire=10.0, bit_wire=10.0)
    >>> layer(np.array([1.0, 0.5, 0.2])).round(7)
    array([0.0015835, 0.0015686])
    >>> layer.ideal(np.array([1.0, 0.5, 0.2]))
    array([0.0017, 0.0017])
    """

    conductance: np.ndarray
    word_wire: float = 1.0
    bit_wire: float = 1.0
    source: float = 0.0
    sense: float = 0.0
    tolerance: float = TOLERANCE

    def __post_init__(self) -> None:
        g = np.array(self.conductance, dtype=np.float64)
        if g.ndim != 2 or not g.size or not (np.isfinite(g) & (g > 0.0)).all():
            raise UsageError("the conductances of a crossbar are a matrix (rows, columns) of positive values, S")
        if not min(self.word_wire, self.bit_wire, self.source, self.sense) >= 0.0:
            raise UsageError("resistances of wires, sources and sensing must be zero or positive, Ω")
        g.flags.writeable = False
        object.__setattr__(self, "conductance", g)

    def __repr__(self) -> str:
        rows, columns = self.conductance.shape
        return f"CrossbarLayer({rows} × {columns}, wires {self.word_wire:g} and {self.bit_wire:g} Ω)"

    # ------------------------------------------------------------------ circuit
    @cached_property
    def circuit(self) -> Circuit:
        """The circuit: sources ``V1`` … of the rows, ``Vsense1`` … of the columns, devices, then wires."""
        rows, columns = self.conductance.shape
        crossing = np.arange(rows * columns).reshape(rows, columns)
        word, bit = 1 + crossing, 1 + rows * columns + crossing
        driven = 1 + 2 * rows * columns + np.arange(rows)
        held = driven[-1] + 1 + np.arange(columns)
        ground = np.zeros(rows + columns, dtype=np.int64)
        first = [driven, held, word.ravel(), driven, word[:, :-1].ravel(), bit[:-1].ravel(), bit[-1]]
        second = [ground, bit.ravel(), word[:, 0], word[:, 1:].ravel(), bit[1:].ravel(), held]
        pieces = [
            np.full(rows, self.word_wire + self.source),
            np.full(rows * (columns - 1), self.word_wire),
            np.full((rows - 1) * columns, self.bit_wire),
            np.full(columns, self.bit_wire + self.sense),
        ]
        value = np.concatenate([ground.astype(float), 1.0 / self.conductance.ravel(), *pieces])
        kind = np.full(value.size, RESISTOR)
        kind[: rows + columns] = VOLTAGE
        wires = value.size - rows - columns - rows * columns
        names = [f"V{k + 1}" for k in range(rows)] + [f"Vsense{k + 1}" for k in range(columns)]
        names += [f"R{j + 1}_{k + 1}" for j in range(rows) for k in range(columns)]
        names += [f"Rw{k + 1}" for k in range(wires)]
        return Circuit.from_arrays(
            kind,
            np.concatenate(first),
            np.concatenate(second),
            value,
            int(held[-1]) + 1,
            f"crossbar {rows} x {columns}",
            names,
        )

    @cached_property
    def effective(self) -> EffectiveMatrix:
        """The crossbar as a matrix (columns, rows), S, with error bounds; computed once."""
        rows, columns = self.conductance.shape
        inputs = [f"V{k + 1}" for k in range(rows)]
        return effective_matrix(self.circuit, inputs, [f"i(Vsense{k + 1})" for k in range(columns)], self.tolerance)

    @property
    def matrix(self) -> np.ndarray:
        """(columns, rows) transfer conductances, S; ``conductance.T`` with ideal wires."""
        return self.effective.matrix

    def at(self, conductance: np.ndarray) -> CrossbarLayer:
        """The same crossbar with other devices (rows, columns), S; the analysis of the circuit is shared.

        Raises
        ------
        UsageError
            Conductances of the wrong shape or out of range.
        """
        other = CrossbarLayer(conductance, self.word_wire, self.bit_wire, self.source, self.sense, self.tolerance)
        if other.conductance.shape != self.conductance.shape:
            raise UsageError(f"conductances of shape {self.conductance.shape} are needed, not {np.shape(conductance)}")
        value = self.circuit.arrays().value.copy()
        value[self._devices] = 1.0 / other.conductance.ravel()
        matrix = self.effective.at(value)
        other.__dict__.update(effective=matrix, circuit=matrix.circuit)
        return other

    @property
    def _devices(self) -> slice:
        rows, columns = self.conductance.shape
        return slice(rows + columns, rows + columns + rows * columns)

    # ------------------------------------------------------------------ values
    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Currents out of the bit lines (samples, columns), A, for word line voltages (samples, rows), V."""
        return self.effective(x)

    def ideal(self, x: np.ndarray) -> np.ndarray:
        """Currents without resistance of wires, sources and sensing, A."""
        found: np.ndarray = np.asarray(x) @ self.conductance
        return found

    def gradient(self, x: np.ndarray, cotangent: np.ndarray) -> Gradient:
        """Derivatives of a loss, from its derivatives with respect to the currents.

        Parameters
        ----------
        x : (samples, rows) float array
            Voltages, V.
        cotangent : (samples, columns) float array
            ∂loss/∂current, 1/A.

        Raises
        ------
        UsageError
            Arrays of wrong shapes or different numbers of samples.
        """
        matrix = self.effective
        x, cotangent = np.asarray(x, dtype=np.float64), np.asarray(cotangent, dtype=np.float64)
        if x.ndim != 2 or cotangent.ndim != 2 or len(x) != len(cotangent):
            have = f"{x.shape} and {cotangent.shape}"
            raise UsageError(f"samples (n, rows) and derivatives (n, columns) of one length are needed, not {have}")
        found = matrix.vjp(cotangent.T @ x)[self._devices]
        return Gradient(found.reshape(self.conductance.shape), cotangent @ matrix.matrix)

    def voltages(self, x: np.ndarray) -> WireVoltages:
        """Potentials along the wires at one input (rows,), V, from the certified operating point.

        Raises
        ------
        UsageError
            An input of another length.
        """
        rows, columns = self.conductance.shape
        x = np.asarray(x, dtype=np.float64)
        if x.shape != (rows,):
            raise UsageError(f"one input of {rows} voltages is needed, not an array of shape {x.shape}")
        value = self.circuit.arrays().value.copy()
        value[:rows] = x
        v = solve(self.circuit.with_column(value), tolerance=self.tolerance).voltages
        word, bit = v[1 : 1 + 2 * rows * columns].reshape(2, rows, columns)
        return WireVoltages(word, bit, x)
