"""Kernel: the right-hand side of a stage with controlled sources, and its certificate."""

from __future__ import annotations

import numpy as np

from circuitsim._graphs import unite
from circuitsim.certificate import resolved_violations
from circuitsim.circuit.elements import CURRENT, RESISTOR, VOLTAGE
from circuitsim.controlled.certificate import laws_held
from circuitsim.newton.steps import CURRENT as AMPERES
from circuitsim.newton.steps import DISTANCE, NEAR, NO_DEVICE
from circuitsim.newton.steps import VOLTAGE as VOLTS

RESOLUTION = 1e-3
"""Fraction of the tolerance to which potentials must resolve every drop."""
MEASURED = 16
"""Entries of a certificate: residuals, absolute and relative (`circuitsim.certificate.EQUATIONS`), the largest distance
of a device from its curve, and the sum of products of these distances, W."""


def put_sources(made, column, right):
    """Fill in the right-hand side without the companion models (size,); see `circuitsim.controlled.equations`."""
    for k in range(right.size):
        right[k] = made.sources.constant[k]
    for t in range(made.sources.row.size):
        term = made.sources.share[t] * column[made.sources.source[t]]
        if made.sources.gain[t] >= 0:
            term *= column[made.sources.gain[t]]
        right[made.sources.row[t]] += term


def put_lowest(made, column, same):
    """Fill in for each node the lowest node of equal potential; see `circuitsim.controlled.ties.lowest_nodes`."""
    for k in range(same.size):
        same[k] = k
    for e in range(column.size):
        source = made.arrays.kind[e] == VOLTAGE or made.arrays.kind[e] == RESISTOR
        if source and column[e] == 0.0 and made.role[e] == NO_DEVICE:
            unite(same, made.arrays.first[e], made.arrays.second[e])
    for d in range(made.eq.diode.size):
        if made.conducting[d]:
            unite(same, made.arrays.first[made.eq.diode[d]], made.arrays.second[made.eq.diode[d]])
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
    for k in range(7):
        good = good and relative[k] <= tolerance
    worst[0], relative[0] = max(worst[0], held[1, 0]), max(relative[0], held[1, 1])
    worst[2], relative[2] = max(worst[2], held[0, 0]), max(relative[2], held[0, 1])
    for k in range(7):
        found[k], found[7 + k] = worst[k], relative[k]
    found[14], found[15] = farthest, gap
    return good and relative[0] <= tolerance and relative[2] <= tolerance
