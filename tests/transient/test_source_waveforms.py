"""Source waveforms as linear systems against the formulas of ngspice's manual, at random times."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from circuitsim import steady_state, transient
from circuitsim.netlist import loads
from circuitsim.netlist.waveform import Grid
from circuitsim.netlist.waveform import Waveform as Card
from circuitsim.time_domain import measure
from circuitsim.time_domain.deck import from_card

GRID = Grid(1e-3, 2.0)
CARDS = [
    Card("pulse", (0.0, 5.0, 0.1, 0.02, 0.03, 0.2, 0.5)),
    Card("pulse", (-1.0, 2.0, 0.0, 0.0, 0.0, 0.25, 0.5), factor=3.0),
    Card("pulse", (1.0, 2.0, 0.3, 0.1, 0.1, 0.0, 0.45, 2.0)),
    Card("pulse", (0.0, 1.0, 0.2, 0.1, 0.1, 0.9, 0.7)),
    Card("pulse", (0.0, 1.0)),
    Card("sin", (1.0, 2.0, 3.0, 0.25, 0.7, 40.0)),
    Card("sin", (0.0, 2.0)),
    Card("sin", (1.0, 2.0, 3.0, 0.25, 0.7, 40.0, 4.0)),
    Card("sin", (0.0, 1.0, 40.0, 0.1, 0.0, 0.0, 51.5)),
    Card("exp", (1.0, -3.0, 0.2, 0.1, 0.9, 0.3)),
    Card("exp", (1.0, 4.0, 0.9, 0.1, 0.2, 0.3)),
    Card("exp", (0.0, 1.0)),
    Card("pwl", (0.0, 0.0, 0.5, 2.0, 0.7, -1.0, 1.5, 1.0)),
    Card("pwl", (0.1, 0.0, 0.3, 2.0, 0.4, -1.0), repeat=0.15, delay=0.2, factor=2.0),
    Card("pwl", (0.0, 1.0, 0.3, 2.0), repeat=0.0),
    Card("am", (2.0, 0.5, 3.0, 11.0, 0.1)),
]


def formula(card: Card, time: float) -> float:
    """The value of a card's time function, as ngspice's manual writes it."""
    step, stop = GRID
    x, t = (*card.numbers, *[0.0] * 8), time
    if card.name == "pulse":
        low, high, late, rise, fall = x[0], x[1], t - x[2], x[3] or step, x[4] or step
        width, period = x[5] or stop, x[6] or stop
        if late <= 0.0 or 0.0 < x[7] * period < late:
            return card.factor * low
        late = math.fmod(late, period)
        return card.factor * float(np.interp(late, np.cumsum([0.0, rise, width, fall]), [low, high, high, low]))
    if card.name == "sin":
        late, frequency, phase = t - x[3], x[2] or 1.0 / stop, math.radians(x[5])
        if late < 0.0 or 0.0 < x[6] <= late * frequency:
            late = 0.0
        return x[0] + x[1] * math.sin(math.tau * frequency * late + phase) * math.exp(-late * x[4])
    if card.name == "exp":
        rise, fall = x[2] or step, x[4] or (x[2] or step) + step
        up, down = (1.0 - math.exp(-max(t - begin, 0.0) / (own or step)) for begin, own in ((rise, x[3]), (fall, x[5])))
        return x[0] + (x[1] - x[0]) * (up - down)
    if card.name == "am":
        late = max(t - x[4], 0.0)
        return x[0] * (x[1] + math.sin(math.tau * x[2] * late)) * math.sin(math.tau * x[3] * late)
    t, times, values = t - card.delay, card.numbers[0::2], card.numbers[1::2]
    if card.repeat is not None and t > times[-1]:
        t = card.repeat + math.fmod(t - times[-1], times[-1] - card.repeat)
    return card.factor * float(np.interp(t, times, values))


@pytest.mark.parametrize("card", CARDS, ids=lambda card: f"{card.name}-{len(card.numbers)}")
def test_values_at_random_times(card: Card) -> None:
    r = random.Random(1)
    wave = from_card("V1", card, GRID)
    times = [r.uniform(0.0, GRID.stop) for _ in range(300)]
    expected = [formula(card, t) for t in times]
    assert [wave.value(t) for t in times] == pytest.approx(expected, abs=1e-11 * max(map(abs, expected)))


def test_few_corners_at_a_time_are_the_same_corners() -> None:
    for card in CARDS:
        wave = from_card("V1", card, GRID)
        whole, found, after = wave.corners(0.0, GRID.stop, 1000).tolist(), [], 0.0
        while len(part := wave.corners(after, GRID.stop, 3)):
            found += part.tolist()
            after = part[-1]
        assert found == whole


def test_phases_of_an_amplitude_modulation_are_refused() -> None:
    from circuitsim.errors import UsageError

    with pytest.raises(UsageError, match="phases"):
        from_card("V1", Card("am", (2.0, 0.5, 3.0, 11.0, 0.1, 90.0)), GRID)
    assert math.isfinite(from_card("V1", Card("am", (2.0, 0.5, 3.0, 11.0)), GRID).value(0.1))


@pytest.mark.parametrize("method", ["exact", "implicit"])
def test_a_burst_of_ltspice(method: str) -> None:
    """Three cycles behind a delay, then the value at the delay."""
    deck = loads("t\nV1 a 0 SINE(1 2 1k 0.5m 0 90 3)\nR1 a b 1\nC1 b 0 1n\n.tran 10u 5m\n.end\n")
    run = transient(deck, method=method)
    since = run.times - 0.5e-3
    burst = 1.0 + 2.0 * np.cos(2e3 * math.pi * since)
    exact = np.where((since >= 0.0) & (since < 3e-3), burst, 3.0)
    assert run.voltage("a") == pytest.approx(exact, abs=1e-9 if method == "exact" else 3e-5)


def test_relative_times_of_ltspice() -> None:
    """Counted from the time before where they would not grow otherwise, which a warning says."""
    text = "t\nV1 a 0 PWL(0 0 +1m 1 +1m 0 5m 0 +1m 2)\nR1 a 0 1\n.tran 1m 8m\n"
    deck = loads(text)
    assert deck.following.waves[0].numbers == (0.0, 0.0, 1e-3, 1.0, 2e-3, 0.0, 5e-3, 0.0, 6e-3, 2.0)
    assert any("from the time before" in problem.message for problem in deck.problems)
    grows = loads(text.replace("+1m 0 5m 0 +1m 2", "+3m 0"))
    assert grows.following.waves[0].numbers == (0.0, 0.0, 1e-3, 1.0, 3e-3, 0.0)
    assert any("as in ngspice" in problem.message for problem in grows.problems)


def test_a_sawtooth_of_ltspice() -> None:
    """A mean over many repetitions, by both methods, and of the periodic steady state."""
    card = "V1 a 0 PWL REPEAT FOREVER (0 0 10m 325 20m 0) ENDREPEAT"
    deck = loads(f"t\n{card}\nR1 a b 1k\nC1 b 0 1u\n.tran 1m 1\n.end\n")
    for method in ("exact", "implicit"):
        assert measure(transient(deck, method=method), "m AVG v(a)").value == pytest.approx(162.5, rel=1e-9)
    assert measure(steady_state(deck), "m AVG v(b)").value == pytest.approx(162.5, rel=1e-9)
    short = loads("t\nV1 a 0 PWL(0 0 0.2m 5 0.7m 0) r=0\nR1 a b 1k\nC1 b 0 1u\n.tran 10u 20m\n.end\n")
    assert measure(steady_state(short), "m AVG v(b)").value == pytest.approx(2.5, rel=1e-9)
