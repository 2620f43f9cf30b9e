"""Files that promise what they do not hold: each is refused by name, before memory is taken."""

import gzip
import io
import json
import struct
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from circuitsim._npz import npz_headers, read_npz
from circuitsim.datasets import load
from circuitsim.datasets.images import load_colour, read_idx
from circuitsim.datasets.samples import read_samples
from circuitsim.errors import CircuitError, UsageError
from circuitsim.netlist.roles import Roles
from circuitsim.training import CheckpointError, load_checkpoint

ROLES = Roles(("V1", "V2"), (("out", "0"), ("a", "b")))
MEBIBYTE = 1 << 20


def member(shape: tuple[int, ...], content: bytes, descr: str = "<f8") -> bytes:
    """An npy file whose header says ``shape``, whatever its content is."""
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": descr, "fortran_order": False, "shape": shape})
    return head.getvalue() + content


def archive(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    return path


def refused(message: str, path: Path, call) -> None:
    """``call`` is refused with the file's name and ``message``, and little memory."""
    tracemalloc.start()
    try:
        with pytest.raises(CircuitError) as caught:
            call()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert caught.value.exit_code == 2
    assert str(path) in str(caught.value) and message in str(caught.value)
    assert peak < 20 * MEBIBYTE


@pytest.mark.parametrize("shape", [(10**12, 2), (10**5, 10**5), (2**62, 4), (3, 2), (0, 2), ()])
def test_an_npz_header_that_promises_another_size(tmp_path: Path, shape: tuple[int, ...]) -> None:
    path = archive(tmp_path / "x.npz", x=member(shape, b"\0" * 24), y=member((3,), b"\0" * 24))
    for call in (
        lambda: read_npz(path),
        lambda: npz_headers(path, ("x",)),
        lambda: read_samples(path, ROLES),
        lambda: load_checkpoint(path),
    ):
        refused("its content is of another size", path, call)


def test_an_archive_that_lies_about_its_sizes(tmp_path: Path) -> None:
    content = member((1 << 28,), b"\0" * 24)
    whole = archive(tmp_path / "x.npz", x=content).read_bytes()
    # Packed and unpacked size stand side by side, twice; the unpacked one now fits what the header says.
    stored, said = (struct.pack("<I", size) for size in (len(content), len(content) - 24 + 8 * (1 << 28)))
    path = tmp_path / "x.npz"
    assert whole.count(2 * stored) == 2
    path.write_bytes(whole.replace(2 * stored, stored + said))
    refused("its content is of another size", path, lambda: read_npz(path))


def test_npz_files_without_samples(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    for x, y in (((0, 2), 0), ((0, 2), (0, 2)), (0, (0, 2))):
        np.savez(path, x=np.zeros(x), y=np.zeros(y, int))
        refused("has no samples", path, lambda: read_samples(path, ROLES))
    for name in ("train_data_batch_1", "val_data"):
        np.savez(tmp_path / f"{name}.npz", data=np.zeros((0, 3072), np.uint8), labels=np.zeros(0, int))
    refused("one or more", tmp_path, lambda: load_colour("imagenet32", tmp_path))


def test_files_that_are_no_npz(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.save(tmp_path / "x.npy", np.zeros(3))
    for content in (b"", b"PK", (tmp_path / "x.npy").read_bytes(), b"\x80\x05N."):
        path.write_bytes(content)
        refused("cannot be read", path, lambda: load_checkpoint(path))
        refused("cannot be read", path, lambda: read_samples(path, ROLES))
    for facts in (b"3", b"[" * 100_000, b"{}", b"\xff", json.dumps({"format": [1]}).encode()):
        np.savez(path, __json__=np.frombuffer(facts, np.uint8))
        with pytest.raises(CheckpointError, match=r"x\.npz"):
            load_checkpoint(path)


def test_damaged_bytes_of_an_npz_never_raise_anything_else(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez_compressed(path, x=np.arange(6.0).reshape(3, 2), y=np.arange(3))
    whole = path.read_bytes()
    refusals = 0
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        try:
            read_npz(path, ("x", "y"))
        except UsageError as error:
            assert str(path) in str(error)
            refusals += 1
    assert refusals > len(whole) // 2


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\0\0\x08\x03" + b"\0" * 6, "truncated: 10 bytes, its header alone has 16"),
        (b"\0\0\x08\xff" + b"\0" * 6, "truncated: 10 bytes, its header alone has 1024"),
        (b"\0\0\x08\x03" + b"\xff" * 12, "16 bytes where its header states 79228162458924105385300197391"),
        (b"\0\0\x08\x01\0\0\0\x02abcdef", "more than 10 bytes where its header states 10"),
        (b"", "its magic number is wrong"),
    ],
)
def test_idx_files_that_promise_another_size(tmp_path: Path, suffix: str, content: bytes, message: str) -> None:
    path = tmp_path / f"x{suffix}"
    path.write_bytes(gzip.compress(content) if suffix else content)
    refused(message, path, lambda: read_idx(path))


def test_no_more_is_unpacked_than_an_idx_header_promises(tmp_path: Path) -> None:
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(b"\0\0\x08\x01\0\0\0\x02" + bytes(100 * MEBIBYTE)))
    refused("more than 10 bytes where its header states 10", path, lambda: read_idx(path))


def test_a_folder_of_idx_files_without_images(tmp_path: Path) -> None:
    for prefix in ("train", "t10k"):
        (tmp_path / f"{prefix}-images-idx3-ubyte").write_bytes(b"\0\0\x08\x03" + struct.pack(">3I", 0, 28, 28))
        (tmp_path / f"{prefix}-labels-idx1-ubyte").write_bytes(b"\0\0\x08\x01" + struct.pack(">I", 0))
    refused("the training images and labels in", tmp_path, lambda: load(tmp_path))


@pytest.mark.parametrize("label", ["²", "9" * 5000])
def test_class_names_that_look_like_numbers(tmp_path: Path, label: str) -> None:
    path = tmp_path / "data.csv"
    path.write_text(f"V1,V2,class\n1,2,{label}\n", encoding="utf-8")
    assert read_samples(path, ROLES).classes == (label,)
