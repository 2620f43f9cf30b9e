"""One loop for operating points: ideal, piecewise-linear and smooth devices by one number w = d + ρ i each (Minty
1962).

A step of semismooth Newton in w is one linear circuit: each device is its tangent, a short, open, or a resistance
beside a source. Six steps of Douglas and Rachford (Lions & Mercier 1979) with one factor come first. Once plain steps
have failed, the method of multipliers follows (Rockafellar 1976; semismooth Newton with exact line search inside as in
Li, Sun & Toh 2018), which converges for every circuit of monotone curves that has an operating point; plain steps end
it. Factor and refinement are the package's (`one_loop_net.py`); the families are in `one_loop_families.py`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from one_loop_net import INFINITE, NOTHING, Linear, Net, Points, by_priority, refined, sources, without_loops

from circuitsim._jit import jit
from circuitsim.engine.spanning import grow
from circuitsim.solvers import laplacian

FIRST, PLAIN, AGAIN = 6, 3, 2
"""Steps of Douglas and Rachford; plain steps without progress before the safeguard, and after each proximal step."""
PROXIMAL, INNER, SHRINK, ENOUGH = 20, 40, 0.03, 0.1
"""Most proximal steps; most Newton steps in each; factor of the penalty's resistance from one to the next; relative
error of a proximal step, in power (Solodov & Svaiter 1999)."""
PATIENT, MOST, REFINING = 4, 12, 4
"""Refined steps without progress: of circuits over many decades, and of others; refined proximal steps."""
DIGITS = 1e-4
"""Share of a curve's current that rounding of the potentials at its ends may be, over the penalty's resistance."""
HELD = 1e-9
"""Conductance to ground of parts that curves alone tie, against what these have there, in the Hessian of φ."""
STILL, STUCK = 0.999, 5
"""So little progress of a Newton step, so often in a row, is rounding."""
RELAXED, CLEAR, CLOSE, REFINED = 1.8, 1e-9, 1e-6, 1e-11
"""Overrelaxation; what counts against the rounding of doubles; distance from smooth curves, before and after
refinement."""


class Result(NamedTuple):
    """Potentials, currents of all rows; how it ended; factors by the end of each stage."""

    v: np.ndarray
    current: np.ndarray
    w: np.ndarray
    x: np.ndarray
    way: str
    factors: tuple[int, ...]


def operating_point(net: Net, start=None) -> Result:
    """The loop."""
    net.factors, net.lines = 0, net.rho
    if start is None:
        x = np.zeros(net.n + 1)
        w = douglas_rachford(net, x)
    else:
        w, x = start.w, start.x
    counts: list[int] = []
    for way in ("plain", "safeguard", "refined safeguard", "again"):
        here, done = x.copy(), False
        if way == "safeguard" and net.wide:
            continue
        if way == "refined safeguard":
            done, found, point, y = refined_multipliers(net, w, here)
        else:
            method, patience = (plain, PLAIN) if way == "plain" else (multipliers, PROXIMAL)
            y, piece, ended = method(net, w, here, patience)
            if ended or way != "plain" or net.wide:
                done, found, point, y = polished(net, y, here, piece, PATIENT if net.wide else MOST)
                way = way if ended or way == "again" else f"{way}, refined"
        counts.append(net.factors)
        if done:
            break
        if not way.startswith("plain"):  # potentials in doubles did not tell: from the refined ones
            w = y
            x[net.coordinate] = point.v - net.offset
            x[-1] = 0.0
    current = point.current.copy()
    current[net.row] = found.i
    return Result(point.v, current, found.d + net.rho * found.i, here, way if done else "none", tuple(counts))


def douglas_rachford(net: Net, x, steps: int = FIRST):
    """The first guess of w: one factor, in which every curve is a resistance ρ."""
    w, factor = np.zeros(net.row.size), net.factored(1.0 / net.rho)
    for _ in range(steps):
        d = net.curves.at(w, net.rho).d
        current = np.append(net.g, 1.0 / net.rho) * (net.drops(x) - np.append(np.zeros(net.r), 2.0 * d - w))
        x += net.solve(factor, net.left(current))
        w += RELAXED * (net.drops(x)[net.r :] - d)
    return w


def plain(net: Net, w, x, patience: int):
    """Semismooth Newton in w until all points lie on their curves but for rounding; w, pieces, and whether it ended.

    It gives up where the distance from the curves, in the norm of dissipated power, has not become less for
    ``patience`` steps, or a set of pieces returns.
    """
    piece, seen, best, since, urgent = None, set(), np.inf, 0, np.zeros(net.row.size)
    while since < patience:
        p = net.curves.at(w, net.lines, piece)
        key = p.piece.tobytes() + (urgent > 0.0).tobytes()
        if key in seen and not net.curves.smooth.size:
            break
        seen.add(key)
        found = tangents(net, p, x, urgent)
        done, w, piece, off, urgent = ends(net, p, found, CLEAR * found.volts, CLEAR * found.amperes, CLOSE)
        if done:
            return w, piece, True
        since = 0 if off < 0.9 * best else since + 1
        best = min(best, off)
    return w, piece, False


def ends(net: Net, p: Points, found: Linear, slack_volts, slack_amperes, close):
    """Whether the linear circuit's points lie on the curves; else w of the next step."""
    w = found.d + net.lines * found.i
    slack_volts = slack_volts + 4e-16 * np.abs(found.d)
    volts, amperes = net.curves.outside(found.d, found.i, p.ohms, p.piece)
    wrong = (np.abs(volts) > slack_volts) | (np.abs(amperes) > slack_amperes)
    parted = (p.ohms == 0.0) & (np.abs(found.d - p.d) > slack_volts)  # shorts whose loop does not close
    wrong |= parted
    urgent = np.where(wrong, np.maximum(np.abs(volts), np.where(parted, np.abs(found.d - p.d), 0.0)), 0.0)
    q = net.curves.at(w, net.lines)
    s = net.curves.smooth
    off = 0.0
    if s.size:
        r = p.ohms[s]
        slack_volts[s] += np.where(r < INFINITE, r * slack_amperes[s], 0.0)
        a = (np.abs(q.d[s] - found.d[s]) - slack_volts[s]) / np.maximum(np.abs(q.d[s]), 1e-90)
        b = (np.abs(q.i[s] - found.i[s]) - slack_amperes[s]) / np.maximum(np.abs(q.i[s]), 1e-90)
        off = float(np.maximum(a, b).max())
    piece = np.where(wrong, q.piece, p.piece)
    distance = float(((found.d - q.d) ** 2 / net.lines).sum())
    return not wrong.any() and found.balanced and off <= close, w, piece, distance, urgent


