"""Compiled kernels equal their numpy twins bit for bit; the logistic function equals the true one."""

import numpy as np
import pytest

from circuitsim.boltzmann import kernels, numpy_kernels
from circuitsim.boltzmann.enumeration import softplus_sum, softplus_sum_reference

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


@TYPES
def test_sample(dtype):
    rng = np.random.default_rng(1)
    x = (8 * rng.standard_normal((50, 40))).astype(dtype)
    uniforms = rng.random(x.shape, dtype=dtype)
    # Draws that lie exactly on the probability, where a last bit decides.
    uniforms[::7] = numpy_kernels.logistic(x[::7])
    out = x.copy()
    kernels.sample(out, uniforms)
    assert out.tobytes() == numpy_kernels.sample(x, uniforms).tobytes()
    assert set(np.unique(out)) == {0.0, 1.0}


def test_certain_units_are_certain():
    x = np.array([[1000.0, -1000.0]])
    kernels.sample(x, np.array([[1 - 2**-53, 0.0]]))
    # A uniform of exactly 0 lies below every probability that is not 0: the price of exp(−708) being cut, not 0.
    assert x.tolist() == [[1.0, 1.0]]
    y = np.array([[-1000.0]])
    kernels.sample(y, np.array([[2.0**-53]]))
    assert y.tolist() == [[0.0]]


@TYPES
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 7), (20, 33, 18), (2, 4, 3)])
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
    out = np.full(shape[::-1], np.nan)
    kernels.transpose(source, out)
    assert (out == source.T).all()


def test_softplus_sum():
    rng = np.random.default_rng(5)
    # More than 512 units, so that the product is folded in twice; some far out on both sides.
    base, low = 3 * rng.standard_normal(1100), 3 * rng.standard_normal((1100, 8))
    base[:4] = (700, -700, 1e4, -1e4)
    total = np.empty(8)
    softplus_sum(base, low, total)
    np.testing.assert_allclose(total, softplus_sum_reference(base, low), rtol=1e-14)
