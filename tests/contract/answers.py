"""What a command answers, as values that can be stored and compared: exit code, words, numbers over their scales.

An analysis is named here once; `WORDS` says with which command words it is asked, so that a command that is renamed
changes one line. Everything runs in this process through the command line.
"""

import contextlib
import functools
import hashlib
import io
import json
import math
import re
import signal
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from circuitsim.cli import main

WORDS: dict[str, list[list[str]]] = {
    "steady": [["steady"], ["tran", "--steady"]],
    "drops": [["ir-drop"], ["solve", "--drops"]],
    "poles": [["ac", "--poles"]],
}
"""Analyses whose command words are not their name: those of older versions first. The first that exists is used."""

PROJECTIONS = 8
LISTED = 16
"""Lists of more numbers are stored as projections."""

SECONDS = 20
"""Longest processor time of one command; what takes longer is stored as such and compared with nothing."""

IGNORED = frozenset(
    (
        "difference",
        "file",
        "worst_residual",
        "schema",
        "version",
        "versions",
        "certificate",
        "solver",
        "iterations",
        "solves",
        "systems",
        "periods",
        "shooting",
    )
    + ("worst_violation", "mismatch", "distance", "error", "histogram", "seconds", "message", "text", "why")
)
"""Keys whose values are rounding, effort or prose: that they exist is compared, their values are not."""


class TooLong(BaseException):
    """A command ran longer than `SECONDS`."""


class Said(NamedTuple):
    """Exit code (-1: it took too long), standard output, standard error."""

    code: int
    out: str
    err: str


@functools.cache
def commands() -> frozenset[str]:
    """The commands that exist."""
    return frozenset(re.findall(r"^    ([a-z][a-z-]+)(?: |$)", run(["--help"]).out, re.MULTILINE))


def words_of(analysis: str) -> list[str]:
    """The command words of an analysis."""
    return next((words for words in WORDS.get(analysis, []) if words[0] in commands()), [analysis])


def run(words: list[str], seconds: float = SECONDS) -> Said:
    """One command, in this process."""
    out, err = io.StringIO(), io.StringIO()

    def stop(*_: object) -> None:
        raise TooLong

    timed = threading.current_thread() is threading.main_thread()
    if timed:
        signal.signal(signal.SIGPROF, stop)
        signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(words)
    except TooLong:
        code = -1
    except SystemExit as error:
        code = int(error.code or 0)
    finally:
        if timed:
            signal.setitimer(signal.ITIMER_PROF, 0)
    return Said(code, out.getvalue(), err.getvalue())


# Numbers over their scales.


@functools.cache
def weights(name: str) -> np.ndarray:
    """`PROJECTIONS` weights between −1 and 1 that the name alone decides: order and company do not matter."""
    digest = hashlib.blake2b(name.encode(), digest_size=8 * PROJECTIONS).digest()
    return np.frombuffer(digest, dtype="<u8").astype(float) / 2.0**63 - 1.0


def clean(values: Any) -> np.ndarray:
    """As doubles; None is NaN."""
    return np.array([math.nan if x is None else float(x) for x in values])


def project(named: dict[str, np.ndarray]) -> tuple[float, np.ndarray]:
    """Scale and projections of named rows of values; in a row of several values each belongs to one projection."""
    scale = max((float(np.nanmax(np.abs(x), initial=0.0)) for x in named.values()), default=0.0)
    total = np.zeros(PROJECTIONS)
    for name, values in named.items():
        x = np.nan_to_num(values / scale if scale > 0.0 else values, nan=0.0, posinf=1.0, neginf=-1.0)
        if x.size == 1:
            total += weights(name) * x[0]
            continue
        at = np.arange(x.size)
        # Weights of one name at many places: the fractional parts of multiples of an irrational number, shifted.
        share = 2.0 * np.mod(weights(name)[at % PROJECTIONS] + 0.6180339887498949 * at, 1.0) - 1.0
        total += np.bincount(at % PROJECTIONS, share * x, PROJECTIONS)
    return scale, total


