"""The registered models, and devices: a made-up one is enough to hold expand → solve → collapse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

import circuitsim
from circuitsim import Circuit, TopologyError
from circuitsim.circuit import circuit, elements
from circuitsim.models import ELEMENTARY, MODELS, Device, ElementModel, Parameter, Part, Region
from circuitsim.models.controlled_sources import CONTROLLED


class Pair(Device):
    """Two resistors of ``ohms`` in series."""

    ohms: float
    claimed: float

    def expand(self) -> tuple[Part, ...]:
        return Part("R", "upper", "first", "middle", self.ohms), Part("R", "lower", "middle", "second", self.ohms)

    def region(self, currents: Mapping[str, float]) -> Region:
        return Region("only", currents["upper"] == 0.0)

    def law(self, voltage: float) -> tuple[float, float]:
        current = voltage / (self.claimed * self.ohms)
        return current, current

    def energy(self, voltage: float) -> float:
        return 0.5 * voltage**2 / (self.claimed * self.ohms)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The made-up device in the element table."""
    Pair.model = ElementModel(
        "Y",
        "pair",
        ("first", "second"),
        "v = 2 R i",
        "",
        "",
        "{name} {first} {second} {value}",
        MODELS[0].symbol,
        device=Pair,
        parameters=(Parameter("ohms", "Ω", 0.0, default=1.0), Parameter("claimed", default=2.0)),
    )
    for module in (elements, circuit):
        monkeypatch.setattr(module, "ELEMENTS", (*MODELS, Pair.model))
    yield


def with_pair(device: Device) -> Circuit:
    c = Circuit("a pair")
    c.voltage_source("V1", "a", "0", 6.0)
    c.device("Y1", "a", "b", device)
    c.resistor("R1", "b", "0", 1.0)
    return c


def test_codes_of_elementary_elements_are_what_kernels_know() -> None:
    letters = [row.letter for row in MODELS[:ELEMENTARY]]
    assert letters == ["R", "D", "V", "I", "L", "C", "X"]
    assert all(row.device is None for row in MODELS[:ELEMENTARY])
    devices = [row for row in MODELS[ELEMENTARY:] if row not in CONTROLLED]
    assert all(row.device is not None and row.device.model is row for row in devices)


def test_a_device_is_expanded_solved_and_collapsed() -> None:
    point = circuitsim.solve(with_pair(Pair()))
    assert list(point.circuit.names) == ["V1", "Y1", "R1"] and point.voltages.shape == (3,)
    assert point.current("Y1") == pytest.approx(2.0, rel=1e-15)
    assert point.state("Y1") == "only" and point.power("Y1") == pytest.approx(8.0)
    assert point.energy == pytest.approx(0.5 * 6.0**2 / 3.0)
    assert point.elementary is not None and list(point.elementary.circuit.names) == ["V1", "Y1:upper", "R1", "Y1:lower"]


def test_a_device_beside_its_own_law_is_no_operating_point() -> None:
    with pytest.raises(circuitsim.ConvergenceError, match="Y1 does not follow its law"):
        circuitsim.solve(with_pair(Pair(claimed=2.0001)))


def test_names_of_parts_are_new() -> None:
    c = with_pair(Pair())
    c.resistor("Y1:lower", "Y1:middle", "0", 5.0)
    point = circuitsim.solve(c)
    assert point.current("Y1") == pytest.approx(2.0) and point["Y1:middle"] == 0.0


def test_a_device_is_a_value() -> None:
    pair = Pair(ohms=3, label="own")
    assert pair == Pair(ohms=3.0) and hash(pair) == hash(Pair(ohms=3.0)) and pair != Pair()
    assert pair.with_value("OHMS", 4.0) == Pair(ohms=4.0) and pair.ohms == 3.0
    with pytest.raises(AttributeError, match="does not change"):
        pair.ohms = 5.0
    for wrong, message in (({"ohms": -1.0}, "ohms must not be negative"), ({"amps": 1.0}, "no parameter 'amps'")):
        with pytest.raises(ValueError, match=message):
            Pair(**wrong)


def test_a_name_is_taken_once() -> None:
    c = with_pair(Pair())
    with pytest.raises(TopologyError, match="taken already"):
        c.device("R1", "a", "b", Pair())
    assert len(c.devices) == 1
