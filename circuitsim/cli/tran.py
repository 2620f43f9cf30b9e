"""``circuitsim tran``: transient analysis, and the periodic steady state."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from circuitsim.cli.deck import report
from circuitsim.cli.options import spice_number
from circuitsim.cli.over_time import answerable, harmonics_requested, lower_names, read_shown, show, warner
from circuitsim.cli.progress import INTERRUPTED, Interrupt, LateProgress
from circuitsim.cli.stepped import run_all
from circuitsim.cli.sweep import note_steps, varied
from circuitsim.errors import CircuitError, UsageError
from circuitsim.netlist.deck import measurements_of, steps_of

if TYPE_CHECKING:
    from circuitsim.analysis.probes import Formula, Probe
    from circuitsim.netlist.deck import Deck
    from circuitsim.time_domain import TransientResult

EPILOG = """\
Circuits with ideal or piecewise-linear diodes are solved exactly between events; smooth devices, controlled
sources, or more than 60 capacitors and inductors need the implicit method. A run starts at the operating
point of time 0, with UIC at the ic= values. Ctrl-C prints the results so far.

examples:
  circuitsim tran netlists/half-wave-smoothed.cir --columns 'v(in) v(out) i(D1)' --plot waves.png
  circuitsim tran netlists/boost-converter.cir --measure 'ripple PP v(out) FROM=3m'
  circuitsim tran netlists/boost-converter.cir --steady --columns 'v(out) i(L1)' --plot steady.png
"""


OPTIONS = """
--stop TIME  end of the run: 20m (the deck's .tran)
--step TIME  output step (the deck's .tran)
--initial NAME=VALUE  capacitor voltage or inductor current at time 0 (repeatable)
--steady  one period of the periodic steady state
--period TIME  period of --steady (least common period of the sources)
--points N  output times of --steady (1001)
@vary element, parameter or temp
--method METHOD {exact implicit}  {0} (exact where it applies)
--accuracy X = 1e-4  implicit method: relative error of the waveforms (1e-4)
@columns
--events  show the changes of diodes and switches instead
@measure tran: 'ripple PP v(out) FROM=1m'
--fourier 'FREQ …'  show harmonics, as .four: '1k v(out)', '1k 20 5 v(out)' (repeatable)
@workers this one
@deck
@tolerance
@format csv table json raw
@binary
@output the result
@plot plot columns and states of diodes
"""


def run(args: argparse.Namespace) -> int:
    """Run the transient analysis and print the waveforms."""
    from circuitsim.time_domain import ImplicitResult, TransientResult, transient
    from circuitsim.time_domain.deck import fourier_requested, setting
    from circuitsim.time_domain.measure import check_measurements

    check_steady(args)
    deck, probes = read_shown(args)
    if args.steady:
        return run_steady(args, deck, probes)
    vary = varied(args.vary) or steps_of(deck)
    step, stop = positive_time("--step", args.step), positive_time("--stop", args.stop)
    if vary and args.fourier:
        raise UsageError("--fourier is for one run: leave out --vary and .step")
    if vary and fourier_requested(deck):
        print("note: .four is for one run; it is ignored for several", file=sys.stderr)
    if vary:
        return run_all(
            args,
            deck,
            vary,
            " ".join(map(str, probes)),
            step=step,
            stop=stop,
            initial=initial_values(args.initial),
            method=args.method,
            accuracy=args.accuracy,
        )
    line = LateProgress("tran")
    options: dict[str, Any] = {"stop": stop, "step": step, "initial": initial_values(args.initial)}
    own, names = setting(deck, **options), lower_names(deck)
    options |= {"tolerance": args.tolerance, "method": args.method, "accuracy": args.accuracy}
    harmonics = harmonics_requested(args, deck, own.grid.stop)
    span = own.begin, own.grid.stop
    wanted, outside = answerable(own.circuit, span, warner(deck), measurements_of(deck, "tran"), names)
    wanted += args.measure
    check_measurements(own.circuit, span, wanted, names)
    with Interrupt() as interrupt:
        try:
            found = transient(deck, **options, progress=interrupt.watch(line))
        except CircuitError as error:
            line.close()
            if isinstance(partial := error.partial_result, TransientResult):
                show(args, deck, probes, partial, _measurable(deck, partial, wanted, names), {})
                print(f"stopped at {partial.stop:g} s by an error; results so far", file=sys.stderr)
            raise
        finally:
            line.close()
        more, ended = dict[str, float | None](), interrupt.asked
        if not ended and isinstance(found, ImplicitResult):
            more["difference"] = found.difference
    if ended:
        wanted, harmonics = _measurable(deck, found, wanted, names), []
    show(args, deck, probes, found, wanted, more, harmonics, outside)
    tell_method(args, found)
    if ended:
        print(f"interrupted at {found.stop:g} s; results so far", file=sys.stderr)
        return INTERRUPTED
    return 0


def check_steady(args: argparse.Namespace) -> None:
    """Refuse options of a run together with ``--steady``, and those of ``--steady`` without it."""
    run = {"--stop": args.stop, "--step": args.step, "--vary": args.vary, "--method": args.method}
    period = {"--period": args.period, "--points": args.points}
    wrong = next((name for name, value in (run if args.steady else period).items() if value), None)
    if wrong is not None and args.steady:
        raise UsageError(f"{wrong} is for a run from time 0; --steady takes --period and --points")
    if wrong is not None:
        raise UsageError(f"{wrong} is for the periodic steady state: add --steady")


def run_steady(args: argparse.Namespace, deck: Deck, probes: Sequence[Probe | Formula]) -> int:
    """Find the periodic steady state and print one period of it."""
    from circuitsim.time_domain import steady_state

    note_steps(deck, "--steady")
    harmonics = harmonics_requested(args, deck, None)
    initial, period = initial_values(args.initial), positive_time("--period", args.period)
    points = 1001 if args.points is None else args.points
    with LateProgress("steady") as line:
        found = steady_state(
            deck,
            period=period,
            initial=initial,
            points=points,
            tolerance=args.tolerance,
            progress=line.update,
            accuracy=args.accuracy,
        )
    more = {"difference": found.difference} if found.reason else {}
    show(args, deck, probes, found, args.measure, more, harmonics)
    tell_method(args, found)
    return 0


def tell_method(args: argparse.Namespace, found: TransientResult) -> None:
    """Report why the run needed the implicit method, and its warnings."""
    if found.reason:
        print(f"note: implicit method: {found.reason}", file=sys.stderr)
    report(found.warnings, args.verbose)


def _measurable(deck: Deck, found: TransientResult, wanted: Sequence[str], names: Mapping[str, float]) -> list[str]:
    """The measurements that need only the completed part of a run."""
    return answerable(found.circuit, (float(found.times[0]), found.stop), warner(deck), wanted, names)[0]


def positive_time(option: str, text: str | None) -> float | None:
    """A time option's value, s."""
    if text is None:
        return None
    value = spice_number(option, text)
    if not value > 0.0:
        raise UsageError(f"{option} {text}: a positive time is needed, for instance 10m")
    return value


def initial_values(pairs: list[str]) -> dict[str, float] | None:
    """The values of ``--initial``, by element."""
    found = {}
    for text in pairs:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--initial {text!r}: write NAME=VALUE, for instance C1=5")
        found[name.strip()] = spice_number(f"--initial {name.strip()}=", value)
    return found or None
