"""No label lies over another: measured on what matplotlib renders, for every bundled deck."""

import itertools
import math

import numpy as np
import pytest
from matplotlib.text import Text

import circuitsim
from circuitsim import examples
from circuitsim.analysis import solve
from circuitsim.plotting import draw_circuit
from circuitsim.plotting.drawing import arrange

LARGE = ("crossbar-1r", "mesh-10x10", "learn-allostery")  # seconds each, and of the same parts as smaller ones
DECKS = {
    example.name: example.path
    for example in examples.examples()
    if not example.name.startswith("refused/") and example.name not in LARGE
}


def rectangle(text: Text, renderer: object) -> np.ndarray:
    """The corners (4, 2) of a rendered text, in pixels: its extent without rotation, turned about its anchor."""
    angle = math.radians(text.get_rotation())
    text.set_rotation(0.0)
    box = text.get_window_extent(renderer)  # type: ignore[arg-type]
    anchor = text.get_transform().transform(text.get_position())
    corners = np.array([(box.x0, box.y0), (box.x1, box.y0), (box.x1, box.y1), (box.x0, box.y1)])
    turn = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
    return (corners - anchor) @ turn + anchor


def inside(points: np.ndarray, corners: np.ndarray) -> bool:
    """Whether a point lies inside a rectangle."""
    x, y = corners[1] - corners[0], corners[3] - corners[0]
    away = points - corners[0]
    u, v = away @ x / (x @ x), away @ y / (y @ y)
    return bool(((u > 1e-9) & (u < 1 - 1e-9) & (v > 1e-9) & (v < 1 - 1e-9)).any())


def overlaps(figure) -> list[tuple[str, str]]:
    """Pairs of texts on the axes of a circuit whose rectangles share a point of a grid."""
    renderer = figure.canvas.get_renderer()
    texts = [text for text in figure.axes[0].texts if text.get_text()]
    corners = [rectangle(text, renderer) for text in texts]
    grid = np.array(list(itertools.product(np.linspace(0, 1, 25), np.linspace(0, 1, 9))))
    points = [c[0] + grid[:, :1] * (c[1] - c[0]) + grid[:, 1:] * (c[3] - c[0]) for c in corners]
    low, high = np.array([c.min(0) for c in corners]), np.array([c.max(0) for c in corners])
    found = []
    for j in range(len(texts)):
        near = (low[j + 1 :] < high[j]).all(1) & (high[j + 1 :] > low[j]).all(1)
        for k in (np.flatnonzero(near) + j + 1).tolist():
            if inside(points[j], corners[k]) or inside(points[k], corners[j]):
                found += [(texts[j].get_text(), texts[k].get_text())]
    return found


@pytest.mark.parametrize("name", DECKS)
def test_no_label_over_another(name: str) -> None:
    figure = draw_circuit(solve(circuitsim.load(DECKS[name])))
    if not figure.axes[0].texts:
        assert name in ("learn-digits", "learn-iris", "crossbar-1d1r"), "only large or dense circuits go without labels"
    assert overlaps(figure) == []


def test_equal_parallel_elements_are_all_labelled_apart() -> None:
    c = circuitsim.Circuit("parallel")
    c.voltage_source("V1", "a", "0", 1.0)
    for k in range(9):
        c.resistor(f"Rparallel{k}", "a", "b", 1234.5 + k)
        c.diode(f"D{k}", "b", "0")
    figure = draw_circuit(solve(c))
    assert len([t for t in figure.axes[0].texts if t.get_text().startswith("Rparallel")]) == 9
    assert overlaps(figure) == []


FIVE = "five\nV1 a 0 5\nR1 a b 1k\nR2 a b 2k\nR3 a b 3k\nD1 a b\nD2 b a\nR4 b 0 1k\nR5 b 0 2k\nI1 0 b 1m\n"


def test_parallel_elements_do_not_lie_on_other_symbols() -> None:
    """Five between the sources: no wire or symbol of theirs passes through what hangs below their ends."""
    drawing = arrange(solve(circuitsim.loads(FIVE)))
    names = drawing.circuit.names
    lines: dict[str, list[np.ndarray]] = {}
    for shape in drawing.shapes:
        if shape.kind == "wire" and shape.owner[0] == "element":
            steps = np.linspace(shape.points[:-1], shape.points[1:], 40).reshape(-1, 2)
            lines.setdefault(names[shape.owner[1]], []).append(steps)
    points = {name: np.concatenate(parts) for name, parts in lines.items()}
    for other in ("V1", "R4", "R5", "I1"):
        low, high = points[other].min(0), points[other].max(0)
        centre = 0.5 * (low + high)
        for name in ("R1", "R2", "R3", "D1", "D2"):
            assert np.abs(points[name] - centre).max(axis=1).min() > 0.3, (name, other)


def test_notes_and_titles_stay_on_the_picture() -> None:
    name = "a title that is far too long for one line of so small a picture, and for two lines of it, and for three"
    figure = draw_circuit(solve(circuitsim.loads(f"{name}\nV1 a 0 1\nR1 a a 1k\nR2 a 0 1k\nD1 0 0\nD2 0 a\nD3 a a\n")))
    renderer = figure.canvas.get_renderer()
    (notes,) = figure.texts
    heading = figure.axes[0].get_title(loc="left")
    assert heading.count("\n") == 1 and heading.endswith(" …")
    assert "not drawn (both ends on one node): R1, D1, D3" in notes.get_text()
    for text in (notes, figure.axes[0]._left_title):
        box = text.get_window_extent(renderer)
        assert box.x0 >= 0 and box.x1 <= figure.bbox.width and box.y0 >= 0 and box.y1 <= figure.bbox.height
