"""Kernels: Newton's method for one stage with controlled sources, with ideal diodes in given states, with the steps of
`circuitsim.analysis.smooth_controlled`. Linearised circuits as their arguments: indices, and matrices rebuilt for each
step length; right-hand sides and certificates of stages.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from circuitsim._graphs import unite
from circuitsim.analysis.controlled import ControlledSystem, Roles
from circuitsim.analysis.newton import CLOSE, PATIENT, Smooth
from circuitsim.certificate import resolved_violations
from circuitsim.circuit import Circuit, CircuitArrays
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR, VOLTAGE
from circuitsim.controlled.certificate import LawArrays, laws_held
from circuitsim.controlled.equations import Equations, RightSide, term_values
from circuitsim.controlled.linear import CORRECTIONS, FINE, POOR, Terms, corrected, refined, scaled
from circuitsim.engine.small.pointers import Pinned
from circuitsim.newton.steps import (
    CONDUCTANCE,
    DISTANCE,
    FAR,
    FIXED,
    NEAR,
    NO_DEVICE,
    OPEN,
    RESISTANCE,
    begin_at,
    distances,
    move,
    put_across,
    put_tangents,
)
from circuitsim.newton.steps import CURRENT as AMPERES
from circuitsim.newton.steps import VOLTAGE as VOLTS
from circuitsim.program.precise import two_sum

KEPT = 64
"""Maximum number of matrices kept, one for each set of conducting diodes and of fixed values."""
RESCALED = 4
"""Step lengths of as many binary orders of magnitude have the same scales, which leave no largest entry far from 1."""
ROUGH = 1e-8
"""Correction, relative to each unknown, that ends the refinement while devices are farther than `FAR` from their
curves."""


class StageMatrix(NamedTuple):
    """The circuit of a stage for `circuitsim.analysis.tangent_newton`.

    Attributes
    ----------
    arrays : CircuitArrays
    places, role, rows
        Of the smooth devices: see `circuitsim.newton.steps`.
    eq : Equations
    roles : Roles
    sources : RightSide
        Without the companion models.
    conducting : (d,) bool array
        Ideal diodes.
    place : (s,) int array
        The term of each tangent's resistance.
    terms : Terms
        Their values are filled in for those of a stage (`put_matrix`), as is the matrix.
    order, spot : (size,) int arrays
        Equations and unknowns in an order with a small bandwidth (Cuthill & McKee 1969), and the position of each.
    band : int
        That bandwidth.
    matrix : (size, size) float array
        Scaled, for tangents of 1 Ω; transposed, in that order.
    left, right : (size,) float arrays
        The scales (`Made.scale`).
    """

    arrays: CircuitArrays
    places: np.ndarray
    role: np.ndarray
    rows: np.ndarray
    eq: Equations
    roles: Roles
    sources: RightSide
    conducting: np.ndarray
    place: np.ndarray
    terms: Terms
    order: np.ndarray
    spot: np.ndarray
    band: int
    matrix: np.ndarray
    left: np.ndarray
    right: np.ndarray


class Made:
    """A matrix with the data it was made for.

    Attributes
    ----------
    system : ControlledSystem
    pinned : Pinned
        `StageMatrix`.
    conducting : (d,) bool array
        Ideal diodes.
    length : float
        Length of its step, s.
    products : int
        Number of products in a factorisation, roughly.
    """

    def __init__(self, system: ControlledSystem, matrix: StageMatrix) -> None:
        self.system, self.pinned, self._matrix = system, Pinned(matrix), matrix
        self.length, self._scales = 0.0, dict[int, tuple[np.ndarray, np.ndarray]]()
        self.conducting, self.products = matrix.conducting, matrix.eq.size * matrix.band**2

    def scale(self, column: np.ndarray, length: float) -> bool:
        """Choose the scales for the values (m,) of a stage, in a step of this length; returns whether the matrix is to
        be filled in again."""
        if length == self.length:
            return False
        made, self.length, magnitude = self._matrix, length, math.frexp(length)[1] // RESCALED
        if magnitude not in self._scales:
            value = column.copy()
            value[made.places[0]] = 1.0
            self._scales[magnitude] = scaled(made.terms._replace(value=term_values(value, *made.terms[4:])).dense())[1:]
        made.left[:], made.right[:] = self._scales[magnitude]
        return True


class StageMatrices:
    """The matrices of a circuit of elementary elements.

    Parameters
    ----------
    circuit : Circuit
    laws : LawArrays
        Of its controlled elements.
    smooth : Smooth
        The positions of the companion models.
    varying : (k,) int array
        Resistors, except those of tangents, whose values vary from step to step.
    gains : (l,) int array
        Controlled elements that do.
    """

    def __init__(
        self, circuit: Circuit, laws: LawArrays, smooth: Smooth, varying: np.ndarray, gains: np.ndarray
    ) -> None:
        self.circuit, self.laws, self.smooth = circuit, laws, smooth
        kind = circuit.arrays().kind
        self.diode = np.flatnonzero(kind == DIODE)
        self._varying = np.concatenate([smooth.slope, varying])
        free = (kind == VOLTAGE) | (kind == CURRENT)
        free[self._varying] = free[gains] = True
        self._fixed = np.flatnonzero(~free)
        self._known: dict[tuple[bytes, bytes], Made] = {}

    def products(self, column: np.ndarray, conducting: np.ndarray) -> int:
        """The number of products in a factorisation of this matrix, roughly."""
        return self.of(column, conducting).products

    def of(self, column: np.ndarray, conducting: np.ndarray) -> Made:
        """The matrix for the values (m,) of a stage and conducting diodes (d,)."""
        key = column[self._fixed].tobytes(), conducting.tobytes()
        if key not in self._known:
            if len(self._known) >= KEPT:
                self._known.pop(next(iter(self._known)))
            self._known[key] = self._made(column, conducting)
        return self._known[key]

    def _made(self, column: np.ndarray, conducting: np.ndarray) -> Made:
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import reverse_cuthill_mckee

        smooth, value = self.smooth, column.copy()
        value[smooth.touch], value[smooth.rest], value[smooth.slope] = 0.0, 0.0, 1.0
        arrays = self.circuit.arrays()._replace(value=value)
        system = ControlledSystem(self.circuit, arrays, self.laws, self._varying)
        terms, own, sources = system.tied_terms(conducting), system.eq.own[smooth.slope], system.sources
        place = [np.flatnonzero((terms.row == k) & (terms.column == k))[0] for k in own.tolist()]
        others = ~np.isin(sources.source, [*smooth.touch, *smooth.rest])
        size = system.eq.size
        pattern = csr_array((np.ones(terms.row.size), (terms.row, terms.column)), shape=(size, size))
        order = reverse_cuthill_mckee(pattern).astype(np.int64)
        spot = np.argsort(order)
        matrix = StageMatrix(
            arrays,
            *smooth.places(value.size),
            smooth.rows,
            system.eq,
            system.roles,
            RightSide(sources.constant, *(part[others] for part in sources[1:])),
            conducting,
            np.array(place, dtype=np.int64),
            terms,
            order,
            spot,
            int(np.abs(spot[terms.row] - spot[terms.column]).max()),
            np.zeros((size, size)),
            *np.ones((2, size)),
        )
        return Made(system, matrix)


def put_matrix(made, column):
    """Fill in the terms, and the scaled matrix with tangents of 1 Ω, for the values (m,) of a stage."""
    terms = made.terms
    for slope in made.places[0]:
        column[slope] = 1.0
    for row in made.matrix:
        row[:] = 0.0
    for t in range(terms.value.size):
        row, unknown, gain, value = terms.row[t], terms.column[t], terms.gain[t], terms.share[t]
        if gain >= 0 and column[gain] == column[gain]:
            value *= column[gain]
        if terms.under[t] >= 0:
            value /= column[terms.under[t]]
        terms.value[t] = value
        made.matrix[made.spot[unknown], made.spot[row]] += value * made.left[row] * made.right[unknown]


def tangent_newton(made, laws, column, right, same, start, tolerance, own, branch, node):
    """Iterate from an initial guess until all devices are on their curves.

    Parameters
    ----------
    made : StageMatrix
    laws : LawArrays
    column : (m,) float array
        Values of the elements; those of the companion models are overwritten.
    right : (2, size) float array
        Right-hand side without the companion models, and its rounding errors.
    same : (n_nodes,) int array
        For each node the lowest node of equal potential.
    start : (KEPT, s) float array
        Voltages, V, and currents, A, of the devices in rows ``VOLTAGE`` and ``CURRENT``; resistances of the first load
        lines, Ω, in row ``RESISTANCE``, 0 if they are not known.
    tolerance : float
    own : (KEPT, s) float array
        Overwritten: see `circuitsim.newton.steps`.
    branch : (2, m) float array
        Overwritten: currents, A, and drops, V.
    node : (2, n_nodes) float array
        Overwritten: potentials, and their low-order parts, V.

    Returns
    -------
    int
        The number of steps; 0 without convergence.
    """
    size, rows = made.left.size, made.rows
    at_node = np.empty((2, same.size))
    value, lu, scale = made.terms.value.copy(), np.empty((size, size)), np.empty(size)
    pivot, high, low, change = np.empty(size, np.int64), np.empty(size), np.empty(size), np.empty(size)
    side, residual = np.empty((2, size)), np.empty(size)
    own[VOLTS], own[AMPERES] = start[VOLTS], start[AMPERES]
    if not begin_at(rows, own):
        return 0
    best = np.inf if rows.shape[0] > 0 else 0.0
    for step in range(1, PATIENT + 1):
        put_tangents(made.places, own, column, OPEN)
        put_models(made, column, right, side)
        if not put_factor(made, column, value, lu, scale, pivot):
            return 0
        fine = FINE if best <= FAR else ROUGH
        if not put_solution(made, value, lu, scale, pivot, side, high, low, change, residual, fine):
            return 0
        put_branches(made, laws, column, same, high, low, branch, node)
        put_across(made.arrays.first, made.arrays.second, made.places, own, node[0], node[1])
        worst = distances(
            made.arrays.first,
            made.arrays.second,
            column,
            made.places,
            made.role,
            rows,
            own,
            node[0],
            1.0,
            branch[0],
            at_node,
        )
        if not worst < np.inf:
            return 0
        if best <= FAR and (worst <= CLOSE or (worst <= 0.5 * tolerance and worst > 0.25 * best)):
            return step
        best = min(best, worst)
        if step == 1 and rows.shape[0] > 0 and start[RESISTANCE, 0] > 0.0:
            own[RESISTANCE] = start[RESISTANCE]
        else:
            put_port_resistances(made, lu, scale, pivot, change, own[CONDUCTANCE], own[RESISTANCE])
        if not move(rows, own):
            return 0
    return 0


def put_models(made, column, right, side):
    """The right-hand side with the companion models' sources, and its rounding errors (2, size)."""
    side[:] = right
    for touch in made.places[1]:
        side[0, made.eq.own[touch]] = column[touch]
    for rest in made.places[2]:
        for node, amperes in ((made.arrays.first[rest], -column[rest]), (made.arrays.second[rest], column[rest])):
            if node > 0:
                side[0, node - 1], error = two_sum(side[0, node - 1], amperes)
                side[1, node - 1] += error
    for node in made.eq.pinned:
        side[:, node - 1] = 0.0


