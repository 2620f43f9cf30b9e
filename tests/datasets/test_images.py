"""Bundled digits, and MNIST's files: good ones, missing ones, broken ones."""

import gzip

import numpy as np
import pytest
from helpers import idx, write_mnist

from circuitsim.datasets import choose, load
from circuitsim.datasets.images import read_idx
from circuitsim.errors import UsageError


def test_digits():
    pytest.importorskip("sklearn")
    data = load("digits")
    assert data.shape == (8, 8) and data.train.shape == (1437, 64) and data.test.shape == (360, 64)
    assert data.train.dtype == np.uint8 and data.train.max() == 255 and data.train.min() == 0
    assert set(data.test_labels) == set(range(10))
    from sklearn.datasets import load_digits

    # Together they are the bundled data: nothing lost, nothing twice.
    found = np.sort(np.vstack([data.train, data.test]).astype(int).sum(axis=1))
    expected = np.sort(np.rint(load_digits().data * 255 / 16).astype(int).sum(axis=1))
    np.testing.assert_array_equal(found, expected)


def test_mnist_packed_and_unpacked_in_a_folder_named_or_within_one(tmp_path, monkeypatch):
    write_mnist(tmp_path / "mnist")
    packed = tmp_path / "mnist/train-images-idx3-ubyte"
    packed.with_name(packed.name + ".gz").write_bytes(gzip.compress(packed.read_bytes()))
    packed.unlink()
    monkeypatch.setenv("CIRCUITSIM_DATA", str(tmp_path))
    first = np.random.default_rng(0).integers(0, 256, (12, 28, 28)).reshape(12, -1)
    for place in (("mnist",), ("mnist", tmp_path), ("mnist", str(tmp_path / "mnist")), (str(tmp_path / "mnist"),)):
        found = load(*place)
        assert found.shape == (28, 28) and found.test.shape == (12, 784) and len(found.test_labels) == 12
        np.testing.assert_array_equal(found.train, first)
    assert choose(None, None) == ("mnist", []) and choose("digits", None) == ("digits", [])


def test_refusals(tmp_path, monkeypatch):
    monkeypatch.setenv("CIRCUITSIM_DATA", str(tmp_path / "kept"))
    for place, message in (
        (("x",), "there is no data set 'x', nor a folder of that name; there are digits, mnist"),
        (("mnist",), f"MNIST is not in {tmp_path / 'kept'}: fetch it once with circuitsim data"),
        (("mnist", tmp_path / "nowhere"), "MNIST is not in .*/nowhere: fetch it once"),
        (("mnist", tmp_path), f"MNIST is not in {tmp_path}: "),
        ((tmp_path,), "there is no file "),
    ):
        with pytest.raises(UsageError, match=message):
            load(*place)
    write_mnist(tmp_path)
    labels = tmp_path / "train-labels-idx1-ubyte"
    labels.write_bytes(idx(np.zeros(5)))
    with pytest.raises(UsageError, match="the training images and labels in"):
        load("mnist", tmp_path)
    for damaged in (gzip.compress(idx(np.zeros(99)))[:-9], b"no gzip"):
        labels.with_suffix(".gz").write_bytes(damaged)
        with pytest.raises(UsageError, match="is damaged and cannot be read"):
            read_idx(labels.with_suffix(".gz"))
