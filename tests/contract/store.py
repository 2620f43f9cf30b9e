"""The frozen answers and their amendments: files, keys, and what is expected of a version.

``frozen/FAMILY.npz`` holds the answers of a family of random circuits at 2634b2ce, ``frozen/decks.json.gz`` those of
the decks. `amendments.toml` lists what has changed since on purpose, ``frozen/amended.json.gz`` the answers after it.
"""

import gzip
import json
import tomllib
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from answers import Answer

HERE = Path(__file__).parent
FROZEN = HERE / "frozen"
AMENDMENTS = HERE / "amendments.toml"


class Store(NamedTuple):
    """Answers of a family by seed, with checksums of the decks."""

    answers: list[Answer]
    checksums: np.ndarray


def checksum(text: str) -> int:
    """Of a deck."""
    return zlib.crc32(text.encode())


def read_family(name: str) -> Store:
    """The stored answers of a family."""
    with np.load(FROZEN / f"{name}.npz", allow_pickle=False) as data:
        kinds, kind, scale, projections = (data[x] for x in ("kinds", "kind", "scale", "projections"))
        found = [Answer(str(kinds[k]), (float(s[0]), float(s[1])), p) for k, s, p in zip(kind, scale, projections)]
        return Store(found, data["checksum"])


def write_json(name: str, value: dict[str, Any]) -> None:
    """Store JSON; the same value gives the same bytes."""
    FROZEN.mkdir(exist_ok=True)
    text = json.dumps(value, indent=0, sort_keys=True)
    (FROZEN / f"{name}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def read_json(name: str) -> dict[str, Any]:
    """Stored JSON; empty where there is none."""
    path = FROZEN / f"{name}.json.gz"
    return json.loads(gzip.decompress(path.read_bytes())) if path.exists() else {}


def as_json(answer: Answer) -> dict[str, Any]:
    """An answer of a random circuit for `write_json`."""
    return {"kind": answer.kind, "scales": list(answer.scales), "projections": list(map(float, answer.projections))}


def from_json(value: dict[str, Any]) -> Answer:
    """The answer that `as_json` wrote."""
    return Answer(value["kind"], (value["scales"][0], value["scales"][1]), np.array(value["projections"]))


class Amendment(NamedTuple):
    """What changed on purpose: keys (``DECK solve`` or ``points 17``), old and new answer in words, the line of an
    issue that asks for it, the reason."""

    keys: tuple[str, ...]
    old: str
    new: str
    issue: str
    reason: str


def amendments() -> list[Amendment]:
    """Those of `amendments.toml`."""
    found = []
    for entry in tomllib.loads(AMENDMENTS.read_text(encoding="utf-8")).get("amendment", []):
        keys = entry.get("commands") or [f"{entry['family']} {seed}" for seed in entry["seeds"]]
        found.append(Amendment(tuple(keys), *(entry[x] for x in ("old", "new", "issue", "reason"))))
    return found


def write_amendments(found: list[Amendment]) -> None:
    """Write `amendments.toml`."""
    parts = ["# What has changed on purpose since 2634b2ce; written by `python tests/contract/check.py --amend`.\n"]
    for entry in sorted(found):
        families = {key.split()[0] for key in entry.keys if key.split()[1].isdigit() and len(key.split()) == 2}
        if families:
            seeds = ", ".join(map(str, sorted(int(key.split()[1]) for key in entry.keys)))
            where = f'family = "{families.pop()}"\nseeds = [{seeds}]'
        else:
            listed = "".join(f"    {json.dumps(key, ensure_ascii=False)},\n" for key in sorted(entry.keys))
            where = f"commands = [\n{listed}]"
        texts = [
            f"{x} = {json.dumps(getattr(entry, x), ensure_ascii=False)}" for x in ("old", "new", "issue", "reason")
        ]
        parts.append("\n".join(["[[amendment]]", where, *texts, ""]))
    AMENDMENTS.write_text("\n".join(parts), encoding="utf-8")