def put_factor(made, column, value, lu, scale, pivot):
    """Band factors of the scaled matrix with the tangents' resistances (Golub & Van Loan 2013, algorithm 4.3.2),
    transposed so that its columns are contiguous; returns False if it is singular."""
    size, band = scale.size, made.band
    scale[:] = made.right
    for b in range(size):
        lu[b, max(b - 2 * band, 0) : b + band + 1] = made.matrix[b, max(b - 2 * band, 0) : b + band + 1]
    for d in range(made.places.shape[1]):
        own, ohms = made.eq.own[made.places[0, d]], column[made.places[0, d]]
        at, value[made.place[d]] = made.spot[own], -ohms
        # A larger resistance has a smaller current.
        less = math.ldexp(1.0, -(math.frexp(max(ohms, 1.0))[1] - 1))
        for a in range(max(at - band, 0), min(at + band + 1, size)):
            lu[at, a] *= less
        scale[own] *= less
        lu[at, at] = -ohms * made.left[own] * scale[own]
    for k in range(size):
        best, row, end, wide = 0.0, -1, min(k + band + 1, size), min(k + 2 * band + 1, size)
        for a in range(k, end):
            if abs(lu[k, a]) > best:
                best, row = abs(lu[k, a]), a
        if row < 0 or not best < np.inf:
            return False
        pivot[k] = row
        if row != k:
            for b in range(k, wide):
                lu[b, k], lu[b, row] = lu[b, row], lu[b, k]
        for a in range(k + 1, end):
            lu[k, a] /= lu[k, k]
        for b in range(k + 1, wide):
            if lu[b, k] != 0.0:
                subtract(lu[b], lu[b, k], lu[k], k + 1, end)
    return True


