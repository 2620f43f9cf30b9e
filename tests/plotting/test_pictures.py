"""Every picture that a command writes has axes with data, and each column asked for is a curve with its name."""

import contextlib
import csv
import functools
import io
import itertools
import shlex
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from matplotlib.figure import Figure

import circuitsim
from circuitsim.cli import COMMANDS, main
from circuitsim.cli.reproduce import TABLE1, Run
from circuitsim.formats import Table
from circuitsim.plotting import draw_circuit
from circuitsim.plotting.charts import plot_lines, plot_waveforms

NETLISTS = Path(__file__).parents[2] / "netlists"
GALLERY = Path(__file__).parents[2] / "docs/gallery.md"

OWN = """\
Two stages with a $ in the title
V1 in 0 PULSE(0 5 1u 1u 1u 20u 50u) AC 1
R1 in a 1k
C1 a 0 1n
R2 a b 2k
C2 b 0 500p
D1 b c
V2 c 0 2
.tran 0.5u 100u
.ac dec 5 1k 10meg
"""
GRID = "grid\nV1 n1_0_0 0 1\nR1 n1_0_0 n1_0_1 1\nR2 n1_0_1 n1_1_1 1\nI1 n1_1_1 0 1m\nI2 n1_0_1 0 1m\n.op\n"


class Drawn(NamedTuple):
    """How a command ended, what it printed, and the figures that it saved."""

    code: int
    out: str
    figures: list[Figure]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[object]:
    """``drawn("tran own.cir --plot a.png")`` in a folder with the bundled decks."""
    figures: list[Figure] = []
    draw = Figure.draw

    @functools.wraps(draw)
    def keep(figure: Figure, renderer: object) -> None:
        figures.append(figure)
        draw(figure, renderer)

    monkeypatch.setattr(Figure, "draw", keep)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "netlists").symlink_to(NETLISTS)
    (tmp_path / "own.cir").write_text(OWN, encoding="utf-8")
    (tmp_path / "grid.cir").write_text(GRID, encoding="utf-8")

    def run(line: str) -> Drawn:
        figures.clear()
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            code = main(["-q", *shlex.split(line)])
        return Drawn(code, out.getvalue(), list(figures))

    return run


def has_data(axes: object) -> bool:
    """Whether something finite is drawn."""
    lines = [np.asarray(line.get_ydata(), float) for line in axes.lines]
    return (
        any(np.isfinite(y).any() for y in lines)
        or any(patch.get_path().vertices.size for patch in axes.patches)
        or any(len(collection.get_paths()) for collection in axes.collections)
        or bool(axes.images)
    )


def names_of(axes: object) -> list[str]:
    """The legend, else the names of curves that are written at their ends."""
    legend = axes.get_legend()
    if legend is not None:
        return [text.get_text().replace(r"\$", "$") for text in legend.get_texts()]
    names = [line.get_label() for line in axes.lines if not line.get_label().startswith("_")]
    assert set(names) <= {text.get_text() for text in axes.texts}
    return [name.replace(r"\$", "$") for name in names]


def check(figure: Figure, axes: int) -> None:
    """So many axes, all with data, none empty, everything within the picture, no name over another."""
    assert len(figure.axes) == axes
    assert all(has_data(own) for own in figure.axes)
    figure.draw_without_rendering()
    width, height = figure.bbox.size
    for own in figure.axes:
        box = own.get_tightbbox()
        assert box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1 and box.y1 <= height + 1
        boxes = [text.get_window_extent() for text in own.texts if text.get_text()]
        assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))


COMMAND_ROWS = {
    "solve": ("solve own.cir --plot a.png", 2),
    "sweep": ("sweep own.cir --vary V2=0:3:0.5 --vary R1=1k,2k --columns 'v(b) i(D1)' --plot a.png", 2),
    "sensitivity": ("sensitivity netlists/wheatstone-unbalanced.cir --observe 'v(a,b) v(a)' --plot a.png", 2),
    "curve": ("curve own.cir --device D1 --volts -2:1:0.1 --plot a.png", 1),
    "montecarlo": (
        "montecarlo netlists/divider.cir --tol R*=5% --samples 200 --observe 'v(out) i(R1)' --plot a.png",
        4,
    ),
    "worst-case": ("worst-case netlists/divider.cir --tol R*=5% --observe 'v(out) i(R1)' --plot a.png", 2),
    "optimise": ("optimise netlists/divider.cir --adjust R*=100:10k --target v(out)=2 --plot a.png", 2),
    "tran": ("tran own.cir --plot a.png", 3),
    "ac": ("ac own.cir --plot a.png", 2),
    "energy": ("energy netlists/learn-divider.cir --data netlists/learn-divider.csv --capacitance 1p --plot a.png", 2),
}
COMMAND_ROWS = {name: row for name, row in COMMAND_ROWS.items() if name in COMMANDS}
"""A command line of each command with --plot, and its number of axes."""

