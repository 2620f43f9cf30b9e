"""Pictures: what is drawn, the same bytes every time, no global state."""

import xml.etree.ElementTree as xml

import matplotlib
import numpy as np
import pytest

import circuitsim
from circuitsim import Circuit, loads, solve, sweep
from circuitsim.plotting import draw_circuit, drawing, plot_sweep, rendered
from circuitsim.plotting.circuit import circuit_svg
from circuitsim.plotting.drawing import arrange, symbol
from circuitsim.small_signal import ac_sweep


def rectifier() -> Circuit:
    c = loads("""rectifier $5 & <co>
V1 in 0 2
R1 in a 1000
D1 a out
D2 out a
RL out 0 1000
RS out out 1000
""").circuit
    return c


def words(svg: bytes) -> list[str]:
    """All texts of a picture."""
    return ["".join(t.itertext()) for t in xml.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def test_names_values_potentials_and_currents_are_written() -> None:
    figure = draw_circuit(circuitsim.solve(rectifier()))
    shown = [text.get_text() for text in figure.axes[0].texts]
    elements = ("V1  2 V", "R1  1 kΩ", "RL  1 kΩ", "D1", "D2", "1 mA", "0 A *", "-1 mA")
    for text in (*elements, "in", "2 V", "a", "1 V", "out"):
        assert text in shown
    (footer,) = figure.texts
    lines = footer.get_text().splitlines()  # as many as the width of the figure asks for
    assert [word for line in lines for word in line.split("   ·   ")] == [
        "wire width: current, up to 1 mA",
        "filled diodes conduct",
        "* not unique",
        "not drawn (both ends on one node): RS",
    ]


def test_a_title_is_text_and_no_formula() -> None:
    assert "rectifier $5 & <co>" in words(rendered(draw_circuit(circuitsim.solve(rectifier())), "svg"))


@pytest.mark.parametrize("form", ["png", "svg", "pdf"])
def test_the_same_circuit_gives_the_same_bytes(form: str) -> None:
    first, second = (rendered(draw_circuit(circuitsim.solve(rectifier())), form) for _ in range(2))
    assert first == second
    assert first.startswith({"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[form])


def test_conducting_diodes_are_filled() -> None:
    point = circuitsim.solve(rectifier())
    shapes = arrange(point).shapes
    colours = draw_circuit(point).axes[0].collections[0].get_facecolor()
    fills = {
        point.circuit.names[shape.owner[1]]: tuple(round(float(x), 2) for x in colour[:3])
        for shape, colour in zip(shapes, colours, strict=True)
        if shape.kind in ("body", "filled")
    }
    assert fills == {"V1": (1.0, 1.0, 1.0), "D1": (0.19, 0.2, 0.23), "D2": (1.0, 1.0, 1.0)}


def test_wires_are_as_wide_as_their_current() -> None:
    c = loads("t\nI1 0 a 0.004\nR1 a 0 1000\nR2 a 0 3000\n").circuit
    figure = draw_circuit(circuitsim.solve(c))
    widths = {round(float(w), 3) for w in figure.axes[0].collections[0].get_linewidths()}
    thin, wide = drawing.THIN, drawing.WIDE
    assert {round(thin + (wide - thin) * share**0.5, 3) for share in (1.0, 0.75, 0.25)} <= widths


@pytest.mark.parametrize(
    "build",
    [
        lambda c: c.resistor("R1", "a", "a", 1.0),
        lambda c: c.resistor("R1", "a", "b", 1.0),
        lambda c: c.voltage_source("V1", "a", "0", 0.0),
        lambda c: [c.resistor(f"R{k}", "a", "0", 0.0) for k in range(7)],
        lambda c: [c.add(letter, f"{letter}1", letter, "b", 1.0) for letter in "RVLC"],
        lambda c: [c.resistor(f"R{k}", f"a{k}", f"b{k}", 1.0) for k in range(5)],
    ],
)
def test_odd_circuits_are_drawn(build) -> None:
    c = Circuit()
    build(c)
    assert rendered(draw_circuit(circuitsim.solve(c)), "png").startswith(b"\x89PNG")


def test_sweep_panels_and_labels() -> None:
    found = sweep(rectifier(), {"V1": [0.0, 1.0, 2.0], "RL": [1e3, 2e3]}, "v(out) i(D1) p(RL)")
    figure = plot_sweep(found)
    volts, amperes, watts = figure.axes
    assert [axes.get_ylabel() for axes in figure.axes] == ["voltage", "current", "power"]
    assert watts.get_xlabel() == "V1"
    figure.draw_without_rendering()
    assert "400 mV" in [text.get_text() for text in volts.get_yticklabels()]
    assert "1 V" in [text.get_text() for text in watts.get_xticklabels()]
    assert "400 µA" in [text.get_text() for text in amperes.get_yticklabels()]
    assert [line.get_label() for line in volts.lines] == ["v(out)  RL=1 kΩ", "v(out)  RL=2 kΩ"]
    assert volts.lines[0].get_ydata().tolist() == pytest.approx([0, 0.5, 1])
    assert amperes.lines[1].get_xdata().tolist() == [0, 1, 2]
    assert volts.get_xscale() == "linear"


def test_a_sweep_by_factors_has_a_logarithmic_axis() -> None:
    found = sweep(rectifier(), {"RL": [1.0, 10.0, 100.0, 1000.0]}, "v(out)")
    assert plot_sweep(found).axes[0].get_xscale() == "log"


def test_many_curves_are_counted() -> None:
    found = sweep(rectifier(), {"V1": [0.0, 1.0], "RL": [1e3 * k for k in range(1, 31)]}, "v(out)")
    (axes,) = plot_sweep(found).axes
    assert [text.get_text() for text in axes.texts] == ["30 curves of v(out), dark to light as RL grows"]


def test_many_responses_share_their_colours_and_state_their_styles() -> None:
    deck = loads("""stepped
V1 in 0 AC 1
R1 in out 1k
C1 out 0 1u
.param r=1k
.step R1 list 1k 2k 3k 4k 5k 6k 7k 8k
.ac dec 1 10 1k
""")
    magnitude, phase = ac_sweep(deck).plot().axes
    told = "16 curves of v(in) (solid), v(out) (dashed), dark to light as R1 grows"
    assert [text.get_text() for text in magnitude.texts] == [told]
    assert [line.get_color() for line in magnitude.lines] == [line.get_color() for line in phase.lines]


def test_the_colours_of_a_family_follow_the_varied_value() -> None:
    """Of values that grow by factors their logarithm, whatever their order; names end where their curves do."""
    found = sweep(rectifier(), {"V1": [0.0, 1.0], "RL": [1e3, 1e5, 1e4]}, "v(out) i(RL)")
    volts, amperes = plot_sweep(found).axes
    low, high, middle = (line.get_color() for line in volts.lines)
    assert [line.get_color() for line in amperes.lines] == [low, high, middle]
    viridis = matplotlib.colormaps["viridis"]
    assert [low, middle, high] == [viridis(share) for share in (0.0, 0.45, 0.9)]
    names = {text.get_text(): text for text in volts.texts}
    assert [names[line.get_label()].get_color() for line in volts.lines] == [low, high, middle]
    places = [names[line.get_label()].get_position()[1] for line in volts.lines]
    assert places[0] < places[2] < places[1]


def test_no_global_state_of_matplotlib_is_touched() -> None:
    before = dict(matplotlib.rcParams)
    rendered(draw_circuit(circuitsim.solve(rectifier())), "svg")
    assert dict(matplotlib.rcParams) == before


def test_control_arrows_lead_from_nodes_and_branches_to_their_sources() -> None:
    """E has two controlling nodes off ground, G one, F and H a branch each."""
    circuit = circuitsim.loads(
        "controls\nI1 0 a 1m\nR1 a b 1k\nVS b 0 0\nE1 e 0 a f 2\nRE e f 1k\nRF f 0 1k\nG1 0 g e 0 1m\nRG g 0 1k\n"
        "F1 0 h VS 2\nRH h 0 1k\nH1 k 0 R1 1k\nRK k 0 1k\n"
    )
    made = drawing.arrange(circuitsim.solve(circuit))
    curves, heads = ([s for s in made.shapes if s.kind == kind] for kind in ("control", "control-head"))
    by_source = [circuit.names[curve.owner[1]] for curve in curves]
    assert by_source == ["E1", "E1", "G1", "F1", "H1"]
    for curve, node in zip(curves, ("a", "f", "e")):
        assert np.hypot(*(curve.points[0] - made.where[made.dots[circuit.node_index(node)]])) < 0.1
    for curve, head in zip(curves, heads, strict=True):
        body = next(shape.points for shape in made.shapes if shape.kind == "body" and shape.owner == curve.owner)
        assert 0.05 < np.hypot(*(curve.points[-1] - body.mean(0))) < 0.4
        assert (head.points >= made.low - 0.2).all() and (head.points <= made.high + 0.2).all()
    text = circuit_svg(circuit)
    assert text.count('class="control"') == text.count('class="control-head"') == 5
    (footer,) = draw_circuit(circuit).texts
    assert "dashed: what controls a source or switch" in footer.get_text()


def test_circuits_without_controlled_sources_have_no_control_arrows() -> None:
    assert not any(shape.kind == "control" for shape in arrange(rectifier()).shapes)


def test_plus_stands_at_the_first_node_of_sources() -> None:
    """Where a line crosses the axis there and another lies on it."""
    circuit = Circuit("sources")
    circuit.voltage_source("V1", "a", "0", 1.0)
    circuit.vcvs("E1", "b", "0", ("a", "0"), 2.0)
    circuit.resistor("R1", "b", "0", 1.0)
    for k in (0, 1):
        lines = [np.array(line) for line in symbol(circuit, k).lines]
        along = [line for line in lines if (line[:, 1] == 0.0).all()]
        across = [line for line in lines if (line[:, 0] == line[0, 0]).all()]
        assert len(along) == 1 and (along[0][:, 0] < 0.0).all()
        assert sorted(line[0, 0] < 0.0 for line in across) == [False, True]


def test_a_source_of_high_gain_with_feedback_is_an_operational_amplifier() -> None:
    deck = "t\nV1 in 0 1\nR1 in n 1k\nR2 n out 10k\nE1 out 0 0 n 1e5\nE2 free 0 0 n 1e5\nE3 n2 0 out n2 2\n"
    deck += "RL free 0 1k\nR3 n2 out 1k\n"
    circuit = loads(deck)
    corners = [len(symbol(circuit, circuit.element_index(name)).body) for name in ("E1", "E2", "E3")]
    assert corners == [3, 5, 5]  # without feedback, or of gain 2, a diamond


def test_switches_and_breakdown_have_their_symbols() -> None:
    deck = "t\nV1 a 0 {volts}\nS1 a b a 0 sw\nR1 b 0 1k\nD1 0 b z\nD2 b 0 j\n"
    deck += ".model sw SW(VT=0.5 RON=1 ROFF=1MEG)\n.model z D(IS=1e-14 BV=5)\n.model j D(IS=1e-14)\n"
    closed, opened = (solve(loads(deck.format(volts=volts))).circuit for volts in (1, 0))
    s1 = closed.element_index("S1")
    lever = [symbol(circuit, s1).lines[-1][-1] for circuit in (closed, opened)]
    assert lever[0][1] < 0.05 < lever[1][1]
    assert len(symbol(closed, closed.element_index("D1")).lines[0]) == 4
    assert len(symbol(closed, closed.element_index("D2")).lines[0]) == 2
    shapes = arrange(solve(loads(deck.format(volts=1)))).shapes
    assert any(shape.kind == "control" and shape.owner[1] == s1 for shape in shapes)


def test_symbols_of_a_dense_circuit_would_overprint() -> None:
    rows = [f"V{k} a{k} 0 1\nRL{k} b{k} 0 1" for k in range(10)]
    cells = [f"R{k}_{j} a{k} b{j} 1k" for k in range(10) for j in range(10)]
    whole, part = arrange(loads("\n".join(["bars", *rows, *cells, ""]))), arrange(loads("\n".join(["bars", *rows[:4]])))
    assert whole is not None and not whole.labels and part is not None and part.labels


def test_two_layers_with_two_elements_a_node_are_drawn_in_layers() -> None:
    cells = [f"R{k}_{j} a{k} b{j} 1k" for k in range(4) for j in range(5)]
    drawing = arrange(loads("\n".join(["layers", *(f"V{k} a{k} 0 1" for k in range(4)), *cells, ""])))
    assert drawing is not None and len({round(drawing.where[v, 0], 6) for v in drawing.dots.values()}) == 2


def test_the_legend_mentions_diodes_where_there_are_some() -> None:
    figure = draw_circuit(circuitsim.solve(circuitsim.loads("divider\nV1 in 0 2\nR1 in out 1k\nR2 out 0 1k\n")))
    assert [text.get_text() for text in figure.texts] == ["wire width: current, up to 1 mA"]
