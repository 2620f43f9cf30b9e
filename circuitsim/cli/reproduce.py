"""``circuitsim reproduce``: published experiments, repeated and printed next to the paper's results.

A study is a table (`Study`): its grid, how a point of it is trained, the columns of a row, the published results. Runs
are stored in folders and continued; the page, the CSV file and the picture have the same form for all.
"""

from __future__ import annotations

import io
import itertools
import math
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from statistics import fmean, median, stdev
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from circuitsim._files import atomic_write
from circuitsim.cli import Option, Values, add_stated, check_values, command, options_in
from circuitsim.cli.common import say
from circuitsim.cli.models import RUN, SHARED, new_options
from circuitsim.cli.train import Task, experiment, train_all
from circuitsim.datasets import load
from circuitsim.errors import UsageError
from circuitsim.ffebm.architectures import LayerSizes, preset, published_layers
from circuitsim.ffebm.comparison import gradient_cosines, gradient_curves
from circuitsim.formats import csv, markdown
from circuitsim.plotting.charts import Line, plot_lines, write
from circuitsim.training.history import Row, marker_of
from circuitsim.training.presets import published

COMPILED = (
    "Seconds are of a shared machine; those of a run's first epoch include the compilation of kernels unless they are "
    "cached (circuitsim warm-up)."
)
"""Note on times in pages."""

Key = Values
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

    @property
    def rows(self) -> list[dict[str, float]]:
        """The history with the measures, and the training time of each epoch, s, as ``epoch_seconds``."""
        begun = [0.0, *(row["epoch"] for row in self.history)]
        seconds = (
            row.get("train_seconds", math.nan) / (row["epoch"] - start) for row, start in zip(self.history, begun)
        )
        return [row | self.measures | {"epoch_seconds": own} for row, own in zip(self.history, seconds)]


Runs = list[Run]


class Findings(NamedTuple):
    """What a study found: the lines of its page, the rows of its CSV file, the curves and axes of its picture."""

    page: list[str]
    rows: list[Values]
    curves: list[Line]
    axes: Mapping[str, Any]


STATED, FIGURES = published("studies"), published("figures")
"""What `presets.toml` says of each study, and of figures."""

USUAL: Values = {
    "measure": None,
    "further": lambda runs, paper: {},
    "network": "",
    "paper": {},
    "seeds": 1,
    "usual": {},
    "more": "",
    "over": "",
}
"""What a study has by default."""


class Comparison(SimpleNamespace):
    """A study without a grid of training runs; its attributes are its row in `presets.toml`, and its functions.

    Attributes
    ----------
    name : str
        Of its command, its row and its files.
    compare : callable
        ``compare(args)`` gives `Findings`.
    line, title, options : str
        Its line in the help; title of its page; its options (`options_in`).
    """

    def __init__(self, name: str, **own: Any) -> None:
        super().__init__(**USUAL | STATED[name] | own, name=name)

    def known(self) -> dict[str, Option]:
        """The options of the comparison."""
        return options_in(self.options)

    def run(self, args: Namespace) -> int:
        """Compare, print the page, and write the requested files."""
        found = self.compare(args)
        deliver(args.out, self.name, found._replace(page=[f"# {self.title}", "", *found.page]))
        return 0


