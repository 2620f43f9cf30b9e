"""Bundled digits, and MNIST's files: good ones, missing ones, broken ones."""

import gzip

import numpy as np
import pytest

from circuitsim.datasets import choose, load
from circuitsim.datasets.images import read_idx
from circuitsim.errors import UsageError


def _idx(array):
    header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    return header + array.astype(np.uint8).tobytes()


def write_mnist(directory, samples=12):
    """Four files of the right form with made-up content."""
    rng = np.random.default_rng(0)
    for prefix in ("train", "t10k"):
        images = rng.integers(0, 256, (samples, 28, 28))
        (directory / f"{prefix}-images-idx3-ubyte.gz").write_bytes(gzip.compress(_idx(images)))
        (directory / f"{prefix}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(_idx(rng.integers(0, 10, samples))))


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


def test_mnist_files(tmp_path):
    write_mnist(tmp_path)
    data = load("mnist", tmp_path)
    assert data.train.shape == (12, 784) and data.shape == (28, 28)
    first = np.random.default_rng(0).integers(0, 256, (12, 28, 28))
    np.testing.assert_array_equal(data.train, first.reshape(12, -1))
    # Unpacked files serve as well.
    packed = tmp_path / "train-images-idx3-ubyte.gz"
    (tmp_path / "train-images-idx3-ubyte").write_bytes(gzip.decompress(packed.read_bytes()))
    packed.unlink()
    np.testing.assert_array_equal(load("mnist", tmp_path).train, data.train)


def test_a_folder_serves_as_data_set_data_directory_or_within_one(tmp_path, monkeypatch):
    (tmp_path / "mnist").mkdir()
    write_mnist(tmp_path / "mnist")
    monkeypatch.setenv("CIRCUITSIM_DATA", str(tmp_path))
    found = load("mnist")
    for other in (load("mnist", tmp_path), load("mnist", str(tmp_path / "mnist")), load(str(tmp_path / "mnist"))):
        np.testing.assert_array_equal(other.train, found.train)
        np.testing.assert_array_equal(other.test_labels, found.test_labels)
    assert choose(None, None) == ("mnist", []) and choose("digits", None) == ("digits", [])


def test_refusals(tmp_path, monkeypatch):
    monkeypatch.setenv("CIRCUITSIM_DATA", str(tmp_path / "kept"))

    def refused(message, call):
        with pytest.raises(UsageError) as caught:
            call()
        assert message in str(caught.value)

    refused("there is no data set 'x', nor a folder of that name; there are digits, mnist", lambda: load("x"))
    refused(f"MNIST is not in {tmp_path / 'kept'}: fetch it once with circuitsim data", lambda: load("mnist"))
    refused("/nowhere does not exist", lambda: load("mnist", tmp_path / "nowhere"))
    refused(f"MNIST is not in {tmp_path}: ", lambda: load("mnist", tmp_path))
    refused("there is no file ", lambda: load(tmp_path))
    write_mnist(tmp_path)
    labels = tmp_path / "train-labels-idx1-ubyte.gz"
    labels.write_bytes(gzip.compress(_idx(np.zeros(5))))
    refused("the training images and labels in", lambda: load("mnist", tmp_path))
    whole = labels.read_bytes()
    labels.write_bytes(whole[:-9])
    refused("is damaged and cannot be read (", lambda: read_idx(labels))
    labels.write_bytes(b"no gzip")
    refused("is damaged and cannot be read (", lambda: read_idx(labels))
    plain = tmp_path / "plain"
    plain.write_bytes(b"\x00\x00\x0d\x01")
    refused("is not an idx file of bytes (its magic number is wrong)", lambda: read_idx(plain))
    plain.write_bytes(_idx(np.zeros(5))[:-1])
    refused("is cut short or too long: 12 bytes where its header promises 13", lambda: read_idx(plain))
