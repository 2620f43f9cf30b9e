"""Runner of the studies of ``circuitsim reproduce``: networks of a grid, trained with several seeds, resumable.

A study is a table (`Study`): its grid, how a point of it is trained, the columns of a row, the published results. Runs
are stored in folders and continued; the page, the CSV file and the picture have the same form for all.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

from circuitsim.cli.models import RUN, SHARED, new_options
from circuitsim.cli.options import Option, options_in
from circuitsim.cli.train import Task, train_all
from circuitsim.errors import UsageError
from circuitsim.formats.columns import csv, markdown
from circuitsim.plotting.charts import Line, plot_lines
from circuitsim.training.history import Row

COMPILED = (
    "Seconds are of a shared machine; those of a run's first epoch include the compilation of kernels unless they are "
    "cached (circuitsim warm-up)."
)
"""Note on times in pages."""

Key = dict[str, Any]
"""A point of a study's grid: axis → value."""


class Run(NamedTuple):
    """One trained network: its grid point, seed, data set, history, further measures."""

    key: Key
    seed: int
    dataset: str
    history: list[Row]
    measures: dict[str, float]

    @property
    def error(self) -> float:
        """Test error after the last epoch, %."""
        return 100.0 * self.history[-1]["test_error"]


class Findings(NamedTuple):
    """What a study found: the lines of its page, the rows of its CSV file, the curves and axes of its picture."""

    page: list[str]
    rows: list[dict[str, Any]]
    curves: list[Line]
    axes: Mapping[str, Any]


class Comparison(NamedTuple):
    """A study without a grid of training runs.

    Attributes
    ----------
    name : str
        Of its command, its row in `presets.toml` and its files.
    compare : callable
        ``compare(args)``.
    line, title, options : str
        Its line in the help; title of its page; its options (`options_in`).
    """

    name: str
    compare: Callable[[argparse.Namespace], Findings]
    line: str
    title: str
    options: str

    def known(self) -> dict[str, Option]:
        """The options of the comparison."""
        return options_in(self.options)

    def run(self, args: argparse.Namespace) -> int:
        """Compare, print the page, and write the requested files."""
        found = self.compare(args)
        deliver(args.out, self.name, found._replace(page=[f"# {self.title}", "", *found.page]))
        return 0


class Paper(NamedTuple):
    """Published results for a grid point: data set, test error, %, and columns of the page."""

    dataset: str
    error: float
    columns: Mapping[str, str]


