"""Every result of an analysis has tables, plain values, a frame, a figure, HTML and a line of text."""

import json
from base64 import b64decode
from collections.abc import Callable
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import circuitsim
from circuitsim import examples
from circuitsim.errors import UsageError
from circuitsim.formats import Table
from circuitsim.plotting.drawing import arrange
from circuitsim.time_domain import StepCircuit, fourier, settling_energy, steady_state, transient, transient_sweep
from circuitsim.training import History


@cache
def deck(name: str) -> Any:
    return circuitsim.load(examples.path(name))


def history() -> History:
    found = History()
    for k in range(5):
        found.append({"epoch": k, "updates": 10 * k, "loss": 10.0**-k, "accuracy": 0.2 * k})
    return found


def bits() -> tuple[Any, list[str]]:
    circuit = deck("r2r-dac")
    return circuit, [name for name in circuit.names if "Vbit" in name]


RESULTS: dict[str, Callable[[], Any]] = {
    "operating point": lambda: circuitsim.solve(deck("rectifier-bridge")),
    "floating operating point": lambda: circuitsim.solve(deck("floating-bridge")),
    "sweep": lambda: circuitsim.sweep(deck("sweep-dead-zone"), {"V1": np.linspace(-4, 4, 9)}, "v(out) i(Rload)"),
    "curve": lambda: circuitsim.curve(deck("limiter-two-sided"), ("out", "0"), np.linspace(-5, 5, 11).tolist(), ["V1"]),
    "transient": lambda: transient(deck("half-wave-smoothed"), 0.06),
    "implicit": lambda: transient(deck("half-wave-smoothed"), 0.02, method="implicit"),
    "runs": lambda: transient_sweep(deck("half-wave-smoothed"), {"R1": [1e3, 2e3]}, "v(out)"),
    "periodic": lambda: steady_state(deck("rectifier-bridge-smoothed"), {}),
    "fourier": lambda: fourier(RESULTS["transient"](), "v(out)", 50.0),
    "ac": lambda: circuitsim.ac(deck("lowpass-butterworth"), [1e3, 1e4, 1e5], {"V1": 1.0}),
    "poles": lambda: circuitsim.poles(deck("lowpass-butterworth")),
    "sensitivity": lambda: circuitsim.sensitivity(deck("rectifier-bridge"), "v(plus) i(Rload)"),
    "transfer": lambda: circuitsim.transfer_function(deck("divider"), "v(out)", "V1"),
    "montecarlo": lambda: circuitsim.montecarlo(deck("divider"), ["R*=5%"], "v(out)", 200, ["3.9<v(out)<4.1"]),
    "worst case": lambda: circuitsim.worst_case(deck("divider"), ["R*=5%"], "v(out) i(R1)", ["3.9<v(out)<4.1"]),
    "design": lambda: circuitsim.optimise(deck("divider"), ["R*"], ["v(out)=2"], "E24"),
    "drops": lambda: circuitsim.ir_drop(deck("mesh-10x10")),
    "settling": lambda: settling_energy(
        StepCircuit(deck("divider"), ["V1"], ["v(out)"], {"out": 1e-9}), [[1.0], [5.0]]
    ),
    "matrix": lambda: circuitsim.effective_matrix(*bits(), ["out"]),
    "history": history,
}


