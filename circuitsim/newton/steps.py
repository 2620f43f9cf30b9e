"""Newton's method for one small circuit with smooth devices, from element values to the operating point.

The steps are those of `circuitsim.analysis.newton`, which also handles what this kernel leaves: non-unique currents in
loops of diodes, loss of digits, slow convergence.

Minty's parameter of a device takes the driving-point resistance of the rest of the circuit, first an estimate. The I–V
curves of all smooth device models are one function, so that one kernel serves any mix of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from circuitsim._graphs import find, unite
from circuitsim.certificate import ROUNDING as ROUNDED
from circuitsim.certificate import branch_violations, current_scale, net_currents
from circuitsim.circuit.elements import CURRENT as CURRENT_SOURCE
from circuitsim.engine.small.active_set import (
    MAX_ITERATIONS,
    Outcome,
    injections,
    refactor,
    solve_sample,
    take_conductances,
)
from circuitsim.engine.small.elimination import plan_in, substitute
from circuitsim.engine.small.pointers import kept, pointer
from circuitsim.engine.small.single import ACCURATE, branch_currents, correct, forget_currentless, take_values, views
from circuitsim.engine.steps import contract_diodes, copy, offsets, start
from circuitsim.engine.tree import RESOLUTION
from circuitsim.models import MODELS
from circuitsim.models.curve import Junction, point
from circuitsim.models.junction_diode import BASE, RATE
from circuitsim.models.smooth import SmoothDevice

USUAL = "junction diode"
"""Name of the model that is tested for first."""


def _laws() -> dict[Junction, Callable[[Any, Any, Any], None]]:
    """The distinct junction characteristics of all models and their derivatives by parameters; `USUAL` first."""
    devices = [model.device for model in sorted(MODELS, key=lambda model: model.name != USUAL)]
    smooth = (device for device in devices if device is not None and issubclass(device, SmoothDevice))
    return {device.junction: device.by_parameters for device in smooth}


JUNCTIONS, DERIVATIVES = tuple(_laws()), tuple(_laws().values())
"""Characteristics, in the order of their numbers, and their derivatives by parameters."""


def _either(number: int, junction: Junction, rest: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Dispatch to one characteristic where a row ends with its number, otherwise to ``rest``."""

    def law(p, u):
        if p[p.size - 1] == number:
            return junction(p, u)
        return rest(p, u)

    return law


def _either_filled(number: int, derivatives: Callable[..., None], rest: Callable[..., None]) -> Callable[..., None]:
    """As `_either`, for functions that fill in an array."""

    def by_parameters(p, u, out):
        if p[p.size - 1] == number:
            derivatives(p, u, out)
        else:
            rest(p, u, out)

    return by_parameters


def _chain(functions: Sequence[Callable[..., Any]], either: Callable[..., Any]) -> Callable[..., Any]:
    """A function that selects among all functions, by nested dispatchers."""
    chosen = functions[-1]
    for number in range(len(functions) - 2, -1, -1):
        chosen = either(number, functions[number], chosen)
    return chosen


law, by_parameters = _chain(JUNCTIONS, _either), _chain(DERIVATIVES, _either_filled)
"""``law(p, u)``: current, A, and slope, S, of a junction at the voltage u, V; the last entry of the row p is the number
of the characteristic. ``by_parameters(p, u, out)``: derivatives of the current by the entries of p."""


def numbered_rows(devices: Iterable[SmoothDevice]) -> np.ndarray:
    """Parameter rows of all devices (`SmoothDevice.row`) for `law`, zero-padded to equal length."""
    rows = [(*device.row(), float(JUNCTIONS.index(type(device).junction))) for device in devices]
    made = np.zeros((len(rows), max(map(len, rows))))
    for own, row in zip(made, rows):
        own[: len(row) - 1], own[-1] = row[:-1], row[-1]
    return made


def charging(row):
    """The current that would empty a junction's charge within one stage, A: the scale of that charge's rounding."""
    return row[RATE] * abs(row[BASE]) if row[row.size - 1] == 0.0 else 0.0


def project(rows, v, i, r, points):
    """Project points (v, i) onto the curves along load lines of resistance r.

    Parameters
    ----------
    rows : (s, w) float array
        Rows of the devices (`numbered_rows`).
    v, i, r : (s,) float arrays
        V, A, Ω.
    points : (5, s) float array
        The first row holds starting junction voltages, V. Overwritten: junction voltage, voltage, current, slope of the
        device, slope of the junction.
    """
    rows, points = kept(rows), kept(points)
    for d in range(v.size):
        found = point(law, rows[d], v[d], i[d], r[d], points[0, d])
        for k in range(5):
            points[k, d] = found[k]