def complex_columns(columns: dict[str, Any]) -> dict[str, Any]:
    """Columns of magnitude, decibels and phase as real and imaginary parts; others as they are."""
    found = dict(columns)
    for name in [name for name in columns if f"{name} phase" in columns]:
        phase, size = np.radians(clean(found.pop(f"{name} phase"))), clean(found.pop(name))
        found.pop(f"{name} dB", None)
        found |= {f"{name} re": (size * np.cos(phase)).tolist(), f"{name} im": (size * np.sin(phase)).tolist()}
    return found


# One random circuit.


class Answer(NamedTuple):
    """Of a random circuit: what is said in words, scales of voltages and currents, projections of each."""

    kind: str
    scales: tuple[float, float]
    projections: np.ndarray


def quantities(data: dict[str, Any]) -> Iterator[tuple[str, np.ndarray]]:
    """The named values of an operating point, of columns, or of tolerances; names begin with v or i."""
    if "branches" in data:
        yield from ((f"v({name})", clean([x])) for name, x in data["nodes"].items())
        yield from ((f"i({name})", clean([x["current"]])) for name, x in data["branches"].items())
        for name, x in (data.get("other") or {}).get("nodes", {}).items():
            yield f"v other({name})", clean([x])
    elif "quantities" in data:
        for name, found in data["quantities"].items():
            ends = [found["least"], found["most"]]
            if "exact" not in found:
                values = [found["nominal"], found["mean"], found["deviation"], *ends]
                values += [x["value"] for x in found["quantiles"].values()]
            else:  # the ends of a search that was given up depend on its order
                values = [found["nominal"], *([x["value"] for x in ends] if found["exact"] else [])]
            yield name, clean(values)
    else:
        columns = complex_columns({name: x for name, x in data.items() if isinstance(x, list)})
        yield from ((name, clean(x)) for name, x in columns.items() if name[:2] in ("v(", "i("))


def parsed(said: Said) -> dict[str, Any] | None:
    """The JSON of an answer, None where there is none."""
    if not said.out.startswith("{"):
        return None
    data = json.loads(said.out)
    return data if isinstance(data, dict) else None


def answer(analysis: str, extra: list[str], text: str) -> Answer:
    """The answer of one random circuit."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "deck.cir"
        path.write_text(text)
        said = run([*words_of(analysis), str(path), "--format", "json", *extra])
    data = parsed(said)
    words = [f"exit {said.code}" if said.code else "0"]
    found: dict[str, np.ndarray] = {}
    if data is not None:
        words += [str(data.get(key, "")) for key in ("status", "uniqueness")]
        words.append(str((data.get("cause") or {}).get("kind", "")))
        branches = (data.get("branches") or {}).values()
        words.append(f"{sum(not x.get('unique', True) for x in branches)} not unique")
        words.append(f"{sum(x.get('exact') is False for x in data.get('quantities', {}).values())} not exact")
        found = dict(quantities(data)) if said.code == 0 else {}
    volts = project({name: x for name, x in found.items() if name[0] == "v"})
    amperes = project({name: x for name, x in found.items() if name[0] != "v"})
    kind = " ".join(word for word in words if word and word[0] != "0") or "done"
    return Answer(kind, (volts[0], amperes[0]), np.concatenate([volts[1], amperes[1]]))


# One command of a deck.


def flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of JSON by path; a list of numbers is one leaf."""
    if isinstance(value, dict):
        if not value:
            yield path, {}
        for key, inner in complex_columns(value).items():
            yield from [(f"{path}/{key}", None)] if key in IGNORED else flat(inner, f"{path}/{key}")
    elif isinstance(value, list) and not all(x is None or isinstance(x, (int, float)) for x in value):
        for k, inner in enumerate(value):
            yield from flat(inner, f"{path}/{k}")
    else:
        yield path, value


def group(path: str) -> str:
    """Values of one group have one scale: voltages of nodes, currents of branches, columns of one kind."""
    parts = path.split("/")
    return parts[1].split("(")[0] + ("/" + parts[-1] if len(parts) > 3 else "")


def stored(leaf: Any) -> Any:
    """A leaf as it is stored: sentences as None, long lists as their length, scale and projections."""
    if isinstance(leaf, str):
        return leaf if " " not in leaf else None
    if isinstance(leaf, list) and len(leaf) > LISTED:
        scale, found = project({"": clean(leaf)})
        return {"length": len(leaf), "scale": scale, "projections": found.tolist()}
    return leaf


