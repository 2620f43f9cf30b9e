"""Voltage drops and pad currents of power grids against an independent solution."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import coo_matrix
from scipy.sparse.linalg import splu

import circuitsim
from circuitsim import Circuit, loads
from circuitsim.circuit.elements import CURRENT, RESISTOR, VOLTAGE
from circuitsim.cli import main
from circuitsim.errors import TopologyError, UsageError

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks" / "power_grid"))

import deck as generator  # noqa: E402


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("grid") / "grid.spice"
    generator.write(str(path), 3000, seed=5)
    return path


def test_generated_grid_has_the_nodes_asked_for_and_is_repeatable(grid: Path, tmp_path: Path) -> None:
    circuit = circuitsim.load(grid)
    assert 2700 < len(circuit.node_names) < 3300
    generator.write(str(tmp_path / "again"), 3000, seed=5)
    assert (tmp_path / "again").read_bytes() == grid.read_bytes()


def by_superlu(circuit: Circuit) -> np.ndarray:
    """Node voltages from modified nodal equations by scipy's sparse LU factor; ground is 0 V."""
    arrays = circuit.arrays()
    sources = np.flatnonzero(arrays.kind == VOLTAGE)
    r, i, n = arrays.kind == RESISTOR, arrays.kind == CURRENT, arrays.n_nodes
    a, b, g = arrays.first[r], arrays.second[r], 1.0 / arrays.value[r]
    rows = n + np.arange(sources.size)
    ends, ones = (arrays.first[sources], arrays.second[sources]), np.ones(sources.size)
    entries = np.concatenate([g, g, -g, -g, ones, -ones, ones, -ones])
    down = np.concatenate([a, b, a, b, rows, rows, *ends])
    across = np.concatenate([a, b, b, a, *ends, rows, rows])
    size = n + sources.size
    matrix = coo_matrix((entries, (down, across)), (size, size)).tocsc()[1:, 1:]
    right = np.concatenate([np.zeros(n), arrays.value[sources]])
    right[:n] += np.bincount(arrays.second[i], arrays.value[i], n) - np.bincount(arrays.first[i], arrays.value[i], n)
    return np.concatenate([[0.0], splu(matrix).solve(right[1:])])[:n]


def test_drops_and_pads_against_superlu(grid: Path) -> None:
    found = circuitsim.ir_drop(circuitsim.load(grid))
    assert found.point.voltages == pytest.approx(by_superlu(found.point.circuit), abs=1e-12)
    supply, ground = found.nets
    assert (supply.nominal, ground.nominal) == (generator.SUPPLY, 0.0)
    names, volts = list(found.point.circuit.node_names), found.point.voltages
    inside = np.array([name.startswith(("n1_", "n3_", "n5_", "n7_", "pad0_")) for name in names])
    assert supply.nodes == inside.sum()
    assert supply.worst == pytest.approx(generator.SUPPLY - volts[inside].min(), abs=1e-15)
    assert names[int(np.flatnonzero(inside)[volts[inside].argmin()])] == supply.worst_node
    assert supply.mean == pytest.approx(np.mean(generator.SUPPLY - volts[inside]), rel=1e-12)
    circuit = found.point.circuit
    drawn = sum(e.value for e in circuit if e.name.startswith("Is"))
    assert supply.current == pytest.approx(drawn, rel=1e-9)
    assert ground.current == pytest.approx(-drawn, rel=1e-9)
    for pad in found.pads:
        k = circuit.element_index(pad.name.replace("Vp", "Rp"))
        into = -found.point.currents[k]  # Rp leads from the grid to the pad
        assert pad.current == pytest.approx(into, rel=1e-9, abs=1e-15)
    sizes = [abs(pad.current) for pad in found.pads]
    assert sizes == sorted(sizes, reverse=True)
    drops = [row[3] for row in found.worst(50)]
    assert drops == sorted(found.drop[found.net >= 0])[::-1][:50]


def test_negative_supplies_reversed_sources_and_nodes_of_no_net() -> None:
    """m is at -5 V; a current lifts its load towards 0 V."""
    c = loads(
        "three nets\nV1 0 m 5\nR1 m load 2\nI1 0 load 0.5\nV2 p 0 3\nR2 p q 1\nV3 q q2 0\nI2 q2 0 0.25\nR3 alone 0 1\n"
    ).circuit
    found = circuitsim.ir_drop(c)
    assert [(net.nominal, net.nodes, net.worst_node) for net in found.nets] == [(3.0, 3, "q"), (-5.0, 2, "load")]
    assert [net.worst for net in found.nets] == pytest.approx([0.25, 1.0])
    assert [(pad.name, pad.node, pad.voltage) for pad in found.pads] == [("V1", "m", -5.0), ("V2", "p", 3.0)]
    assert [pad.current for pad in found.pads] == pytest.approx([-0.5, 0.25])
    assert found.net[c.node_index("alone")] == -1
    assert np.isnan(found.drop[c.node_index("alone")])
    assert np.isnan(found.places).all()


def test_a_circuit_without_pads_is_refused() -> None:
    c = loads("no pads\nR1 a 0 1\n")
    with pytest.raises(TopologyError, match="pads"):
        circuitsim.ir_drop(c)


def test_command_prints_tables_and_draws_the_map(
    grid: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "drop.png"
    assert main(["solve", str(grid), "--drops", "--plot", str(picture), "--top", "3"]) == 0
    text = capsys.readouterr().out
    found = circuitsim.ir_drop(circuitsim.load(grid))
    assert found.nets[0].worst_node in text
    assert [text.count(f"\n{pad.name} ") for pad in found.pads] == [1] * len(found.pads)
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert main(["solve", str(grid), "--drops", "--format", "csv"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert len(rows) == len(found.pads) + 1
    assert rows[1].split(",") == [
        found.pads[0].name,
        found.pads[0].node,
        str(found.pads[0].net),
        repr(found.pads[0].voltage),
        repr(found.pads[0].current),
    ]
    assert main(["solve", str(grid), "--drops", "--format", "json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["certificate"]["certified"]
    assert content["worst"][0]["drop"] == found.worst(1)[0][3]


def test_the_map_shows_the_largest_drop_of_each_spot(grid: Path) -> None:
    from circuitsim.plotting.charts import plot_drops

    found = circuitsim.ir_drop(circuitsim.load(grid))
    figure = plot_drops(found)
    images = [axes.images[0].get_array() for axes in figure.axes if axes.images]
    assert [float(np.nanmax(image)) for image in images] == pytest.approx([1e3 * net.worst for net in found.nets])
    c = loads("without places\nV1 a 0 1\nR1 a b 1\n").circuit
    with pytest.raises(UsageError, match="n1_1200_350"):
        plot_drops(circuitsim.ir_drop(c))


def test_drops_as_a_frame(grid: Path) -> None:
    pytest.importorskip("pandas")
    found = circuitsim.ir_drop(circuitsim.load(str(grid)))
    frame = found.to_dataframe()
    name, net, voltage, drop = found.worst(1)[0]
    assert frame["drop"].idxmax() == name
    assert frame.loc[name].tolist() == [net, voltage, drop]
    assert len(frame) == sum(one.nodes for one in found.nets)
