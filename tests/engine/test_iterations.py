"""The steps of the large driver's iterations on diodes, against the same in masks of numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from circuitsim.analysis.solve import prepared
from circuitsim.bench.families import make
from circuitsim.engine import nodal
from circuitsim.engine.kernels import kernel


class Nodes:
    """What `circuitsim.engine.nodal` needs of a topology to order diodes: the nodes at their ends."""

    def __init__(self, count: int) -> None:
        self.anode, self.cathode = np.arange(count), np.full(count, count)


def descending(amount: np.ndarray) -> np.ndarray:
    """Positions by falling powers of two, the first of equals first."""
    return np.argsort(-np.frexp(amount)[1].astype(np.int16), kind="stable")


@pytest.mark.parametrize("seed", range(3))
def test_diodes_are_in_the_order_of_their_amounts(seed: int) -> None:
    rng, d = np.random.default_rng(seed), 300
    v, flow = rng.normal(size=(2, d)) * 2.0 ** rng.integers(-1070, 1020, (2, d))
    v[:5], flow[:5] = 0.0, [0.0, np.inf, np.nan, 5e-324, 1.7e308]
    enter, stay, order = rng.random(d) < 0.3, rng.random(d) < 0.5, np.empty(d, dtype=np.int64)
    count = nodal._arrange(Nodes(d), np.append(v, 0.0), flow, enter, stay, order)
    entering, staying = np.flatnonzero(enter), np.flatnonzero(stay)
    expected = [entering[descending(v[entering])], staying[descending(flow[staying])]]
    assert order[:count].tolist() == np.concatenate(expected).tolist()


@pytest.mark.parametrize("family", ["grid", "erdos-renyi", "drn"])
def test_diodes_that_leave_and_enter(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def compared(function: Callable[..., Any], size: int) -> Callable[..., Any]:
        made = kernel(function, size)
        if function is not nodal._finish:
            return made

        def finish(*given: Any) -> Any:
            plan, _, _, state, tail, head, on, v, leave, enter = given
            before = on.copy()
            found = made(*given)
            leaving, entering, spare = before & ~state.wanted, state.wanted & ~before, False
            a, c = v[plan.anode], v[plan.cathode]
            if leaving.any():
                equal = np.abs(a - c) <= nodal.EQUAL * np.maximum(np.abs(a), np.abs(c))
                spare = bool((equal & ~before & (state.root[tail] == state.root[head]) & (tail != head)).any())
                if not spare:
                    before &= state.flow != 0.0
                    leaving = before & (state.flow < -nodal.CLEAR * state.noise)
            assert found == (np.count_nonzero(leaving), np.count_nonzero(entering), spare)
            assert np.array_equal(leave, leaving) and np.array_equal(enter, entering) and np.array_equal(on, before)
            calls.append(found)
            return found

        return finish

    monkeypatch.setattr(nodal, "kernel", compared)
    ready = prepared(make(family, 3500, 0), "active-set")
    net = ready.resistances.network(ready.structure)
    nodal.iterate(net, net.diodes[::2], 50)
    assert max(leaves for leaves, _, _ in calls) > 0 and max(enters for _, enters, _ in calls) > 0