class Study(Comparison):
    """A study with a grid of training runs, made of functions that other processes can import.

    Attributes
    ----------
    name : str
        Of its command, its row in `presets.toml` and its files.
    train : callable
        ``train(args, key)``: options of ``circuitsim train`` for a point of the grid, whose files go to
        ``args.folder``.
    measure : callable
        ``measure(args, key, experiment)``, called after training.
    further : callable
        ``further(runs, paper)``: columns about the published results ``paper`` of the point of some runs.
    network : str
        Family and name of the published network of a point, with axes in braces, after a slash; points without one are
        left out.
    paper : mapping of str to str
        Columns of published results, with their names in braces; shown only next to runs on the paper's data with whole
        networks and data sets ("–" next to others).
    line, title, about : str
        Its line in the help; title of its page; description.
    columns : mapping of str to list of (str, str) or (str, str, "every")
        Columns of a row of the page: numbers of the published network, or measures over the last epochs of all seeds
        or over ``every`` epoch, and their forms (`shown`). A measure named after a value in braces is of the runs that
        differ in the axis ``over`` alone.
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

    def preset(self, key: Key) -> Values:
        """The published network of a point of the grid; empty where there is none."""
        family, _, name = self.network.format(**key).partition("/")
        return published(family).get(name, {}) if family else {}

    def results(self, key: Key) -> Values:
        """The published network of a point, with its data set and its results: by name, and the test error, %."""
        preset = self.preset(key)
        found = {"dataset": "mnist", **preset, **preset["published"][key.get("method", "ep")]}
        return {"error": 100.0 - float(found["accuracy"].split()[0]), **found} if "accuracy" in found else found

    def published(self, args: Namespace, runs: Runs) -> Values | None:
        """The paper's results for runs of one point, if they are comparable."""
        whole = getattr(args, "size", "paper") == "paper" and getattr(args, "samples", None) is None
        paper = self.results(runs[0].key) if self.network and whole else None
        return paper if paper and all(run.dataset == paper["dataset"] for run in runs) else None

    def run(self, args: Namespace) -> int:
        """Train, print the page, and write the requested files."""
        if args.epochs is not None and args.epochs < 1:
            raise UsageError(f"--epochs must be at least 1, not {args.epochs}")
        if args.budget is not None and not 0.0 <= args.budget < math.inf:
            raise UsageError(f"--budget is a number of minutes (0: show stored runs only), not {args.budget}")
        values = [self._chosen(axis, getattr(args, f"{axis}s")) for axis in self.axes]
        grid = [dict(zip(self.axes, point)) for point in itertools.product(*values)]
        kept = [key for key in grid if self.preset(key) or not self.network]
        points = [(key, seed) for key in kept for seed in range(args.seeds)]
        with tempfile.TemporaryDirectory() as scratch:
            args.folder = Path(args.runs or scratch)
            args.folder.mkdir(parents=True, exist_ok=True)
            runs, interrupted = self._trained(points, args)
        if not runs:
            raise UsageError("no network finished an epoch; give more time with --budget")
        deliver(args.out, self.name, self.findings(args, runs))
        return 130 if interrupted else 0

    def _trained(self, points: Sequence[tuple[Key, int]], args: Namespace) -> tuple[Runs, bool]:
        """The runs that completed an epoch, in the order of the points and seeds, and whether one was interrupted."""
        end = math.inf if args.budget is None else time.time() + 60.0 * args.budget
        plain = Namespace(**{name: value for name, value in vars(args).items() if not callable(value)})
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
                say(f"{k} of {len(points)} runs done")
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
    def findings(self, args: Namespace, runs: Runs) -> Findings:
        """The page has a row per point of the grid; the table one per run and epoch, a run's measures in its last; the
        picture test errors over the epochs, the paper's as dotted lines, or accuracies over an axis."""
        rows = []
        for group in groups(runs):
            epochs = sorted({int(run.history[-1]["epoch"]) for run in group})
            head = {axis: word(value) for axis, value in group[0].key.items()}
            counts = {"runs": str(len(group)), "epochs": "–".join(map(str, sorted({epochs[0], epochs[-1]})))}
            paper = self.results(group[0].key) if self.network else {}
            figures = {title: form.format(**paper) for title, form in self.paper.items()} | self.further(group, paper)
            columns = beside(figures, self.published(args, group) is not None)
            here = {title: self._cell(parts, group, runs) for title, parts in self.columns.items()}
            rows.append(head | counts | here | columns)
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

    def _cell(self, parts: list[list[str]], group: Runs, runs: Runs) -> str:
        """A column of the row of a point's runs; see `columns`."""
        key, texts = group[0].key, list[str]()
        facts = self.preset(key)
        near = [run for run in runs if all(run.key[axis] == key[axis] for axis in self.axes if axis != self.over)]
        for name, form, *every in parts:
            own = name.format(**key)
            rows = [row for run in (group if own == name else near) for row in (run.rows if every else run.rows[-1:])]
            found = [facts[own]] if own in facts else [row[own] for row in rows if own in row]
            texts.append(shown(form, found) if found else "–")
        return ", ".join(texts)

    def _accuracies(self, runs: Runs) -> tuple[list[Line], Values]:
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

    def _errors(self, args: Namespace, runs: Runs) -> tuple[list[Line], Values]:
        """A curve for each run."""
        found, last, dotted = list[Line](), max(run.history[-1]["epoch"] for run in runs), "dotted: the paper's"
        for k, group in enumerate(groups(runs)):
            label, colour = " ".join(map(str, group[0].key.values())), {"color": f"C{k}"}
            for run in group:
                epochs, errors = zip(*((row["epoch"], 100.0 * row["test_error"]) for row in run.history))
                found.append(Line("", label, epochs, errors, {**colour, "marker": marker_of(len(epochs))}))
                label = "_"
            if paper := self.published(args, group):
                found.append(Line("", dotted, [0, last], [paper["error"]] * 2, {**colour, "linestyle": ":"}))
                dotted = "_"
        return found, {"xlabel": "epochs", "ylabel": "test error, %", "yscale": "log"}