class Study(NamedTuple):
    """A study, made of functions that other processes can import.

    Attributes
    ----------
    name : str
        Of its command, its row in `presets.toml` and its files.
    train : callable
        ``train(args, key)``: options of ``circuitsim train`` for a point of the grid, whose files go to
        ``args.folder``.
    cells : callable
        ``cells(runs, all_runs)``: the columns of a row, for all seeds of a point.
    paper : callable
        ``paper(runs)``: published results of their point, shown only next to runs on the paper's data with whole
        networks and data sets ("–" next to others).
    measure : callable
        ``measure(args, key, experiment)``, called after training.
    keys : callable
        Filter of the points of the grid.
    line, title, about : str
        Its line in the help; title of its page; description.
    axes : mapping of str to list
        Axis → its values; ``--<axis>s`` chooses some of them, or other numbers where they are floats.
    seeds : int
        Default number of seeds.
    usual : mapping of str to str
        Axis → the default of its option, if that is not all values.
    more : str
        Further options (`options_in`).
    over : str
        Axis of the picture of accuracies; by default the picture shows errors over the epochs.
    """

    name: str
    train: Callable[[argparse.Namespace, Key], dict[str, Any]]
    cells: Callable[[list[Run], list[Run]], dict[str, str]]
    paper: Callable[[list[Run]], Paper] | None = None
    measure: Callable[..., dict[str, float]] | None = None
    keys: Callable[[Key], bool] | None = None
    line: str = ""
    title: str = ""
    about: str = ""
    axes: Mapping[str, list[Any]] = {}
    seeds: int = 1
    usual: Mapping[str, str] = {}
    more: str = ""
    over: str = ""

    def known(self) -> dict[str, Option]:
        """The options of the study."""
        usual = {axis: self.usual.get(axis, ",".join(map(word, values))) for axis, values in self.axes.items()}
        axes = "\n".join(f"{axis}s NAMES = {default}  with commas between" for axis, default in usual.items())
        return options_in(f"""
{axes}
seeds N = {self.seeds}  runs of each
epochs N  passes over the data (each network's own number)
budget MINUTES  stop training after so many minutes
data_dir DIR  {SHARED["data_dir"].words}
runs DIR  store each run here, and continue stored ones
workers N  {RUN["workers"].words}
dask ADDRESS  {RUN["dask"].words}
out DIR  write {self.name}.md, .csv and .png here
{self.more.strip()}""")

    def published(self, args: argparse.Namespace, runs: list[Run]) -> Paper | None:
        """The paper's results for runs of one point, if they are comparable."""
        whole = getattr(args, "size", "paper") == "paper" and getattr(args, "samples", None) is None
        paper = self.paper(runs) if self.paper and whole else None
        return paper if paper and all(run.dataset == paper.dataset for run in runs) else None

    def run(self, args: argparse.Namespace) -> int:
        """Train, print the page, and write the requested files."""
        if args.epochs is not None and args.epochs < 1:
            raise UsageError(f"--epochs must be at least 1, not {args.epochs}")
        if args.budget is not None and not 0.0 <= args.budget < math.inf:
            raise UsageError(f"--budget is a number of minutes (0: show stored runs only), not {args.budget}")
        values = [self._chosen(axis, getattr(args, f"{axis}s")) for axis in self.axes]
        grid = [dict(zip(self.axes, point)) for point in itertools.product(*values)]
        points = [(key, seed) for key in filter(self.keys, grid) for seed in range(args.seeds)]
        with tempfile.TemporaryDirectory() as scratch:
            args.folder = Path(args.runs or scratch)
            args.folder.mkdir(parents=True, exist_ok=True)
            runs, interrupted = self._trained(points, args)
        if not runs:
            raise UsageError("no network finished an epoch; give more time with --budget")
        deliver(args.out, self.name, self.findings(args, runs))
        return 130 if interrupted else 0

    def _trained(self, points: Sequence[tuple[Key, int]], args: argparse.Namespace) -> tuple[list[Run], bool]:
        """The runs that completed an epoch, in the order of the points and seeds, and whether one was interrupted."""
        end = math.inf if args.budget is None else time.time() + 60.0 * args.budget
        plain = argparse.Namespace(**{name: value for name, value in vars(args).items() if not callable(value)})
        tasks = [
            Task(
                name := "-".join([self.name, *map(word, key.values()), str(seed)]),
                new_options({"seed": seed, **self.train(args, key)}),
                args.folder / name if args.runs else None,
                args.epochs,
                None if self.measure is None else partial(self.measure, plain, key),
                end,
            )
            for key, seed in points
        ]
        runs, interrupted = list[Run](), False
        for k, ((key, seed), found) in enumerate(zip(points, train_all(tasks, args.workers, args.dask)), 1):
            interrupted = found.interrupted
            if found.rows:
                print(f"{k} of {len(points)} runs done", file=sys.stderr)
                runs.append(Run(key, seed, found.dataset, found.rows, found.made))
        return runs, interrupted

    def _chosen(self, axis: str, text: str) -> list[Any]:
        """The values named in a list, in the order of the grid; numbers as they are given."""
        known = self.axes[axis]
        if isinstance(known[0], float):
            try:
                found = [float(word) for word in text.split(",")]
            except ValueError:
                found = [math.nan]
            least = min(*known, 1e-3)
            if not all(least <= value < 100.0 for value in found):
                limits = f"from {least:g} to 100 with commas between them"
                raise UsageError(f"--{axis}s takes numbers {limits}, not {text!r}")
            return found
        names = {str(value): value for value in known}
        for word in text.split(","):
            if word not in names:
                raise UsageError(f"there is no {axis} '{word}' in this study; there are {', '.join(names)}")
        return [value for word, value in names.items() if word in text.split(",")]

    # ------------------------------------------------------------------ what is written
    def findings(self, args: argparse.Namespace, runs: list[Run]) -> Findings:
        """The page has a row per point of the grid; the table one per run and epoch, a run's measures in its last; the
        picture test errors over the epochs, the paper's as dotted lines, or accuracies over an axis."""
        rows = []
        for group in groups(runs):
            epochs = sorted({int(run.history[-1]["epoch"]) for run in group})
            head = {axis: word(value) for axis, value in group[0].key.items()}
            counts = {"runs": str(len(group)), "epochs": "–".join(map(str, sorted({epochs[0], epochs[-1]})))}
            figures = self.paper(group).columns if self.paper else {}
            columns = beside(figures, self.published(args, group) is not None)
            rows.append(head | counts | self.cells(group, runs) | columns)
        names = ", ".join(sorted({run.dataset for run in runs}))
        page = [f"# {self.title}", "", f"{self.about} Trained here on {names}.", "", *markdown(rows)]
        page += ["", f"± is the deviation between runs. {COMPILED}"]
        table = [
            {**run.key, "seed": run.seed, "dataset": run.dataset, **row}
            | (run.measures if row is run.history[-1] else {})
            for run in runs
            for row in run.history
        ]
        return Findings(page, table, *(self._accuracies(runs) if self.over else self._errors(args, runs)))

    def _accuracies(self, runs: list[Run]) -> tuple[list[Line], dict[str, Any]]:
        """A curve for each choice of the other axes."""
        curves: dict[str, dict[Any, float]] = {}
        for group in groups(runs):
            rest = dict(group[0].key)
            x, label = rest.pop(self.over), ", ".join(f"{axis} {value}" for axis, value in rest.items())
            curves.setdefault(label, {})[x] = 100.0 - fmean(run.error for run in group)
        dots = {"marker": "o"}
        lines = [Line(self.title, label, [*points], [*points.values()], dots) for label, points in curves.items()]
        ticks = sorted({run.key[self.over] for run in runs})
        return lines, {"xlabel": self.over, "ylabel": "test accuracy, %", "xticks": ticks}

    def _errors(self, args: argparse.Namespace, runs: list[Run]) -> tuple[list[Line], dict[str, Any]]:
        """A curve for each run."""
        from circuitsim.training.history import marker_of

        found, last, dotted = list[Line](), max(run.history[-1]["epoch"] for run in runs), "dotted: the paper's"
        for k, group in enumerate(groups(runs)):
            label, colour = " ".join(map(str, group[0].key.values())), {"color": f"C{k}"}
            for run in group:
                epochs, errors = zip(*((row["epoch"], 100.0 * row["test_error"]) for row in run.history))
                found.append(Line("", label, epochs, errors, {**colour, "marker": marker_of(len(epochs))}))
                label = "_"
            if (paper := self.published(args, group)) is not None:
                found.append(Line("", dotted, [0, last], [paper.error] * 2, {**colour, "linestyle": ":"}))
                dotted = "_"
        return found, {"xlabel": "epochs", "ylabel": "test error, %", "yscale": "log"}