FIXED = 1e-9
"""Smallest conductance of the rest of the circuit, relative to the device's own, that is resolved."""


def estimate_resistances(plan, space, places, conductance, resistance):
    """Fill in estimates of the port resistances, Ω: 1/G + 1/G' with the sums G and G' of the other conductances at the
    two nodes, where the ends of conducting ideal diodes count as one. They are lower bounds (Rayleigh's monotonicity
    law) unless another element joins the two nodes.

    Parameters
    ----------
    places : (3, s) int array
        Elements of the companion models; the last row connects the devices' nodes.
    conductance : (s,) float array
        Conductances of the companion models, S.
    """
    last, total = contract_diodes(plan, space).last, space.w
    total[:] = 0.0
    for r in range(space.g.size):
        a = last[plan.coordinate[plan.resistor_first[r]]]
        b = last[plan.coordinate[plan.resistor_second[r]]]
        if a != b:
            total[a] += space.g[r]
            total[b] += space.g[r]
    for d in range(places.shape[1]):
        e = places[2, d]
        a, b = last[plan.coordinate[plan.first[e]]], last[plan.coordinate[plan.second[e]]]
        resistance[d] = 0.0
        if a != b:
            resistance[d] = 1.0 / excluding(total[a], conductance[d]) + 1.0 / excluding(total[b], conductance[d])


def excluding(total, own):
    """The conductance at a node, S, excluding a device's own."""
    return max(total - own, 1e-15 * total + 1e-250)


def mean_resistance(resistance, conductance):
    """Geometric mean of the port resistance and the device's own, Ω (scalars or arrays): the load line where that of
    the port alone made the iteration cycle."""
    own = np.minimum(np.maximum(1.0 / conductance, 1e-6 * resistance), 1e6 * resistance)
    return np.sqrt(resistance) * np.sqrt(own)


def port_resistances(plan, space, places, own):
    """Replace the estimates of the devices that are far from their curves by the port resistances, Ω: the voltage of a
    unit current through the port, by the factors of the step."""
    factor = refactor(plan, space, space.closed)
    if factor < 0 or not space.held[factor]:
        return
    last, potential = contract_diodes(plan, space).last, space.change
    for d in range(places.shape[1]):
        e, conductance = places[2, d], own[CONDUCTANCE, d]
        a, b = last[plan.coordinate[plan.first[e]]], last[plan.coordinate[plan.second[e]]]
        if a == b or own[DISTANCE, d] <= FAR:
            continue
        potential[:] = 0.0
        potential[a], potential[b] = 1.0, -1.0
        potential[plan.n] = 0.0
        substitute(plan, space.multiplier[factor], space.pivot[factor], potential, space.floating_current)
        rest, least = 1.0 / (potential[a] - potential[b]) - conductance, FIXED * conductance
        if rest < np.inf:  # what is not resolved is at most ``least``: a device that a current alone drives sees none
            own[RESISTANCE, d] = 1.0 / rest if rest > least else max(own[RESISTANCE, d], 1.0 / least)


STEPS = 60
"""Maximum number of steps."""

VOLTAGE, CURRENT, DISTANCE, NEAR, TOUCH = 0, 1, 2, 3, 8
CONDUCTANCE, RESISTANCE, KEPT = 13, 14, 15
"""Rows kept for each device: voltage, V, current, A, distance from the curve; the nearest point of the curve and the
point of tangency (`circuitsim.models.curve.point`, five rows each); conductance of the tangent, S; resistance of the
load line, Ω."""

LEAST_SLOPE, OPEN = 1e-14, 1e-100
"""Minimum conductance of a tangent, relative to current / voltage, and absolute, S."""

PAIRS = RESOLUTION * 2.0**53
"""Rounding of potentials that are sums in pairs of doubles, relative to that of doubles."""

CLOSE = 1e-13
"""Relative distance from the curves at which the iteration ends."""

FAR = 1e-5
"""Distance estimated from one evaluation of the curve above which the nearest point is not computed."""

ROUNDING, NOTHING = 1e-4, 1e-90
"""Weight of potentials and currents at a device's ends in the scales of its own voltage and current (at a tolerance of
1e-9 their rounding may be a thousand times that of doubles); values, V or A, that count as zero: `OPEN` causes such."""

LEAST_CURRENT = 1e-290
"""Smaller currents of tangents, A, are zero: the linear circuits count them as zero too."""