# ---------------------------------------------------------------------- pages
def word(value: Any) -> str:
    """A value of an axis as it is typed."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def groups(runs: Runs) -> list[Runs]:
    """Runs grouped by point of the grid."""
    return [list(group) for _, group in itertools.groupby(runs, key=lambda run: run.key)]


def beside(figures: Mapping[str, str], comparable: bool) -> dict[str, str]:
    """A paper's figures; "–" for each where the runs have other data or another network."""
    return {name: figure if comparable else "–" for name, figure in figures.items()}


def spread(values: Sequence[float]) -> str:
    """Mean ± deviation of fractions, %; for one run its value."""
    shares = [100.0 * value for value in values]
    return f"{fmean(shares):.2f}" + (f" ± {stdev(shares):.2f}" if len(shares) > 1 else "")


FORMS: dict[str, Callable[[list[float]], str]] = {
    "%": spread,
    "100 % less": lambda values: spread([1.0 - value for value in values]),
    "h:min:s": lambda values: str(timedelta(seconds=round(fmean(values)))),
}
STATISTICS: dict[str, Callable[[list[float]], float]] = {"median": median, "mean": fmean, "largest": max}


def shown(form: str, values: list[float]) -> str:
    """Numbers on a page: in one of `FORMS`, or as one of `STATISTICS` with a format (``median .3g``)."""
    word, _, numbers = form.partition(" ")
    return FORMS[form](values) if form in FORMS else format(STATISTICS[word](values), numbers)


def deliver(out: str | None, name: str, found: Findings) -> None:
    """Print a page; write it, its table and its picture, each atomically, into a folder."""
    page = "\n".join([*found.page, ""])
    print(page, end="")
    if out is None:
        return
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    atomic_write(folder / f"{name}.md", page.encode())
    columns = list(dict.fromkeys(column for row in found.rows for column in row))
    table = csv(columns, [[str(row.get(column, "")) for column in columns] for row in found.rows])
    atomic_write(folder / f"{name}.csv", table.encode())
    write(plot_lines(found.curves, found.axes), folder / f"{name}.png")
    print(f"written to {out}: {name}.md, {name}.csv, {name}.png")


# ---------------------------------------------------------------------- Scellier, Tables 1 and 3
def _scellier(args: Namespace, key: Key) -> Values:
    """A published network; for table 1 with its method and threads, for table 3 with its tolerance."""
    model = key.get("model", "drn")
    more = {"method": key["method"], "threads": args.threads} if "method" in key else {}
    if model == "dhn":
        more = {"tolerance": args.tolerance}
    return {
        "model": model,
        "preset": f"{model}-{key['row']}",
        "dataset": args.dataset,
        "data_dir": args.data_dir,
        **more,
    }


def _times(runs: Runs, paper: Values) -> dict[str, str]:
    theirs = 3600.0 * paper["hours"] / paper["epochs"]
    ours = median(row["epoch_seconds"] for run in runs for row in run.rows)
    return {"paper: s per epoch (A100)": f"{theirs:.0f}", "paper / here": f"{theirs / ours:.3g}"}