def tangents(net: Net, p: Points, x, urgent) -> Linear:
    """The linear circuit of the tangents, in doubles; potentials in ``x`` are the first guess, and changed. ``urgent``
    are the voltages of what enters (`by_priority`)."""
    t, a, b, r = sources(net, p), net.a, net.b, net.r
    chosen = by_priority(p, urgent, np.flatnonzero(t.short & (a[r:] != b[r:])))
    forest = grow(net.n + 1, a[r:], b[r:], np.array([net.n]), chosen)
    grown = forest.order, forest.edge, forest.parent, a[r:]
    last = np.arange(net.n + 1)
    if chosen.size:
        best = net.rank.copy()
        np.maximum.at(best, forest.root_of, net.rank)
        last = net.place[best[forest.root_of]]
        along(*grown, t.emf - net.held[r:], x)
    g, source = np.append(net.g, t.siemens), np.append(np.zeros(r), t.emf)
    factor = net.factored(t.siemens, forest.inside)
    current = np.zeros(a.size)

    def need():
        current[:] = g * (net.drops(x) - source)
        current[r:] += t.beside
        return net.left(current)

    x += net.solve(factor, need())[last]
    left = need()
    reach = np.abs(x[a]) + np.abs(x[b]) + net.offsets
    rounding = g * (reach + np.abs(source)) + np.append(np.zeros(r), np.abs(t.beside))
    size = net.size + np.bincount(a, rounding, net.n + 1) + np.bincount(b, rounding, net.n + 1)
    flow, noise = np.zeros((2, net.row.size))
    kept, bound = left.copy(), size.copy()
    leaves(*grown, kept, bound, flow, noise)
    d = net.drops(x)[r:]
    spare = t.short & ~forest.inside & (a[r:] != b[r:]) & (np.abs(d - t.emf) <= 1e-12 * reach[r:])
    if spare.any():
        flow = shared(net, p, t.short & (forest.inside | spare), forest, left)
        noise[spare] = bound[forest.root_of[a[r:]]][spare]
    d[forest.inside] = t.emf[forest.inside]
    i = current[r:] + flow
    # Far from all sources everything decays to nothing, however precise each number is by itself.
    least = NOTHING / CLEAR * max(np.abs(current).max(initial=0.0), np.abs(i).max(initial=0.0))
    volts = np.maximum(np.maximum(reach[r:], net.summed), NOTHING / CLEAR * reach.max(initial=0.0))
    return Linear(d, i, volts, np.maximum(np.maximum(noise, rounding[r:]), least), net.balances(left, size))


