"""The decaying parts of one mode of a circuit that stores energy in capacitors alone, or in inductors alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.time_domain.kernels import time_kernel
from circuitsim.time_domain.mode_kernels import Waves
from circuitsim.time_domain.modes import UNCOUPLED, Mode, Parts, Role, loop_currents
from circuitsim.time_domain.trees import FREE, C, L, R

ROTATIONS = 20
"""Products of two rows, about as many as each pair of them takes."""


class Parting(NamedTuple):
    """The decaying parts of one mode.

    Attributes
    ----------
    rate : (c,) float array
    start : (c, k + s) float array
        y over the states and those of the sources.
    lift : (c, r) float array
        y over the currents of `resistors`.
    weight : (r,) float array
        Roots of the resistances that these currents meet, √Ω: `lift` has their rounding over √λ.
    drive : (c, s) float array
    shape, along : (k, c), (k, s) float arrays
        Changes of the states over those of y and w.
    slope : (k, s) float array
        Slopes of the states over w; those over y are −λ shape.
    current : (m, s + c) float array
        Branch currents over w and y; (0, 0) where currents are the states.
    value : (m,) float array
        Ω, F or H.
    resistors : (r,) int array
        Those outside the tree; none where currents are the states.
    """

    rate: np.ndarray
    start: np.ndarray
    lift: np.ndarray
    weight: np.ndarray
    drive: np.ndarray
    shape: np.ndarray
    along: np.ndarray
    slope: np.ndarray
    current: np.ndarray
    value: np.ndarray
    resistors: np.ndarray


def parting(parts: Parts, mode: Mode, resistors: np.ndarray, conducts: np.ndarray) -> Parting:
    """The decaying parts of a mode.

    Parameters
    ----------
    parts : Parts
        With the resistances of the mode.
    mode : Mode
        Of capacitors without inductors, or of inductors without capacitors.
    resistors : (r,) int array
        Elements.
    conducts : (m,) bool array
        Conducting diodes.
    """
    if (parts.role == Role.CAPACITOR).any():
        return _of_capacitors(parts, mode, conducts)
    k, scale = mode.states.size, np.sqrt(parts.value[resistors])
    # Voltage sources change the fluxes.
    given = np.flatnonzero(parts.role == Role.VOLTAGE)
    push = -mode.current[given, :k].T @ mode.voltage[given, k:]
    return _parts(parts, mode, mode.voltage[resistors] / scale[:, None], push)


def _of_capacitors(parts: Parts, mode: Mode, conducts: np.ndarray) -> Parting:
    """From the currents of the resistors outside the tree: they are independent of each other, so each has the digits
    of its own size; Kirchhoff's current law gives all others."""
    k, net, value = mode.states.size, mode.wiring, parts.value
    own, s = net.links[net.rest[R] : net.rest[L]], mode.system.shape[0] - k
    flow, root = np.zeros((own.size, k + s)), np.zeros((own.size, own.size))
    work = own.size * net.twigs.size * mode.system.shape[0] + own.size**3
    time_kernel("link_flows", work)(net, value, mode.voltage, mode.current, flow, root)
    # Current sources change the charges.
    free = slice(net.rest[FREE], net.links.size)
    push = -net.cut[net.tree[C] : net.tree[R], free] @ mode.current[net.links[free], k:]
    found = _parts(parts, mode, flow, push)
    rows, current = found.current, np.zeros((parts.role.size, s + found.rate.size))
    time_kernel("backward", root.size * rows.shape[1])(root, rows)
    given = np.flatnonzero(parts.role == Role.CURRENT)
    current[own], current[given, :s] = rows, mode.current[given, k:]
    found = found._replace(current=current, lift=found.lift @ root.T, weight=np.diag(root).copy(), resistors=own)
    waves = Waves(current, current, np.zeros((current.shape[1], current.shape[1])))
    loops = loop_currents(net, conducts)
    time_kernel("part_currents", net.cut.size * current.shape[1])(
        net, value, mode.dependent, _system_of_sources(mode), found, conducts, loops, waves
    )
    return found


def _parts(parts: Parts, mode: Mode, flow: np.ndarray, push: np.ndarray) -> Parting:
    """The parts of a mode from what its resistors dissipate and what else changes charges or fluxes; see `decompose`.

    ``lift`` and ``current`` refer to the rows of ``flow``.
    """
    own, system, r = mode.dependent, _system_of_sources(mode), len(flow)
    coupling = UNCOUPLED if parts.coupling is None else parts.coupling
    (k, s), n = push.shape, mode.system.shape[0]
    if own[:, k:].any():
        rate = own[:, k:] @ system
        force = parts.value[:, None] * rate if parts.coupling is None else parts.value[:, None] * rate + coupling @ rate
        push -= own[:, :k].T @ force
    room = Parting(
        np.zeros(n), np.zeros((n, n)), np.zeros((n, r)), np.zeros(0), np.zeros((n, s)), np.zeros((k, n)),
        np.zeros((k, s)), np.zeros((k, s)), np.zeros((r, s + n)), parts.value, np.zeros(0, dtype=np.int64),
    )  # fmt: skip
    work = ROTATIONS * min(k, r) * min(k, r) * (k + r) + len(own) * k * k
    c = time_kernel("decompose", work)(own, flow, parts.value, coupling, push, system, room)
    return room._replace(
        rate=room.rate[:c], start=room.start[:c], lift=room.lift[:c], drive=room.drive[:c],
        shape=np.ascontiguousarray(room.shape[:, :c]), current=np.ascontiguousarray(room.current[:, : s + c]),
    )  # fmt: skip


def _system_of_sources(mode: Mode) -> np.ndarray:
    """The system of the sources' states (s, s), without gaps: one kind of array, one compilation."""
    k = mode.states.size
    return np.ascontiguousarray(mode.system[k:, k:])
