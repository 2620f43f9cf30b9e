"""Sensitivities of circuits that nothing makes well posed, against differences of exact operating points."""

from fractions import Fraction

import numpy as np
import pytest
from exact_controlled import Count, all_points
from hard_circuits import hard_circuit

import circuitsim
from circuitsim import Circuit
from circuitsim.circuit.elements import DIODE

STEP = 2.0**-16
"""Relative step of the differences."""


def exact_voltages(circuit: Circuit) -> list[Fraction] | None:
    """The potentials of the only operating point; None where there is none, another, or a diode is at a breakpoint."""
    exact = all_points(circuit)
    if exact is None or exact.count is not Count.UNIQUE:
        return None
    volts, amperes = exact.points[0]
    kind, first, second, _ = circuit.columns()
    diodes = [k for k in range(len(kind)) if kind[k] == DIODE]
    return None if any(volts[first[k]] == volts[second[k]] and not amperes[k] for k in diodes) else volts


def checked(seed: int) -> bool:
    """Whether a circuit has sensitivities: then three of them, chosen at random, are right."""
    circuit = hard_circuit(seed)
    if exact_voltages(circuit) is None:
        return False
    nodes = [f"v({name})" for name in circuit.node_names[1:]]
    found = circuitsim.sensitivity(circuit, nodes)
    random = np.random.default_rng(seed)
    for name in random.choice(found.names, min(3, len(found.names)), replace=False):
        at = list(found.names).index(name)
        number = float(found.numbers[at])
        if number == 0.0:
            continue
        ends = [number * (1.0 - STEP), number * (1.0 + STEP)]
        around = [exact_voltages(circuit.with_values({str(name): x})) for x in ends]
        half = [exact_voltages(circuit.with_values({str(name): 0.5 * (number + x)})) for x in ends]
        if None in around or None in half:
            continue
        wide, near = (
            [float((b - a) / (Fraction(high) - Fraction(low))) for a, b in zip(*pair)][1:]
            for pair, (low, high) in (
                (around, ends),
                (half, [0.5 * (number + x) for x in ends]),
            )
        )
        size = max(map(abs, near))
        if max(abs(a - b) for a, b in zip(wide, near)) > 1e-6 * size:
            continue  # a breakpoint or a pole is within the step
        assert found.derivative[:, at].tolist() == pytest.approx(near, rel=1e-5, abs=1e-6 * size + 1e-20), (
            f"{seed} {name}"
        )
    return True


def test_sensitivities_of_circuits_with_one_operating_point() -> None:
    assert sum(checked(seed) for seed in range(30)) >= 5


def test_an_unknown_that_is_zero_is_no_reason_to_refuse() -> None:
    """v(n1) = 2 v(n2): the multiplier of an equation is zero but for rounding."""
    circuit = circuitsim.loads(
        "t\nR2 n2 n1 2\nR3 n3 n1 1\nR4 n3 n2 1\nR5 n2 0 2\nR6 0 n2 2\nV1 n3 0 1\nE1 0 n1 0 n2 2\nG1 n2 n1 n2 0 2\n"
    )
    one, two = (circuitsim.sensitivity(circuit, f"v({node})").derivative[0] for node in ("n1", "n2"))
    gain = list(circuitsim.sensitivity(circuit, "v(n1)").names).index("E1")
    assert one[:gain].tolist() == pytest.approx((2.0 * two[:gain]).tolist(), rel=1e-12, abs=1e-15)
