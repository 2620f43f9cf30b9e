"""Crossbars with wire resistance: 60,000 products through two of them, and errors of other methods at equal inputs.

    python benchmarks/crossbar/run.py [--out benchmarks/results/crossbar.txt] [--images 60000] [--sizes 64,128]

Part one: a 784 × 256 and a 256 × 10 crossbar, from their conductances to the outputs of all images (generated: four
fifths of the pixels dark), seconds of one run, compiled kernels loaded before. Part two: the currents of eight inputs
by `circuitsim.CrossbarLayer`, by badcrossbar (extra ``bench-crossbar``; a sparse factor of all nodes for each call),
and by the fixed-point iteration common in simulators of crossbars (currents → voltage drops by cumulative sums →
currents, with relaxation, until no device's voltage changes by 2e-4 of the largest input). Errors are against operating
points certified to 1e-9, as shares of the largest current.
"""

from __future__ import annotations

import argparse
import logging
import os
import time
import warnings
from pathlib import Path

import numpy as np

from circuitsim import CrossbarLayer, prepared

INPUTS = 8
"""Inputs of the comparison."""
CHANGE = 2e-4
"""Where the fixed-point iteration stops."""
LOW, HIGH = 1e-6, 1e-4
"""Conductances of the comparison, S, uniform."""


def crossbar(rows: int, columns: int, low: float, high: float, seed: int) -> CrossbarLayer:
    """Random devices and wires of 1 Ω."""
    return CrossbarLayer(np.random.default_rng(seed).uniform(low, high, (rows, columns)))


def images(count: int) -> np.ndarray:
    """Inputs (count, 784) between 0 and 0.2 V."""
    rng = np.random.default_rng(0)
    found = rng.random((count, 784), dtype=np.float32)
    found[rng.random((count, 784), dtype=np.float32) < 0.8] = 0.0
    return 0.2 * found


def two_layers(count: int) -> list[str]:
    """The line of 60,000 images."""
    x = images(count)
    crossbar(64, 64, LOW, HIGH, 9).gradient(np.ones((1, 64)), np.ones((1, 64)))
    began, processor = time.perf_counter(), time.process_time()
    first, second = crossbar(784, 256, 1e-6, 1e-5, 0), crossbar(256, 10, 1e-6, 1e-5, 1)
    matrices = first.matrix, second.matrix
    made = time.perf_counter() - began
    hidden = np.maximum(first(x.astype(np.float64)), 0.0)
    out = second(hidden * (0.2 / hidden.max()))
    total, used = time.perf_counter() - began, time.process_time() - processor
    loss = 1.0 - matrices[0].sum() / first.conductance.sum()
    worst = max(layer.effective.relative_error for layer in (first, second))
    began = time.perf_counter()
    first.at(1.1 * first.conductance)
    again = time.perf_counter() - began
    return [
        f"{count:,} images through 784-256-10, wires of 1 Ω, devices of 1 to 10 µS ({loss:.0%} of the current lost):",
        f"  both matrices {made:.1f} s, all products {total - made:.1f} s, together {total:.1f} s ({used:.1f} s of "
        f"processor time); outputs {out.shape}",
        f"  bound on the error of an entry: {worst:.1e} of the largest",
        f"  new conductances of the first layer: {again:.1f} s",
    ]


def fixed_point(layer: CrossbarLayer, x: np.ndarray) -> tuple[np.ndarray, int]:
    """Currents (samples, columns) by relaxed fixed-point iteration, and the most iterations of a sample."""
    g, most = layer.conductance, 0
    found = np.empty((len(x), g.shape[1]))
    for s, volts in enumerate(x):
        relaxation = 0.9
        while True:
            drop, last = np.repeat(volts[:, None], g.shape[1], axis=1), np.inf
            count = 0
            while count < 1000:
                count += 1
                current = g * drop
                word = np.cumsum(np.cumsum(current[:, ::-1], axis=1)[:, ::-1], axis=1) * layer.word_wire
                bit = np.cumsum(np.cumsum(current, axis=0)[::-1], axis=0)[::-1] * layer.bit_wire
                change = volts[:, None] - word - bit - drop
                size = np.abs(change).max()
                if size > 2.0 * last or size < CHANGE * volts.max():
                    break
                drop, last = drop + relaxation * change, min(size, last)
            if size < CHANGE * volts.max():
                break
            relaxation *= 0.7
        found[s], most = (g * drop).sum(axis=0), max(most, count)
    return found, most


def by_badcrossbar(layer: CrossbarLayer, x: np.ndarray) -> np.ndarray:
    """Currents (samples, columns) by badcrossbar."""
    import badcrossbar

    options = {"node_voltages": False, "all_currents": False}
    r = 1.0 / layer.conductance
    return badcrossbar.compute(
        x.T, r, r_i_word_line=layer.word_wire, r_i_bit_line=layer.bit_wire, **options
    ).currents.output


def certified(layer: CrossbarLayer, x: np.ndarray) -> np.ndarray:
    """Currents (samples, columns) from operating points."""
    rows, columns = layer.conductance.shape
    ready, value = prepared(layer.circuit), layer.circuit.arrays().value.copy()
    found = np.empty((len(x), columns))
    for s, volts in enumerate(x):
        value[:rows] = volts
        found[s] = ready.solve(value).currents[rows : rows + columns]
    return found


def compared(size: int) -> list[str]:
    """Rows of the table of one size."""
    layer = crossbar(size, size, LOW, HIGH, size)
    x = np.random.default_rng(size).uniform(0.0, 0.2, (INPUTS, size))
    want = certified(layer, x)

    def row(name: str, seconds: float, found: np.ndarray, note: str = "") -> str:
        return f"{size:4d}²  {name:24s} {1e3 * seconds:10.2f} ms  {np.abs(found - want).max() / want.max():.1e}  {note}"

    lost = f"{1.0 - want.sum() / layer.ideal(x).sum():.0%} of the current lost"
    began = time.perf_counter()
    ours = layer(x)
    first = time.perf_counter()
    layer(x)
    rows = [row("this, eight products", first - began, ours, lost)]
    rows.append(row("this, eight more", time.perf_counter() - first, ours))
    for name, method in (("badcrossbar, one call", by_badcrossbar), ("fixed point, eight", fixed_point)):
        began = time.perf_counter()
        try:
            found = method(layer, x)
        except ImportError:
            rows.append(f"{size:4d}²  {name:24s} is not installed (pip install 'circuitsim[bench-crossbar]')")
            continue
        seconds, note = time.perf_counter() - began, ""
        if isinstance(found, tuple):
            found, note = found[0], f"at most {found[1]} iterations"
        rows.append(row(name, seconds, found, note))
    return rows


def main() -> None:
    """Run both parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--images", type=int, default=60_000)
    parser.add_argument("--sizes", default="64,128,256")
    arguments = parser.parse_args()
    logging.disable(logging.INFO)
    warnings.simplefilter("ignore", ImportWarning)
    lines = two_layers(arguments.images)
    lines += ["", "size   method                        seconds   error"]
    for size in arguments.sizes.split(","):
        lines += compared(int(size))
    lines.append(f"load {os.getloadavg()[0]:.1f}; command: python benchmarks/crossbar/run.py")
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if arguments.out:
        arguments.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
