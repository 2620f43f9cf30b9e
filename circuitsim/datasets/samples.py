"""Samples for a circuit: values of its input sources and targets of its outputs.

Two kinds of files. CSV: the header names input sources and outputs (``V1,V2,v(out),"v(a,b)"``), or instead of outputs
one column ``class``. npz: ``x`` (samples × inputs) and ``y`` (samples × outputs, or one integer a sample: its class).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from circuitsim._files import csv_rows, finite_number, no_data
from circuitsim._npz import npz_headers, read_npz
from circuitsim.datasets.images import of_scikit_learn
from circuitsim.errors import UsageError
from circuitsim.netlist.roles import Roles

LARGEST = 200_000_000
"""Numbers that a file may hold."""

CLASS = "class"


class Samples(NamedTuple):
    """Inputs and targets of the same samples.

    Attributes
    ----------
    x : (n, inputs) float array
        Values of the input sources, V or A, in the order of the roles.
    y : (n, outputs) float array, or (n,) int array
        Target voltages, V; or the class of each sample, the number of its output.
    classes : tuple of str
        Names of the classes; empty where targets are voltages.
    """

    x: np.ndarray
    y: np.ndarray
    classes: tuple[str, ...] = ()

    def take(self, rows: np.ndarray) -> Samples:
        """Some of the samples, by number or by mask."""
        return Samples(self.x[rows], self.y[rows], self.classes)

    @property
    def size(self) -> int:
        """Number of samples."""
        return len(self.x)


def read_samples(path: str | Path, roles: Roles, classes: Sequence[str] = (), targets: bool = True) -> Samples:
    """The samples of a file.

    Parameters
    ----------
    path : str or Path
        ``.csv`` or ``.npz``; or the name of a bundled data set (`BUNDLED`), where no such file exists.
    roles : Roles
        Which columns there must be.
    classes : sequence of str
        Names of the classes, in the order of the outputs, where given (by a training file).
    targets : bool
        Whether the file must have targets; otherwise those it has are left out.

    Raises
    ------
    UsageError
        No such file; columns that are missing, repeated or unknown; a row that is not numbers, by file and line.
    """
    name, path = str(path), Path(path)
    if name in BUNDLED and not path.exists():
        return bundled(name, roles)
    if not path.is_file():
        raise UsageError(no_data(path))
    reader = {".csv": _from_csv, ".npz": _from_npz}.get(path.suffix.lower())
    if reader is None:
        raise UsageError(f"{path}: the name of a data file must end in .csv or .npz")
    return reader(path, roles, tuple(classes), targets)


def split(samples: Samples, fraction: float, rng: np.random.Generator) -> tuple[Samples, Samples]:
    """Samples to train on and a random ``fraction`` held out, the same fraction of every class.

    Raises
    ------
    UsageError
        One of the two would be empty.
    """
    held = held_out(samples.y if samples.classes else np.zeros(samples.size), fraction, rng, "samples")
    return samples.take(~held), samples.take(held)


def held_out(group: np.ndarray, fraction: float, rng: np.random.Generator, what: str) -> np.ndarray:
    """Mask (n,) of a random ``fraction`` of every group (n,); see `split`."""
    if not 0.0 < fraction < 1.0:
        raise UsageError(f"the fraction held out must lie between 0 and 1, not {fraction:g}")
    held = np.zeros(group.size, dtype=bool)
    for label in np.unique(group):
        members = rng.permutation(np.flatnonzero(group == label))
        held[members[: round(fraction * members.size)]] = True
    if held.all() or not held.any():
        raise UsageError(f"{group.size} {what} cannot be split with a fraction of {fraction:g} held out")
    return held


# ---------------------------------------------------------------------- CSV
def _from_csv(path: Path, roles: Roles, classes: tuple[str, ...], targets: bool) -> Samples:
    rows = csv_rows(path)
    _, header = next(rows, (0, []))
    if not header:
        raise UsageError(f"{path} is empty: its first line must name the columns")
    columns, label = _columns(path, header, roles, targets)
    labels: list[tuple[int, str]] = []

    def numbers() -> Iterator[list[float]]:
        for line, row in rows:
            if label is not None:
                labels.append((line, row[label]))
            yield [finite_number(path, line, row[at]) for at in columns]

    most = LARGEST // len(columns)
    table = np.fromiter(islice(numbers(), most + 1), np.dtype((np.float64, (len(columns),))))
    if len(table) > most:
        raise UsageError(f"{path}: more than {LARGEST:,} numbers; split the file, or use npz")
    if not table.size:
        raise UsageError(f"{path} has a header and no samples")
    if label is None:
        return Samples(table[:, : len(roles.inputs)], table[:, len(roles.inputs) :])
    classes = classes or _class_names(path, {name for _, name in labels}, roles)
    number = {name: k for k, name in enumerate(classes)}
    for line, name in labels:
        if name not in number:
            raise UsageError(f"{path}:{line}: there is no class {name!r}; there are {', '.join(classes)}")
    return Samples(table, np.array([number[name] for _, name in labels], dtype=np.int64), classes)


def _plain(name: str) -> str:
    """A column's or output's name as it is compared: ``v(out,0)`` is ``v(out)``, case and blanks do not matter."""
    return "".join(name.lower().split()).replace(",0)", ")")


def _columns(path: Path, header: list[str], roles: Roles, targets: bool) -> tuple[list[int], int | None]:
    """The columns of the inputs, and with targets those of the outputs or that of the class."""
    wanted = [*roles.inputs, *roles.output_names]
    known, n, places = [*map(_plain, wanted), CLASS], len(roles.inputs), dict[str, int]()
    for at, name in enumerate(header):
        if _plain(name) not in known:
            raise UsageError(
                f"{path}:1: column {name!r} is neither an input nor an output; these are {', '.join(wanted)}, "
                f"and {CLASS!r}"
            )
        if places.setdefault(_plain(name), at) != at:
            raise UsageError(f"{path}:1: column {name!r} is repeated")
    label = places.get(CLASS)
    if label is not None and not places.keys().isdisjoint(known[n:-1]):
        raise UsageError(f"{path}:1: either a column {CLASS!r} or columns of output voltages, not both")
    needed = known[: n if label is not None or not targets else -1]
    if missing := [wanted[k] for k, name in enumerate(needed) if name not in places]:
        raise UsageError(f"{path}:1: there is no column {', '.join(missing[:8])}")
    return [places[name] for name in needed], label if targets else None


def _class_names(path: Path, found: set[str], roles: Roles) -> tuple[str, ...]:
    """Whole numbers from 0 on name outputs; other names are numbered in their order."""
    numbers = tuple(map(str, range(len(roles.outputs))))
    if found.issubset(numbers):
        return numbers
    if len(found) > len(numbers):
        raise UsageError(
            f"{path} has {len(found)} classes, the circuit {len(numbers)} outputs: each class needs one of its own"
        )
    return tuple(sorted(found))


# ---------------------------------------------------------------------- npz
def _from_npz(path: Path, roles: Roles, classes: tuple[str, ...], targets: bool) -> Samples:
    x, y = arrays_of(path, targets)
    n, m = len(roles.inputs), len(roles.outputs)
    if x.ndim != 2 or x.shape[1] != n or not len(x):
        raise UsageError(f"{path}: x must be samples × {n} inputs, not {x.shape}")
    if not targets:
        return Samples(x, np.empty((len(x), 0)))
    if len(y) != len(x):
        raise UsageError(f"{path}: x has {len(x)} samples, y {len(y)}")
    if y.ndim == 1 and y.dtype.kind in "iu" and m > 1:
        if y.min() < 0 or y.max() >= m:
            raise UsageError(f"{path}: the classes in y must lie in 0…{m - 1}, the outputs of the circuit")
        return Samples(x, y.astype(np.int64), classes or tuple(map(str, range(m))))
    y = y.reshape(len(y), -1)
    if y.shape[1] != m:
        raise UsageError(f"{path}: y must be samples × {m} outputs (V), or one class a sample, not {y.shape}")
    return Samples(x, y.astype(np.float64))


def arrays_of(path: Path, targets: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """``x`` as doubles and, with targets, ``y`` of an npz file; without, ``y`` is empty.

    Raises
    ------
    UsageError
        The file is missing, damaged or too large, lacks an array, or holds no finite numbers.
    """
    names = ("x", "y") if targets else ("x",)
    if sum(math.prod(shape) for shape, _ in npz_headers(path, names)) > LARGEST:
        raise UsageError(f"{path}: more than {LARGEST:,} numbers")
    arrays = read_npz(path, names)
    for name, found in arrays.items():
        if found.dtype.kind not in "iufb" or not found.ndim or not found.size:
            raise UsageError(
                f"{path} has no samples: {name} must be an array of numbers, not {found.dtype} {found.shape}"
            )
        if len(bad := np.argwhere(~np.isfinite(found))):
            raise UsageError(f"{path}: sample {bad[0, 0]} of {name} is not finite")
    return arrays["x"].astype(np.float64), arrays.get("y", np.empty(0))


# ---------------------------------------------------------------------- bundled
BUNDLED = ("iris", "digits")
"""Data sets of scikit-learn that can be named instead of a file."""

_IRIS = np.array([[5.8, 3.0, 3.7, 1.2], [0.8, 0.4, 1.8, 0.8]])
"""Centre and unit of the four lengths, cm."""


def bundled(name: str, roles: Roles) -> Samples:
    """Iris or the 8 × 8 digits as samples for a circuit: features, or features and their negatives, as it has inputs.

    Lengths are counted from a typical value in typical deviations (constants, the same for every split); pixels are
    0 … 1. One output a class.

    Raises
    ------
    UsageError
        The circuit has other numbers of inputs or outputs; scikit-learn is missing.
    """
    found = of_scikit_learn(name)
    x = (found.data - _IRIS[0]) / _IRIS[1] if name == "iris" else found.data / 16.0
    n, m = x.shape[1], len(found.target_names)
    if len(roles.inputs) == 2 * n:
        x = np.concatenate([x, -x], axis=1)
    if len(roles.inputs) != x.shape[1] or len(roles.outputs) != m:
        raise UsageError(
            f"{name} has {n} features (or {2 * n} with their negatives) and {m} classes; inputs of the "
            f"circuit: {len(roles.inputs)}, outputs: {len(roles.outputs)}"
        )
    return Samples(x.astype(np.float64), found.target.astype(np.int64), tuple(map(str, found.target_names)))


def is_over_time(path: str | Path) -> bool:
    """Whether the header of a CSV file has a column ``time`` or ``measurement``."""
    path = Path(path)
    if path.suffix.lower() != ".csv" or not path.is_file():
        return False
    _, header = next(csv_rows(path), (0, []))
    return not {"time", "measurement"}.isdisjoint(map(str.lower, header))