class Pictures(HTMLParser):
    """Counts pictures and tables, and keeps the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.images: list[str] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "img":
            self.images.append(dict(attributes)["src"] or "")

    def handle_data(self, data: str) -> None:
        self.words += data


def drawn(figure: Figure) -> list[int]:
    """What each of the axes shows: lines, bars, images, groups of lines."""
    return [len(a.lines) + len(a.patches) + len(a.images) + len(a.collections) for a in figure.axes]


@pytest.fixture(params=RESULTS, scope="module")
def result(request: pytest.FixtureRequest) -> Any:
    return RESULTS[request.param]()


def test_tables_are_columns_of_equal_length(result: Any) -> None:
    tables = result.tables()
    assert tables
    for table in tables.values():
        assert isinstance(table, Table)
        assert len(table.header) == len(table.units) == len(table.columns)
        assert len({len(column) for column in table.columns}) == 1
    assert len(next(iter(tables.values())).columns[0]) > 0


def test_plain_values_and_tables_are_json(result: Any) -> None:
    plain = result.to_dict()
    assert plain == json.loads(json.dumps(plain, allow_nan=False))
    for table in result.tables().values():
        assert len(json.loads(json.dumps(table.to_dict(), allow_nan=False))) == len(set(table.header))


def test_frames_have_the_rows_of_their_tables(result: Any) -> None:
    pytest.importorskip("pandas")
    for number, (name, table) in enumerate(result.tables().items()):
        frame = result.to_dataframe(name)
        rows = len(table.columns[0])
        assert frame.shape == (rows, len(table.header) - table.named)
        assert list(frame.columns) == list(table.header[table.named :])
        if number == 0:
            assert result.to_dataframe().equals(frame)
    with pytest.raises(UsageError, match="there is no table 'nothing'; there are "):
        result.to_dataframe("nothing")


def test_the_figure_shows_something_in_all_its_axes(result: Any, tmp_path: Path) -> None:
    figure = result.plot()
    assert isinstance(figure, Figure)
    assert figure.axes and all(count > 0 for count in drawn(figure))
    figure.draw_without_rendering()
    for axes in figure.axes:  # nothing is cut off
        box, (width, height) = axes.get_tightbbox(), figure.bbox.size
        assert -1 <= box.x0 < box.x1 <= width + 1 and -1 <= box.y0 < box.y1 <= height + 1
    for form, begin in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
        again = result.plot(tmp_path / f"a.{form}")
        assert drawn(again) == drawn(figure)
        assert (tmp_path / f"a.{form}").read_bytes().startswith(begin)
    assert figure._repr_png_().startswith(b"\x89PNG")  # what a notebook shows, without pyplot
    with pytest.raises(UsageError, match=r"must end in \.png, \.svg or \.pdf"):
        result.plot(tmp_path / "a.gif")


def test_a_notebook_shows_a_picture_first_and_a_table_after_it(result: Any) -> None:
    page = Pictures(result._repr_html_())
    picture = min(page.tags.index(tag) for tag in ("img", "svg") if tag in page.tags)
    assert picture < page.tags.index("table")
    for source in page.images:
        head, _, data = source.partition(",")
        assert head == "data:image/svg+xml;base64" and b"<svg" in b64decode(data)


def test_text_is_one_line(result: Any) -> None:
    text = repr(result)
    assert "\n" not in text and len(text) <= 120
    kind = type(result).__name__.removeprefix("Lazy").replace("Implicit", "Transient")
    assert text.startswith(f"{kind}(") and text.endswith(")")


def test_certificates_are_named_where_there_are_any() -> None:
    for name in ("operating point", "sweep", "transient", "sensitivity", "drops"):
        assert "certified" in Pictures(RESULTS[name]()._repr_html_()).words.lower(), name


@pytest.mark.parametrize("name", ["transient", "ac"])
def test_columns_are_chosen(name: str) -> None:
    figure = RESULTS[name]().plot(columns="v(out)")
    assert [text.get_text() for text in figure.axes[0].texts] == ["v(out)"]


def test_long_titles_and_many_names_are_cut() -> None:
    circuit = circuitsim.Circuit("a title that goes on and on, " * 10)
    for k in range(30):
        circuit.voltage_source(f"V{k}", f"a-rather-long-name-of-node-{k}", "0", 1.0)
    found = circuitsim.solve(circuit)
    assert repr(found) == f"OperatingPoint('{circuit.title[:39]}…': 31 nodes, 30 elements, …)"


def test_results_load_no_plotting_before_they_are_drawn() -> None:
    import subprocess
    import sys

    code = (
        "import sys, circuitsim; r = circuitsim.solve(circuitsim.loads('t\\nV1 a 0 1\\nR1 a 0 1'));"
        "repr(r), r.tables(); print('matplotlib' in sys.modules, 'pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_a_notebook_shows_the_first_rows_and_columns_of_a_large_table() -> None:
    circuit = circuitsim.Circuit("wide")
    for k in range(15):
        circuit.voltage_source(f"V{k}", f"n{k}", "0", 1.0)
    found = circuitsim.sweep(circuit, {"V0": np.linspace(0.0, 1.0, 50)})
    words = Pictures(found._repr_html_()).words
    columns = len(found.tables()["points"].header)
    assert "… and 30 more rows" in words and f"… and {columns - 24} more columns" in words


def test_pictures_say_that_they_leave_out_node_voltages() -> None:
    sections = "\n".join(f"R{k} n{k} n{k + 1} 1k\nC{k} n{k + 1} 0 10n" for k in range(9))
    deck = circuitsim.loads(f"A ladder\nV1 n0 0 SIN(0 1 1k) AC 1\n{sections}\n.tran 10u 1m\n.ac dec 3 10 1k\n")
    for found in (circuitsim.transient(deck), circuitsim.ac(deck)):
        headings = [found.plot(columns=columns).axes[0].get_title("left") for columns in ("", "v(n9)")]
        assert headings == ["First 8 node voltages: A ladder", "A ladder"]


def test_parts_that_stand_for_a_formula_are_no_rows_and_no_columns() -> None:
    text = "t\nV1 a 0 2\nR1 a E1.u1 1k\nR2 E1.u1 0 1k\nE1 o 0 value={limit(9*v(E1.u1),0,5)}\nC1 o 0 1u\n.tran 1m 2m"
    read = circuitsim.loads(text)
    point, names = circuitsim.solve(read), ["V1", "R1", "R2", "E1", "C1"]
    tables, plain = point.tables(), point.to_dict()
    assert tables["elements"].columns[0] == names and tables["nodes"].columns[0] == ["0", "a", "E1.u1", "o"]
    assert list(plain["branches"]) == names and plain["nodes"]["o"] == point.voltage("o") == 5.0
    assert sorted(plain["inner"]["branches"]) == sorted(set(point.circuit.names) - set(names)) != []
    run = transient(read)
    assert [name for name in run.tables()["waveforms"].header if "E1." in name] == ["v(E1.u1)"]
    assert run.conduction() == []
    drawing = arrange(point)
    assert drawing is not None and {shape.owner[1] for shape in drawing.shapes if shape.owner[0] == "element"} == {
        *range(len(names))
    }
