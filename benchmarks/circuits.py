"""Circuits that several benchmarks share, as netlist text: the same arguments give the same text."""

from __future__ import annotations

import math

import numpy as np


def ends(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Pairs of nodes, one a row."""
    return np.stack([first.ravel(), second.ravel()], axis=1)


def cards(letter: str, pairs: np.ndarray, values: np.ndarray | None = None) -> list[str]:
    """Cards of one kind; node 0 is ground, without values the elements are ideal diodes."""
    words = [
        "" if values is None else f" {value!r}"
        for value in (np.zeros(len(pairs)) if values is None else values).tolist()
    ]
    return [f"{letter}{k} {a} {b}{word}" for k, ((a, b), word) in enumerate(zip(pairs.tolist(), words))]


def mesh(m: int, seed: int = 0) -> str:
    """m² nodes; conductances e^(½ N(0, 1)) S, three edges in ten beside an ideal diode of random direction, 1 V through
    1 S on the left, 1 S to ground on the right, one node in twenty fed up to 0.1 A."""
    rng = np.random.default_rng(seed)
    node = np.arange(m * m).reshape(m, m) + 2
    edges = np.concatenate([ends(node[:, :-1], node[:, 1:]), ends(node[:-1], node[1:])])
    diodes = edges[rng.random(len(edges)) < 0.3]
    turned = rng.random(len(diodes)) < 0.5
    diodes[turned] = diodes[turned][:, ::-1]
    fed = rng.integers(2, m * m + 2, m * m // 20)
    ohms = np.exp(-0.5 * rng.normal(size=len(edges)))
    ones = np.ones(m, dtype=int)
    resistors = np.concatenate([edges, ends(ones, node[:, 0]), ends(node[:, -1], 0 * ones)])
    lines = [
        f"mesh {m} x {m}",
        *cards("R", resistors, np.concatenate([ohms, np.ones(2 * m)])),
        *cards("D", diodes),
        "V0 1 0 1",
        *cards("I", ends(0 * fed, fed), rng.uniform(-0.1, 0.1, fed.size)),
    ]
    return "\n".join([*lines, ""])


def junctions(count: int) -> str:
    """A mesh of 1 kΩ e^(½ N(0, 1)) with so many junction diodes beside 30 % of its edges, a volt a column across it."""
    m = max(3, round((1.0 + math.sqrt(1.0 + 4.0 * count / 0.6)) / 2.0))
    rng = np.random.default_rng([0, m, 9])
    node = np.arange(m * m).reshape(m, m) + 2
    edges = np.concatenate([ends(node[:, :-1], node[:, 1:]), ends(node[:-1], node[1:])])
    ohms = 1e3 * np.exp(0.5 * rng.standard_normal(len(edges)))
    chosen = edges[rng.permutation(len(edges))[:count]]
    chosen = np.where(rng.random((len(chosen), 1)) < 0.5, chosen, chosen[:, ::-1])
    ones = np.ones(m, dtype=int)
    resistors = np.concatenate([edges, ends(ones, node[:, 0]), ends(node[:, -1], 0 * ones)])
    lines = ["mesh of junction diodes", f"V0 1 0 {m}", ".model junction D(IS=1e-14)"]
    lines += cards("R", resistors, np.concatenate([ohms, np.full(2 * m, 1e3)]))
    return "\n".join([*lines, *(f"{card} junction" for card in cards("D", chosen)), ""])


def stages(count: int) -> str:
    """Inverting op-amp stages of gain 1e5 in a row, with a rectifier and its load behind each."""
    lines = ["op-amp stages", "V0 o0 0 1"]
    for k in range(1, count + 1):
        lines += [
            f"RA{k} o{k - 1} n{k} 1k",
            f"RB{k} n{k} o{k} {1e3 * (1.0 + 0.1 * (k % 3 - 1))!r}",
            f"E{k} o{k} 0 0 n{k} 1e5",
            f"D{k} o{k} d{k}",
            f"RL{k} d{k} 0 10k",
        ]
    return "\n".join([*lines, ""])


def crossbar(side: int) -> str:
    """side × side cells of 10 kΩ to 1 MΩ between wires of 1 Ω; rows driven through 1 Ω, columns grounded by 1 Ω."""
    rng, cells = np.random.default_rng(0), side * side
    row = 1 + np.arange(cells).reshape(side, side)
    column, source = row + cells, 1 + 2 * cells + np.arange(side)
    wires = [ends(row[:, :-1], row[:, 1:]), ends(column[:-1], column[1:]), ends(source, row[:, 0])]
    wires.append(ends(column[-1], 0 * source))
    ohms = 1.0 / rng.uniform(1e-6, 1e-4, cells)
    pairs = np.concatenate([ends(row, column), *wires])
    values = np.concatenate([ohms, np.ones(len(pairs) - cells)])
    return "\n".join(["crossbar", *cards("R", pairs, values), *cards("V", ends(source, 0 * source), np.ones(side)), ""])


def layer(side: int, diodes: int) -> tuple[str, list[str]]:
    """A mesh of resistors e^±1 Ω with diodes across cells and four sources V0 to V3; the eight nodes that are read."""
    rng = np.random.default_rng(0)
    node = 1 + np.arange(side * side).reshape(side, side)
    edges = np.concatenate([ends(node[:-1], node[1:]), ends(node[:, :-1], node[:, 1:]), [[node[-1, -1], 0]]])
    cells = ends(node[:-1, :-1], node[1:, 1:])
    chosen = cells[rng.permutation(len(cells))[:diodes]]
    chosen = np.where(rng.random((len(chosen), 1)) < 0.5, chosen, chosen[:, ::-1])
    places = 1 + rng.permutation(side * side - 1)[:12]
    ohms = np.exp(rng.uniform(-1.0, 1.0, len(edges)))
    sources = cards("V", ends(places[:4], 0 * places[:4]), np.ones(4))
    text = "\n".join(["layer", *cards("R", edges, ohms), *cards("D", chosen), *sources, ""])
    return text, [str(k) for k in places[4:].tolist()]


def tolerances(side: int = 10, diodes: int = 10) -> str:
    """A square mesh of 0.5 to 2 kΩ with 5 V, a load, and diodes between random nodes."""
    rng = np.random.default_rng(1)
    node = 1 + np.arange(side * side).reshape(side, side)
    edges = np.concatenate([ends(node[:-1], node[1:]), ends(node[:, :-1], node[:, 1:]), [[node[-1, -1], 0]]])
    ohms = rng.uniform(500.0, 2000.0, len(edges))
    pairs = np.array([rng.choice(side * side, 2, replace=False) + 1 for _ in range(diodes)]).reshape(-1, 2)
    return "\n".join(["mesh", *cards("R", edges, ohms), *cards("D", pairs), "V1 1 0 5", ""])


BUCK = """buck converter: 12 V at 40 % of 100 kHz; V1 is the pulse
V1 s 0 0
D1 s a
D2 0 a
L1 a out 1e-4
C1 out 0 1e-5
R1 out 0 5
"""


def bridge() -> str:
    """10 V behind 1 Ω, four diodes, 100 µF and 1 kΩ."""
    diodes = [f"D{k} {pair}" for k, pair in enumerate(("s p", "b p", "m s", "m b"))]
    return "\n".join(
        ["bridge rectifier", "V0 a b 0", "Rs a s 1", "Rg b 0 1e6", *diodes, "C1 p m 1e-4", "R1 p m 1e3", ""]
    )


def six_pulse() -> str:
    """Three phases of 10 V behind 0.5 Ω, six diodes, 100 µF and 100 Ω."""
    lines = ["six-pulse rectifier", "C1 p m 1e-4", "R1 p m 100", "Rg m 0 1e6"]
    for k in range(3):
        lines += [f"V{k} a{k} 0 0", f"Rs{k} a{k} s{k} 0.5", f"DP{k} s{k} p", f"DM{k} m s{k}"]
    return "\n".join([*lines, ""])


def cascade(count: int = 20) -> str:
    """Cockcroft–Walton: 10 V behind 10 Ω, stages of 1 µF, 10 MΩ; its output is l<count − 1>."""
    lines, lower, upper = ["cascade", "V0 a 0 0", "Rs a s 10"], "0", "s"
    for k in range(count):
        lines += [f"CA{k} {upper} u{k} 1e-6", f"DA{k} {lower} u{k}", f"DB{k} u{k} l{k}", f"CB{k} {lower} l{k} 1e-6"]
        lower, upper = f"l{k}", f"u{k}"
    return "\n".join([*lines, f"RL {lower} 0 1e7", ""])


RECTIFIERS = {
    "bridge": (bridge(), 1, ("p", "m")),
    "six-pulse": (six_pulse(), 3, ("p", "m")),
    "cascade": (cascade(), 1, ("l19", "0")),
}
"""Name → text, phases of 10 V and 50 Hz in V0, V1, …, and the output."""


def capacitors(side: int = 100, diodes: int = 100, sources: int = 16) -> tuple[str, dict[str, tuple[float, ...]]]:
    """1 kΩ between neighbours, 1 nF at each node, clamping diodes; its sources over time (amplitude and frequency
    of a sine, or the seven numbers of a pulse)."""
    spots = np.random.default_rng(1).permutation(side * side)[: sources + diodes].tolist()
    lines, waves = ["mesh of capacitors"], dict[str, tuple[float, ...]]()
    for k in range(side * side):
        lines.append(f"C{k} n{k} 0 1e-9")
        for other, there in ((k + 1, (k + 1) % side != 0), (k + side, k + side < side * side)):
            lines += [f"R{k}_{other} n{k} n{other} 1e3"] * there
    for j, k in enumerate(spots[:sources]):
        lines += [f"V{j} s{j} 0 0", f"RS{j} s{j} n{k} 100"]
        waves[f"V{j}"] = (5.0, 1e3 * (1 + j % 4)) if j % 2 else (0.0, 5.0, 1e-5 * j, 1e-5, 1e-5, 2e-4, 5e-4)
    for j, k in enumerate(spots[sources:]):
        lines += [f"RD{j} n{k} d{j} 100", f"D{j} d{j} 0" if j % 2 else f"D{j} 0 d{j}"]
    return "\n".join([*lines, ""]), waves
