"""Currents of the small driver: dangling parts, wires with little current, weak ties."""

from decimal import Decimal, getcontext

import numpy as np
import pytest

import circuitsim

DANGLING = """resistors before blocking diodes, and between nodes that are one
V1 s 0 0.7
R1 s a 3.3
D1 out a ideal
R2 s out 7.1
R3 out 0 0.9
D2 out b ideal
R4 b 0 1.7
R5 out c 3.7
R6 c b 1.9
R7 c d 1.3
R8 d e 0.3
R9 d e 0.7
.model ideal D
"""


def test_nothing_flows_in_parts_that_hang_on_one_node() -> None:
    circuit = circuitsim.loads(DANGLING)
    point, batch = circuitsim.solve(circuit), circuitsim.batched(circuit, ["V1"]).solve(np.array([[0.1], [0.7], [2.0]]))
    # D1 blocks, D2 makes b and out one node: R5 and R6 lead from it to c, R7 on to d, R8 and R9 to e.
    assert point.voltage("s", "a") == 0.0 and point["c"] == point["d"] == point["e"] == point["out"] == point["b"]
    for name in ("R1", "R5", "R6", "R7", "R8", "R9", "D1"):
        assert point.current(name) == 0.0 and (batch.current(name) == 0.0).all()
    load = 1.0 / (1.0 / 0.9 + 1.0 / 1.7)
    assert point["out"] == pytest.approx(0.7 * load / (7.1 + load), rel=1e-14)
    assert point.current("D2") == pytest.approx(point["out"] / 1.7, rel=1e-13)
    assert point.certificate.worst < 1e-13


def decimal_ladder(series: np.ndarray, shunt: np.ndarray, fed: np.ndarray) -> tuple[list[Decimal], list[Decimal]]:
    """Currents in the resistors between the nodes of a ladder and in those to ground, A, in sixty digits."""
    getcontext().prec = 60
    g, h = [1 / Decimal(r) for r in series.tolist()], [1 / Decimal(r) for r in shunt.tolist()]
    pivot, right = [], []
    for k, into in enumerate(fed.tolist()):
        left = g[k - 1] if k else Decimal(0)
        pivot.append(h[k] + left + (g[k] if k < len(g) else 0) - (left * left / pivot[-1] if k else 0))
        right.append(Decimal(into) + (left * right[-1] / pivot[-2] if k else 0))
    v = [right[-1] / pivot[-1]]
    for k in range(len(g) - 1, -1, -1):
        v.append((right[k] + g[k] * v[-1]) / pivot[k])
    v.reverse()
    return [c * (a - b) for c, a, b in zip(g, v, v[1:])], [c * a for c, a in zip(h, v)]


def test_ground_is_the_only_node() -> None:
    point = circuitsim.solve(circuitsim.loads("t\nR0 0 0 2\nC1 0 0 1m\n"))
    assert not point.currents.any() and point.certificate.worst == 0.0


def test_currents_of_long_ladders_are_proven_where_they_are() -> None:
    n, rng = 4000, np.random.default_rng(6)
    series, shunt = np.exp(0.5 * rng.standard_normal(n - 1)), 20.0 * np.exp(0.5 * rng.standard_normal(n))
    fed = np.where(rng.random(n) < 0.1, rng.uniform(-0.1, 0.1, n), 0.0)
    lines = ["ladder", *(f"R{k} {k + 1} {k + 2} {r!r}" for k, r in enumerate(series.tolist()))]
    lines += [f"RS{k} {k + 1} 0 {r!r}" for k, r in enumerate(shunt.tolist())]
    lines += [f"I{k} 0 {k + 1} {i!r}" for k, i in enumerate(fed.tolist()) if i]
    point = circuitsim.solve(circuitsim.loads("\n".join(lines)))
    along, down = decimal_ladder(series, shunt, fed)
    at_node = np.abs(np.array(down, dtype=float))
    for k, i in enumerate(along):
        at_node[k : k + 2] = np.maximum(at_node[k : k + 2], abs(float(i)))
    for k, i in enumerate(along):
        assert abs(point.current(f"R{k}") - float(i)) <= 1e-9 * max(at_node[k], at_node[k + 1])
    for k, i in enumerate(down):
        assert point.current(f"RS{k}") == pytest.approx(float(i), rel=1e-9)


def test_a_resistor_that_alone_ties_a_part_to_ground_carries_nothing() -> None:
    deck = "t\nV1 a b 0.3\nR1 a c 1.1\nR2 c b 0.7\nI1 c a 0.07\nR3 c 0 1k\nR4 c d 1meg\n"
    point = circuitsim.solve(circuitsim.loads(deck))
    assert point["c"] == point["d"] == 0.0 and not point.currents[[4, 5]].any()
    assert point["a"] - point["b"] == pytest.approx(0.3, abs=1e-16) and "one kernel" in str(point.solver["why"])
