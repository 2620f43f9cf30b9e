"""Arrays of nonlinear cells with wires, solved and certified: seconds and memory of one operating point.

    python benchmarks/crossbar/nonlinear.py 128 256 512

A cell is a selector (piecewise linear, 0.3 V, 100 Ω) in series with a device of i = 10 µS · 0.25 V · sinh(u / 0.25 V);
wires have 1 Ω from cell to cell. Columns end at ground through 1 Ω, rows are driven by 0.2 to 1 V.
"""

from __future__ import annotations

import argparse
import os
import resource
import time

import numpy as np

import circuitsim

HEAD = ["array", ".model selector D(vfwd=0.3 ron=100)", ".model cell SINH(G=10u V0=0.25)"]


def deck(side: int) -> str:
    """The array's deck."""
    volts = np.random.default_rng(0).uniform(0.2, 1.0, side)
    cards = [f"V{i} w{i}_0 0 {v:.6f}" for i, v in enumerate(volts.tolist())]
    cards += [f"RB{j} b{side - 1}_{j} 0 1" for j in range(side)]
    for i in range(side):
        for j in range(side):
            cards += [f"RW{i}_{j} w{i}_{j - 1} w{i}_{j} 1"] * (j > 0) + [f"RC{i}_{j} b{i - 1}_{j} b{i}_{j} 1"] * (i > 0)
            cards += [f"DS{i}_{j} w{i}_{j} m{i}_{j} selector", f"DC{i}_{j} m{i}_{j} b{i}_{j} cell"]
    return "\n".join([*HEAD, *cards, ""])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sides", type=int, nargs="+")
    print("# Arrays of nonlinear cells with wires\n")
    print("| cells | nodes | Newton steps | seconds | worst violation | memory so far, GB |\n|---|---|---|---|---|---|")
    for side in parser.parse_args().sides:
        circuit = circuitsim.loads(deck(side))
        circuitsim.solve(circuit)
        begin = time.perf_counter()
        point = circuitsim.prepared(circuit).solve()
        seconds, memory = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(
            f"| {side}² | {len(circuit.node_names):,} | {point.solver['newton_steps']} | {seconds:.2f} | "
            f"{point.certificate.worst:.0e} | {memory:.2f} |",
            flush=True,
        )
    print(f"\nLoad {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors.")


if __name__ == "__main__":
    main()