MORE_ROWS = [
    ("graph own.cir --output a.png", 2),
    ("solve grid.cir --drops --plot a.png", 2),
    ("tran own.cir --steady --plot a.png", 3),
    ("tran own.cir --events --plot a.png", 3),
    ("tran own.cir --columns '{v(a)*2} r1:r p(R1)' --plot a.png", 4),
    ("tran own.cir --vary R1=1k,2k --columns 'v(b) i(R2)' --plot a.png", 2),
    ("tran own.cir --vary R1=1k,2k,4k --measure 'top MAX v(b)' --measure 'mean AVG i(R2)' --plot a.png", 3),
    ("sweep own.cir --columns 'v(a) i(R1)' --plot a.png", 2),
]


@pytest.mark.parametrize("line, axes", [*COMMAND_ROWS.values(), *MORE_ROWS])
def test_a_picture_has_its_axes_and_no_empty_one(drawn, line: str, axes: int) -> None:
    found = drawn(line)
    assert found.code == 0
    (figure,) = found.figures
    check(figure, axes)


def test_every_command_with_plot_is_looked_at(drawn, capsys: pytest.CaptureFixture[str]) -> None:
    found = set()
    for name in COMMANDS:
        capsys.readouterr()
        with contextlib.suppress(SystemExit):
            main([name, "--help"])
        if "--plot" in capsys.readouterr().out:
            found.add(name)
    assert found == {"run", *COMMAND_ROWS}


LONG = "bench", "reproduce", "train", "predict", "warm-up", "data"
"""Commands that take long, or files that another one makes."""


def examples() -> list[str]:
    """The command lines at the end of every help, but those of `LONG`."""
    found = []
    for name in COMMANDS:
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
            main([name, "--help"])
        lines = out.getvalue().partition("\nexamples:\n")[2].splitlines()
        found += [line.split("   ")[0] for line in map(str.strip, lines) if line.startswith(f"circuitsim {name}")]
    return [line.removeprefix("circuitsim ") for line in found if line.split()[1] not in LONG]


