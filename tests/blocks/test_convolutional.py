"""Convolutions against scipy, pooling against plain reductions; convolutional blocks against finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import correlate

from circuitsim.blocks import EnergyBlock, Nudge, convolution, winograd
from circuitsim.blocks.convolution import Window
from circuitsim.blocks.convolutional import ConvolutionalHopfieldBlock, gaussian_orthogonal
from circuitsim.blocks.hopfield import Sweeps
from circuitsim.errors import TopologyError

WINDOWS = [Window(3, 1, 1), Window(3, 2, 1), Window(2, 2, 0), Window(5, 1, 2)]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("chunk", [1, 1 << 20])
def test_convolution_is_a_correlation_and_its_transpose(
    window: Window, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(convolution, "CHUNK", chunk)
    rng = np.random.default_rng(0)
    images, kernel = rng.normal(size=(3, 6, 7, 2)), rng.normal(size=(window.size**2 * 2, 4))
    out = convolution.convolve(images, kernel, window)
    pad = ((0, 0), (window.padding,) * 2, (window.padding,) * 2, (0, 0))
    cube = kernel.reshape(1, window.size, window.size, 2, 4)
    expected = np.concatenate([correlate(np.pad(images, pad), cube[..., o], "valid") for o in range(4)], axis=-1)
    np.testing.assert_allclose(out, expected[:, :: window.stride, :: window.stride], atol=1e-12)
    above = rng.normal(size=out.shape)
    back = np.empty_like(images)
    convolution.convolve_back(above, kernel, window, back)
    assert np.vdot(back, images) == pytest.approx(np.vdot(above, out), rel=1e-12)
    gradient = convolution.kernel_gradient(images, above, window)
    assert np.vdot(gradient, kernel) == pytest.approx(np.vdot(above, out), rel=1e-12)


@pytest.mark.parametrize("chunk", [1, 1 << 23])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_winograds_method_is_the_same_convolution(
    dtype: type[np.floating], chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(winograd, "CHUNK", chunk)
    rng = np.random.default_rng(4)
    images = rng.normal(size=(3, 6, 8, 16)).astype(dtype)
    kernel = rng.normal(size=(9 * 16, 32)).astype(dtype)
    out, back = np.full((3, 6, 8, 32), np.nan, dtype), np.full_like(images, np.nan)
    assert winograd.suits(images, out) and not winograd.suits(images[:, :5], out[:, :5])
    assert not winograd.suits(images, out[..., ::2])
    filters = winograd.transformed(kernel)
    winograd.convolve(images, filters, out)
    window = Window(3, 1, 1)
    accuracy = {"rtol": 0, "atol": 100 * np.finfo(dtype).eps * np.abs(out).max()}
    expected = (convolution.patches(images, window) @ kernel).reshape(out.shape)
    np.testing.assert_allclose(out, expected, **accuracy)
    above = rng.normal(size=out.shape).astype(dtype)
    winograd.convolve(above, winograd.turned(filters), back)
    expected = convolution.add_patches(above.reshape(-1, 32) @ kernel.T, images.shape, window)
    np.testing.assert_allclose(back, expected, **accuracy)


def test_pooling_and_its_transpose() -> None:
    rng = np.random.default_rng(1)
    images = rng.integers(0, 5, size=(3, 5, 6, 2)).astype(float)  # with ties
    out, switches = convolution.max_pool(images)
    squares = images[:, :4].reshape(3, 2, 2, 3, 2, 2).transpose(0, 1, 3, 5, 2, 4).reshape(3, 2, 3, 2, 4)
    np.testing.assert_array_equal(out, squares.max(axis=-1))
    np.testing.assert_array_equal(switches, squares.argmax(axis=-1))
    other = rng.normal(size=images.shape)
    taken = convolution.pool_where(other, switches)
    back = convolution.unpool(out, switches, images.shape[1:])
    np.testing.assert_array_equal(convolution.pool_where(back, switches), out)
    assert np.vdot(back, other) == pytest.approx(np.vdot(out, taken))


def test_gaussian_orthogonal_ensemble_has_its_variances() -> None:
    slices = gaussian_orthogonal(np.random.default_rng(0), 3, 0.6, (40_000,))
    np.testing.assert_array_equal(slices, np.swapaxes(slices, 0, 1))
    np.testing.assert_allclose(slices.var(axis=2), 0.2 * (1 + np.eye(3)), rtol=0.03)


def block(**options: object) -> ConvolutionalHopfieldBlock:
    settings = {"sweeps": Sweeps(3000, 3000, 1e-14), "variance": 0.02, "rng": 2, "dtype": np.float64, **options}
    made = ConvolutionalHopfieldBlock((4, 4, 2), [3, 2], [True, False], **settings)  # type: ignore[arg-type]
    rng = np.random.default_rng(5)
    for name, array in made.parameters.items():
        if name.startswith("bias"):
            array[...] = rng.uniform(0.1, 0.5, array.shape)
    return made


@pytest.mark.parametrize("options", [{"dense": [3]}, {"clamped": False}, {"activation": "laborieux", "dense": [4, 3]}])
def test_gradients_of_a_pooled_block(options: dict[str, object]) -> None:
    """Implicit = finite differences of the output; contrast of nudged states = implicit; GDU at each sweep."""
    made = block(**options)
    assert isinstance(made, EnergyBlock)
    rng = np.random.default_rng(7)
    x, cotangent = rng.uniform(-0.3, 0.9, (3, made.n_inputs)), rng.normal(size=(3, made.n_outputs))
    weight = np.array([0.3, 1.0, 0.7])
    free = made.relax(x)
    assert free.residual.max() < 1e-12
    exact, inputs = made.implicit(free, x, cotangent, weight)

    def value() -> float:
        return float((weight * (made.relax(x).output * cotangent).sum(axis=1)).sum())

    for name, array in [*made.parameters.items(), ("x", x)]:
        found = inputs * weight[:, None] if name == "x" else exact[name]
        for _ in range(12):
            place = tuple(rng.integers(array.shape))
            old = array[place]
            array[place] = old + 1e-6
            high = value()
            array[place] = old - 1e-6
            expected = (high - value()) / 2e-6
            array[place] = old
            assert found[place] == pytest.approx(expected, abs=3e-8, rel=1e-6), name
    beta = 1e-4
    plus, minus = (made.relax(x, Nudge(sign * beta * cotangent), free) for sign in (1, -1))
    for name, array in made.parameter_difference(plus, minus, x, weight).items():
        np.testing.assert_allclose(array / (2 * beta), exact[name], atol=1e-9, err_msg=name)
    np.testing.assert_allclose(made.input_difference(plus, minus, x) / (2 * beta), inputs, atol=1e-9)
    for sweeps in range(1, 8):
        made.sweeps = Sweeps(1, sweeps)
        plus, minus = (made.relax(x, Nudge(sign * beta * cotangent), free) for sign in (1, -1))
        truncated, back = made.truncated(free, x, cotangent, weight, sweeps)
        for name, array in made.parameter_difference(plus, minus, x, weight).items():
            np.testing.assert_allclose(array / (2 * beta), truncated[name], atol=1e-9, rtol=0, err_msg=name)
        np.testing.assert_allclose(made.input_difference(plus, minus, x) / (2 * beta), back, atol=1e-9, rtol=0)


def test_wide_blocks_relax_to_the_same_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """Layers that Winograd's method suits, beside the same sweeps by direct convolution."""
    made = ConvolutionalHopfieldBlock(
        (8, 8, 8), [16, 8], [True, False], [4], sweeps=Sweeps(20, 5), variance=0.01, rng=3, dtype=np.float64
    )
    x = np.random.default_rng(8).uniform(-0.3, 0.9, (4, made.n_inputs))
    calls: list[int] = []
    method = winograd.convolve
    monkeypatch.setattr(winograd, "convolve", lambda *given: [calls.append(1), method(*given)])
    fast = made.relax(x)
    assert len(calls) >= 4 * 20 - 2
    monkeypatch.setattr(winograd, "suits", lambda images, out: False)
    direct = made.relax(x)
    for ours, theirs in zip(fast.layers, direct.layers, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-13)
    assert 0.1 < np.mean([layer.mean() for layer in direct.layers]) < 0.9


def test_energy_falls_with_every_sweep() -> None:
    made = block(dense=[3])
    x = np.random.default_rng(3).uniform(-0.3, 0.9, (2, made.n_inputs))
    energies = []
    for sweeps in range(1, 8):
        made.sweeps = Sweeps(sweeps, 1)
        energies.append(made.energy(made.relax(x), x))
    assert (np.diff(energies, axis=0) <= 1e-15).all()


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(TopologyError, match="as many pools"):
        ConvolutionalHopfieldBlock((4, 4, 2), [3], [True, False])