def subtract(x, share, other, begin, end):
    """Subtract a multiple of another row from a row, from ``begin`` to ``end``."""
    for a in range(begin, end):
        x[a] -= share * other[a]


def put_rough(made, lu, scale, pivot, x):
    """Replace a right-hand side by the solution in double precision."""
    size, y = x.size, np.empty(x.size)
    for k in range(size):
        y[k] = x[made.order[k]] * made.left[made.order[k]]
    for k in range(size):
        row = pivot[k]
        y[k], y[row] = y[row], y[k]
        if y[k] != 0.0:
            subtract(y, y[k], lu[k], k + 1, min(k + made.band + 1, size))
    for j in range(size):
        k = size - 1 - j
        if y[k] != 0.0:
            y[k] /= lu[k, k]
            subtract(y, y[k], lu[k], max(k - 2 * made.band, 0), k)
    for k in range(size):
        x[made.order[k]] = y[k] * scale[made.order[k]]


def put_solution(made, value, lu, scale, pivot, side, high, low, change, residual, fine):
    """The solution, refined to corrections of the fraction ``fine`` of every unknown; returns False if the matrix is
    singular to working precision. See `Factor.solve`."""
    terms, high[:], low[:], change[:] = made.terms, 0.0, 0.0, side[0]
    put_rough(made, lu, scale, pivot, change)
    first = before = np.inf
    for corrections in range(CORRECTIONS + 1):
        for x in change:
            if not abs(x) < np.inf:
                return False
        share, largest, most = corrected(value, terms.column, terms.ends, side[0], change, high, low, residual)
        if corrections == 1:
            first = share
            if largest > POOR * most:
                return False
        if refined(corrections, share, first, before, fine):
            return True
        before = share if corrections > 0 else np.inf
        change[:] = residual + side[1]
        put_rough(made, lu, scale, pivot, change)
    return True


