"""Blocks of every family: certified states, minima, derivatives, nudges of any size, sweeps as backpropagation."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from energy_blocks import (
    BUFFERED,
    CIRCUITS,
    EXACT,
    LAYERS,
    ONE,
    SWEPT,
    WEIGHT,
    agree,
    deep,
    hopfield,
    made,
    random_case,
    resistive,
    slopes,
)

import circuitsim
from circuitsim import Circuit, circuit_block, loads
from circuitsim.blocks import EnergyBlock, Nudge
from circuitsim.errors import CircuitError, NoEnergyError, TopologyError, UnboundedError, UsageError
from circuitsim.ffebm import ConvolutionalHopfieldBlock, DeepHopfieldBlock, ResistiveBlock, Sweeps
from circuitsim.netlist.roles import Roles, make_roles

EVERY = [*CIRCUITS, *SWEPT]


@pytest.mark.parametrize("name", [*EVERY, "buffered"])
@pytest.mark.filterwarnings("ignore::circuitsim.errors.DeckWarning")
def test_implicit_derivatives_are_difference_quotients_of_outputs(name: str) -> None:
    block, x = (circuit_block(loads(BUFFERED), tolerance=1e-11), ONE) if name == "buffered" else made(name)
    assert isinstance(block, EnergyBlock) and x.shape[1] == block.n_inputs
    free, weight = block.relax(x), WEIGHT[: len(x)]
    assert free.certified.all() and free.output.shape == (len(x), block.n_outputs)
    cotangent = np.random.default_rng(1).normal(size=free.output.shape)
    parameters, inputs = block.implicit(free, x, cotangent, weight)
    assert set(parameters) == set(block.parameters)
    found = {**parameters, "x": inputs * weight[:, None]}
    for own, step, slope in slopes(block, x, lambda: weight @ (block.relax(x).output * cotangent).sum(axis=1)):
        agree(found[own], step, slope, own)


@pytest.mark.parametrize("name", EVERY)
def test_contrasts_are_derivatives_of_the_least_energy_at_nudges_of_any_size(name: str) -> None:
    """d(min F)/dθ = ∂E/∂θ, F = E + linear · o + ½ stiffness ‖o‖² (Theorem 3: the gradient of a finite contrast)."""
    block, x = made(name)
    free, weight, rng = block.relax(x), WEIGHT[: len(x)], np.random.default_rng(2)
    size = 0.3 * free.output.std()
    if hasattr(block, "stiffness_limit"):
        size *= block.stiffness_limit()
    # Outputs of different gain share no conductance.
    stiffness = [0.0, 0.0] if name == "amplified layers" else [size, -0.1 * size * ("devices" not in name)]
    pulls = [Nudge(size * rng.normal(size=free.output.shape), each) for each in stiffness]

    def least(nudge: Nudge) -> np.ndarray:
        state = block.relax(x, nudge, free)
        tilt = (nudge.linear * state.output).sum(axis=1) + 0.5 * nudge.stiffness * (state.output**2).sum(axis=1)
        return block.energy(state, x) + tilt

    plus, minus = (block.relax(x, nudge, free) for nudge in pulls)
    assert plus.certified.all() and minus.certified.all()
    found = block.parameter_difference(plus, minus, x, weight)
    found["x"] = block.input_difference(plus, minus, x) * weight[:, None]
    for own, step, slope in slopes(block, x, lambda: weight @ (least(pulls[0]) - least(pulls[1]))):
        agree(found[own], step, slope, own)


@pytest.mark.parametrize("name", EVERY)
def test_constant_nudges_of_either_sign_contrast_to_the_implicit_derivatives(name: str) -> None:
    block, x = made(name)
    free, weight = block.relax(x), WEIGHT[: len(x)]
    cotangent = np.random.default_rng(3).normal(size=free.output.shape)
    beta = 1e-5 * getattr(block, "stiffness_limit", lambda: 1.0)()
    plus, minus = (block.relax(x, Nudge(sign * beta * cotangent), free) for sign in (1.0, -1.0))
    exact, inputs = block.implicit(free, x, cotangent, weight)
    for own, value in block.parameter_difference(plus, minus, x, weight).items():
        np.testing.assert_allclose(value / (2 * beta), exact[own], rtol=0, atol=1e-8 * np.abs(exact[own]).max() + 1e-10)
    found = block.input_difference(plus, minus, x) / (2 * beta)
    np.testing.assert_allclose(found, inputs, rtol=0, atol=1e-8 * np.abs(inputs).max() + 1e-10)


@pytest.mark.parametrize("name", SWEPT)
def test_every_nudged_sweep_is_a_step_of_backpropagation(name: str) -> None:
    """The GDU property (Nest & Ernoult 2024, Eq. 98): contrasts, truncated derivatives, and the sweeps differentiated.

    Networks whose nudged sweeps go forwards have the property of sweeps in reverse when asked for these.
    """
    block, x = made(name)
    free, weight = block.relax(x), WEIGHT[: len(x)]
    cotangent = np.random.default_rng(4).normal(size=free.output.shape)
    for sweeps in (1, 2, 3, 6):
        block.sweeps = Sweeps(sweeps, sweeps)
        plus, minus = (block.relax(x, Nudge(sign * 1e-4 * cotangent), free) for sign in (1.0, -1.0))
        truncated, back = block.truncated(free, x, cotangent, weight, sweeps)
        for own, value in block.parameter_difference(plus, minus, x, weight).items():
            np.testing.assert_allclose(value / 2e-4, truncated[own], rtol=0, atol=1e-10, err_msg=own)
        np.testing.assert_allclose(block.input_difference(plus, minus, x) / 2e-4, back, rtol=0, atol=1e-10)
        found = {**truncated, "x": back * weight[:, None]}
        value = lambda: weight @ (block.relax(x, None, free).output * cotangent).sum(axis=1)  # noqa: E731
        for own, step, slope in slopes(block, x, value):
            agree(found[own], step, slope, own)
    if len(block.options.get("layers", ())) > 2:
        block.sweeps = Sweeps(2, 2, reverse_nudged=False)
        plus, minus = (block.relax(x, Nudge(sign * 1e-4 * cotangent), free) for sign in (1.0, -1.0))
        exact = block.truncated(free, x, cotangent, weight, 2)[0]
        forwards = block.parameter_difference(plus, minus, x, weight)
        assert max(np.abs(value / 2e-4 - exact[own]).max() for own, value in forwards.items()) > 1e-4


@pytest.mark.parametrize("name", SWEPT)
def test_every_sweep_is_an_exact_descent_to_a_certified_minimum(name: str) -> None:
    block, x = made(name)
    final, energies = block.relax(x), []
    for sweeps in range(1, 9):
        block.sweeps = Sweeps(sweeps, 1)
        state = block.relax(x)
        energies.append(block.energy(state, x))
        assert state.sweeps == sweeps and state.certified.all()
    assert (np.diff([*energies, block.energy(final, x)], axis=0) <= 1e-14 * np.abs(energies[-1])).all()
    assert final.residual.max() < 1e-13 and final.sweeps < 5000
    block.sweeps = Sweeps(1, 1, 1e-13)
    assert block.relax(x).certified.all() == (len(state.layers) == 1)


def as_circuit(block: ResistiveBlock, x: np.ndarray) -> Circuit:
    """A resistive block as elements; node nL_K is unit K of layer L."""
    circuit, (parameters, options) = Circuit(), (block.parameters, block.options)
    if options["inputs"] is None:
        for k, current in enumerate(x):
            circuit.current_source(f"Ix{k}", "0", f"n1_{k}", current)
    else:
        for j, volts in enumerate(np.concatenate([x, -x]) * options["gain"]):
            circuit.voltage_source(f"V{j}", f"n0_{j}", "0", volts)
    for name, g in parameters.items():
        if name.startswith("conductances"):
            level = int(name[12:])
            for j, k in zip(*np.nonzero(g), strict=True):
                circuit.resistor(f"R{level}_{j}_{k}", f"n{level}_{j}", f"n{level + 1}_{k}", 1 / g[j, k])
    for level, units in enumerate(options["layers"], start=1):
        for k in range(units):
            node = f"n{level}_{k}"
            circuit.current_source(f"Ib{level}_{k}", "0", node, parameters[f"bias{level}"][k])
            if options["leak"]:
                circuit.resistor(f"Rl{level}_{k}", node, "0", 1 / options["leak"])
            if level < len(options["layers"]):
                circuit.diode(f"D{level}_{k}", *(("0", node) if k < units // 2 else (node, "0")))
    return circuit


@pytest.mark.parametrize("name", [*CIRCUITS, *(name for name in SWEPT if "resistive" in name or "network" in name)])
def test_states_free_and_nudged_are_certified_operating_points(name: str) -> None:
    """A nudge is a current into each output and a resistor across it; a positive one is an element."""
    block, x = made(name)
    pull = 0.1 * np.random.default_rng(5).normal(size=(len(x), block.n_outputs))
    # Behind gains a nudge is not a current of this size, but one that spends the same power.
    for nudge in [None] if "amplified" in name else [None, Nudge(pull, 0.5)]:
        state = block.relax(x, nudge)
        energy = block.energy(state, x)
        for row in range(len(x)):
            if name in CIRCUITS:
                circuit = block.trained().with_values(dict(zip(block.roles.inputs, x[row].tolist())))
                pairs = list(block.roles.outputs)
            else:
                circuit = block.to_circuit(x[row]) if hasattr(block, "to_circuit") else as_circuit(block, x[row])
                last = "out{}" if hasattr(block, "to_circuit") else f"n{len(block.options['layers'])}_{{}}"
                pairs = [(last.format(k + hasattr(block, "to_circuit")), "0") for k in range(block.n_outputs)]
            for k, (p, q) in enumerate(pairs if nudge else []):
                circuit.current_source(f"Inudge{k}", p, q, float(pull[row, k]))
                circuit.resistor(f"Rnudge{k}", p, q, 2.0)
            point = circuitsim.solve(circuit)
            assert point.certificate.certified
            expected = [point[p] - (0.0 if q == "0" else point[q]) for p, q in pairs]
            np.testing.assert_allclose(state.output[row], expected, atol=1e-9)
            if name in CIRCUITS:
                nodes = len(circuit.node_names)
                np.testing.assert_allclose(state.voltages[row, :nodes], point.voltages, rtol=1e-9, atol=1e-9)
                own = [k for k, e in enumerate(block.whole) if e.kind in ("resistor", "voltage source")]
                np.testing.assert_allclose(state.current[row, own], point.currents[own], rtol=1e-7, atol=1e-9)
            if nudge is None and "devices" not in name:
                assert energy[row] == pytest.approx(point.energy, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", ["circuit 3", "amplified layers"])
def test_clamped_outputs_are_held_by_sources_and_nothing_else_changes(name: str) -> None:
    first, x = made(name)
    for block in (first, first.at({own: 1.5 * array for own, array in first.parameters.items()})):
        free = block.relax(x)
        np.testing.assert_allclose(block.clamp(x, free.output, free).voltages, free.voltages, atol=1e-9)
        wanted = 1.01 * free.output
        held = block.clamp(x, wanted, free)
        np.testing.assert_allclose(held.output, wanted, rtol=1e-9)
        circuit = block.trained().with_values(dict(zip(block.roles.inputs, x[0].tolist())))
        for k, ((p, q), volts) in enumerate(zip(block.roles.outputs, wanted[0].tolist())):
            circuit.voltage_source(f"Vheld{k}", p, q, volts)
        np.testing.assert_allclose(held.voltages[0], circuitsim.solve(circuit).voltages, atol=1e-9)


CURVED = {
    "resistive": lambda: resistive([8, 8, 2], inputs=3),
    "deep resistive network": lambda: deep(9, 8),
    "hopfield": lambda: hopfield([6, 5, 4], clamped=False, inputs=3, spread=0.9),
}


@pytest.mark.parametrize("name", CURVED)
def test_a_nudge_is_certified_as_far_as_it_leaves_the_energy_convex(name: str) -> None:
    """Up to the least eigenvalue of S = (change of output by a nudging current)⁻¹, of units that are not at bounds.

    Less than the conductance of each output alone; counted out beyond, whatever the sweeps find.
    """
    block = CURVED[name]()
    x = np.random.default_rng(1).uniform(-0.5, 0.9, (3, block.n_inputs))
    free, zero = block.relax(x), np.zeros((3, block.n_outputs))
    columns = []
    for unit in np.eye(block.n_outputs):
        ends = [block.relax(x, Nudge(zero + sign * 1e-6 * unit), free).output for sign in (1.0, -1.0)]
        columns.append((ends[1] - ends[0]) / 2e-6)
    limits = np.linalg.eigvalsh(np.linalg.inv(np.stack(columns, axis=2)))[:, 0]
    assert (limits > 0.0).all()
    for sample, limit in enumerate(limits):
        row = slice(sample, sample + 1)
        alone = block.relax(x[row])
        for share in (0.97, 1.03):
            block.sweeps = Sweeps(5000, 20)
            # The output stays where it is, and so do all units: a nudge about the free output.
            nudge = Nudge(share * limit * alone.output, -share * limit)
            assert block.relax(x[row], nudge, alone).certified[0] == (share < 1.0)
            block.sweeps = EXACT
        assert block.relax(x[row], Nudge(zero[row], 5.0 * limit), alone).certified[0]


def test_the_limit_of_a_circuit_is_that_of_its_blocking_diodes() -> None:
    case = random_case(0)
    block, zero = case.block(), np.zeros((6, 2))
    limit = block.stiffness_limit()
    bare = Circuit()
    for element in case.circuit:
        if element.kind != "ideal diode":
            getattr(bare, element.kind.replace(" ", "_"))(element.name, element.first, element.second, element.value)
    linear = circuit_block(bare, "V1 V2 I1", "v(n8) v(n7,n4)", "R*")
    columns = [
        np.diff([linear.relax(case.x, Nudge(zero + s * u)).output for s in (1, 0)], axis=0)[0, 0] for u in np.eye(2)
    ]
    assert limit == pytest.approx(np.linalg.eigvalsh(np.linalg.inv(np.array(columns)))[0], rel=1e-9)
    assert block.relax(case.x, Nudge(zero, -0.99 * limit)).certified.all()
    with pytest.raises(UnboundedError, match="makes the energy nonconvex"):
        block.relax(case.x, Nudge(zero, -1.01 * limit))


@pytest.mark.parametrize("name", SWEPT)
def test_elastic_and_following_nudges_have_one_limit(name: str) -> None:
    """The nudge β ½‖o − y‖² at once, and as a current worked out at every sweep."""
    block, x = made(name)
    free, beta = block.relax(x), 0.05
    y = np.random.default_rng(1).uniform(size=free.output.shape)
    exact = block.relax(x, Nudge(-beta * y, beta), free)
    follow = block.relax(x, Nudge(np.zeros_like(y), follow=lambda s: beta * (s - y)), free)
    np.testing.assert_allclose(follow.output, exact.output, atol=1e-11)
    assert max(exact.residual.max(), follow.residual.max()) < 1e-12


@pytest.mark.parametrize(
    "make",
    [
        lambda **o: DeepHopfieldBlock([40, 30, 20], **o),
        lambda **o: DeepHopfieldBlock([30, 20, 5], clamped=False, inputs=40, **o),
        lambda **o: ResistiveBlock([20, 5], inputs=40, **o),
        lambda **o: ConvolutionalHopfieldBlock((8, 8, 8), [16, 8], [True, False], [4], variance=0.01, **o),
    ],
)
def test_single_precision_stays_single_and_is_the_double_one_to_rounding(make: Callable[..., Any]) -> None:
    states = []
    for dtype in (np.float32, np.float64):
        block = make(dtype=dtype, rng=3, sweeps=Sweeps(5, 5))
        x = np.random.default_rng(0).uniform(size=(5, block.n_inputs)).astype(dtype)
        states.append(block.relax(x))
        assert all(layer.dtype == dtype for layer in states[-1].layers)
    for single, double in zip(states[0].layers, states[1].layers):
        np.testing.assert_allclose(single, double, atol=2e-5 * np.abs(double).max())


def test_projection_bounds_and_the_trained_circuit() -> None:
    case = random_case(0)
    block = case.block()
    assert block.at_bound() == 0 and list(block.parameters) == ["conductance", "current"]
    block.parameters["conductance"][:2] = [-3.0, 1e9]
    block.parameters["current"][:] = 100.0
    block.project()
    assert block.parameters["conductance"][:2].tolist() == [1e-3, 1e3]
    assert block.parameters["current"].tolist() == [9.0] and block.at_bound() == 3
    trained = block.trained()
    # Bounds are kept in ohm, where 1/(1/R) is not always R: the trained circuit is within them to the last bit.
    assert all(a.minimum <= trained[a.name].value <= a.maximum for a in case.roles.trainable)
    assert trained["Rfloat"].value == 1e3 and case.circuit["Ib"].value == 0.05
    made = resistive([4, 2], inputs=3)
    made.parameters["conductances1"] -= 1.0
    made.project()
    assert made.parameters["conductances1"].min() == 0.0


def test_samples_without_a_certified_state_are_marked() -> None:
    circuit = loads("a current into a reverse diode\nI1 0 a 1\nD1 a 0 d\nR1 a b 1\n.model d D\n")
    block = circuit_block(circuit, "I1", "a", "R1")
    assert block.relax(np.array([[1.0], [-1.0], [2.0]])).certified.tolist() == [True, False, True]


def nudged(block: Any, **nudge: Any) -> Any:
    return block.relax(np.zeros((1, block.n_inputs)), Nudge(np.zeros((1, block.n_outputs)), **nudge))


def without_conductance() -> Any:
    block = resistive([4, 2], inputs=3)
    block.parameters["conductances1"][...] = 0.0
    return block.relax(np.zeros((1, 3)))


SMOOTH_BEHIND = """t
V1 a 0 0
X1 a b bidiramp gain=3
R1 b c 1
D1 c 0 d
.model d D(IS=1n)
"""


@pytest.mark.filterwarnings("ignore::circuitsim.errors.DeckWarning")
@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: nudged(circuit_block(loads(BUFFERED)), stiffness=1.0), CircuitError, "controlled sources"),
        (
            lambda: circuit_block(loads(BUFFERED)).clamp(ONE, ONE),
            NoEnergyError,
            "E1: controlled sources have no energy",
        ),
        (
            lambda: circuit_block(loads(SMOOTH_BEHIND), "V1", "v(b)", "R1"),
            UsageError,
            "D1: a smooth device after an amp",
        ),
        (lambda: circuit_block(loads(LAYERS), outputs="v(out,low)"), UsageError, "between sections of different gain"),
        (lambda: nudged(circuit_block(loads(LAYERS)), stiffness=1e-3), UsageError, "outputs of different gain cannot"),
        (lambda: nudged(random_case(0).block(), follow=lambda output: output), UsageError, "FollowingCurrent"),
        (lambda: random_case(0)._replace(roles=Roles()).block(), UsageError, "the circuit has no"),
        (
            lambda: random_case(0)._replace(roles=make_roles(random_case(0).circuit, "V1", "n0")).block(),
            UsageError,
            "the circuit has no",
        ),
        (without_conductance, TopologyError, "node 0 of layer 2 has no conductance"),
        (lambda: nudged(deep(9, 8), stiffness=-100.0), CircuitError, "more conductance than an output has"),
        (lambda: ResistiveBlock([3, 2], leak=0.0), UsageError, "leak"),
        (lambda: resistive([4, 2], inputs=3).relax(np.zeros((1, 2))), UsageError, "rows of 3 inputs"),
        (lambda: DeepHopfieldBlock([3, 2], activation="relu"), UsageError, "activation"),
        (lambda: DeepHopfieldBlock([3, 0]), TopologyError, "at least one unit"),
        (lambda: DeepHopfieldBlock([3, 2]).relax(np.zeros((1, 4))), UsageError, "rows of 3 inputs"),
        (lambda: ConvolutionalHopfieldBlock((4, 4, 2), [3], [True, False]), TopologyError, "as many pools"),
    ],
)
def test_what_cannot_be_is_refused(make: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()