BEYOND = 1e200
"""Currents and slopes of tangents above this bound lead out of the range of doubles."""

SHORT = 1e-15
"""Resistance of the load line, Ω, for a junction across a fixed voltage."""

NO_DEVICE, INNER = -1, -2
"""Roles of elements that belong to no device, and of those inside a companion model, which carry nothing at the end."""

PATIENT, FAR_OFF = 6, 0.5
"""After `PATIENT` steps, load lines of devices farther than `FAR_OFF` from their curves are turned towards the
tangents."""


def newton_once(block, space, guess, places, role, rows, own, tolerance, out):
    """The operating point of a planned circuit with smooth devices; `solve_once` is the counterpart without them.

    Parameters
    ----------
    block, space, guess, out
        See `circuitsim.engine.small.single.solve_once`; the values of the companion models are overwritten.
    places : (3, s) int array
        Elements of the companion models: conductance, voltage source, current source.
    role : (m,) int array
        The device whose current source an element is; `NO_DEVICE`, `INNER`.
    rows : (s, w) float array
        Rows of the devices (`numbered_rows`).
    own : (KEPT, s) float array
        Overwritten. ``VOLTAGE`` and ``CURRENT`` hold the initial guess.
    tolerance : float

    Returns
    -------
    steps : int
            0 if there is no convergence.
    worst : float
        Largest relative residual, those of the devices included.
    """
    plan, space, out, own, rows = pointer(plan_in(kept(block))), pointer(space), kept(out), kept(own), kept(rows)
    places, role = kept(places), kept(role)
    value, v, current, worst, relative = views(out, plan.kind.size, plan.coordinate.size)
    status, _ = take_values(plan, value, space.ohms, space.signed[0])
    space.stamp[:] = 0
    forget_currentless(space)
    if status != Outcome.CONVERGED or not begin_at(rows, own):
        return 0, np.inf
    closed, tail = space.closed, out.size - plan.diode.size
    for d in range(closed.size):
        closed[d] = guess.size > 0 and guess[plan.diode[d]] > 0.0
    steps, off = newton_steps(plan, space, value, places, role, rows, own, tolerance, v, current, worst, relative)
    out[tail - 1] = steps
    for d in range(closed.size):
        out[tail + d] = 1.0 if closed[d] else 0.0
    space.ohms[:] = 0.0
    return steps, off


def newton_steps(plan, space, value, places, role, rows, own, tolerance, v, current, worst, relative):
    """Newton's method from the conducting ideal diodes in ``space.closed``; returns the steps and the largest relative
    residual, see `newton_once`. Fills in the parts of its ``out``."""
    kind, first, second = plan.kind, plan.first, plan.second
    best, still = np.inf, 0
    for step in range(1, STEPS + 1):
        put_tangents(places, own, value, OPEN)
        take_conductances(plan, value, space)
        offsets(plan, kind, first, value, space.offset)
        injections(kind, first, second, value, space.injected)
        if not solve_step(plan, space, v):
            return step - 1, np.inf
        if step <= PATIENT:
            off = rough_distance(first, second, value, places, rows, own, v)
        else:
            space.low[:] = 0.0
            branch_currents(plan, space, value, v, current)
            put_across(first, second, places, own, v, space.low)
            off = distances(first, second, value, places, role, rows, own, v, PAIRS, current, space.at_node)
        if off <= FAR:
            # Close to the curves, the correction below removes the residual of the linearisation.
            estimate_resistances(plan, space, places, own[CONDUCTANCE], own[RESISTANCE])
            if not move(rows, own):
                break
            move_tangents(places, first, second, own, value, v)
            space.low[:] = 0.0
            branch_currents(plan, space, value, v, current)
            if not correct(plan, space, value, v, current):
                break
            put_across(first, second, places, own, v, space.low)
            off = distances(first, second, value, places, role, rows, own, v, PAIRS, current, space.at_node)
            if off <= CLOSE or (off <= 0.5 * tolerance and off > 0.25 * best):
                hold(first, second, places, own, value, v, space.low, current)
                bound = violations(
                    kind,
                    first,
                    second,
                    value,
                    v,
                    space.low,
                    space.currentless.live,
                    current,
                    space.at_node,
                    role,
                    worst,
                    relative,
                )
                for k in range(7):
                    off = max(off, relative[k])
                return step, off if bound <= ACCURATE else np.inf
        still = still + 1 if 0.25 * best < off <= FAR else 0
        if still == 3:
            return step, np.inf
        best = min(best, off)
        estimate_resistances(plan, space, places, own[CONDUCTANCE], own[RESISTANCE])
        if step > PATIENT:
            port_resistances(plan, space, places, own)
            if off >= FAR_OFF:
                for d in range(rows.shape[0]):
                    own[RESISTANCE, d] = mean_resistance(own[RESISTANCE, d], own[CONDUCTANCE, d])
        if not move(rows, own):
            break
    return 0, np.inf