def put_branches(made, laws, column, same, high, low, branch, node):
    """See `circuitsim.analysis.controlled.branches`."""
    roles, current, drop = made.roles, branch[0], branch[1]
    for k in range(same.size):
        lowest = same[k]
        node[0, k] = high[lowest - 1] if lowest > 0 else 0.0
        node[1, k] = low[lowest - 1] if lowest > 0 else 0.0
    for e in range(column.size):
        a, b = made.arrays.first[e], made.arrays.second[e]
        drop[e] = (node[0, a] - node[0, b]) + (node[1, a] - node[1, b])
        unknown = made.eq.own[e]
        current[e] = high[unknown] if unknown >= 0 else 0.0
    for e in roles.nodal:
        current[e] = drop[e] / column[e]
    for e in roles.given:
        current[e] = column[e]
    for e in roles.held:
        drop[e] = column[e]
    for d in range(made.eq.diode.size):
        branch[1 if made.conducting[d] else 0, made.eq.diode[d]] = 0.0
    for e in roles.ohmic:
        drop[e] = column[e] * current[e]
    for law in roles.transfer:
        at, demanded = laws.element[law], 0.0
        gain = column[at] if column[at] == column[at] else 1.0
        for c in range(laws.current_ends[law], laws.current_ends[law + 1]):
            demanded += gain * laws.current_share[c] * current[laws.control[c]]
        drop[at] = laws.constant[law] + demanded


