"""Responses over frequency: one sparse complex system a frequency, refined and certified row by row."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from circuitsim.circuit import Circuit
from circuitsim.circuit.couplings import UNCOUPLED
from circuitsim.circuit.elements import CURRENT, VOLTAGE
from circuitsim.errors import ConvergenceError, UnboundedError, UsageError
from circuitsim.small_signal.equations import SmallSignalEquations, small_signal_equations
from circuitsim.small_signal.linearized import linearized

if TYPE_CHECKING:
    from scipy.sparse import csc_matrix, csr_matrix
    from scipy.sparse.linalg import SuperLU

TOLERANCE = 1e-9
REFINEMENTS = 3
"""Most corrections of one solution."""
SHARE = 1e-6
"""Of the largest voltage or current: smaller ones are rounding where others cancel."""
EPS, ROUNDINGS = 2.0**-52, 1000.0
GOLDEN = 0.5 * (5.0**0.5 - 1.0)
"""Of a turn: the cosines of its multiples are scattered."""
LARGEST = 200_000_000
"""Most complex numbers of a result."""


@dataclass(frozen=True, eq=False, repr=False)
class AcResult:
    """Complex amplitudes over frequency.

    Attributes
    ----------
    circuit : Circuit
    frequencies : (f,) float array
        Hz.
    voltages : (f, n_nodes) complex array
        Node potentials, V.
    currents : (f, m) complex array
        Branch currents in SPICE signs, A.
    residuals : (f,) float array
        Worst equation of each frequency: its residual relative to the sum of its terms' magnitudes, in which voltages
        and currents count with at least 1e-6 of the largest.
    kinks : tuple of str
        Diodes without current and voltage at the operating point: the result is that of one of their two states.
    """

    circuit: Circuit
    frequencies: np.ndarray
    voltages: np.ndarray
    currents: np.ndarray
    residuals: np.ndarray
    kinks: tuple[str, ...]

    def __getitem__(self, node: str) -> np.ndarray:
        """Potentials of a node (f,), V."""
        return self.voltages[:, self.circuit.node_index(node)]

    def current(self, name: str) -> np.ndarray:
        """Currents of an element (f,), A."""
        return self.currents[:, self.circuit.element_index(name)]

    def __len__(self) -> int:
        return self.frequencies.size

    def __repr__(self) -> str:
        return (
            f"AcResult of {self.circuit.title!r}: {len(self)} frequencies, {self.frequencies[0]:g} to "
            f"{self.frequencies[-1]:g} Hz, worst residual {self.residuals.max():.1e}"
        )


def ac(
    circuit: Circuit,
    frequencies: Sequence[float] | np.ndarray,
    sources: Mapping[str, complex],
    tolerance: float = TOLERANCE,
    progress: Callable[[int, int], None] | None = None,
    couplings: Mapping[tuple[str, str], float] = UNCOUPLED,
) -> AcResult:
    """Small-signal responses about the operating point.

    Parameters
    ----------
    circuit : Circuit
        Ideal diodes stay as they conduct at the operating point; smooth devices are their tangents.
    frequencies : sequence of float
        Hz, not negative.
    sources : mapping of str to complex
        Amplitudes by source, V or A; all others are zero.
    tolerance : float
        What the residual of each equation is held to, relative to the sum of its terms' magnitudes.
    progress : callable, optional
        Called with the frequencies that are done, and their number.
    couplings : mapping of (str, str) to float, optional
        Coupling factors of pairs of inductors, -1 to 1; ±1 is ideal.

    Raises
    ------
    UsageError
        Amplitudes for what is no source; frequencies that are negative or not finite; couplings that no inductors
        have; a circuit with amplifiers.
    InfeasibleError, UnboundedError
        No operating point; a net current into a part without a path to ground.
    ConvergenceError
        A frequency at which the equations have no solution (a resonance without resistance, a part that nothing ties to
        the rest), or none within the tolerance.
    """
    hertz = np.atleast_1d(np.asarray(frequencies, dtype=float))
    if hertz.ndim != 1 or not hertz.size or not (np.isfinite(hertz) & (hertz >= 0.0)).all():
        raise UsageError("frequencies must be a row of numbers that are finite and not negative, in Hz")
    if hertz.size * (len(circuit) + len(circuit.node_names)) > LARGEST:
        raise UsageError(f"{hertz.size:,} frequencies of {len(circuit):,} elements exceed the memory limit: take fewer")
    system = small_signal_equations(linearized(circuit), couplings)
    amplitudes = _amplitudes(circuit, system, sources)
    right = system.right_side(amplitudes)
    voltages = np.zeros((hertz.size, len(circuit.node_names)), dtype=complex)
    currents = np.zeros((hertz.size, len(circuit)), dtype=complex)
    residuals = np.zeros(hertz.size)
    n_nodes = system.linear.arrays.n_nodes
    for k, f in enumerate(hertz.tolist()):
        s = 2j * np.pi * f
        x, residuals[k] = _solved(system.constant + s * system.storage, right, n_nodes, f, tolerance)
        inner = system.currents(x, s, amplitudes)
        _check_parts(system, inner, f, tolerance)
        voltages[k, 1:] = x[: voltages.shape[1] - 1]
        currents[k] = _outside(system, inner)
        if progress is not None:
            progress(k + 1, hertz.size)
    return AcResult(circuit, hertz, voltages, currents, residuals, system.linear.kinks)


def _amplitudes(circuit: Circuit, system: SmallSignalEquations, sources: Mapping[str, complex]) -> np.ndarray:
    """Amplitudes of all elementary elements (m,), V or A."""
    if not sources:
        raise UsageError("no source has an amplitude: name one, for instance {'V1': 1.0}")
    found = np.zeros(system.linear.arrays.kind.size, dtype=complex)
    kinds = circuit.arrays().kind
    for name, amplitude in sources.items():
        k = circuit.element_index(name)
        if kinds[k] not in (VOLTAGE, CURRENT):
            raise UsageError(f"{circuit.names[k]} is no independent source: amplitudes belong to V and I elements")
        if not np.isfinite(amplitude):
            raise UsageError(f"the amplitude of {circuit.names[k]} is not finite")
        found[k] = amplitude
    return found


def _solved(
    matrix: csc_matrix, right: np.ndarray, n_nodes: int, hertz: float, tolerance: float
) -> tuple[np.ndarray, float]:
    """The solution and its worst row-wise residual (the componentwise backward error of Oettli & Prager, 1964).

    Potentials and currents count with at least `SHARE` of the largest of their kind.
    """
    from scipy.sparse.linalg import MatrixRankWarning, splu

    size = abs(matrix).tocsr()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", MatrixRankWarning)
            factor = splu(matrix.tocsc())
    except (RuntimeError, MatrixRankWarning):
        raise ConvergenceError(_singular(hertz)) from None
    with np.errstate(all="ignore"):
        x, worst = factor.solve(right), np.inf
        for attempt in range(REFINEMENTS + 1):
            residual = right - matrix @ x
            scale = size @ _sizes(x, n_nodes) + np.abs(right)
            relative = np.divide(np.abs(residual), scale, out=np.zeros(scale.size), where=scale > 0.0)
            worst = float(relative.max(initial=0.0))
            if worst <= 1e-15 or attempt == REFINEMENTS:
                break
            x = x + factor.solve(residual)
        regular = determined(factor, size, x, n_nodes)
    if worst <= tolerance and not regular:
        raise ConvergenceError(_singular(hertz))
    if not worst <= tolerance:
        raise ConvergenceError(
            _singular(hertz)
            if not np.isfinite(worst)
            else (
                f"at {hertz:g} Hz an equation is off by {worst:.1e} of its terms, tolerance {tolerance:.0e}: "
                "the equations are singular but for rounding (ideally coupled windings in parallel, a resonance "
                "without resistance)"
            )
        )
    return x, worst


def determined(factor: SuperLU, sizes: csr_matrix, x: np.ndarray, n_nodes: int) -> bool:
    """Whether rounding of the terms of all equations leaves a solution as it is.

    Rounding of scattered signs and sizes (componentwise condition, Skeel, 1979) may change potentials and currents by
    `SHARE` of the largest of their kind, and by a rounding of what the terms of one equation give in one element alone:
    currents may all be zero.

    Parameters
    ----------
    factor : SuperLU
        Of the equations.
    sizes : csr_matrix (size, size)
        Magnitudes of their coefficients.
    x : (size,) array
        A solution.
    n_nodes : int
        Its first n_nodes - 1 entries are potentials.
    """
    terms = sizes @ np.abs(x)
    scattered = np.cos(2.0 * np.pi * GOLDEN * np.arange(x.size))
    change = np.abs(factor.solve((EPS * scattered * terms).astype(x.dtype)))
    of_nodes, others = slice(n_nodes - 1), slice(n_nodes - 1, None)
    for kind, rows in ((of_nodes, others), (others, of_nodes)):
        if not x[kind].size:
            continue
        most = max(np.abs(x[kind]).max(initial=0.0), terms[rows].max(initial=0.0))
        below = sizes[kind, kind].max(axis=1).toarray().ravel()
        alone = np.divide(terms[kind], below, out=np.zeros(below.size), where=below > 0.0)
        if not change[kind].max(initial=0.0) <= max(SHARE * most, ROUNDINGS * EPS * alone.max(initial=0.0)):
            return False
    return True


def _check_parts(system: SmallSignalEquations, inner: np.ndarray, hertz: float, tolerance: float) -> None:
    """Nothing may flow into a part that only current sources tie to ground: its reference node has no equation."""
    arrays = system.linear.arrays
    for node in system.unknowns.pinned.tolist():
        flow = np.concatenate([inner[arrays.first == node], -inner[arrays.second == node]])
        if abs(flow.sum()) > tolerance * np.abs(flow).sum():
            name = system.linear.expansion.circuit.node_names[node]
            raise UnboundedError(
                f"at {hertz:g} Hz current sources drive a net current into the part of node {name}, which no element "
                "ties to ground (blocking diodes are open): add a resistance",
                [],
                [name],
            )


def _sizes(x: np.ndarray, n_nodes: int) -> np.ndarray:
    """Magnitudes of the unknowns, at least a share of the largest of their kind."""
    found = np.abs(x)
    for part in (found[: n_nodes - 1], found[n_nodes - 1 :]):
        np.maximum(part, SHARE * part.max(initial=0.0), out=part)
    return np.asarray(found)


def _singular(hertz: float) -> str:
    return (
        f"at {hertz:g} Hz the small-signal equations have no single solution: a resonance without resistance, or a "
        "part that no element ties to the rest (blocking diodes are open), or ideally coupled windings in parallel; "
        "add a resistance"
    )


def _outside(system: SmallSignalEquations, inner: np.ndarray) -> np.ndarray:
    """Currents of the circuit's own elements: of a device those that enter at its first terminal."""
    linear, circuit = system.linear, system.linear.circuit
    found: Any = inner[: len(circuit)].copy()
    for k, parts in linear.expansion.parts.items():
        device = circuit.devices[k]
        found[k] = sum(sign * inner[parts[p]] for p, sign in device.entering(device.expand()))
    return np.asarray(found)