TABLE1 = Study("table1", train=_scellier, further=_times)

SHARE, LIMIT, IMAGES = 1e-3, 400, 500
"""Fraction of each layer's largest value that counts as converged; maximum number of sweeps; test images."""


def _convergence(args: Namespace, key: Key, experiment: Any, *rest: object) -> dict[str, float]:
    """Sweeps to convergence of test images: from zero, and nudged by +β from the free state."""
    from circuitsim.hopfield import convergence

    net, test = experiment.trainable, experiment.evaluate
    block, beta = net.block, net.rule.beta
    dtype = block.parameters["bias1"].dtype
    x, targets = (test.x[:IMAGES] / 255).astype(dtype), np.eye(block.n_outputs, dtype=dtype)[test.y[:IMAGES]]
    found = convergence.phases(block, x, targets, beta, SHARE, LIMIT)
    return {
        f"convergence_sweeps_{state}_{of}": float(measure(sweeps))
        for state, sweeps in zip(("free", "nudged"), found)
        for of, measure in (("median", np.median), ("max", np.max))
    }


TABLE3 = Study("table3", train=_scellier, measure=_convergence)


# ---------------------------------------------------------------------- Nest & Ernoult, Tables 1 and 2
def _published(args: Namespace, key: Key, name: str, divisor: int = 1) -> Values:
    """The options of a published network."""
    own = {"method": key["method"], "data_dir": args.data_dir}
    return {"model": "ffebm", **published("chains")["runs"]["published"], **preset(name, divisor), **own}


def _many_classes(args: Namespace, key: Key) -> Values:
    name, divisor = "l{layer}-{dataset}".format(**key), 1 if args.size == "paper" else 16
    return {**_published(args, key, name, divisor), "samples": args.samples}


TABLE2 = Study("table2", train=_many_classes)


