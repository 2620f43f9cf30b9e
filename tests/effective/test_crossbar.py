"""Crossbars with wire resistance: against operating points, ideal wires, and differences."""

import numpy as np
import pytest

from circuitsim import CrossbarLayer, UsageError, solve
from circuitsim.plotting import plot_crossbar, rendered


def _layer(rows: int = 12, columns: int = 5, **options: float) -> CrossbarLayer:
    g = np.random.default_rng(rows).uniform(1e-5, 1e-3, (rows, columns))
    return CrossbarLayer(g, word_wire=options.pop("word_wire", 7.0), bit_wire=options.pop("bit_wire", 3.0), **options)


@pytest.mark.parametrize("shape", [(12, 5), (3, 8), (1, 1), (40, 30)])
def test_currents_are_those_of_the_operating_point(shape: tuple[int, int]) -> None:
    layer = _layer(*shape, source=11.0, sense=5.0)
    x = np.random.default_rng(1).uniform(-0.2, 0.2, shape[0])
    point = solve(layer.circuit.with_values({f"V{k + 1}": float(v) for k, v in enumerate(x)}))
    currents = [point.current(f"Vsense{k + 1}") for k in range(shape[1])]
    assert layer(x) == pytest.approx(np.array(currents), rel=1e-11)
    v = layer.voltages(x)
    assert ((v.word_lines - v.bit_lines) * layer.conductance).sum(0) == pytest.approx(layer(x), rel=1e-9)


def test_ideal_wires_give_the_conductances() -> None:
    layer = _layer(word_wire=0.0, bit_wire=0.0)
    assert layer.matrix == pytest.approx(layer.conductance.T, rel=1e-15)
    assert layer.voltages(np.ones(12)).loss == pytest.approx(np.zeros((12, 5)), abs=1e-15)


def test_gradients_are_differences() -> None:
    layer, rng = _layer(), np.random.default_rng(2)
    x, weight = rng.uniform(0.0, 0.2, (6, 12)), rng.normal(size=(6, 5))
    found = layer.gradient(x, weight)
    assert found.inputs == pytest.approx(weight @ layer.matrix)
    for i, j in ((0, 0), (11, 4), (5, 2)):
        step = np.zeros_like(layer.conductance)
        step[i, j] = 1e-4 * layer.conductance[i, j]
        ends = [(weight * layer.at(layer.conductance + sign * step)(x)).sum() for sign in (1.0, -1.0)]
        assert found.conductance[i, j] == pytest.approx((ends[0] - ends[1]) / (2.0 * step[i, j]), rel=1e-6)


def test_potentials_fall_along_the_wires() -> None:
    found = _layer().voltages(np.full(12, 0.1))
    assert (np.diff(found.word_lines, axis=1) < 0.0).all()
    assert (np.diff(found.bit_lines, axis=0) < 0.0).all()
    assert ((found.loss > 0.0) & (found.loss < 1.0)).all()


def test_the_picture_is_one() -> None:
    layer = _layer()
    picture = rendered(plot_crossbar(layer, np.full(12, 0.1)), "png")
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    assert picture == rendered(plot_crossbar(layer, np.full(12, 0.1)), "png")


@pytest.mark.parametrize("g", [np.zeros((2, 2)), np.ones(3), np.array([[np.inf]])])
def test_conductances_out_of_range_are_refused(g: np.ndarray) -> None:
    with pytest.raises(UsageError, match="positive"):
        CrossbarLayer(g)


def test_other_misuse_is_refused() -> None:
    with pytest.raises(UsageError, match="must be a finite number of at least 0"):
        CrossbarLayer(np.ones((2, 2)), word_wire=-1.0)
    with pytest.raises(UsageError, match="shape"):
        _layer().at(np.ones((2, 2)))
    with pytest.raises(UsageError, match="12 voltages"):
        _layer().voltages(np.ones(3))
