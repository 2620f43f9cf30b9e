"""CIFAR's binary version and ImageNet32's npz form; pickles are refused."""

import pickle
from pathlib import Path

import numpy as np
import pytest

from circuitsim.datasets import load
from circuitsim.datasets.images import FlipAndCrop, load_colour
from circuitsim.errors import UsageError

RNG = np.random.default_rng(0)


def records(labels: list[list[int]]) -> tuple[bytes, np.ndarray]:
    """Records with these label bytes, and their pixels as (samples, 32, 32, 3)."""
    planes = RNG.integers(256, size=(len(labels), 3, 32, 32), dtype=np.uint8)
    text = b"".join(bytes(own) + plane.tobytes() for own, plane in zip(labels, planes, strict=True))
    return text, planes.transpose(0, 2, 3, 1)


def test_cifar10(tmp_path: Path) -> None:
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    pixels = []
    for name in [*(f"data_batch_{k}" for k in range(1, 6)), "test_batch"]:
        text, images = records([[3], [9]])
        (folder / f"{name}.bin").write_bytes(text)
        pixels.append(images)
    for place in (tmp_path, folder):
        data = load_colour("cifar10", place)
        assert data.shape == (32, 32, 3)
        np.testing.assert_array_equal(data.train.reshape(-1, 32, 32, 3), np.concatenate(pixels[:5]))
        np.testing.assert_array_equal(data.test.reshape(-1, 32, 32, 3), pixels[5])
        assert data.train_labels.tolist() == [3, 9] * 5
    (folder / "test_batch.bin").write_bytes(text[:-1])
    with pytest.raises(UsageError, match="truncated"):
        load_colour("cifar10", tmp_path)
    (folder / "test_batch.bin").write_bytes(records([[10]])[0])
    with pytest.raises(UsageError, match="labels up to 10"):
        load_colour("cifar10", tmp_path)


def test_cifar100_takes_the_fine_label(tmp_path: Path) -> None:
    for name in ("train.bin", "test.bin"):
        (tmp_path / name).write_bytes(records([[4, 99], [7, 0]])[0])
    assert load_colour("cifar100", tmp_path).train_labels.tolist() == [99, 0]


def test_imagenet32(tmp_path: Path) -> None:
    planes = RNG.integers(256, size=(3, 3072), dtype=np.uint8)
    for number in (1, 2, 10):
        np.savez(tmp_path / f"train_data_batch_{number}.npz", data=planes[:2], labels=[1, number])
    np.savez_compressed(tmp_path / "val_data.npz", data=planes, labels=np.array([1000, 5, 6]))
    data = load_colour("imagenet32", tmp_path)
    assert data.train_labels.tolist() == [0, 0, 0, 1, 0, 9]
    assert data.test_labels.tolist() == [999, 4, 5]
    expected = planes.reshape(3, 3, 1024).transpose(0, 2, 1).reshape(3, -1)
    np.testing.assert_array_equal(data.test, expected)
    np.savez(tmp_path / "val_data.npz", data=np.array([[1, "a"]], dtype=object), labels=[1])
    with pytest.raises(UsageError, match="Python objects, which are pickles"):
        load_colour("imagenet32", tmp_path)
    np.savez(tmp_path / "val_data.npz", data=planes, labels=np.array([1, 2, None], dtype=object))
    with pytest.raises(UsageError, match="pickles"):
        load_colour("imagenet32", tmp_path)


def test_pickled_batches_are_not_read_and_the_reason_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    (folder / "data_batch_1").write_bytes(pickle.dumps({b"data": b"", b"labels": [1]}))
    with pytest.raises(UsageError, match=r"no data_batch_1.bin(.|\n)*holds the 'binary version(.|\n)*are pickles"):
        load_colour("cifar10", tmp_path)
    with pytest.raises(UsageError, match="are pickles"):
        load_colour("imagenet32", folder)


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no data_batch_1.bin(.|\n)*--data-dir"):
        load_colour("cifar10", tmp_path)
    with pytest.raises(UsageError, match=r"no data_batch_1.bin in .*nowhere"):
        load_colour("cifar10", tmp_path / "nowhere")
    with pytest.raises(UsageError, match="there are digits, mnist, cifar10"):
        load("svhn", tmp_path)


def test_flips_and_crops_keep_the_pixels_of_the_padded_image() -> None:
    images = RNG.integers(256, size=(200, 6, 5, 3), dtype=np.uint8)
    change = FlipAndCrop((6, 5, 3), padding=2)
    rows = images.reshape(200, -1)
    found = change(rows, np.random.default_rng(1)).reshape(images.shape)
    flipped = 0
    for before, after in zip(images, found, strict=True):
        matches = []
        for mirror in (False, True):
            padded = np.pad(before[:, ::-1] if mirror else before, ((2, 2), (2, 2), (0, 0)), mode="edge")
            places = [(i, j) for i in range(5) for j in range(5) if (padded[i : i + 6, j : j + 5] == after).all()]
            matches += [mirror] * bool(places)
        assert len(matches) == 1
        flipped += matches[0]
    assert 60 < flipped < 140
    np.testing.assert_array_equal(found, change(images, np.random.default_rng(1)))
