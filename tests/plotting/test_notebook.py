"""What notebooks show: well-formed fragments with the right numbers, text of decks escaped."""

import xml.etree.ElementTree as xml
from base64 import b64decode
from pathlib import Path

import numpy as np
import pytest

import circuitsim
from circuitsim import examples
from circuitsim.errors import UsageError
from circuitsim.netlist import load
from circuitsim.plotting.circuit import circuit_svg
from circuitsim.time_domain import transient
from circuitsim.training import History

SVG = "{http://www.w3.org/2000/svg}"


def parsed(fragment: str) -> xml.Element:
    """The fragment, which must be well-formed."""
    return xml.fromstring(fragment)


def point() -> circuitsim.OperatingPoint:
    return circuitsim.solve(circuitsim.load(examples.path("rectifier-bridge")))


def test_every_element_and_node_of_a_drawing_says_what_it_is() -> None:
    found = point()
    tree = parsed(circuit_svg(found))
    elements = {g.get("data-element"): g.get("aria-label") for g in tree.iter(f"{SVG}g") if g.get("data-element")}
    assert sorted(map(int, elements)) == list(range(len(found.circuit)))
    k = str(found.circuit.element_index("Rload"))
    assert elements[k] == "Rload, resistor from plus to 0, 100 Ω: 10 V, 100 mA, 1 W"
    assert elements[str(found.circuit.element_index("D2"))].endswith("conducting")
    nodes = {g.get("aria-label") for g in tree.iter(f"{SVG}g") if g.get("data-node")}
    assert "node plus: 10 V" in nodes and len(nodes) == 4
    assert circuit_svg(found) == circuit_svg(point())


def test_a_circuit_without_operating_point_is_drawn_and_marked() -> None:
    c = circuitsim.load(examples.path("infeasible-sources"))
    tree = parsed(circuit_svg(c, ["V1"]))
    marked = [g.get("data-element") for g in tree.iter(f"{SVG}g") if "marked" in g.get("class", "")]
    assert marked == [str(c.element_index("V1"))]
    assert not any("V," in (g.get("aria-label") or "").partition(":")[2] for g in tree.iter(f"{SVG}g"))


def test_fragments_hold_the_numbers() -> None:
    found = point()
    text = found._repr_html_()
    parsed(text)
    for word in (
        "Full-wave bridge rectifier&#x27;: 5 nodes, 7 elements, certified",
        "100 mA",
        "conducting",
        "Certified: every law holds",
    ):
        assert word in text
    assert "Certified" in found.certificate._repr_html_()
    assert repr(found.certificate).startswith("Certificate(certified: worst relative violation")
    assert "7 elements" in found.circuit._repr_html_()


def test_text_of_a_deck_is_escaped() -> None:
    c = circuitsim.loads("<script>alert(1)</script> & co\nV<1> a&b 0 1\nR1 a&b 0 1\n").circuit
    for source in (c, circuitsim.solve(c)):
        text = source._repr_html_()
        assert "<script" not in text and "&lt;script" in text
        parsed(text)


def images(fragment: str) -> list[xml.Element]:
    """The pictures of a fragment, as SVG."""
    sources = [own.get("src", "") for own in parsed(fragment).iter("img")]
    assert all(source.startswith("data:image/svg+xml;base64,") for source in sources)
    return [xml.fromstring(b64decode(source.partition(",")[2])) for source in sources]


def words_of(picture: xml.Element) -> set[str | None]:
    return {text.text for text in picture.iter(f"{SVG}text")}


def test_sweeps_show_a_curve_a_column() -> None:
    deck = load(examples.path("sweep-dead-zone"))
    found = circuitsim.sweep(deck, {"V1": np.linspace(-4, 4, 9), "V2": [1.0, 2.0]}, "v(out) i(Rload)")
    (picture,) = images(found._repr_html_())
    assert {"v(out)  V2=1 V", "v(out)  V2=2 V", "i(Rload)  V2=2 V"} <= words_of(picture)
    assert circuitsim.sweep(deck, {"V1": [1.0]}, "v(out)")._repr_html_().count("<img") == 0


def test_waveforms_and_histories() -> None:
    result = transient(circuitsim.load(examples.path("half-wave-smoothed")), 0.02)
    assert "certified" in repr(result)
    (picture,) = images(result._repr_html_())
    assert {"v(in)", "v(out)", "time"} <= words_of(picture)
    history = History()
    assert repr(history) == "History(0 rows)"
    for k in range(5):
        history.append({"epoch": k, "updates": 10 * k, "loss": 10.0**-k, "accuracy": 0.1 * k})
    assert repr(history).startswith("History(5 rows, last: epoch 4")
    (picture,) = images(history._repr_html_())
    assert {"loss", "accuracy", "updates"} <= words_of(picture)


@pytest.mark.parametrize("form", ["png", "svg", "pdf"])
def test_pictures_are_saved(tmp_path: Path, form: str) -> None:
    picture = point().draw()
    picture.save(tmp_path / f"x.{form}")
    assert (tmp_path / f"x.{form}").stat().st_size > 1000
    assert "7 elements" in repr(picture) and picture._repr_svg_().startswith("<svg")
    with pytest.raises(UsageError, match=r"\.png, \.svg or \.pdf"):
        picture.save(tmp_path / "x.gif")
