"""Potentials that level pieces of tables leave open: their ranges against exact arithmetic."""

import numpy as np
import pytest
from exact_controlled import all_points
from level_tables import level_table

import circuitsim
from circuitsim import Circuit
from circuitsim.errors import NoSteadyStateError


def made(seed: int) -> Circuit:
    """Tables with level pieces and ideal diodes between parts, most of which have no path to ground but these."""
    rng = np.random.default_rng([seed, 77])
    n, circuit = int(rng.integers(3, 8)), Circuit(f"levels {seed}")
    names = ["0", *(f"n{k}" for k in range(1, n))]

    def pair() -> tuple[str, str]:
        a, b = rng.choice(n, 2, replace=False)
        return names[a], names[b]

    circuit.voltage_source("V1", "n1", "0", float(rng.choice([-5.0, 1.0, 2.0])))
    for k in range(2, n):
        if rng.random() < 0.6:
            circuit.resistor(f"R{k}", names[k], names[int(rng.integers(k))], float(rng.choice([1.0, 10.0, 1e3])))
    for k in range(int(rng.integers(1, 5))):
        if rng.random() < 0.75:
            circuit.device(f"D{k}", *pair(), level_table(rng))
        else:
            circuit.diode(f"D{k}", *pair())
    if rng.random() < 0.5:
        ends = pair()
        circuit.current_source("I1", *ends, float(rng.choice([1.0, 1e-3])))
        circuit.resistor("RI", *ends, float(rng.choice([1.0, 10.0])))
    return circuit


def test_ranges_of_potentials_are_exact() -> None:
    """Each node's range is the exact one, the potential shown lies in it, and nodes without one have no other."""
    free = held = 0
    for seed in range(110):
        circuit = made(seed)
        exact = all_points(circuit, ranges=True)
        assert exact is not None
        try:
            point = circuitsim.solve(circuit)
        except NoSteadyStateError:
            assert not exact.points and not exact.open, seed
            continue
        if any(warning.kind == "floating" for warning in point.warnings):
            continue  # potentials relative to a reference
        assert exact.ranges is not None and point.certificate.certified
        assert ("nonunique-potential" in [w.kind for w in point.warnings]) == bool(point.intervals), seed
        reach = 1e-9 * max(1.0, float(np.abs(point.voltages).max()))
        for name, volts, ends in zip(circuit.node_names, point.voltages.tolist(), exact.ranges):
            low, high = point.intervals.get(name, (volts, volts))
            assert all((a is None) == (b is None) for a, b in zip((low, high), ends)), (seed, name)
            assert all(a is None or abs(a - b) <= reach for a, b in zip((low, high), ends)), (seed, name)
            assert (low is None or low - reach <= volts) and (high is None or volts <= high + reach), (seed, name)
        free, held = free + bool(point.intervals), held + (not point.intervals)
    assert free >= 20 and held >= 50


ISLANDS = """two parts of a bridge that tables tie to ground
R1 n1 n2 1
I1 n1 n2 -40
R2 n2 n3 2
D1 n2 0 p
D2 0 n1 p
.model p PWL(0.9 0 1.3 0 1.7 1.2m)
"""


def test_drops_agree_with_potentials() -> None:
    """Each table has the voltage between its nodes: tangents of 1e100 Ω once shared the 40 V as they liked."""
    point = circuitsim.solve(circuitsim.loads(ISLANDS))
    assert point.intervals["n2"] == (pytest.approx(-41.3), pytest.approx(1.3))
    assert point.intervals["n1"] == (pytest.approx(-1.3), pytest.approx(41.3))
    drops = dict(zip(point.circuit.names, point.drops.tolist()))
    assert drops["D1"] == point["n2"] and drops["D2"] == -point["n1"]
    assert point["n1"] - point["n2"] == pytest.approx(40.0, rel=1e-12)


def test_a_tangent_that_touched_far_away_leaves_no_rounding() -> None:
    """The first tangent of D1 touches at 1e11 V: potentials from that step alone were 5 µV off."""
    circuit = circuitsim.loads(
        "t\nV1 n1 0 2\nR5 n5 n2 10\nR6 n6 0 10\nD0 n3 n1 a\nD1 n2 n1 b\nD2 n3 n6\nI1 n1 n3 1\nRI n1 n3 1\n"
        ".model a PWL(-1 0 2 0 5 2)\n.model b PWL(0 -1m 2 -1m 5 0)\n"
    )
    for point in (circuitsim.solve(circuit), circuitsim.prepared(circuit).solve({"V1": 2.0})):
        assert point["n2"] == pytest.approx(7.0, rel=1e-12) and point["n5"] == point["n2"]
        assert not point.intervals


def test_currents_that_are_noise_are_zero() -> None:
    """Nodes behind level pieces alone carry rounding, 1e-32 A beside 1e-7 A: it is not held against itself."""
    circuit = circuitsim.loads(
        "t\nD0 n12 n16 p0\nD1 0 n14\nR2 n8 n11 4\nR3 n16 n11 130\nR4 n3 n12 1\nR6 n4 n3 2\nD7 0 n6 p0\nV8 n1 n17 -68\n"
        "D9 n16 n6\nD11 n15 n1 p0\nD12 n17 0 p0\nR13 n17 n12 61u\nD16 n15 n11 p0\nR17 n4 n15 3145728\n"
        "R18 n12 n7 201326592\nR19 n8 n14 305u\nR20 n11 0 38u\nV22 n1 n7 12\nD23 n15 n2 p0\nD24 n3 n11 p0\n"
        ".model p0 PWL(-1.10843 0 0.878647 0 4.03742 1.19n 10.1578 44n 10.9336 354n 11.1439 354n)\n"
    )
    point = circuitsim.solve(circuit)
    assert point.certificate.certified and point.current("D11") == pytest.approx(354e-9)