# ---------------------------------------------------------------------- pages
def word(value: Any) -> str:
    """A value of an axis as it is typed."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def groups(runs: list[Run]) -> list[list[Run]]:
    """Runs grouped by point of the grid."""
    return [list(group) for _, group in itertools.groupby(runs, key=lambda run: run.key)]


def beside(figures: Mapping[str, str], comparable: bool) -> dict[str, str]:
    """A paper's figures; "–" for each where the runs have other data or another network."""
    return {name: figure if comparable else "–" for name, figure in figures.items()}


def spread(values: Sequence[float]) -> str:
    """Mean ± deviation; for one run its value."""
    return f"{fmean(values):.2f}" + (f" ± {stdev(values):.2f}" if len(values) > 1 else "")


def deliver(out: str | None, name: str, found: Findings) -> None:
    """Print a page; write it, its table and its picture, each atomically, into a folder."""
    page = "\n".join([*found.page, ""])
    print(page, end="")
    if out is None:
        return
    from circuitsim._files import atomic_write
    from circuitsim.plotting.figure import write

    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    atomic_write(folder / f"{name}.md", page.encode())
    columns = list(dict.fromkeys(column for row in found.rows for column in row))
    table = csv(columns, [[str(row.get(column, "")) for column in columns] for row in found.rows])
    atomic_write(folder / f"{name}.csv", table.encode())
    write(plot_lines(found.curves, found.axes), folder / f"{name}.png")
    print(f"written to {out}: {name}.md, {name}.csv, {name}.png")