def shared(net: Net, p: Points, tight, forest, left):
    """Currents of the shorts ``tight`` (d,) that carry ``left`` away, as near to those before as loops let them be:
    the Newton step of least change, in the norm of the load lines."""
    y = np.where(tight, p.i, 0.0)
    w = np.append(np.zeros(net.r), np.where(tight, 1.0 / net.lines, 0.0))
    away = np.bincount(net.a[net.r :], y, net.n + 1) - np.bincount(net.b[net.r :], y, net.n + 1)
    unit = float(w.max())
    net.factors += 1
    made = laplacian.factor(net.symbolic, np.append((w / unit)[net.apart], np.zeros(net.island.size)))
    x = np.append(laplacian.solve(made, (left - away)[:-1] / unit), 0.0)
    return np.where(tight, y + (x[net.a] - x[net.b])[net.r :] / net.lines, 0.0)


@jit()
def along(order, edge, parent, first, rise, x):
    """Potentials from the roots of a forest outwards; ``rise`` is x_first − x_second of each edge."""
    for k in range(order.size):
        e = edge[k]
        if e >= 0:
            x[order[k]] = x[parent[k]] + (rise[e] if first[e] == order[k] else -rise[e])


@jit()
def leaves(order, edge, parent, first, need, size, flow, noise):
    """Currents of a forest's edges by leaf elimination, and the scale of their rounding."""
    for k in range(order.size - 1, -1, -1):
        e = edge[k]
        if e >= 0:
            u, p = order[k], parent[k]
            flow[e] = need[u] if first[e] == u else -need[u]
            noise[e] = size[u]
            need[p] += need[u]
            size[p] += size[u]
            need[u] = 0.0


def multipliers(net: Net, w, x, most: int):
    """The safeguard: proximal steps on the currents y of the curves, each a convex problem in x that Newton's method
    with exact line search solves; after each a few plain steps, which are taken if they end. Returns as `plain`.

    A proximal step minimises φ(x) = ½ xᵀLx − Jᵀx + Σ M(Bx + ρ y), where M is the Moreau envelope of a curve's
    co-content: convex, once differentiable. Then y becomes i. That converges for any ρ to an operating point if there
    is one (Rockafellar 1976), also with relative errors (Solodov & Svaiter 1999), faster the smaller ρ.
    """
    ohms, y = net.rho.copy(), net.curves.at(w, net.lines).i
    failed, share = 0, SHRINK
    for _ in range(most):
        if not proximal_step(net, x, y, ohms):
            failed += 1
        p = unbalanced(net, x, y, ohms)[1]
        # Load lines between those of the circuit and of the penalty: near the end, pieces show in voltages, too.
        net.lines = np.sqrt(net.rho) * np.sqrt(ohms)
        y, w, near = p.i, p.d + net.lines * p.i, x.copy()
        last, piece, done = plain(net, w, near, AGAIN)
        if done:
            x[:] = near
            return last, piece, True
        if failed > 1:  # potentials in doubles resolve no more
            break
        ohms, share = penalties(net, x, y, share), SHRINK * share
    return w, None, False


def penalties(net: Net, x, y, share: float):
    """The share of the load lines, but no less than keeps the rounding of the potentials below `DIGITS` of each
    current."""
    reach = (np.abs(x[net.a]) + np.abs(x[net.b]) + net.offsets)[net.r :]
    with np.errstate(divide="ignore", invalid="ignore"):
        least = 1e-16 / DIGITS * reach / np.abs(y)
    return np.minimum(net.rho, np.maximum(share * net.rho, np.where(least < np.inf, least, np.inf)))


