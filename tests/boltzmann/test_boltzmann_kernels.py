"""Compiled kernels equal their numpy twins bit for bit; the logistic function equals the true one."""

import numpy as np
import numpy_kernels
import pytest

from circuitsim.boltzmann import kernels
from circuitsim.boltzmann.enumeration import softplus_sum

TYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def _sparse(rng, shape, dtype):
    """States as a layer holds them: zeros, ones and a few grey values."""
    states = (rng.random(shape) < 0.3).astype(dtype)
    states[rng.random(shape) < 0.1] *= dtype(0.37)
    return states


@TYPES
def test_logistic(dtype):
    x = np.concatenate([np.linspace(-40, 40, 4001), [0.0, -0.0, 1e-300, 700, -700, 1e30, -1e30]]).astype(dtype)
    out = x.copy()
    kernels.logistic(out)
    assert out.tobytes() == numpy_kernels.logistic(x).tobytes()
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(
            out, 1 / (1 + np.exp(-x.astype(np.float64))), rtol=1e-6 if dtype == np.float32 else 1e-15, atol=1e-300
        )


KEY = np.uint64(0xFEDCBA9876543210)


def test_random_numbers():
    """The first outputs of SplitMix64 with seed 1234567 (as in its authors' program), their spread and independence."""
    with np.errstate(over="ignore"):
        bits = [kernels.random_bits.py_func(np.uint64(1234567), np.uint64(place)) for place in range(3)]
    assert bits == [6457827717110365317, 3203168211198807973, 9817491932198370423]
    many = numpy_kernels.uniforms(KEY, 1 << 20)
    assert many.min() >= 0 and many.max() < 1
    counts = np.histogram(many, 256, (0, 1))[0]
    assert ((counts - 4096) ** 2 / 4096).sum() < 255 + 5 * np.sqrt(2 * 255)
    assert abs(np.corrcoef(many[1:], many[:-1])[0, 1]) < 5 / 2**10
    assert abs(np.corrcoef(many, numpy_kernels.uniforms(KEY + np.uint64(1), 1 << 20))[0, 1]) < 5 / 2**10


@TYPES
def test_sample(dtype):
    rng = np.random.default_rng(1)
    x = (8 * rng.standard_normal((50, 40))).astype(dtype)
    # Activations for which the draw lies next to the probability, where a last bit decides.
    draws = numpy_kernels.uniforms(KEY, x.size, dtype).reshape(x.shape)
    x[::7] = np.log(draws[::7] / (1 - draws[::7]))
    out = x.copy()
    kernels.sample(out, KEY)
    assert out.tobytes() == numpy_kernels.sample(x, KEY).tobytes()
    assert set(np.unique(out)) == {0.0, 1.0}


@TYPES
def test_draw(dtype):
    probability = np.random.default_rng(2).random((200, 300)).astype(dtype)
    out = np.empty_like(probability)
    kernels.draw(probability, KEY, out)
    assert out.tobytes() == numpy_kernels.draw(probability, KEY).tobytes()
    # Normal to five deviations: variance p (1 − p) of each.
    deviation = np.sqrt((probability * (1 - probability)).sum(dtype=np.float64))
    assert abs((out - probability).sum(dtype=np.float64)) < 5 * deviation


def test_certain_units_are_certain():
    x = np.array([[1000.0, -1000.0]] * 1000)
    kernels.sample(x, KEY)
    assert x.tolist() == [[1.0, 0.0]] * 1000


@TYPES
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 7), (20, 33, 18), (2, 4, 3), (9, 150, 345)])
def test_affine(dtype, shape):
    samples, given, sought = shape
    rng = np.random.default_rng(2)
    units = _sparse(rng, (samples, given), dtype)
    weights = rng.standard_normal((given, sought)).astype(dtype)
    bias = rng.standard_normal(sought).astype(dtype)
    out = np.empty((samples, sought), dtype)
    kernels.affine(units, weights, bias, out)
    assert out.tobytes() == numpy_kernels.affine(units, weights, bias).tobytes()
    np.testing.assert_allclose(out, bias + units @ weights, rtol=1e-3 if dtype == np.float32 else 1e-12, atol=1e-5)


@pytest.mark.parametrize("shape", [(37, 50), (16, 8), (3, 40), (40, 3)])
def test_transpose(shape):
    source = np.random.default_rng(4).standard_normal(shape)
    out = np.full((shape[1], shape[0] + 5), np.nan)
    kernels.transpose(source, out, 3)
    assert (out[:, 3:-2] == source.T).all()
    assert np.isnan(out[:, [0, 1, 2, -2, -1]]).all()


def test_softplus_sum():
    rng = np.random.default_rng(5)
    # More than 512 units, so that the product is folded in twice; some far out on both sides.
    base, low = 3 * rng.standard_normal(1100), 3 * rng.standard_normal((1100, 8))
    base[:4] = (700, -700, 1e4, -1e4)
    total = np.empty(8)
    softplus_sum(base, low, total)
    np.testing.assert_allclose(total, np.logaddexp(0, base[:, None] + low).sum(axis=0), rtol=1e-14)
