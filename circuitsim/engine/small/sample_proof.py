"""Samples of one linear circuit, eight side by side: the certificate of branch currents along one spanning tree.

As `circuitsim.engine.small.proof` for one sample. Along the tree both of Kirchhoff's laws hold by construction: what is
measured is the voltage law in the loop of each chord, and what rounding leaves over.
"""

from __future__ import annotations

import numpy as np

from circuitsim.certificate import CLEAR, WEAK
from circuitsim.engine.double_double import multiply
from circuitsim.engine.small.along_tree import (
    CHORD,
    CURRENT,
    CURRENT_LOW,
    MOST,
    NET,
    NODE,
    POTENTIALS,
    RESIDUAL,
    add_lanes,
    chord_currents,
    collect,
    correct_chords,
    printed,
    tree_currents,
    tree_potentials,
    update_maxima,
)
from circuitsim.engine.small.lanes import (
    WIDTH,
    any_above,
    larger,
    load,
    magnitude,
    root,
    smaller,
    spread,
    store,
    where_above,
)
from circuitsim.engine.small.proof import AGREES
from circuitsim.engine.tree import ROUNDED


def prove_samples(paths, memory, x, offset, x_row, offset_row, given, again, worst, relative):
    """Currents and potentials of eight samples along the tree, with their violations.

    Parameters
    ----------
    x : (rows · 8,) float array
        Potentials of the super-nodes, V; where ``again``, their corrections for the residuals of the chords at hand.
    offset : (rows · 8,) float array
        Potentials of nodes against their super-nodes, V.
    x_row, offset_row : (n_nodes,) int arrays
        Rows of the node at each place.
    given : (sources · 8,) float array
        Source values, V, A.
    again : bool
        Whether ``memory`` holds chords to correct.
    worst, relative : (7, 8), (8, 8) float arrays
        Filled: in the order of `circuitsim.certificate.EQUATIONS`; then the bound on the error of any current against
        its `circuitsim.certificate.current_scale`, infinite where a sign is within `circuitsim.certificate.CLEAR` of
        rounding.
    """
    if again:
        correct_chords(paths, x, x_row, memory.chord)
    else:
        chord_currents(paths, x, offset, x_row, offset_row, memory.chord)
    collect(paths, given, memory.chord, memory.node)
    kcl, share, spoilt = tree_currents(paths, memory.node)
    kvl, kvl_share, reach = tree_potentials(paths, given, memory.node, memory.potential)
    kvl, kvl_share, total, power = residuals(paths, given, memory, kvl, kvl_share, ROUNDED * reach)
    spoilt = spoilt + (total + reach)
    bound = error_bound(paths, memory, total, root(power))
    reverse, reverse_share, forward, unclear = signs(paths, memory)
    zero, infinite = spread(0.0), spread(np.inf)
    driven = zero
    for k in range(given.size // WIDTH):
        driven = larger(magnitude(load(given, k * WIDTH)), driven)
    bound = where_above(larger(unclear, unsure(paths, memory.node)), zero, infinite, bound)
    if paths.diode.any() or paths.blocked_tail.size > 0:
        bound = where_above(driven, zero, bound, infinite)
    else:  # without sources all is zero
        bound = where_above(driven, zero, bound, zero)
    worst[:] = 0.0
    relative[:] = 0.0
    forward_share = where_above(forward, zero, infinite, zero)
    for k, amount, size in (
        (0, kcl, share),
        (1, kvl, kvl_share),
        (3, forward, forward_share),
        (4, reverse, reverse_share),
    ):
        store(worst[k], 0, amount)
        store(relative[k], 0, where_above(infinite, spoilt, size, infinite))
    store(relative[7], 0, where_above(infinite, spoilt, bound, infinite))


def residuals(paths, given, memory, worst, share, rounding):
    """Violations of the voltage law in the loops of the chords, which are kept, V.

    Returns the worst, also relative to the largest drop in the loop, the sum of what they drive through their chords
    alone, A, and the sum of the powers of that, W. ``rounding`` is what potentials may be off by, V.
    """
    chord, potential = memory.chord, memory.potential
    total, power = spread(0.0), spread(0.0)
    for k in range(paths.tail.size):
        at, ohm = k * CHORD * WIDTH, paths.chord_ohm[k]
        t, h = paths.tail[k] * POTENTIALS * WIDTH, paths.head[k] * POTENTIALS * WIDTH
        v, w = load(potential, t), load(potential, h)
        between, between_low = add_lanes(v, load(potential, t + WIDTH), -w, -load(potential, h + WIDTH))
        high = load(chord, at + CURRENT * WIDTH)
        drop, low = multiply(ohm, high, load(chord, at + CURRENT_LOW * WIDTH))
        rest, _ = add_lanes(drop, low, -between, -between_low)
        store(chord, at + RESIDUAL * WIDTH, rest)
        rest = magnitude(rest) + rounding
        total = total + rest / ohm
        power = power + rest * rest / ohm
        shown = ohm * high
        left, scale = magnitude(shown - between), magnitude(shown)
        if any_above(left, AGREES * scale):
            scale = larger(loop_scale(paths, given, memory.node, paths.tail[k], paths.head[k]), scale)
        worst, share = update_maxima(worst, share, left, scale)
        worst, share = printed(worst, share, shown, v, w)
    for k in range(paths.dead_tail.size):
        t, h = paths.dead_tail[k] * POTENTIALS * WIDTH, paths.dead_head[k] * POTENTIALS * WIDTH
        between, _ = add_lanes(
            load(potential, t), load(potential, t + WIDTH), -load(potential, h), -load(potential, h + WIDTH)
        )
        worst, share = update_maxima(worst, share, magnitude(between), magnitude(between))
    return worst, share, total, power


def loop_scale(paths, given, node, a, b):
    """The largest |drop| on the tree path between two places, V."""
    most = spread(0.0)
    while a != b:
        if a < b:  # the one further from the root
            a, b = b, a
        if paths.ohm[a] != 0.0:
            most = larger(magnitude(paths.ohm[a] * load(node, a * NODE * WIDTH)), most)
        elif paths.given[a] >= 0:
            most = larger(magnitude(load(given, paths.given[a] * WIDTH)), most)
        a = paths.up[a]
    return most


def error_bound(paths, memory, total, strength):
    """Bound on the error of any current against its `circuitsim.certificate.current_scale`.

    In all elements together the errors dissipate at most the power P of the residuals, ``strength`` its root, √W: in R
    the error is at most √(P/R), and the voltage between its ends is off by at most √(P Σ R), with Σ R along a path
    between them. The residuals drive at most ``total``, A. The error in an element of the tree is the sum of those of
    the chords beyond it. The rows of net currents are used up.
    """
    node, bound, zero = memory.node, spread(0.0), spread(0.0)
    for k in range(paths.up.size):
        store(node, (k * NODE + NET) * WIDTH, zero)
    for k in range(paths.tail.size):
        t, h = paths.tail[k] * NODE * WIDTH, paths.head[k] * NODE * WIDTH
        own = magnitude(load(memory.chord, (k * CHORD + RESIDUAL) * WIDTH)) / paths.chord_ohm[k]
        error = smaller(own + strength * paths.chord_reach[k], smaller(strength * paths.chord_ease[k], total))
        for at in (t, h):
            store(node, at + NET * WIDTH, load(node, at + NET * WIDTH) + error)
        scale = larger(load(node, t + MOST * WIDTH), load(node, h + MOST * WIDTH))
        current = magnitude(load(memory.chord, k * CHORD * WIDTH))
        bound = larger(where_above(current, zero, error / scale, zero), bound)
    for k in range(paths.up.size - 1, 0, -1):
        at, above = k * NODE * WIDTH, paths.up[k] * NODE * WIDTH
        beyond, current = load(node, at + NET * WIDTH), magnitude(load(node, at))
        store(node, above + NET * WIDTH, load(node, above + NET * WIDTH) + beyond)
        error = smaller(beyond, total)
        if paths.ohm[k] != 0.0:
            error = smaller(strength * paths.ease[k], error)
        local = larger(load(node, at + MOST * WIDTH), load(node, above + MOST * WIDTH))
        scale = where_above(WEAK * local, current, current, local)
        bound = larger(where_above(current, zero, error / scale, zero), bound)
    return bound


def unsure(paths, node):
    """1 where a node that may carry current carries none: by balance or by rounding? Else 0."""
    found, zero, one = spread(0.0), spread(0.0), spread(1.0)
    for k in range(1, paths.up.size):
        if paths.live[k]:
            at, above = k * NODE * WIDTH, paths.up[k] * NODE * WIDTH
            local = larger(load(node, at + MOST * WIDTH), load(node, above + MOST * WIDTH))
            found = where_above(local, zero, found, one)
    return found


def signs(paths, memory):
    """Reverse currents of conducting diodes, A, also relative to the largest at their ends, forward voltages of
    blocking ones, V, and 1 where one of these is within `circuitsim.certificate.CLEAR` of zero."""
    node, potential = memory.node, memory.potential
    reverse, share, forward, unclear = spread(0.0), spread(0.0), spread(0.0), spread(0.0)
    zero, one = spread(0.0), spread(1.0)
    for k in range(1, paths.up.size):
        if paths.diode[k]:
            at, above = k * NODE * WIDTH, paths.up[k] * NODE * WIDTH
            current = paths.sign[k] * load(node, at)
            local = larger(load(node, at + MOST * WIDTH), load(node, above + MOST * WIDTH))
            unclear = where_above(current, CLEAR * local, unclear, one)
            reverse, share = update_maxima(reverse, share, larger(-current, zero), local)
    for k in range(paths.blocked_tail.size):
        t, h = paths.blocked_tail[k] * POTENTIALS * WIDTH, paths.blocked_head[k] * POTENTIALS * WIDTH
        v, w = load(potential, t), load(potential, h)
        between, _ = add_lanes(v, load(potential, t + WIDTH), -w, -load(potential, h + WIDTH))
        unclear = where_above(-between, CLEAR * larger(magnitude(v), magnitude(w)), unclear, one)
        forward = larger(between, forward)
    return reverse, share, forward, unclear