def solve_step(plan, space, v):
    """Fill in the node voltages of the linearised circuit, V; returns whether they and all currents are unique."""
    if space.closed.size > 0:
        return solve_sample(plan, MAX_ITERATIONS, space, v, False)[0] == Outcome.CONVERGED
    if not plan.regular:
        return False
    factor = refactor(plan, space, space.closed)
    if factor < 0 or not space.held[factor]:
        return False
    space.x[:] = 0.0
    start(plan, space, v)
    space.change[plan.n] = 0.0
    substitute(plan, space.multiplier[factor], space.pivot[factor], space.change, space.floating_current)
    copy(space.change, space.x)
    for k in range(v.size):
        v[k] = space.x[plan.coordinate[k]] + space.offset[k]
    return True


def hold(first, second, places, own, value, v, low, current):
    """Replace companion models by current sources of the device currents (and, for the voltages, an idle resistor)."""
    for d in range(places.shape[1]):
        slope, touch, rest = places[0, d], places[1, d], places[2, d]
        v[second[slope]], low[second[slope]] = v[first[slope]], low[first[slope]]
        value[touch], value[rest] = own[VOLTAGE, d], own[CURRENT, d]
        current[slope], current[touch], current[rest] = 0.0, 0.0, own[CURRENT, d]


def violations(kind, first, second, value, v, low, live, current, at_node, role, worst, relative):
    """Fill in the residuals of all equations but the devices' (`circuitsim.certificate.branch_violations`); returns the
    bound on the errors of currents other than the devices'."""
    worst[0], relative[0], total = net_currents(first, second, current, at_node)
    bound = branch_violations(kind, first, second, value, v, low, live, current, at_node, total, worst, relative)
    if bound <= ACCURATE or not bound < np.inf:
        return bound
    return parts_bound(kind, first, second, current, at_node, role)


def parts_bound(kind, first, second, current, at_node, role):
    """The bound on the errors of currents, given those of devices and current sources.

    These sources and ground join no nodes: a current lost in one part returns through ground to that part alone, so
    that a part with small currents is not judged by the rounding of another.
    """
    leader, total = np.arange(at_node.shape[1]), np.zeros(at_node.shape[1])
    for e in range(role.size):
        if role[e] == NO_DEVICE and kind[e] != CURRENT_SOURCE and min(first[e], second[e]) > 0:
            unite(leader, first[e], second[e])
    for k in range(1, leader.size):
        total[find(leader, k)] += abs(at_node[0, k]) + ROUNDED * at_node[1, k]
    bound = 0.0
    for e in range(role.size):
        if role[e] == NO_DEVICE and kind[e] != CURRENT_SOURCE and current[e] != 0.0:
            local = max(at_node[1, first[e]], at_node[1, second[e]])
            lost = total[find(leader, max(first[e], second[e]))]
            bound = max(bound, lost / current_scale(abs(current[e]), local))
    return bound


def put_tangents(places, own, value, least):
    """Put the tangents at the points of tangency, with conductances of at least ``least``, S, into ``value`` (companion
    models); keep their conductances."""
    for d in range(places.shape[1]):
        volts, amperes = own[TOUCH + 1, d], own[TOUCH + 2, d]
        flattest = max(LEAST_SLOPE * abs(amperes) / max(abs(volts), 1e-3), least)
        own[CONDUCTANCE, d] = max(own[TOUCH + 3, d], flattest)
        value[places[0, d]] = 1.0 / own[CONDUCTANCE, d]
        value[places[1, d]], value[places[2, d]] = volts, amperes if abs(amperes) > LEAST_CURRENT else 0.0


def move_tangents(places, first, second, own, value, v):
    """Move the companion models to the new points of tangency without changing their slopes, so that the factorisation
    remains valid; fill in their internal node voltages, V."""
    for d in range(places.shape[1]):
        touch = places[1, d]
        value[touch], value[places[2, d]] = own[TOUCH + 1, d], own[TOUCH + 2, d]
        v[first[touch]] = v[second[touch]] + value[touch]


