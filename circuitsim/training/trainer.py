"""The training loop: batches, steps, history, checkpoints; the same bits with and without interruptions."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from numbers import Integral
from typing import Any

import numpy as np

from circuitsim.errors import ConvergenceError, UsageError
from circuitsim.training.checkpoint import (
    Arrays,
    CheckpointError,
    FusedTrainable,
    RunDirectory,
    checked,
    copy_into,
    load_checkpoint,
    pack,
    save_checkpoint,
    unpack,
)
from circuitsim.training.history import Callback, History, ProgressLine
from circuitsim.training.optimizers import SGD, Constant, Optimizer, Schedule

Evaluate = Callable[[np.random.Generator], Mapping[str, float]]

# Longest time between checks for interruption and progress in a model with its own steps.
_UNINTERRUPTED_SECONDS = 0.1


def check_counts(plan: object, **least: int) -> None:
    """Refuse attributes that are not whole numbers, each of at least so much.

    Raises
    ------
    UsageError
    """
    for name, bound in least.items():
        value = getattr(plan, name)
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise UsageError(f"{name} must be a whole number, not {value!r}")
        if value < bound:
            raise UsageError(f"{name} must be at least {bound}, not {value}")


@dataclass(frozen=True)
class TrainingPlan:
    """How to train.

    Parameters
    ----------
    epochs : int
        Passes over the data.
    batch : int
        Samples in a step; the last batch of an epoch may be smaller.
    seed : int
        Source of all chance: the order of the samples, the model's draws, the evaluations.
    optimizer, schedule
        The step, and the factor on its rates from epoch to epoch.
    shuffle : bool
        Whether each epoch takes the samples in a new random order.
    evaluate_every : int
        Epochs between two rows of the history (the last epoch always has one).
    checkpoint_seconds : float
        Minimum time between two checkpoints during training; one is always written at the end and on interruption.
        It has no influence on the result.
    """

    epochs: int
    batch: int
    seed: int = 0
    optimizer: Optimizer = field(default_factory=lambda: SGD(0.01))
    schedule: Schedule = field(default_factory=Constant)
    shuffle: bool = True
    evaluate_every: int = 1
    checkpoint_seconds: float = 30.0

    def __post_init__(self) -> None:
        check_counts(self, epochs=0, batch=1, seed=0, evaluate_every=1)

    def order(self, epoch: int, samples: int) -> np.ndarray:
        """A shuffled epoch's order: a function of seed and epoch, so that no checkpoint has to hold it.

        Parameters
        ----------
        epoch : int
            Its number, from 0.
        samples : int
            In the data.

        Returns
        -------
        (samples,) integer array
            A permutation.
        """
        return np.random.default_rng((self.seed, 1, epoch)).permutation(samples)


@dataclass
class Counters:
    """The position of the loop, stored in the checkpoint.

    Attributes
    ----------
    epoch, batch : int
        The epoch, and the batches of it that are done.
    updates, skipped : int
        Steps taken, and steps skipped.
    seconds : float
        Time since the beginning.
    sums : dict of str to float
        Metrics added up since the last row.
    summed : int
        How many.
    stepping : float
        Seconds that steps took since the last row.
    """

    epoch: int
    batch: int
    updates: int
    skipped: int
    seconds: float
    sums: dict[str, float]
    summed: int
    stepping: float

    def __post_init__(self) -> None:
        """Raise for counts that are negative or not finite, and for sums without steps."""
        counts = self.epoch, self.batch, self.updates, self.skipped, self.summed, int(self.seconds), int(self.stepping)
        np.array(counts, np.uint64)
        if not all(map(math.isfinite, self.sums.values())) or (self.sums and not self.summed):
            raise ValueError(f"no sums over {self.summed} steps: {self.sums}")


@dataclass(frozen=True)
class Outcome:
    """Result of a training run.

    Attributes
    ----------
    history : History
        All rows, those before a resumption included.
    interrupted : bool
        Whether it was interrupted before the end of the last epoch.
    updates, skipped : int
        Steps taken, and steps skipped because no gradient could be trusted.
    """

    history: History
    interrupted: bool
    updates: int
    skipped: int

    def require_steps(self) -> None:
        """Raise `ConvergenceError` where all steps were skipped."""
        if self.skipped and not self.updates:
            raise ConvergenceError(
                f"nothing was learned: all {self.skipped} steps were skipped, because no state of their samples is "
                "certified; choose a smaller beta, more sweeps or a larger tolerance"
            )


@dataclass(eq=False)
class Trainer:
    """Trains anything `Trainable`.

    Parameters
    ----------
    trainable : Trainable or FusedTrainable
        The model. One that makes its own steps needs `SGD` without decay, and its history has a column
        ``train_seconds``: the time its steps took since the last row.
    data : sequence of ndarray
        Arrays with equal first dimension; a batch is the same rows of each.
    plan : TrainingPlan
        How to train.
    evaluate : callable, optional
        ``evaluate(rng)`` gives further columns for each row of the history; its generator is its own, so that
        measuring never changes what is measured.
    directory : RunDirectory, optional
        Directory of history and checkpoints; None: no files.
    progress : ProgressLine, optional
        Shown after every step.
    should_stop : callable, optional
        Asked after every step.
    callbacks : sequence of callable
        Each is called with the history after each of its rows; training ends where one returns True
        (`circuitsim.training.EarlyStopping`).
    memory : dict of ndarray, optional
        Of the optimiser, where training continues from another trainer's `memory`.
    """

    trainable: Any
    data: Sequence[np.ndarray]
    plan: TrainingPlan
    evaluate: Evaluate | None = None
    directory: RunDirectory | None = None
    progress: ProgressLine | None = None
    should_stop: Callable[[], bool] | None = None
    callbacks: Sequence[Callback] = ()
    memory: Arrays = field(default_factory=dict)

    def __post_init__(self) -> None:
        lengths = {len(array) for array in self.data}
        if len(lengths) != 1 or 0 in lengths:
            raise UsageError(f"the data arrays must have one length, at least 1; theirs are {sorted(lengths)}")
        (self.samples,) = lengths
        self.memory = self.memory or self.plan.optimizer.start(self.trainable.parameters)
        self.history = History(self.directory.path if self.directory else None)
        self._fused = isinstance(self.trainable, FusedTrainable)
        self._rng = np.random.default_rng(self.plan.seed)
        self._at = Counters(0, 0, 0, 0, 0.0, {}, 0, 0.0)

    @property
    def epoch(self) -> int:
        """Epochs finished."""
        return self._at.epoch

    def train(self) -> Outcome:
        """Train from the model's present state to the last epoch of the plan, or until interrupted.

        Raises
        ------
        ConvergenceError
            A gradient's metrics or the parameters are no longer finite. The last checkpoint holds the last good state.
        UsageError
            Another process trains in the same directory.
        """
        # Numbers that are not finite are looked for and named; numpy's warnings would only come before that.
        alone = contextlib.nullcontext() if self.directory is None else self.directory.locked()
        try:
            with alone, np.errstate(over="ignore", invalid="ignore"):
                interrupted = self._train()
                self.save()
        except ConvergenceError as problem:
            if self.directory is None or not self.directory.checkpoint.exists():
                raise
            raise ConvergenceError(f"{problem} (the last good state is in {self.directory.checkpoint})") from problem
        if self.progress:
            self._show()
            self.progress.close()
        return Outcome(self.history, interrupted, self._at.updates, self._at.skipped)

    def _train(self) -> bool:
        """Train; whether it was interrupted."""
        begun = time.monotonic() - self._at.seconds
        saved = time.monotonic()
        if not self.history.rows:
            self.history.restart([])
        while self._at.epoch < self.plan.epochs:
            for _ in self._steps():
                self._at.seconds = time.monotonic() - begun
                if self.progress and self.progress.due():
                    self._show()
                if self.should_stop and self.should_stop():
                    return True
                if time.monotonic() - saved >= self.plan.checkpoint_seconds:
                    self.save()
                    saved = time.monotonic()
            if self._end_epoch():
                answers = [callback(self.history) for callback in self.callbacks]
                if any(answer is True for answer in answers):
                    break
        return False

    def save(self) -> None:
        """Write a checkpoint, unless there is no directory. Never one that is not finite."""
        if self.directory is None:
            return
        self._check_parameters()
        arrays = pack(
            parameters=dict(self.trainable.parameters), state=self.trainable.state_arrays(), optimizer=self.memory
        )
        facts: dict[str, Any] = {
            "counters": asdict(self._at),
            "rng": self._rng.bit_generator.state,
            "rows": self.history.rows,
            "samples": self.samples,
            "batch": self.plan.batch,
            "seed": self.plan.seed,
        }
        save_checkpoint(self.directory.checkpoint, arrays, facts)

    def resume(self) -> None:
        """Take up the state of the directory's checkpoint; `train` then continues bit for bit.

        A run killed before its first checkpoint starts again from the beginning, which gives the same bits.

        Raises
        ------
        CheckpointError
            The checkpoint is damaged, or belongs to another model, data set or plan.
        """
        if self.directory is None:
            raise UsageError("there is nothing to resume: this trainer has no directory")
        if not self.directory.checkpoint.exists():
            self.history.restart([])
            return
        path, plan = self.directory.checkpoint, self.plan
        arrays, facts = load_checkpoint(path, samples=self.samples, batch=plan.batch, seed=plan.seed)
        with checked(path, UsageError):
            counters = Counters(**facts["counters"])
            begun = counters.epoch + (counters.batch > 0)
            if begun > plan.epochs:
                raise CheckpointError(f"the run is already in epoch {begun}, beyond the requested {plan.epochs}")
            self._rng.bit_generator.state = facts["rng"]
            self.history.restart(facts["rows"])
        copy_into(dict(self.trainable.parameters), unpack(arrays, "parameters"), "parameters")
        copy_into(self.memory, unpack(arrays, "optimizer"), "optimiser memory")
        self.trainable.load_state_arrays(unpack(arrays, "state"))
        self._at = counters

    def _steps(self) -> Iterator[None]:
        """Take the remaining steps of this epoch; yields after each, or after a few short ones."""
        plan, count = self.plan, 1
        order = plan.order(self._at.epoch, self.samples) if plan.shuffle else np.arange(self.samples)
        factor = plan.schedule.factor(self._at.epoch)
        while (start := self._at.batch * plan.batch) < self.samples:
            rows, begun = order[start : start + count * plan.batch], time.monotonic()
            (self._fused_steps if self._fused else self._step)(rows, factor)
            if self._fused:
                seconds = time.monotonic() - begun
                self._at.stepping += seconds
                count = max(1, min(4 * count, int(count * _UNINTERRUPTED_SECONDS / max(seconds, 1e-9))))
            yield

    def _fused_steps(self, rows: np.ndarray, factor: float) -> None:
        if not isinstance(self.plan.optimizer, SGD):
            raise UsageError("this model makes its own steps, which are those of SGD; no other optimiser can be used")
        rates = self.plan.optimizer.rates(self.trainable.parameters, factor)
        steps = -(-len(rows) // self.plan.batch)
        self._record(self.trainable.steps(self.data, rows, self.plan.batch, rates, self._rng), steps)

    def _step(self, rows: np.ndarray, factor: float) -> None:
        gradients, metrics = self.trainable.gradient(tuple(array[rows] for array in self.data), self._rng)
        self._record({name: np.array([value]) for name, value in metrics.items()}, 1, gradients is not None)
        if gradients is not None:
            self.plan.optimizer.step(self.trainable.parameters, gradients, self.memory, factor)
            self.trainable.project()

    def _record(self, metrics: Mapping[str, np.ndarray], steps: int, updates: bool = True) -> None:
        """Count steps; sums are taken in order, however many came at once."""
        for name, values in metrics.items():
            bad = np.flatnonzero(~np.isfinite(values))
            if len(bad):
                raise ConvergenceError(
                    f"training diverged: {name} is {values[bad[0]]} at epoch {self._at.epoch + 1}, "
                    f"update {self._at.updates + int(bad[0]) + 1}; try a lower learning rate"
                )
            before = self._at.sums.get(name, 0.0)
            self._at.sums[name] = float(np.add.accumulate(np.concatenate([[before], values]))[-1])
        self._at.summed += steps
        self._at.batch += steps
        if updates:
            self._at.updates += steps
        else:
            self._at.skipped += steps

    def _end_epoch(self) -> bool:
        """Count the epoch; whether the history has a new row."""
        self._at.batch = 0
        self._at.epoch += 1
        last = self._at.epoch == self.plan.epochs
        if not last and self._at.epoch % self.plan.evaluate_every:
            return False
        self._check_parameters()
        row: dict[str, float] = {"epoch": self._at.epoch, "updates": self._at.updates, "skipped": self._at.skipped}
        row["rate_factor"] = self.plan.schedule.factor(self._at.epoch - 1)
        row |= {name: total / self._at.summed for name, total in self._at.sums.items()}
        if self.evaluate:
            row |= self.evaluate(np.random.default_rng((self.plan.seed, 2, self._at.epoch)))
        if self._fused:
            row["train_seconds"] = round(self._at.stepping, 4)
        row["seconds"] = round(self._at.seconds, 3)
        self.history.append(row)
        self._at.stepping = 0.0
        self._at.sums, self._at.summed = {}, 0
        return True

    def _check_parameters(self) -> None:
        for name, array in self.trainable.parameters.items():
            if not np.isfinite(array).all():
                raise ConvergenceError(
                    f"training diverged: {name} is not finite after {self._at.updates} updates; "
                    "try a lower learning rate"
                )

    def _show(self) -> None:
        assert self.progress is not None
        # The last batch of an epoch may be smaller than the others.
        done = self._at.epoch + min(self._at.batch * self.plan.batch, self.samples) / self.samples
        note = f"epoch {min(self._at.epoch + 1, self.plan.epochs)}/{self.plan.epochs}"
        if self._at.seconds > 0:
            note += f"  {self._at.updates / self._at.seconds:.0f} updates/s"
        note += "".join(f"  {name} {total / self._at.summed:.4g}" for name, total in self._at.sums.items())
        self.progress.update(min(1.0, done / max(1, self.plan.epochs)), note)