def proximal_step(net: Net, x, y, ohms) -> bool:
    """Minimise φ over x, in place; whether that was possible."""
    last, still, weak = np.inf, 0, HELD * net.ties(1.0 / net.rho)
    for _ in range(INNER):
        need, p = unbalanced(net, x, y, ohms)
        step = net.solve(net.factored(1.0 / (p.ohms + ohms), weak=weak), need)
        decrement = float(need @ step)
        if decrement <= ENOUGH * float((ohms * (p.i - y) ** 2).sum()):
            return True
        still = still + 1 if decrement > STILL * last else 0
        if still == STUCK:
            return False
        last = decrement
        share = lowest(net, x, step, y, ohms)
        x += share * step
        q = net.curves.at(net.drops(x)[net.r :] + ohms * y, ohms)
        if share == 1.0 and not net.curves.smooth.size and (q.piece == p.piece).all():
            return True
    return False


def unbalanced(net: Net, x, y, ohms):
    """What is left over at the coordinates, −∇φ, A, and the points of the curves."""
    drop = net.drops(x)
    p = net.curves.at(drop[net.r :] + ohms * y, ohms)
    current = np.append(net.g * drop[: net.r], p.i)
    need = net.left(current)
    need[-1] = 0.0
    return need, p


def lowest(net: Net, x, step, y, ohms) -> float:
    """How far along the step φ is least: its slope there rises monotonically."""

    def slope(t):
        return -float(unbalanced(net, x + t * step, y, ohms)[0] @ step)

    low, high, at_low = 0.0, 1.0, slope(0.0)
    at_high = slope(1.0)
    if abs(at_high) <= 1e-6 * abs(at_low):
        return 1.0
    while at_high < 0.0 and high < 1e30:
        low, at_low, high = high, at_high, 4.0 * high
        at_high = slope(high)
    for k in range(60):
        middle = low + (high - low) * (at_low / (at_low - at_high) if k % 2 else 0.5)
        here = slope(middle)
        if here > 0.0:
            high, at_high = middle, here
        else:
            low, at_low = middle, here
        if high - low <= 1e-10 * high or here == 0.0:
            break
    return low if low > 0.0 else high


def polished(net: Net, w, x, piece, patience: int, ohms=None, y=None):
    """Plain steps with refined currents and potentials: the judge of the others. ``patience`` as of `plain`, for the
    number of curves that are off. With ``ohms`` and ``y``: a proximal step (`with_series`).
    """
    guess, anchor, urgent = np.zeros(net.kind.size), x[net.coordinate] + net.offset, np.zeros(net.row.size)
    least, since = np.inf, 0
    while since < patience:
        p = net.curves.at(w, net.lines, piece)
        near = without_loops(net, p) if ohms is None else with_series(p, ohms, y)
        found, point = refined(net, near, urgent, guess, anchor)
        if ohms is not None:
            found = found._replace(d=found.d - ohms * (found.i - y))
        done, w, piece, _, urgent = ends(net, p, found, found.volts, found.amperes, REFINED)
        guess, anchor = point.current, point.v
        if done or not found.balanced:
            break
        wrong = np.count_nonzero(urgent)
        since = 0 if wrong < least else since + 1
        least = min(least, wrong)
    return done, found, point, w


def with_series(p: Points, ohms, y) -> Points:
    """The tangents in series with resistances and sources of no drop at the currents y: a proximal step's circuit."""
    r = p.ohms + ohms
    emf = p.emf - ohms * y
    return Points(p.d + ohms * (p.i - y), p.i, r, emf, np.where(r < np.inf, -emf / r, p.beside), p.piece)


def refined_multipliers(net: Net, w, x):
    """`multipliers` with refined currents and potentials, without line search. Returns as `polished`."""
    net.lines, ohms, y = net.rho, net.rho, net.curves.at(w, net.lines).i
    for _ in range(REFINING):
        w = net.curves.at(w, net.lines).d + net.lines * y
        _, _, point, w = polished(net, w, x, None, PATIENT, ohms, y)
        y = net.curves.at(w, net.lines).i
        x[net.coordinate] = point.v - net.offset
        x[-1] = 0.0
        last = polished(net, w, x, None, AGAIN)
        if last[0]:
            break
        ohms = SHRINK * ohms
    return last