@pytest.mark.parametrize("line", examples())
def test_examples_of_helps_run_and_draw(drawn, line: str) -> None:
    found = drawn(line)
    assert found.code == 0
    assert bool(found.figures) == ("--plot" in line or line.startswith("graph")) or line.startswith("report")
    assert all(has_data(axes) for figure in found.figures for axes in figure.axes)


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in ("examples", "data", "reproduce", "train")])
def test_a_help_fits_on_a_screen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit):
        main([name, "--help"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 45
    assert max(map(len, lines)) <= 100
    groups = [line for line in lines if line in ("deck:", "analysis:", "output:")]
    assert groups == sorted(groups, key=["deck:", "analysis:", "output:"].index)
    assert "output:" in groups


def test_run_draws_a_picture_for_each_analysis(drawn) -> None:
    found = drawn("run own.cir --plot pictures")
    assert found.code == 0
    for figure, axes in zip(found.figures, (3, 2), strict=True):
        check(figure, axes)
    assert sorted(path.name for path in Path("pictures").iterdir()) == ["ac.png", "tran.png"]


@pytest.mark.parametrize(
    "line",
    [
        "tran own.cir",
        "tran own.cir --steady",
        "tran own.cir --columns 'v(b) p(R1) p(R2) {v(a)-v(b)} i(C1)'",
        "tran netlists/half-wave-smoothed.cir",
        "sweep own.cir --vary V2=0:3:0.5",
        "sweep own.cir",
        "ac own.cir",
        "ac own.cir --columns 'v(a) v(b)' --over 'v(in)'",
    ],
)
def test_every_column_is_a_curve_with_its_name(drawn, line: str) -> None:
    """The CSV of the same command is the oracle; waveforms are drawn between its times, too."""
    found = drawn(f"{line} --format csv --plot a.png")
    header, *rows = csv.reader(io.StringIO(found.out))
    columns = {name: [row[k] for row in rows] for k, name in enumerate(header) if k and name != "status"}
    if line.startswith("ac"):  # magnitude, dB, phase
        columns = {header[k]: [row[k + 1] for row in rows] for k in range(1, len(header), 3)}
    (figure,) = found.figures
    curves = {}
    for axes in figure.axes:
        names = names_of(axes)
        assert not names or len(names) == len(axes.lines)
        for name, drawn_line in zip(names, axes.lines):
            x, y = (np.asarray(data, float) for data in drawn_line.get_data())
            if line.startswith("tran"):
                assert x.size >= 2001
                y = y[np.isin(x, [float(row[0]) for row in rows])]
            curves[name.removesuffix(" = 0")] = y
    assert set(curves) == set(columns)
    for name, values in columns.items():
        np.testing.assert_array_equal(curves[name], [*map(float, values)])


def test_quantities_have_their_panels(drawn) -> None:
    (figure,) = drawn("tran own.cir --columns 'p(R1) i(R1) v(a) v(a,b) i(C1)' --plot a.png").figures
    assert [axes.get_ylabel() for axes in figure.axes] == ["voltage", "current", "power", "conducting"]
    assert [names_of(axes) for axes in figure.axes] == [["v(a)", "v(a,b)"], ["i(R1)", "i(C1)"], ["p(R1)"], []]
    (figure,) = drawn("tran own.cir --plot a.png").figures
    assert figure.axes[0].get_title(loc="left") == r"Two stages with a \$ in the title"


def test_states_of_many_diodes_are_cut_off() -> None:
    spans = [(f"D{k}", [(0.0, 1.0)]) for k in range(40)]
    figure = plot_waveforms("many", Table(("time", "v"), ("s", "V"), ([0.0, 1.0], [0.0, 1.0])), spans)
    assert figure.axes[-1].get_ylabel() == "conducting,\nfirst 24 of 40"


def test_many_expressions_fit_in_a_picture(drawn) -> None:
    formulas = " ".join(f"{{v(a)*{k}}}" for k in range(1, 60))
    (figure,) = drawn(f"tran own.cir --columns '{formulas}' --plot a.png").figures
    assert 10 <= len(figure.axes) < 20 and all(has_data(own) for own in figure.axes)
    assert figure.axes[11].get_ylabel().endswith("(then 47 more)")


def test_a_constant_looks_constant(drawn) -> None:
    """Rounding is no waveform: the axis is not filled with it, and its ticks differ."""
    for line in (
        "tran own.cir --vary R1=1k,1.5k,2k,3k --measure 'top MAX v(b)' --plot a.png",
        "tran own.cir --columns 'v(c)' --plot a.png",
        "sweep own.cir --vary R1=1k:2k:100 --plot a.png",
        "tran netlists/boost-converter.cir --steady --plot a.png",
    ):
        for axes in drawn(line).figures[0].axes:
            axes.figure.draw_without_rendering()
            ticks = [text.get_text() for text in axes.get_yticklabels() if text.get_text()]
            assert len(set(ticks)) == len(ticks)
            low, high = axes.get_ylim()
            assert abs(high - low) >= 1e-9 * max(abs(low), abs(high))


def test_training_draws_its_curves(drawn, tmp_path: Path) -> None:
    found = drawn("train circuit netlists/learn-divider.cir --data netlists/learn-divider.csv --out run --epochs 2")
    assert found.code == 0
    for figure in found.figures:
        check(figure, len(figure.axes))
    names = [names_of(axes) for figure in found.figures for axes in figure.axes]
    assert ["loss", "lower", "upper"] in names and ["clamped"] not in names  # which stays 0


def test_a_fit_draws_before_after_and_target(drawn) -> None:
    found = drawn("train circuit netlists/learn-filter.cir --data netlists/learn-filter.csv --out run --epochs 1")
    assert found.code == 0
    for figure in found.figures:
        check(figure, len(figure.axes))
    assert ["before", "after", "target"] in [names_of(axes) for figure in found.figures for axes in figure.axes]


@pytest.mark.parametrize("name", ["half-wave-smoothed", "clipper-shunt", "buck-converter"])
def test_gallery_pictures_of_waveforms_are_not_empty(drawn, name: str) -> None:
    lines = [line.strip().removeprefix("circuitsim ") for line in GALLERY.read_text(encoding="utf-8").splitlines()]
    (line,) = [line for line in lines if f"/{name}.cir" in line]
    (figure,) = drawn(line).figures
    check(figure, len(figure.axes))
    assert len(figure.axes) >= 2


@pytest.mark.parametrize(("first", "last"), [(0.9, 0.012), (0.06, 0.033), (0.019, 0.0145)])
def test_labels_of_a_logarithmic_axis_do_not_overprint(first: float, last: float) -> None:
    errors = enumerate(np.geomspace(first, last, 5), start=1)
    row = {"error": 0.5, "train_seconds": 1.0}
    history = [{"epoch": epoch, "test_error": error, **row} for epoch, error in errors]
    found = TABLE1.findings(Namespace(), [Run({"row": "xs", "method": "ep"}, 0, "digits", history, {})])
    figure = plot_lines(found.curves, found.axes)
    (axes,) = figure.axes
    figure.canvas.draw()
    labels = [label.get_window_extent() for label in axes.get_yticklabels(which="both") if label.get_text()]
    shown = sorted((own.y0, own.y1) for own in labels if axes.bbox.y0 <= 0.5 * (own.y0 + own.y1) <= axes.bbox.y1)
    assert shown and all(below[1] <= above[0] for below, above in itertools.pairwise(shown))


def test_what_has_no_result_is_said_not_drawn() -> None:
    deck = circuitsim.loads(
        "* lost\nV1 a 0 0\nD1 a b\nV2 b 0 {x}\nR1 a 0 1k\n.param x=1\n.dc V1 0 5 1\n.step param x list -1 9\n"
    )
    (axes, *_) = circuitsim.sweep(deck, columns="i(R1)").plot().axes
    assert axes.get_title(loc="left") == "lost"
    assert [line.get_label() for line in axes.lines] == ["i(R1)  x=9"]
    assert "without a result: x=-1" in [text.get_text() for text in axes.texts]
    (axes,) = circuitsim.poles(circuitsim.loads("t\nV1 a 0 1\nR1 a 0 1\n")).plot().axes
    assert [text.get_text() for text in axes.texts] == ["no poles"]


def test_a_jump_breaks_the_curve_and_a_coupling_is_stated() -> None:
    text = "trigger\nV1 in 0 0\nX1 p in out limited_opamp gain=1e5 low=-12 high=12\nR1 out p {r}\nR2 p 0 2k\n"
    deck = circuitsim.loads(text + ".param r=10k\n")
    (axes, *_) = circuitsim.sweep(deck, {"V1": [0, 1, 3, 4], "r": [10e3, 1e9]}, "v(out)").plot().axes
    assert [np.isnan(line.get_ydata()).nonzero()[0].tolist() for line in axes.lines] == [[2], []]
    found = circuitsim.sweep(deck, {"V1": [0, 1]})
    assert found.drawn == ["v(in)", "v(p)", "v(out)", "i(V1)", "i(R1)", "i(R2)"]
    assert {*found.columns} == {*found.drawn, "i(X1.Eout)"}
    assert circuitsim.sensitivity(deck, "v(out)").names == ("V1", "X1.Eout", "R1", "R2")
    inner = ".subckt lp i o\nR1 i m {r}\nR2 m o 1\nC1 m 0 1\n.ends\n.param r=1\n.step param r list 1 2\n"
    found = circuitsim.run(circuitsim.loads(f"t\n{inner}V1 a 0 AC 1\nX1 a b lp\nR3 b 0 1\n.ac lin 2 1 2\n.tran 1 2\n"))
    assert found["ac"].responses.drawn == ["v(a)", "v(a) dB", "v(a) phase", "v(b)", "v(b) dB", "v(b) phase"]
    assert found["tran"].waves.drawn == ["v(a)", "v(b)", "i(V1)", "i(R3)"]
    coupled = circuitsim.loads("k\nV1 a 0 1\nL1 a 0 1m\nL2 b 0 1m\nR1 b 0 1\nR2 a 0 1\nK1 L1 L2 0.9\n")
    assert any(
        "coupled: L1 and L2, k = 0.9" in text.get_text() for text in draw_circuit(coupled.operating_circuit).texts
    )
