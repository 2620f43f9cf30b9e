"""Currents of the small driver without a spanning tree: dangling parts, wires with little current, weak ties."""

from __future__ import annotations

import numpy as np
import pytest

import circuitsim
from circuitsim.analysis import small_circuit


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the kernels that a solve asks for."""
    asked: list[str] = []
    ask = small_circuit.small_kernel

    def small_kernel(name: str, size: int):
        asked.append(name)
        return ask(name, size)

    monkeypatch.setattr(small_circuit, "small_kernel", small_kernel)
    return asked


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


def test_nothing_flows_in_parts_that_hang_on_one_node(calls: list[str]) -> None:
    point = circuitsim.solve(circuitsim.loads(DANGLING))
    assert "refine_once" not in calls
    # D1 blocks, D2 makes b and out one node: R5 and R6 lead from it to c, R7 on to d, R8 and R9 to e.
    assert point.voltage("s", "a") == 0.0 and point["c"] == point["d"] == point["e"] == point["out"] == point["b"]
    for name in ("R1", "R5", "R6", "R7", "R8", "R9", "D1"):
        assert point.current(name) == 0.0
    load = 1.0 / (1.0 / 0.9 + 1.0 / 1.7)
    assert point["out"] == pytest.approx(0.7 * load / (7.1 + load), rel=1e-14)
    assert point.current("D2") == pytest.approx(point["out"] / 1.7, rel=1e-13)
    assert point.certificate.worst < 1e-13


def test_wires_with_little_current_need_no_tree(calls: list[str]) -> None:
    m, rng = 8, np.random.default_rng(2)
    cell = 1.0 / 10.0 ** rng.uniform(-6.0, -4.0, (m, m))
    lines = ["crossbar without columns' resistance", "V1 s 0 0.5"]
    for i in range(m):
        for j in range(m):
            before = f"r{i}_{j - 1}" if j else "s"
            lines += [f"RW{i}_{j} {before} r{i}_{j} 1", f"RC{i}_{j} r{i}_{j} 0 {cell[i, j]:.17g}"]
    point = circuitsim.solve(circuitsim.loads("\n".join(lines)))
    assert "refine_once" not in calls
    for i in range(m):
        # The resistance of what lies behind each wire, from the far end; then the currents from the near end.
        behind = np.empty(m)
        for j in range(m - 1, -1, -1):
            beyond = 1.0 / (behind[j + 1]) if j + 1 < m else 0.0
            behind[j] = 1.0 + 1.0 / (beyond + 1.0 / cell[i, j])
        v = 0.5
        for j in range(m):
            current = v / behind[j]
            assert point.current(f"RW{i}_{j}") == pytest.approx(current, rel=1e-13)
            v *= (behind[j] - 1.0) / behind[j]
    drop = point.drops[[point.circuit.element_index(f"RW{i}_{m - 1}") for i in range(m)]]
    assert drop == pytest.approx([point.current(f"RW{i}_{m - 1}") for i in range(m)], rel=1e-15)


def test_batches_take_the_same_currents() -> None:
    circuit = circuitsim.loads(DANGLING)
    batch = circuitsim.batched(circuit, ["V1"]).solve(np.linspace(0.1, 2.0, 20)[:, None])
    assert batch.certified.all()
    for name in ("R1", "R5", "R6", "R7", "R8", "R9", "D1"):
        assert (batch.current(name) == 0.0).all()
