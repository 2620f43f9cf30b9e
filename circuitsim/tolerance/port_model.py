"""Reduction of a circuit of resistors, sources and ideal diodes to the ports of its toleranced resistors and diodes.

Every diode is a resistor in the reference circuit. In terms of the ports (toleranced resistors, diodes) and the
observed quantities f the reference circuit is linear,

    (y, f) = M · (1, s, u)

with drops y of the ports, changes s of toleranced sources, and currents u of the elements at the ports in excess of the
reference: u = δg y for a resistor, u = −g y for a blocking diode; a conducting diode has y = 0. The columns of M are
certified operating points, one per port and source. For one diode state and a box of values everything is linear in u,
so centre and enclosure of a box are small dense systems.

In circuits without diodes, controlled sources are part of the reference circuit; M is then not symmetric, and a system
may be singular inside a box, which an enclosure excludes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.probes import Probe, Reader
from circuitsim.analysis.solve import prepared
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR, VOLTAGE

SINGULAR = 1e-13
"""Reciprocal condition number below which a small system counts as singular."""
UNBOUNDED = 1e150
"""Value that marks a missing enclosure."""
CONSISTENT = 1e-9
"""Relative residual of a singular system up to which it has solutions."""


class PortModel(NamedTuple):
    """A circuit reduced to its ports.

    Attributes
    ----------
    g : (r,) float array
        Conductances of the toleranced resistors in the reference circuit, S.
    g_diode : float
        Of every diode, S.
    form : (ports + q, 1 + k + ports) float array
        Drops of the ports, V, and quantities, from 1, source changes, and currents of the ports. Ports are the r
        toleranced resistors, then d diodes.
    sources : int
        Number k of toleranced sources.
    passive : bool
        Whether there is no controlled source: no values make the circuit singular.
    """

    g: np.ndarray
    g_diode: float
    form: np.ndarray
    sources: int
    passive: bool


class State(NamedTuple):
    """The circuit for one set of conducting diodes.

    Attributes
    ----------
    form : (r + q + d, 1 + k + r) float array
        As in `PortModel`, with the toleranced resistors as ports. After the observed quantities come the voltages of
        blocking diodes and minus the currents of conducting ones, all ≤ 0 iff the state is correct.
    diode : (d,) int array
        The diode of each of these.
    """

    form: np.ndarray
    diode: np.ndarray


def port_model(
    circuit: Circuit, resistors: Sequence[int], sources: Sequence[int], probes: Sequence[Probe]
) -> PortModel:
    """The model of a circuit of elementary elements without amplifiers, with diodes or controlled sources.

    Parameters
    ----------
    resistors, sources : sequence of int
        Toleranced elements.
    probes : sequence of Probe
        Voltages and currents to read.
    """
    kind, first, second, value, n_nodes = circuit.arrays()
    diode = kind == DIODE
    ports = np.array([*resistors, *np.flatnonzero(diode).tolist()], dtype=np.int64)
    typical = circuit.arrays().typical_resistance
    still = np.where((kind == VOLTAGE) | (kind == CURRENT), 0.0, np.where(diode, typical, value))
    at_rest = np.append(still, np.zeros(ports.size))
    # A current source parallel to each port carries its element's current in excess of the reference.
    ready = prepared(
        Circuit.from_arrays(
            np.append(np.where(diode, RESISTOR, kind), np.full(ports.size, CURRENT)),
            np.append(first, first[ports]),
            np.append(second, second[ports]),
            at_rest,
            n_nodes,
            names=[f"e{k}" for k in range(at_rest.size)],
            node_names=list(circuit.node_names),
            laws=circuit.laws,
        )
    )
    renamed = [p if p.kind == "v" else Probe(p.kind, f"e{circuit.element_index(p.first)}") for p in probes]
    reader = Reader(renamed, ready.circuit)

    def read(column: np.ndarray) -> np.ndarray:
        point = ready.solve(column)
        return np.append(point.drops[ports], reader.read(point))

    rest = read(at_rest)  # the effect of the constants of controlled sources
    driven = [*sources, *range(kind.size, at_rest.size)]
    units = [read(np.where(np.arange(at_rest.size) == k, 1.0, at_rest)) - rest for k in driven]
    alive = np.append(np.where(diode, typical, value), np.zeros(ports.size))
    form = np.stack([read(alive), *units], axis=1)
    inner = form[: ports.size, 1 + len(sources) :]
    for q, probe in enumerate(probes):
        if probe.kind == "i":
            # A port's element carries u in addition to the current of its reference resistor.
            form[ports.size + q, 1 + len(sources) :] += ports == circuit.element_index(probe.first)
    passive = not circuit.laws
    if passive:
        inner[:] = 0.5 * (inner + inner.T)
    return PortModel(1.0 / value[list(resistors)], 1.0 / typical, form, len(sources), passive)


def state_of(model: PortModel, conducting: np.ndarray) -> State | None:
    """The circuit for the conducting diodes (d,); None where its equations are singular."""
    r, d = model.g.size, conducting.size
    width = 1 + model.sources + r
    known, by_diode = model.form[:, :width], model.form[:, width:]
    # Blocking: u = −g y. Conducting: y = 0. Both are linear equations in the diodes' u.
    left = -by_diode[r : r + d].copy()
    left[np.diag_indices(d)] -= np.where(conducting, 0.0, 1.0 / model.g_diode)
    carried = _solution(left, known[r : r + d])
    if carried is None:
        return None
    form = known + by_diode @ carried
    on, off = np.flatnonzero(conducting), np.flatnonzero(~conducting)
    # The current of a conducting diode is its u, since its drop is zero.
    return State(np.concatenate([form[:r], form[r + d :], form[r + off], -carried[on]]), np.append(off, on))


def _solution(left: np.ndarray, right: np.ndarray) -> np.ndarray | None:
    """The solution; that of least norm where loops of conducting diodes, or diodes in series, make it nonunique; None
    if there is none."""
    if not left.size or np.linalg.cond(left) < 1.0 / SINGULAR:
        return np.linalg.solve(left, right)
    found = np.linalg.lstsq(left, right, rcond=SINGULAR)[0]
    off = np.abs(left @ found - right)
    return found if (off <= CONSISTENT * (np.abs(left) @ np.abs(found) + np.abs(right))).all() else None


class Centre(NamedTuple):
    """A state at the centre of a box, with enclosures over the box.

    Attributes
    ----------
    values, reach : (q,) float arrays
        Quantities at the centre, and bounds on their changes in the box.
    slope, change : (q, r + k) float arrays
        Derivatives by minus the toleranced conductances and by the sources, and bounds on their changes.
    bounded : bool
        Whether the drops have an enclosure: no values in the box make the circuit singular.
    """

    values: np.ndarray
    reach: np.ndarray
    slope: np.ndarray
    change: np.ndarray
    bounded: bool


def centre(
    model: PortModel, state: State, g: np.ndarray, half: np.ndarray, s: np.ndarray, s_half: np.ndarray
) -> Centre:
    """A state at conductances ``g`` (r,) and source changes ``s`` (k,), with enclosures over ± ``half``, ± ``s_half``.

    With Z = −∂y/∂u of the centre and adjoints λ = −∂f/∂u, y − y_c = −Z D y + S δs and f − f_c = −λ D y + T δs hold
    exactly for D = diag(δg), so that |y − y_c| is at most the solution of (I − |Z| r) a = |Z| r |y_c| + |S| r_s.
    """
    delta, k = g - model.g, model.sources
    r = delta.size
    ports, rest = state.form[:r], state.form[r:]
    system = np.eye(r) - ports[:, 1 + k :] * delta
    if not model.passive and r and np.linalg.cond(system) > 1.0 / SINGULAR:
        far = np.full((len(rest), r + k), UNBOUNDED)
        return Centre(rest[:, 0], np.full(len(rest), UNBOUNDED), np.zeros(far.shape), far, False)
    ports = np.linalg.solve(system, ports)
    rest = rest + (rest[:, 1 + k :] * delta) @ ports
    (y, sources, z), (values, by_source, adjoint) = (
        (form[:, 0] + form[:, 1 : 1 + k] @ s, form[:, 1 : 1 + k], -form[:, 1 + k :]) for form in (ports, rest)
    )
    contraction = np.abs(z) * half
    moved = contraction @ np.abs(sources)
    right = np.column_stack([contraction @ np.abs(y) + np.abs(sources) @ s_half, np.ones(r), moved])
    around, around_adjoint, around_source = (np.full(a.shape, UNBOUNDED) for a in (y, adjoint, by_source))
    found = np.linalg.solve(np.eye(r) - contraction, right)
    # A positive solution for a positive right-hand side: the spectral radius of the contraction is below one.
    bounded = bool((found[:, 1] > 0.0).all())
    if bounded:
        turned = np.abs(z).T * half  # for the adjoints; the same if Z is symmetric
        around = found[:, 0]
        around_adjoint = np.linalg.solve(np.eye(r) - turned, turned @ np.abs(adjoint).T).T
        around_source = (np.abs(adjoint) * half) @ (np.abs(sources) + found[:, 2:])
    # f is affine in the sources; the conductances' part holds at all of them, since |y − y_c| does.
    wide = half > 0.0
    reach = np.abs(by_source) @ s_half + (np.abs(adjoint[:, wide]) * half[wide]) @ (np.abs(y) + around)[wide]
    change = np.abs(adjoint) * around + around_adjoint * (np.abs(y) + around)
    slope = np.concatenate([adjoint * y, by_source], axis=1)
    return Centre(values, reach, slope, np.concatenate([change, around_source], axis=1), bounded)
