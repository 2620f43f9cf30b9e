"""The idx format of the MNIST files: a magic number, the shape, then bytes in C order."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import numpy as np

from circuitsim.errors import UsageError

_BYTES = 0x08


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
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as problem:
        raise UsageError(f"{path} is damaged and cannot be read ({problem})") from problem
    if len(raw) < 4 or raw[:2] != b"\x00\x00" or raw[2] != _BYTES:
        raise UsageError(f"{path} is not an idx file of bytes (its magic number is wrong)")
    header = 4 + 4 * raw[3]
    shape = tuple(int(size) for size in np.frombuffer(raw[4:header], ">u4"))
    expected = header + int(np.prod(shape))
    if len(raw) != expected:
        raise UsageError(f"{path} is cut short or too long: {len(raw)} bytes where its header promises {expected}")
    return np.frombuffer(raw, np.uint8, offset=header).reshape(shape)
