"""The idx format of the MNIST files: a magic number, the shape, then bytes in C order."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path
from typing import BinaryIO

import numpy as np

from circuitsim.errors import UsageError

_BYTES = 0x08
_PIECE = 1 << 24


def read_idx(path: Path) -> np.ndarray:
    """Read an ``idx*-ubyte`` file, gzipped (``.gz``) or not; uint8 of the shape the file states.

    Raises
    ------
    UsageError
        The file is missing, damaged or not of this format.
    """
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    try:
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
            return _read(file, path)
    except (OSError, EOFError, zlib.error) as problem:
        raise UsageError(f"{path} is damaged and cannot be read ({problem})") from problem


def _read(file: gzip.GzipFile | BinaryIO, path: Path) -> np.ndarray:
    """The array; no more is unpacked than the header promises."""
    magic = file.read(4)
    if len(magic) < 4 or magic[:2] != b"\x00\x00" or magic[2] != _BYTES:
        raise UsageError(f"{path} is not an idx file of bytes (its magic number is wrong)")
    sizes = file.read(4 * magic[3])
    if len(sizes) < 4 * magic[3]:
        raise UsageError(f"{path} is cut short: {4 + len(sizes)} bytes, its header alone has {4 + 4 * magic[3]}")
    shape = struct.unpack(f">{magic[3]}I", sizes)
    promised = math.prod(shape)
    content = bytearray()
    while len(content) <= promised and (piece := file.read(min(_PIECE, promised + 1 - len(content)))):
        content += piece
    if len(content) != promised:
        begun = 4 + len(sizes)
        found = f"more than {begun + promised}" if len(content) > promised else f"{begun + len(content)}"
        raise UsageError(f"{path} is cut short or too long: {found} bytes where its header promises {begun + promised}")
    return np.frombuffer(content, np.uint8).reshape(shape)
