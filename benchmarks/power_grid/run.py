"""A power grid from its deck to certified drops, beside scipy's SuperLU on the matrix of the same circuit.

    python benchmarks/power_grid/run.py --nodes 1700000 --limit 300 > benchmarks/results/power_grid.md

Each part is a process of its own, so that its peak of memory is its own. SuperLU gets the matrix of the free nodes
after nodes joined by sources of 0 V are one, in symmetric mode, minimum degree of A + Aᵀ. It has no certificate: its
largest difference from the certified potentials is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent


def seconds() -> tuple[float, float]:
    """Wall clock and processor time."""
    return time.perf_counter(), time.process_time()


class Clock:
    """Times of parts, wall clock and processor."""

    def __init__(self) -> None:
        self.parts: dict[str, tuple[float, float]] = {}
        self.last = seconds()

    def stop(self, name: str) -> None:
        """The part ``name`` ends here."""
        now = seconds()
        self.parts[name] = now[0] - self.last[0], now[1] - self.last[1]
        self.last = now


def ours(deck: str, folder: Path) -> dict[str, Any]:
    """Read, solve, drops."""
    clock = Clock()
    from circuitsim.analysis import prepared
    from circuitsim.analysis.ir_drop import ir_drop
    from circuitsim.netlist import read_deck

    clock.stop("import")
    circuit = read_deck(deck).circuit
    clock.stop("read")
    point = prepared(circuit).solve()
    clock.stop("solve, certificate")
    found = ir_drop(point)
    clock.stop("nets, drops, pads")
    np.save(folder / "voltages.npy", point.voltages)
    return {
        "parts": clock.parts,
        "nodes": len(circuit.node_names),
        "elements": len(circuit),
        "violation": point.certificate.worst,
        "nets": [net._asdict() for net in found.nets],
    }


def superlu(deck: str, folder: Path) -> dict[str, Any]:
    """Reduced matrix, factor, one solution."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components
    from scipy.sparse.linalg import splu

    from circuitsim.circuit.elements import CURRENT, RESISTOR, VOLTAGE
    from circuitsim.netlist import read_deck

    kind, first, second, value, n = read_deck(deck).circuit.arrays()
    short = (kind == VOLTAGE) & (value == 0.0)
    ones = np.ones(int(short.sum()))
    groups, group = connected_components(coo_matrix((ones, (first[short], second[short])), (n, n)), directed=False)
    fixed = np.full(groups, np.nan)
    fixed[group[0]] = 0.0
    pads = np.flatnonzero((kind == VOLTAGE) & ~short)
    fixed[group[first[pads]]] = value[pads]  # every pad stands between a node and ground
    free = np.flatnonzero(np.isnan(fixed))
    number = np.full(groups, -1)
    number[free] = np.arange(free.size)
    r, i = kind == RESISTOR, kind == CURRENT
    a, b, g = group[first[r]], group[second[r]], 1.0 / value[r]
    whole = coo_matrix(
        (np.concatenate([g, g, -g, -g]), (np.concatenate([a, b, a, b]), np.concatenate([a, b, b, a]))), (groups, groups)
    ).tocsc()
    flow = np.bincount(group[second[i]], value[i], groups) - np.bincount(group[first[i]], value[i], groups)
    held = np.where(np.isnan(fixed), 0.0, fixed)
    matrix, right = whole[free][:, free].tocsc(), (flow - whole @ held)[free]
    clock = Clock()
    factor = splu(matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    clock.stop("factor")
    held[free] = factor.solve(right)
    clock.stop("solve")
    difference = float(np.max(np.abs(held[group] - np.load(folder / "voltages.npy"))))
    return {"parts": clock.parts, "unknowns": int(free.size), "nonzeros": int(factor.nnz), "difference": difference}


def child(part: str, deck: str, folder: Path, limit: int = 0) -> dict[str, Any]:
    """One part in a process of its own, with its peak of memory in MB; no more than that where ``limit`` ends it."""
    code = [sys.executable, __file__, "--part", part, "--folder", str(folder), "--limit", str(limit), deck]
    process = subprocess.Popen(code, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    peak = {"peak": usage.ru_maxrss / 1024}
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
        return peak
    if status:
        raise SystemExit(f"{part} failed")
    return {**json.loads(text), **peak}


def main(nodes: int, limit: int) -> None:
    """Write the deck, run both, print the page."""
    from circuitsim._version import __version__

    sys.path.insert(0, str(HERE))
    from deck import write

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = str(folder / "grid.spice")
        write(path, nodes)
        size = os.path.getsize(path)
        mine, other = child("ours", path, folder), child("superlu", path, folder, limit)
    total = [sum(part[k] for part in mine["parts"].values()) for k in (0, 1)]
    load = ", ".join(f"{x:.1f}" for x in os.getloadavg())
    print(f"# A power grid of {mine['nodes']:,} nodes\n")
    print(
        f"`python benchmarks/power_grid/run.py --nodes {nodes}`, circuitsim {__version__}, one thread, load {load}, "
        f"deck of {mine['elements']:,} elements, {size / 1e6:.0f} MB.\n"
    )
    print("| part | wall clock, s | processor, s |\n|---|---|---|")
    for part, (wall, busy) in mine["parts"].items():
        print(f"| circuitsim: {part} | {wall:.2f} | {busy:.2f} |")
    print(f"| **circuitsim, all** | **{total[0]:.2f}** | **{total[1]:.2f}** |")
    for part, (wall, busy) in other.get("parts", {}).items():
        print(f"| SuperLU: {part} (after reading, and matrix) | {wall:.2f} | {busy:.2f} |")
    print(f"\n- Peak of memory: circuitsim {mine['peak']:.0f} MB, SuperLU's process {other['peak']:.0f} MB.")
    print(f"- Worst violation of a law {mine['violation']:.1e} of its local scale (certified below 1e-9).")
    if "parts" in other:
        print(
            f"- SuperLU: {other['unknowns']:,} unknowns, {other['nonzeros']:,} entries of its factors; its "
            f"potentials differ by at most {other['difference']:.1e} V."
        )
    else:
        print(f"- SuperLU was stopped after {limit} s of processor time, its factors not finished.")
    for net in mine["nets"]:
        print(
            f"- Net of {net['nominal']:g} V: {net['nodes']:,} nodes, {net['pads']} pads, {net['current']:.4g} A, "
            f"worst drop {1e3 * net['worst']:.4g} mV at {net['worst_node']}."
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Time a power grid.")
    parser.add_argument("--nodes", type=int, default=1_700_000)
    parser.add_argument("--part", choices=("ours", "superlu"))
    parser.add_argument("--folder", type=Path, default=Path())
    parser.add_argument("deck", nargs="?")
    parser.add_argument("--limit", type=int, default=0, help="processor time after which SuperLU is stopped, s")
    chosen = parser.parse_args()
    if chosen.part:
        if chosen.limit:
            resource.setrlimit(resource.RLIMIT_CPU, (chosen.limit, chosen.limit + 60))
        found = {"ours": ours, "superlu": superlu}[chosen.part](chosen.deck, chosen.folder)
        print(json.dumps(found))
    else:
        main(chosen.nodes, chosen.limit)
