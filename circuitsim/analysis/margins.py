"""Margins of ideal diodes: current and voltage relative to local scales."""

from __future__ import annotations

import numpy as np

from circuitsim.certificate import RESOLUTION, largest_at_nodes
from circuitsim.circuit import CircuitArrays
from circuitsim.circuit.elements import DIODE
from circuitsim.engine.tree import loop_scales, resistive_tree
from circuitsim.program.components import block_labels


def diode_margins(arrays: CircuitArrays, voltages: np.ndarray, currents: np.ndarray, drops: np.ndarray) -> np.ndarray:
    """The larger of current and voltage of each ideal diode, relative to the scales of the certificate.

    Parameters
    ----------
    arrays : CircuitArrays
    voltages : (n_nodes,) float array
        Potentials, V.
    currents, drops : (m,) float arrays
        Branch currents, A, and voltages, V.

    Returns
    -------
    (m,) float array
        NaN for other elements. The scale of a current is the largest current at the diode's ends (at least 1e-13 of the
        largest in its biconnected component), that of a voltage the largest drop in the diode's loop through sources,
        shorts, conducting diodes and the smallest resistors; the larger end potential where there is no such loop.
    """
    margin = np.full(drops.size, np.nan)
    diodes = np.flatnonzero(arrays.kind == DIODE)
    margin[diodes] = np.maximum(
        _ratio(np.abs(currents[diodes]), _current_scale(arrays, currents, diodes)),
        _ratio(np.abs(drops[diodes]), _voltage_scale(arrays, voltages, currents, drops, diodes)),
    )
    return margin


def _current_scale(arrays: CircuitArrays, currents: np.ndarray, diodes: np.ndarray) -> np.ndarray:
    """Largest |current| at the ends of each diode, A, or `RESOLUTION` of the largest in its biconnected component."""
    first, second, size = arrays.first, arrays.second, np.abs(currents)
    largest = largest_at_nodes(arrays, size)
    scale = np.maximum(largest[first[diodes]], largest[second[diodes]])
    if diodes.size and (scale < RESOLUTION * size.max()).any():
        label = block_labels(arrays.n_nodes, first, second)
        in_block = np.zeros(label.max(initial=-1) + 2)
        np.maximum.at(in_block, label, size)  # self-loops, of label −1, last
        scale = np.maximum(scale, RESOLUTION * in_block[label[diodes]])
    return scale


def _voltage_scale(
    arrays: CircuitArrays, voltages: np.ndarray, currents: np.ndarray, drops: np.ndarray, diodes: np.ndarray
) -> np.ndarray:
    """Largest |drop| in the fundamental loop of each nonconducting diode, V; 0 for diodes of zero voltage."""
    scale = np.zeros(diodes.size)
    asked = np.flatnonzero(drops[diodes] != 0.0)
    if not asked.size:
        return scale
    chosen = diodes[asked]
    made, branches = resistive_tree(arrays, np.flatnonzero((arrays.kind == DIODE) & (currents > 0.0)))
    in_loop, _ = loop_scales(made, branches, currents, chosen)
    a, b, own = arrays.first[chosen], arrays.second[chosen], np.abs(drops[chosen])
    reach = np.maximum(np.abs(voltages[a]), np.abs(voltages[b]))
    in_loop = np.where(made.root_of[a] == made.root_of[b], in_loop, reach)
    scale[asked] = np.maximum(in_loop, own)
    return scale


def _ratio(amount: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """amount / scale; 0 over 0 is 0."""
    return np.divide(amount, scale, out=np.zeros(amount.size), where=scale > 0.0)
