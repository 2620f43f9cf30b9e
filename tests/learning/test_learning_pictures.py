"""Pictures of trained circuits that are too large for a schematic."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from circuitsim import circuit_block, loads
from circuitsim.learning.pictures import SCHEMATIC, draw_trained


def test_large_circuits_are_drawn_as_a_matrix(tmp_path: Path) -> None:
    lines = [f"R{k} a n{k % 9} {k + 1}" for k in range(SCHEMATIC)] + [f"Rg{k} n{k} 0 1" for k in range(9)]
    block = circuit_block(loads("\n".join(["dense", "V1 a 0 1", *lines, ""])), "V1", "v(n0)", "R* min=1m max=1k")
    path = tmp_path / "circuit.png"
    draw_trained(block, np.ones(1), path)
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" and path.stat().st_size > 5000