def _cut(args: Namespace, key: Key) -> Values:
    """Batch normalisation precedes the first block (of 6 layers) or every block (of 12) and before the readout,
    whose input is small deep inside a block. Units of slope one half and small steps keep couplings weak: sweeps
    converge faster than at slope 1, and accuracy is higher (docs/models.md)."""
    if args.size == "paper":
        return _published(args, key, "l{layer}-bs{block}".format(**key))
    layers, block, small = key["layer"], key["block"], FIGURES["split"]
    own = small[args.dataset]
    dense, norm = [args.width or own["width"]] * layers, "first" if layers == 6 else "all"
    network = LayerSizes(dense=dense, batch_norm=norm, **small["layers"])
    return {
        "model": "ffebm",
        "elements": network.cut((own["inputs"],), [block] * (layers // block), 10),
        "dataset": args.dataset,
        "method": key["method"],
        "data_dir": args.data_dir,
        **own["run"],
    }


SPLIT = Study("split", train=_cut)

BLOCKS = (2, 2, 3, 3, 2, 3)

DIVISORS = {"small": 16, "paper": 1}
"""Size → divisor of the widths of the published chain."""

CHAIN = f"""
size NAME = small {{small paper}}  small: widths over 16, or paper: as published
beta B = 1e-4  nudge for errors of size 1
sweeps N = 60  free sweeps
nudged_sweeps N = 15  nudged sweeps, the paper's
batch N = 2  samples
dataset NAME  cifar10, cifar100 or imagenet32; otherwise random images
data_dir DIR  {SHARED["data_dir"].words}
seed N = 0  of the random weights and samples
out DIR  write figure, table and page here
"""


def _gradients(of: Callable[[Any, Any, Any, int], Findings], args: Namespace) -> Findings:
    """A comparison of the gradients of EP and of implicit differentiation (ID) on one chain."""
    chain, x, y = _setting(args)
    found = of(chain, x, y, args.seed)
    samples = f"samples of {args.dataset}" if args.dataset else "random images"
    about = (
        f"6 blocks, 15 layers, {sum(a.size for a in chain.parameters.values())} parameters (widths over "
        f"{DIVISORS[args.size]}), {args.batch} {samples}, {args.sweeps} free and {args.nudged_sweeps} nudged sweeps, "
        f"beta {args.beta}, seed {args.seed}, double precision. After Nest & Ernoult (2024), §4.2."
    )
    # Where a unit changes, EP at a finite nudge differs from ID.
    share = chain.gradient((x, y), np.random.default_rng(0))[1]["kink_share"]
    hint = ": EP and ID differ there; a smaller --beta has fewer" if share else ""
    kinks = f"share of clamped units that change between the phases (kinks): {share:.3g}{hint}"
    return found._replace(page=[about, "", *found.page, "", kinks, ""])


def figure_chain(size: str = "small", sweeps: int = 60, nudged: int = 20, beta: float = 1e-4, seed: int = 0) -> Any:
    """The chain of the figures in double precision, its widths divided by `DIVISORS`."""
    from circuitsim.ffebm import build_chain

    pixels = published("chains")["pixels"]["cifar10"]
    layers = published_layers("figure", DIVISORS[size], free=sweeps, nudged=nudged, normalise=pixels)
    return build_chain(layers.cut((32, 32, 3), BLOCKS, 10), chaining={"beta": beta}, dtype="float64", seed=seed)


def _curves(chain: Any, x: Any, y: Any, seed: int) -> Findings:
    """Figure 3: estimates of single weights, sweep by sweep."""
    curves = gradient_curves(chain, x, y, seed=seed)
    shown, table, drawn = list[Values](), list[Values](), list[Line]()
    for curve in curves:
        places = {"first": curve.deviation[0], "worst": curve.deviation.max(), "last": curve.deviation[-1]}
        shown.append({"parameter": curve.name} | {name: f"{value:.3g}" for name, value in places.items()})
        values = {(of, k): y for of in FIGURES["gdu"] for k, y in enumerate(getattr(curve, of).T.tolist())}
        for sweep, row in enumerate(zip(*values.values()), 1):
            columns = {f"{of}{k}": value for (of, k), value in zip(values, row)}
            table.append({"parameter": curve.name, "sweep": sweep, **columns})
        for (of, k), y in values.items() if "weights" in curve.name else ():
            drawn.append(Line(curve.name, "_" if k else of.upper(), range(1, len(y) + 1), y, FIGURES["gdu"][of]))
    text = "Largest |EP − ID| of all entries over the largest |ID|: after the first nudged sweep, at worst, at the end."
    worst = max(float(curve.deviation.max()) for curve in curves)
    page = [text, "", *markdown(shown), "", f"worst of all parameters and sweeps: {worst:.3g}"]
    return Findings(page, table, drawn, {"xlabel": "sweeps", "ylabel": "estimated ∂ℓ/∂w"})


def _cosines(chain: Any, x: Any, y: Any, seed: int) -> Findings:
    """Figure 4: cosines, layer by layer."""
    cosines = gradient_cosines(chain, x, y)
    rows = [
        {"parameter": name, "of": chain.elements[int(name.split(".")[0])].kind, "cosine": f"{value:.9f}"}
        for name, value in cosines.items()
    ]
    least = min(cosines.values())
    axes = {"xlabel": "parameter, first to last", "ylabel": "cosine", "ylim": (min(0.99, least), 1.0005)}
    curve = Line("", "EP against ID", range(len(cosines)), [*cosines.values()], {"marker": "o"})
    return Findings([*markdown(rows), "", f"least: {least:.9f}"], rows, [curve], axes)


def _setting(args: Namespace) -> tuple[Any, Any, Any]:
    """The chain and the samples."""
    if args.batch < 2:
        raise UsageError("batch normalisation needs at least two samples")
    chain = figure_chain(args.size, args.sweeps, args.nudged_sweeps, args.beta, args.seed)
    rng = np.random.default_rng((args.seed, 1))
    if args.dataset is None:
        return chain, rng.integers(256, size=(args.batch, 3072), dtype=np.uint8), rng.integers(10, size=args.batch)
    data = load(args.dataset, args.data_dir)
    if args.batch > len(data.train):
        raise UsageError(f"{args.dataset} has {len(data.train)} training images here, fewer than --batch {args.batch}")
    rows = rng.choice(len(data.train), args.batch, replace=False)
    # Ten outputs for every data set: only gradients are compared.
    return chain, data.train[rows], data.train_labels[rows] % 10


GDU = Comparison("gdu", compare=partial(_gradients, _curves), options=CHAIN)

COSINE = Comparison("cosine", compare=partial(_gradients, _cosines), options=CHAIN)


def _bias(args: Namespace) -> Findings:
    """Means and deviations over all runs; the page is independent of machine and date."""
    from circuitsim.boltzmann.study import Settings, final_gaps, run_study
    from circuitsim.training import ProgressLine

    settings = Settings(args.runs, args.updates, args.k, args.batches, args.seed)
    comparable = (settings.updates, settings.k) == (50_000, 1)
    paper, titles, columns, drawn = (FIGURES["cd-bias"][part] for part in ("gaps", "titles", "columns", "drawn"))
    gaps, ends, rows, lines = list[dict[str, str]](), list[dict[str, str]](), list[Values](), list[Line]()
    for name in titles if args.patterns == "both" else [args.patterns]:
        line = ProgressLine(sys.stderr, titles[name])
        found = run_study(settings, name, line.update)
        line.close()
        curves = {of: getattr(found, of) for of in columns.values()}
        mean = {of: y.mean(axis=0) for of, y in curves.items()}
        deviation = {of: y.std(axis=0, ddof=1) for of, y in curves.items()}
        for k, updates in enumerate(found.updates.tolist()):
            both = {f"{of}_{what}": float(y[of][k]) for of in curves for what, y in (("mean", mean), ("sd", deviation))}
            rows.append({"patterns": name, "updates": updates, **both})
        lines += [
            Line(f"{titles[name]}, CD-{args.k}", label, found.updates.tolist(), mean[of].tolist())
            for label, of in drawn.items()
        ]
        patterns = {"patterns": titles[name]}
        # A bar inside a cell would end it.
        last = {key.replace("|", "\\|"): gap for key, gap in final_gaps(found, settings).items()}
        cells = {key: f"{gap.mean:.5f} ± {gap.spread:.5f}" for key, gap in last.items()}
        gaps.append(patterns | cells | beside({"paper": f"{paper[name]:.5f}"}, comparable))
        cells = {column: f"{mean[of][-1]:.5g} ± {deviation[of][-1]:.2g}" for column, of in columns.items()}
        broken = int((found.largest_bias > found.bound + 1e-12).sum())  # by more than round-off
        ends.append(patterns | cells | {"bound < bias": f"{broken} of {found.bound.size}"})
    between = "between batches of runs" if settings.batches > 1 else "of batches redrawn from the runs (bootstrap)"
    page = [
        f"{settings.visible} visible and {settings.hidden} hidden units, full-batch expected CD-{settings.k}, "
        f"learning rate {settings.rate}, {settings.updates} updates, {settings.batches} × {settings.runs} runs, "
        f"initial weights uniform in ±{settings.spread}, seed {settings.seed}. "
        "After Fischer & Igel (2011), §3 and Figure 1.",
        "",
        f"Gap between bound and bias after {settings.updates} updates; ± is the standard deviation {between}. "
        "The paper ran 50000 updates of CD-1 and does not say how it sums up its 25 runs; its figure does not stand "
        "beside other runs (–).",
        "",
        *markdown(gaps),
        "",
        *markdown(ends),
        "",
        "The second table holds means over all runs after the last update, ± the deviation between runs.",
        "`bound < bias` counts measurements along training at which the bound was broken.",
    ]
    axes = {"xlabel": "updates", "ylabel": "error of the expected gradient", "yscale": "log"}
    return Findings(page, rows, lines, axes)


BIAS = Comparison("cd-bias", compare=_bias)

DECK, IDEAL = "learn-digits.cir", ".model circuitsim_ideal D(is=1e-12 n=0.01)"
"""Bundled deck, and the card of its diodes."""

THERMAL = 0.02585
"""Thermal voltage at 27 °C, V."""

BORDER, BLOCK, HELD_OUT = 2, 3, 2000
"""Pixels cropped around MNIST images, side of the averaged squares (8 × 8 of them), and number of test images."""


def deck(drop: float, folder: Path) -> str:
    """A file of the deck with diodes of this forward drop, V."""
    from circuitsim._bundled import netlists

    text = Path(netlists(), DECK).read_text(encoding="utf-8")
    if drop > 0.0:
        saturation = math.exp(-drop / THERMAL)
        text = text.replace(IDEAL, f".model real D(IS={saturation!r})").replace(" circuitsim_ideal\n", " real\n")
    path = folder / f"digits-{drop:g}.cir"
    atomic_write(path, text.encode())
    return str(path)


def _mnist(args: Namespace) -> dict[str, str]:
    """Files of randomly chosen training images, and of test images, for the 128 inputs of the deck."""
    images = load("mnist", args.data_dir)
    if not 0 < args.samples <= len(images.train):
        raise UsageError(f"--samples takes 1 to {len(images.train)}, not {args.samples}")
    rows = np.random.default_rng(0).permutation(len(images.train))[: args.samples]
    sets = {
        "train": (images.train[rows], images.train_labels[rows]),
        "test": (images.test[:HELD_OUT], images.test_labels[:HELD_OUT]),
    }
    for name, (pixels, labels) in sets.items():
        file = io.BytesIO()
        np.savez(file, x=features(pixels, images.shape[0]), y=labels)
        atomic_write(args.folder / f"mnist-{name}.npz", file.getvalue())
    return {"data": str(args.folder / "mnist-train.npz"), "test": str(args.folder / "mnist-test.npz")}


def features(pixels: Any, side: int) -> Any:
    """Means of squares of pixels, 0 … 1, and their negatives (samples, 128), from images (samples, side²) of bytes."""
    inner = pixels.reshape(-1, side, side)[:, BORDER:-BORDER, BORDER:-BORDER] / 255.0
    count = inner.shape[1] // BLOCK
    means = inner.reshape(-1, count, BLOCK, count, BLOCK).mean(axis=(2, 4)).reshape(len(pixels), -1)
    return np.concatenate([means, -means], axis=1)


def _drop_options(args: Namespace, key: Key) -> Values:
    given = {"gain": key["gain"], "scatter": 0.3, "method": "implicit", "batch": 16}
    data = _mnist(args) if args.dataset == "mnist" else {"data": "digits", "split": 0.25}
    return {"model": "circuit", "deck": deck(key["drop"], args.folder), **given, **data}


def _drop_measures(args: Namespace, key: Key, made: Any, *rest: object) -> dict[str, float]:
    """The largest current of a diode over 64 samples, A; of ideal diodes also the held-out error of the same
    conductances with the diodes of every other drop."""
    from circuitsim import batched

    block = made.trainable.block
    circuit = block.trained()
    found = batched(circuit, block.roles.inputs).solve(made.data[0][:64])
    measures = {"current": float(max(found.current(name).max() for name in circuit.names if name.startswith("D")))}
    if key["drop"] > 0.0:
        return measures
    for word in args.drops.split(","):
        other: Any = experiment(**_drop_options(args, {**key, "drop": float(word)}), seed=made.plan.seed)
        for name, theta in other.trainable.block.parameters.items():
            theta[:] = block.parameters[name]
        measures[f"error_at_{float(word):g}"] = float(other.evaluate(np.random.default_rng(0))["test_error"])
    return measures


FORWARD_DROP = Study("forward-drop", train=_drop_options, measure=_drop_measures)

STUDIES: tuple[Comparison, ...] = (TABLE1, TABLE2, TABLE3, BIAS, GDU, COSINE, FORWARD_DROP, SPLIT)


def add_arguments(parser: ArgumentParser) -> None:
    """One sub-command per study, with its options."""
    studies = parser.add_subparsers(dest="study", metavar="STUDY", required=True)
    for study in STUDIES:
        own = studies.add_parser(study.name, help=study.line, description=study.line + ".", allow_abbrev=False)
        add_stated(own, study.known())
        own.set_defaults(of=study)


@command(add_arguments)
def run_reproduce(args: Namespace) -> int:
    """Run the chosen study."""
    given = {name: value for name, value in vars(args).items() if value is not None}
    check_values(given, args.of.known())
    return int(args.of.run(args))
