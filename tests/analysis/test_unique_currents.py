"""Whether each current is unique: diodes in parallel share any current that flows, however small beside others."""

import numpy as np
from exact_controlled import all_points

import circuitsim
from circuitsim import Circuit
from circuitsim.analysis.operating_point import Uniqueness


def drawn(seed: int, copies: int) -> Circuit:
    """A tree of resistors over sixteen decades with diodes, each ``copies`` times in parallel."""
    random = np.random.default_rng([seed, 9])
    n, circuit = int(random.integers(4, 9)), Circuit(f"diodes in parallel {seed}")
    names = ["0", *(f"n{k}" for k in range(1, n))]
    for k in range(1, n):
        circuit.resistor(
            f"R{k}", names[k], names[int(random.integers(k))], float(f"{10.0 ** random.uniform(-8, 8):.3g}")
        )
    for k in range(int(random.integers(1, 3))):
        a, b = random.choice(n, 2, replace=False)
        circuit.current_source(f"I{k}", names[a], names[b], float(random.choice([1e4, -1.0, 1e-3])))
    for k in range(int(random.integers(1, 4))):
        a, b = int(random.integers(1, n)), 0 if random.random() < 0.5 else int(random.integers(n))
        if a == b:
            continue
        for copy in range(copies):
            circuit.diode(f"D{k}{'ab'[copy]}", names[a], names[b])
    return circuit


def checked(seed: int) -> int:
    """How many pairs share a current: neither current is called unique; that of a single diode off all loops is."""
    alone, pairs = drawn(seed, 1), drawn(seed, 2)
    exact = all_points(alone)
    assert exact is not None
    if exact.open or len(exact.points) != 1:
        return 0
    point, (volts, amperes) = circuitsim.solve(pairs), exact.points[0]
    _, first, second, _ = alone.columns()
    count = 0
    for k, name in enumerate(alone.names):
        if name[0] != "D":
            continue
        flags = [bool(point.unique[pairs.element_index(f"{str(name)[:-1]}{copy}")]) for copy in "ab"]
        if amperes[k] > 0:
            assert flags == [False, False], (seed, name, float(amperes[k]))
            count += 1
        elif volts[first[k]] < volts[second[k]]:
            assert flags == [True, True], (seed, name)
    return count


def test_currents_that_diodes_in_parallel_share_are_not_unique() -> None:
    assert sum(checked(seed) for seed in range(60)) >= 20


def test_a_current_of_1e_17_beside_10_kiloampere() -> None:
    point = circuitsim.solve(
        circuitsim.loads("""t
D2 n1 0
R2 n1 n2 1971111.792932973
R4 n2 n3 1
D4 n1 0
R8 n3 n4 100MEG
I3 n4 0 -10000
R9 n5 0 1
R10 n3 0 1u
R12 n4 n5 1
""")
    )
    assert point.unique.tolist() == [False, True, True, False, True, True, True, True, True]
    assert [problem.kind for problem in point.warnings] == ["nonunique-current"]


def test_currents_that_diodes_share_beside_controlled_sources() -> None:
    """Section by section, and where controls form a loop."""
    sections = "D2 n1 0\nD4 n1 0\nI1 0 n1 1\nE1 b 0 n1 0 2\nR1 b 0 1\n"
    loop = "D2 n1 0\nD4 n1 0\nI1 0 n1 1\nR2 n1 b 1\nE1 c 0 b 0 .5\nR1 c b 1\n"
    for deck in (sections, loop):
        point = circuitsim.solve(circuitsim.loads(f"t\n{deck}"))
        assert point.uniqueness is Uniqueness.UNKNOWN
        assert point.unique.tolist() == [False, False] + [True] * (len(point.unique) - 2)
        assert [problem.kind for problem in point.warnings] == ["nonunique-current"]


def test_least_norm_currents_beside_controls_that_form_a_loop() -> None:
    """A diode beside two in series, a third way back that stays idle, and a diode beside a controlled source."""
    point = circuitsim.solve(
        circuitsim.loads("""t
I1 0 a 3
D1 a b
D2 b 0
D3 a 0
D4 0 a
R2 a c 1
E1 d 0 c 0 .5
R1 d c 1
E2 e 0 0 e 2
D5 e 0
I2 e 0 -1
""")
    )
    assert point.solver["name"] == "complementary-pivoting"
    shared = [point.current(name) for name in ("D1", "D2", "D3", "D4", "D5", "E2")]
    assert np.allclose(shared, [1.0, 1.0, 2.0, 0.0, 0.5, 0.5], atol=1e-12)
    assert point.certificate.certified and [problem.kind for problem in point.warnings] == ["nonunique-current"]