def command(words: list[str], csv: bool) -> dict[str, Any]:
    """Exit code, JSON by path and CSV columns of a command."""
    said = run([*words, "--format", "json"])
    found: dict[str, Any] = {"code": said.code}
    data = parsed(said)
    if data is not None:
        data["warnings"] = [{"line": x.get("line"), "names": None} for x in data.get("warnings") or []]
        found["implicit"] = "energy_tolerance" in (data.get("certificate") or {})
        found["json"] = {path: stored(leaf) for path, leaf in flat(data)}
    if csv and said.code == 0:
        found["csv"] = run([*words, "--format", "csv"]).out.split("\n", 1)[0].strip()
    return found


# Comparison.


def apart(old: Any, new: Any, tolerance: float) -> bool:
    """Whether two leaves differ by more than a tolerance (absolute: of the leaf's scale)."""
    if isinstance(old, bool) or isinstance(new, bool) or old is None or new is None or isinstance(old, str):
        return bool(old != new)
    if isinstance(old, dict) and isinstance(new, dict):
        if not old or not new or old["length"] != new["length"]:
            return bool(old != new)
        one, other = (np.array(x["projections"]) * x["scale"] for x in (old, new))
        return bool(np.any(np.abs(one - other) > tolerance * max(1.0, old["length"] / LISTED)))
    if isinstance(old, list) and isinstance(new, list):
        return len(old) != len(new) or any(apart(a, b, tolerance) for a, b in zip(old, new))
    if isinstance(old, (int, float)) and isinstance(new, (int, float)):
        return not abs(old - new) <= tolerance and not (math.isnan(old) and math.isnan(new)) and old != new
    return True


def brief(leaf: Any) -> str:
    """A leaf for a reader."""
    if isinstance(leaf, dict) and leaf:
        return f"{leaf['length']} values, scale {leaf['scale']:.6g}, of which one sum is {leaf['projections'][0]:.9g}"
    return f"{leaf:.9g}" if isinstance(leaf, float) else str(leaf)[:60]


def sizes(leaf: Any) -> float:
    """The largest value of a leaf."""
    if isinstance(leaf, dict):
        return float(leaf.get("scale", 0.0))
    values = leaf if isinstance(leaf, list) else [leaf]
    return max((abs(x) for x in values if isinstance(x, (int, float)) and math.isfinite(x)), default=0.0)


def differences(old: dict[str, Any], new: dict[str, Any], tolerance: float) -> list[tuple[str, str, str]]:
    """Where two answers of a command differ: what, old, new."""
    if -1 in (old["code"], new["code"]):
        return [] if old["code"] == -1 else [("code", str(old["code"]), "takes too long")]
    exact = sorted((old.keys() | new.keys()) - {"json", "implicit"})
    found = [(key, str(old.get(key)), str(new.get(key))) for key in exact if old.get(key) != new.get(key)]
    before, after = old.get("json") or {}, new.get("json") or {}
    scales: dict[str, float] = {}
    for path, leaf in before.items():
        scales[group(path)] = max(scales.get(group(path), 0.0), sizes(leaf))
    for path in sorted(before.keys() | after.keys()):
        if path not in before or path not in after:
            found.append((path, "absent" if path not in before else "there", "there" if path in after else "absent"))
        elif path.split("/")[-1] not in IGNORED and apart(before[path], after[path], tolerance * scales[group(path)]):
            found.append((path, brief(before[path]), brief(after[path])))
    return found


IMPLICIT = 1.1e-4
"""Sum of the stated accuracies of two implicit runs: 1e-5 of those frozen, and 1e-4."""


def answers_apart(old: Answer, new: Answer, tolerance: float) -> list[tuple[str, str, str]]:
    """Where two answers of a random circuit differ."""
    if old.kind != new.kind:
        return [("kind", old.kind, new.kind)]
    found = []
    for k, what in enumerate(("voltages", "currents")):
        one, other = old.scales[k], new.scales[k]
        part = slice(k * PROJECTIONS, (k + 1) * PROJECTIONS)
        off = max(
            float(np.abs(old.projections[part] - new.projections[part]).max()),
            abs(one - other) / max(one, other) if one != other else 0.0,
        )
        if not off <= tolerance:
            found.append((what, f"scale {one:.6g}", f"scale {other:.6g}, apart {off:.1e}"))
    return found
