"""Netlists of schematics: by KiCad's own command where it is installed, else how to write one."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from circuitsim.errors import UsageError
from circuitsim.netlist.source import read_bytes

LTSPICE = re.compile(rb"(?:\xff\xfe)?V\0?e\0?r\0?s\0?i\0?o\0?n\0? \0?4(?:\.\d)?\0?\r?\0?\n\0?S\0?H\0?E\0?E\0?T")
KICAD = re.compile(rb"\s*\(kicad_sch\b")

COMMAND = "kicad-cli"
"""Of KiCad 7 and later."""

PATIENCE = 120.0
"""Seconds after which KiCad is given up: it starts in some seconds."""


def netlist(path: str, data: bytes) -> bytes:
    """The content of a deck's file, or the netlist that KiCad writes where the file is one of its schematics.

    Parameters
    ----------
    path : str
        The file.
    data : bytes
        Its content.

    Raises
    ------
    UsageError
        A schematic of LTspice; one of KiCad without its command, or that it does not convert.
    """
    if LTSPICE.match(data):
        raise UsageError(
            f"{path} is a schematic of LTspice, not a netlist\n    hint: in LTspice, View > SPICE Netlist "
            "writes one, or: LTspice -netlist FILE.asc"
        )
    if not KICAD.match(data):
        return data
    program = shutil.which(COMMAND)
    if program is None:
        raise UsageError(
            f"{path} is a schematic of KiCad, not a netlist\n    hint: in KiCad, File > Export > Netlist > SPICE "
            f"writes one; with {COMMAND} (KiCad 7 or later) on the PATH it is read as it is"
        )
    return _exported(path, program)


def _exported(path: str, program: str) -> bytes:
    """The netlist that KiCad's command writes of a schematic."""
    import subprocess
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "netlist.cir"
        words = [program, "sch", "export", "netlist", "--format", "spice", "--output", str(out), path]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=False)
        except subprocess.TimeoutExpired:
            raise UsageError(f"{path}: {COMMAND} wrote no netlist within {PATIENCE:g} s") from None
        if done.returncode or not out.is_file():
            said = (done.stderr or done.stdout).strip().splitlines()
            raise UsageError(f"{path}: {COMMAND} wrote no netlist" + (f": {said[-1]}" if said else ""))
        return read_bytes(str(out))