def put_port_resistances(made, lu, scale, pivot, x, conductance, resistance):
    """Driving-point resistances of the rest of the circuit at the devices."""
    for d in range(made.places.shape[1]):
        x[:] = 0.0
        plus, minus = made.arrays.first[made.places[2, d]] - 1, made.arrays.second[made.places[2, d]] - 1
        if plus >= 0:
            x[plus] += 1.0
        if minus >= 0:
            x[minus] -= 1.0
        for node in made.eq.pinned:
            x[node - 1] = 0.0
        put_rough(made, lu, scale, pivot, x)
        total = (x[plus] if plus >= 0 else 0.0) - (x[minus] if minus >= 0 else 0.0)
        own = conductance[d]
        rest = 1.0 / total - own if total != 0.0 else np.inf
        resistance[d] = 1.0 / own
        if rest > -FIXED * own:
            ohms = 1.0 / max(rest, FIXED * own)
            if ohms < np.inf:
                resistance[d] = ohms


RESOLUTION = 1e-3
"""Fraction of the tolerance to which potentials must resolve every drop."""
MEASURED = 16
"""Entries of a certificate: residuals, absolute and relative (`circuitsim.certificate.EQUATIONS`), the largest distance
of a device from its curve, and the sum of products of these distances, W."""


def put_lowest(made, column, same):
    """Fill in for each node the lowest node of equal potential; see `circuitsim.controlled.equations.lowest_nodes`."""
    (kind, first, second, _, _), diode = made.arrays, made.eq.diode
    for k in range(same.size):
        same[k] = k
    for e in range(column.size):
        source = kind[e] == VOLTAGE or kind[e] == RESISTOR
        if source and column[e] == 0.0 and made.role[e] == NO_DEVICE:
            unite(same, first[e], second[e])
    for d in range(diode.size):
        if made.conducting[d]:
            unite(same, first[diode[d]], second[diode[d]])
    for k in range(same.size):
        same[k] = same[same[k]]


def put_certificate(made, laws, column, branch, node, device, tolerance, found):
    """Check the equations with the devices as sources of their own currents; returns whether all are within tolerance.

    Parameters
    ----------
    made : StageMatrix
    laws : LawArrays
    column : (m,) float array
        Values of the elements in the last step of Newton's method.
    branch, node, device : float arrays
        The results of `circuitsim.analysis.tangent_newton.tangent_newton`.
    tolerance : float
    found : (MEASURED,) float array
        Filled in if potentials resolve every drop, with residuals in the order of
        `circuitsim.certificate.EQUATIONS`.
    """
    kind, value, i, drop = made.arrays.kind.copy(), column.copy(), branch[0].copy(), branch[1].copy()
    v, low = node[0].copy(), node[1].copy()
    farthest, gap = 0.0, 0.0
    for d in range(made.places.shape[1]):
        slope, touch, rest = made.places[0, d], made.places[1, d], made.places[2, d]
        inside, outside = made.arrays.second[slope], made.arrays.first[slope]
        volts, amperes = device[VOLTS, d], device[AMPERES, d]
        v[inside], low[inside] = v[outside], low[outside]
        drop[slope], i[slope] = 0.0, 0.0
        drop[touch], i[touch], value[touch] = volts, 0.0, volts
        drop[rest], i[rest], value[rest] = volts, amperes, amperes
        farthest = max(farthest, device[DISTANCE, d])
        gap += abs((volts - device[NEAR + 1, d]) * (amperes - device[NEAR + 2, d]))
    held, at_node, worst, relative = np.zeros((2, 2)), np.zeros((2, v.size)), np.zeros(7), np.zeros(7)
    laws_held(laws, value, v, low, i, drop, held)
    for k in range(laws.element.size):
        at = laws.element[k]
        kind[at] = CURRENT if laws.current[k] else VOLTAGE
        value[at] = i[at] if laws.current[k] else drop[at]
    if not resolved_violations(
        kind,
        made.arrays.first,
        made.arrays.second,
        value,
        value,
        v,
        low,
        i,
        drop,
        RESOLUTION * tolerance,
        at_node,
        worst,
        relative,
    ):
        return False
    good = farthest <= tolerance
    for off in relative:
        good = good and off <= tolerance
    worst[0], relative[0] = max(worst[0], held[1, 0]), max(relative[0], held[1, 1])
    worst[2], relative[2] = max(worst[2], held[0, 0]), max(relative[2], held[0, 1])
    found[:7], found[7:14], found[14], found[15] = worst, relative, farthest, gap
    return good and relative[0] <= tolerance and relative[2] <= tolerance