def rough_distance(first, second, value, places, rows, own, v):
    """Fill in device voltages, V, and currents, A, from the node voltages; returns the largest distance from the curves
    estimated from one evaluation each, or some distance above `FAR`."""
    off = 0.0
    for d in range(places.shape[1]):
        e, p = places[0, d], rows[d]
        c = (v[first[e]] - v[second[e]]) / value[e]
        volts, amperes = value[places[1, d]] + value[e] * c, value[places[2, d]] + c
        own[VOLTAGE, d], own[CURRENT, d] = volts, amperes
        if off > FAR:
            continue
        j, g = law(p, volts - p[0] * amperes)
        if not abs(j) < np.inf:
            off = np.inf
            continue
        wrong = abs(j - amperes)
        along_v = wrong / (g * (abs(volts) + NOTHING)) if g > 0.0 else np.inf
        off = max(off, min(wrong / (abs(amperes) + NOTHING), along_v))
    return off


def put_across(first, second, places, own, v, low):
    """Fill in the voltages of the devices by the potentials, sums of two doubles."""
    for d in range(places.shape[1]):
        a, b = first[places[2, d]], second[places[2, d]]
        own[VOLTAGE, d] = (v[a] - v[b]) + (low[a] - low[b])


def distances(first, second, value, places, role, rows, own, v, share, current, at_node):
    """Fill in device voltages and currents from the branch currents, the nearest points of the curves, and the
    distances to these; returns the largest distance.

    A device's voltage is the drop of its tangent, whose current has the rounding of the largest one at its ends, or
    that by potentials, which ``own`` holds, with the rounding of the larger one, at least that of a ``share`` of the
    largest in the circuit: whichever has the smaller rounding.
    """
    floor = 0.0
    for potential in v:
        floor = max(floor, share * abs(potential))
    for d in range(places.shape[1]):
        own[CURRENT, d] = value[places[2, d]] + current[places[0, d]]
    largest = at_node[1]
    largest[:] = 0.0
    for e in range(role.size):
        if role[e] != INNER:
            size = abs(current[e] if role[e] == NO_DEVICE else own[CURRENT, role[e]])
            largest[first[e]], largest[second[e]] = max(largest[first[e]], size), max(largest[second[e]], size)
    worst = 0.0
    for d in range(places.shape[1]):
        e, a, b, amperes = places[0, d], first[places[2, d]], second[places[2, d]], own[CURRENT, d]
        local, high = min(largest[a], largest[b]), max(abs(v[a]), abs(v[b]))  # Kirchhoff's law holds at both ends
        if 0.0 < value[e] * local <= max(high, floor):
            own[VOLTAGE, d] = value[places[1, d]] + value[e] * current[e]
        volts = own[VOLTAGE, d]
        # A charging current through the series resistance may be opposite to the junction's voltage.
        reach = abs(volts) + ROUNDING * max(high, rows[d, 0] * abs(amperes)) + NOTHING
        size = abs(amperes) + ROUNDING * max(local, charging(rows[d])) + NOTHING
        near = point(law, rows[d], volts, amperes, reach / size, own[TOUCH, d])
        for k in range(5):
            own[NEAR + k, d] = near[k]
        own[DISTANCE, d] = max(abs(near[1] - volts) / reach, abs(near[2] - amperes) / size)
        if not own[DISTANCE, d] <= worst:
            worst = own[DISTANCE, d]
    return worst


def begin_at(rows, own):
    """Put the points of tangency next to the voltages and currents of an initial guess; returns whether all are within
    the range of doubles."""
    for d in range(rows.shape[0]):
        v, i = own[VOLTAGE, d], own[CURRENT, d]
        own[TOUCH, d], own[RESISTANCE, d] = v - rows[d, 0] * i, abs(v) / (abs(i) + NOTHING)
    return move(rows, own)


def move(rows, own):
    """Move the points of tangency along the load lines from the devices' voltages and currents to the curves; returns
    whether all are within the range of doubles."""
    far = False
    for d in range(rows.shape[0]):
        there = point(law, rows[d], own[VOLTAGE, d], own[CURRENT, d], own[RESISTANCE, d], own[TOUCH, d])
        if not (abs(there[2]) < BEYOND and there[3] < BEYOND):
            there = point(law, rows[d], own[VOLTAGE, d], own[CURRENT, d], SHORT, own[TOUCH, d])
        for k in range(5):
            own[TOUCH + k, d] = there[k]
        far = far or not max(abs(there[1]), abs(there[2]), there[3]) < BEYOND
    return not far
