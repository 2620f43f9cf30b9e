"""A circuit of resistors, sources and ideal diodes seen from its toleranced resistors and its diodes.

Every diode stands in the reference circuit as a resistor. Seen from the ports (toleranced resistors, diodes) and for
quantities f that are read, the reference circuit is

    y = y0 + S s − Z u,        f = f0 + T s − H u,

with drops y of the ports, changes s of toleranced sources, and currents u that the elements at the ports carry beyond
the reference: u = δg y of a resistor, u = −g y of a blocking diode; a conducting diode has y = 0. Z, H, S, T come from
one certified operating point a port and a source. For one state of the diodes and a box of values everything is linear
in u, so centre and enclosure of a box are small dense systems.

Controlled sources of a circuit without diodes are part of the reference circuit; Z then is not symmetric, and a system
may be singular inside a box, which an enclosure excludes.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.probes import Probe, Reader
from circuitsim.analysis.solve import prepared
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR, VOLTAGE

SINGULAR = 1e-13
"""Inverse condition below which a small system counts as singular."""
UNBOUNDED = 1e150
"""Stands for no enclosure."""
CONSISTENT = 1e-9
"""Residual of a singular system, relative to its terms, up to which it has solutions."""


class PortModel(NamedTuple):
    """The reference circuit from its ports.

    Attributes
    ----------
    g : (r,) float array
        Conductances of the toleranced resistors in the reference circuit, S.
    g_diode : float
        Of every diode, S.
    z : (r + d, r + d) float array
        Ω; toleranced resistors first.
    y : (r + d,) float array
        Drops with sources as they are, V.
    s : (r + d, k) float array
        Change of the drops for changes of toleranced sources.
    f : (q,) float array
        Quantities with sources as they are.
    t : (q, k) float array
    h : (q, r + d) float array
    passive : bool
        Whether there is no controlled source: no values make the circuit singular.
    """

    g: np.ndarray
    g_diode: float
    z: np.ndarray
    y: np.ndarray
    s: np.ndarray
    f: np.ndarray
    t: np.ndarray
    h: np.ndarray
    passive: bool


class State(NamedTuple):
    """The circuit for one set of conducting diodes: its ports are the toleranced resistors, its quantities the read
    ones, then the voltages of blocking diodes and minus the currents of conducting ones (all ≤ 0 where the state is the
    right one).

    Attributes
    ----------
    z, y, s, f, t, h : arrays
        As in `PortModel`, of the toleranced resistors alone.
    diode : (d,) int array
        The diode of each quantity behind the read ones.
    """

    z: np.ndarray
    y: np.ndarray
    s: np.ndarray
    f: np.ndarray
    t: np.ndarray
    h: np.ndarray
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
    kind, first, second, value, _ = circuit.arrays()
    diodes = np.flatnonzero(kind == DIODE)
    ports = np.array([*resistors, *diodes.tolist()], dtype=np.int64)
    ohms = value[(kind == RESISTOR) & (value > 0.0)]
    typical = float(np.exp(np.log(ohms).mean())) if ohms.size else 1.0
    columns = (
        np.concatenate([np.where(kind == DIODE, RESISTOR, kind), np.full(ports.size, CURRENT)]).astype(np.int8),
        np.concatenate([first, first[ports]]),
        np.concatenate([second, second[ports]]),
        np.concatenate([np.where(kind == DIODE, typical, value), np.zeros(ports.size)]),
    )
    names = [f"e{k}" for k in range(columns[0].size)]
    kinds, one, other, values = columns
    taken = (
        array("b", kinds.tobytes()),
        array("q", one.tobytes()),
        array("q", other.tobytes()),
        array("d", values.tobytes()),
    )
    reference = Circuit.from_columns("", taken, names, list(circuit.node_names), laws=circuit.laws)
    ready = prepared(reference)
    renamed = [_renamed(probe, circuit) for probe in probes]
    reader = Reader(renamed, reference)
    own = reference.arrays().value
    nominal = ready.solve()
    y, f = nominal.drops[ports], reader.read(nominal)
    still = np.where((kind == VOLTAGE) | (kind == CURRENT), 0.0, own[: kind.size])
    still = np.concatenate([still, np.zeros(ports.size)])

    rest = ready.solve(still)  # nothing but the constants of controlled sources

    def response(k: int) -> tuple[np.ndarray, np.ndarray]:
        unit = still.copy()
        unit[k] = 1.0
        found = ready.solve(unit)
        return found.drops[ports] - rest.drops[ports], reader.read(found) - reader.read(rest)

    z, h = np.zeros((ports.size, ports.size)), np.zeros((len(probes), ports.size))
    for j in range(ports.size):
        drops, read = response(kind.size + j)
        z[:, j], h[:, j] = -drops, -read
    for q, probe in enumerate(probes):
        if probe.kind == "i":
            # A port's element carries u beside what its resistor in the reference circuit does.
            h[q, ports == circuit.element_index(probe.first)] -= 1.0
    s, t = np.zeros((ports.size, len(sources))), np.zeros((len(probes), len(sources)))
    for j, k in enumerate(sources):
        s[:, j], t[:, j] = response(k)
    passive = not circuit.laws
    z = 0.5 * (z + z.T) if passive else z
    return PortModel(1.0 / value[list(resistors)], 1.0 / typical, z, y, s, f, t, h, passive)


def _renamed(probe: Probe, circuit: Circuit) -> Probe:
    return probe if probe.kind == "v" else Probe(probe.kind, f"e{circuit.element_index(probe.first)}")


def state_of(model: PortModel, conducting: np.ndarray) -> State | None:
    """The circuit for the conducting diodes (d,); None where its equations are singular."""
    r = model.g.size
    d = conducting.size
    on, off = r + np.flatnonzero(conducting), r + np.flatnonzero(~conducting)
    # A diode's drop is a quantity of −u: of a blocking one its drop, of a conducting one minus its current.
    diode = np.concatenate([np.flatnonzero(~conducting), np.flatnonzero(conducting)])
    f = np.concatenate([model.f, model.y[off], np.zeros(on.size)])
    t = np.concatenate([model.t, model.s[off], np.zeros((on.size, model.s.shape[1]))])
    h = np.concatenate([model.h, model.z[off], np.zeros((on.size, r + d))])
    for k, e in enumerate(on.tolist()):
        h[model.f.size + off.size + k, e] = 1.0  # −i = −u, since its drop is zero
    # Blocking: u = −g y. Conducting: y = 0. Both are linear equations in the diodes' u.
    both = np.arange(r, r + d)
    left = model.z[np.ix_(both, both)].copy()
    for e in (off - r).tolist():
        left[e, e] -= 1.0 / model.g_diode
    right = np.concatenate([model.y[both, None], model.s[both], model.z[both, :r]], axis=1)
    gain = _solution(left, right)
    if gain is None:
        return None
    k = model.s.shape[1]
    y0, s0, z0 = gain[:, 0], gain[:, 1 : 1 + k], gain[:, 1 + k :]
    mixed, hd = model.z[:r, r:], h[:, r:]
    return State(
        model.z[:r, :r] - mixed @ z0,
        model.y[:r] - mixed @ y0,
        model.s[:r] - mixed @ s0,
        f - hd @ y0,
        t - hd @ s0,
        h[:, :r] - hd @ z0,
        diode,
    )


def _solution(left: np.ndarray, right: np.ndarray) -> np.ndarray | None:
    """The solution; that of least norm where loops of conducting diodes, or diodes in series, leave several; None where
    there is none."""
    if not left.size or np.linalg.cond(left) < 1.0 / SINGULAR:
        return np.linalg.solve(left, right)
    found = np.linalg.lstsq(left, right, rcond=SINGULAR)[0]
    off = np.abs(left @ found - right)
    return found if (off <= CONSISTENT * (np.abs(left) @ np.abs(found) + np.abs(right))).all() else None


class Centre(NamedTuple):
    """A state at the centre of a box: drops, quantities, their adjoints λ and derivatives by sources; enclosures over
    the box: |y − drops| ≤ ``around``, |f − values| ≤ ``reach`` and so on, `UNBOUNDED` where none was found."""

    drops: np.ndarray
    values: np.ndarray
    adjoint: np.ndarray
    by_source: np.ndarray
    around: np.ndarray
    around_adjoint: np.ndarray
    around_source: np.ndarray
    reach: np.ndarray


def centre(
    model: PortModel, state: State, g: np.ndarray, half: np.ndarray, s: np.ndarray, s_half: np.ndarray
) -> Centre:
    """A state at conductances ``g`` (r,) and source changes ``s`` (k,), with enclosures over ± ``half``, ± ``s_half``.

    With the centre's Z and adjoints λ, y − y_c = −Z_c D y + S_c δs and f − f_c = −λ D y + T_c δs hold exactly for
    D = diag(δg), so that |y − y_c| is at most the solution of (I − |Z_c| r) a = |Z_c| r |y_c| + |S_c| r_s.
    """
    delta = g - model.g
    r = delta.size
    system = np.eye(r) + state.z * delta
    if not model.passive and r and np.linalg.cond(system) > 1.0 / SINGULAR:
        return _no_centre(state)
    inverse = np.linalg.inv(system)
    z, y, sources = inverse @ state.z, inverse @ (state.y + state.s @ s), inverse @ state.s
    adjoint = state.h - (state.h * delta) @ z
    values = state.f + state.t @ s - (state.h * delta) @ y
    by_source = state.t - (state.h * delta) @ sources
    contraction = np.abs(z) * half
    around, around_adjoint = np.full(r, UNBOUNDED), np.full_like(adjoint, UNBOUNDED)
    around_source = np.full_like(by_source, UNBOUNDED)
    right = np.concatenate(
        [(contraction @ np.abs(y) + np.abs(sources) @ s_half)[:, None], np.ones((r, 1)), contraction @ np.abs(sources)],
        axis=1,
    )
    if r:
        found = np.linalg.solve(np.eye(r) - contraction, right)
        # A positive solution for a positive right-hand side: the spectral radius of the contraction is below one.
        if (found[:, 1] > 0.0).all():
            turned = np.abs(z).T * half  # of the adjoints; the same where Z is symmetric
            around = found[:, 0]
            around_adjoint = np.linalg.solve(np.eye(r) - turned, turned @ np.abs(adjoint).T).T
            around_source = (np.abs(adjoint) * half) @ (np.abs(sources) + found[:, 2:])
    else:
        around_source = np.zeros_like(by_source)
    # f is affine in the sources; the conductances' part holds at all of them, since |y − y_c| does.
    reach = np.abs(by_source) @ s_half
    moved = half > 0.0
    reach = reach + (np.abs(adjoint[:, moved]) * half[moved]) @ (np.abs(y[moved]) + around[moved])
    return Centre(y, values, adjoint, by_source, around, around_adjoint, around_source, reach)


def _no_centre(state: State) -> Centre:
    """Where the circuit is singular at the centre: nothing is bounded."""
    r, (q, k) = state.y.size, state.t.shape
    far = (np.full(shape, UNBOUNDED) for shape in (r, (q, r), (q, k), q))
    return Centre(np.zeros(r), state.f, np.zeros((q, r)), np.zeros((q, k)), *far)
