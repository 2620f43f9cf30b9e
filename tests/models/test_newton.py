"""Newton's method on random circuits of devices that once failed, or took many steps; their titles say why."""

from pathlib import Path

import pytest

import circuitsim

FOUND = sorted((Path(__file__).parent / "found").glob("*.cir"))


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_circuits_that_once_failed(path: Path) -> None:
    point = circuitsim.solve(circuitsim.load(path))
    assert point.certificate.certified and (path.stem != "49207" or point.certificate.worst < 1e-12)
    assert int(str(point.solver["newton_steps"])) <= 29
