"""Phases of the search for the active set."""

from __future__ import annotations

import numpy as np
import pytest

from circuitsim.engine.search import ALL, IDLE, PARTS, PATIENCE, Change, Search


def part_phase() -> Search:
    """A search whose sets returned from both beginnings: the phase of parts has begun."""
    search = Search(given=False)
    assert search.next(b"a", 8, 4) is Change.ALL
    assert search.next(b"a", 8, 4) is Change.ALL_CONDUCT
    assert search.next(b"b", 8, 4) is Change.ALL
    assert search.next(b"b", 8, 4) is Change.PART
    return search


def test_fewer_violations_each_time_change_all_of_them() -> None:
    search = Search(given=False)
    changes = [search.next(bytes([k]), 2 ** (12 - k), 1) for k in range(12)]
    assert set(changes) == {Change.ALL}


def test_an_iteration_that_stalls_lets_no_diode_leave_unless_none_enters() -> None:
    search = Search(given=False)
    assert search.next(b"a", 100, 50) is Change.ALL
    assert search.next(b"b", 91, 50) is Change.ENTER_ONLY
    assert search.next(b"c", 91, 0) is Change.ALL


@pytest.mark.parametrize("given", [False, True])
def test_a_repeated_set_begins_again_then_changes_a_part(given: bool) -> None:
    search = Search(given)
    expected = [Change.NONE_CONDUCTS] * given + [Change.ALL_CONDUCT, Change.PART]
    for k, change in enumerate(expected):
        assert search.next(bytes([k]), 8, 4) is Change.ALL
        assert search.next(bytes([k]), 8, 4) is change
    # A set that returned in an earlier phase is no repetition in the next.
    assert search.next(b"\x00", 8, 4) is Change.PART


def test_iterations_without_fewer_violations_begin_again() -> None:
    search = Search(given=False)
    changes = [search.next(bytes([k]), 5, 2) for k in range(PATIENCE + 2)]
    assert changes[-1] is Change.ALL_CONDUCT and Change.ALL_CONDUCT not in changes[:-1]


def test_slow_progress_ends_too() -> None:
    search = Search(given=False)
    changes = [search.next(bytes([k]), 1000 - k, 0) for k in range(ALL + 1)]
    assert changes[-1] is Change.ALL_CONDUCT and set(changes[:-1]) == {Change.ALL}


def test_the_part_is_halved_where_violations_are_not_fewer_and_doubled_where_they_are() -> None:
    search, violated = part_phase(), np.arange(64) < 16
    assert search.part(violated).sum() == 8 and not search.part(violated)[16:].any()
    search.next(b"c", 9, 4)
    for k in range(IDLE):
        search.next(bytes([k]), 9, 4)
    assert search.part(violated).sum() == 4
    for k in range(IDLE):
        search.next(bytes([100 + k]), 9, 4)
    assert search.part(violated).sum() == 2
    search.next(b"d", 5, 4)
    assert search.part(violated).sum() == 4
    for k in range(60 * IDLE):
        search.next(bytes([k]), 9, 4)
    assert search.part(violated).sum() == 1  # never none


def test_parts_are_drawn_from_a_fixed_seed() -> None:
    violated = np.ones(40, dtype=bool)
    one, other = part_phase(), part_phase()
    drawn = [one.part(violated) for _ in range(3)]
    assert not np.array_equal(drawn[0], drawn[1])
    for part in drawn:
        np.testing.assert_array_equal(part, other.part(violated))


def test_the_dual_method_is_the_end() -> None:
    search = part_phase()
    changes = [search.next(k.to_bytes(2, "little"), 8, 4) for k in range(PARTS + 20)]
    assert changes[-1] is Change.DUAL
    first = changes.index(Change.DUAL)
    assert set(changes[:first]) == {Change.PART} and set(changes[first:]) == {Change.DUAL}
