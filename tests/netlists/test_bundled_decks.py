"""Every deck of netlists/ gives the voltages, currents, diode states and warnings worked out by hand."""

import math
import re
import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest

import circuitsim

NETLISTS = Path(__file__).parents[2] / "netlists"
TABLE = tomllib.loads((Path(__file__).parent / "expected.toml").read_text(encoding="utf-8"))
NAMES = dict(vars(math))
for key, text in TABLE.pop("names").items():
    NAMES[key] = eval(text, NAMES)


def numbers(entry: Any) -> Any:
    """Numbers from their expressions: of a node or an element, or both ends of an interval."""
    return tuple(map(numbers, entry)) if isinstance(entry, list) else eval(str(entry), NAMES)


EXPECTED = {
    deck: {
        kind: {name: numbers(text) for name, text in found.items()} if isinstance(found, dict) else set(found)
        for kind, found in entries.items()
    }
    for deck, entries in TABLE.items()
}
# The contract alone has the numbers of these.
LARGER = {"mesh-10x10", "crossbar-1r", "crossbar-1d1r", "deep-resistive-network"}
LARGER |= {"learn-iris", "learn-digits", "learn-allostery", "learn-curve"}


def volts(x: float) -> object:
    return pytest.approx(x, rel=1e-9, abs=1e-15)


def amperes(x: float) -> object:
    return pytest.approx(x, rel=1e-9, abs=1e-18)


def test_every_deck_is_pinned() -> None:
    assert {path.stem for path in NETLISTS.glob("*.cir")} == set(EXPECTED) | LARGER


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_deck(name: str) -> None:
    circuit = circuitsim.load(NETLISTS / f"{name}.cir")
    op = circuitsim.solve(circuit)
    want = EXPECTED[name]
    assert op.certificate.certified
    assert {node: op[node] for node in want["V"]} == {node: volts(v) for node, v in want["V"].items()}
    currents = want.get("I", {})
    assert {name: op.current(name) for name in currents} == {name: amperes(i) for name, i in currents.items()}
    if "ON" in want:
        diodes = [e.name for e in circuit if e.kind == "ideal diode"]
        assert {d for d in diodes if op.state(d) == "conducting"} == want["ON"]
    assert {name for name, only in zip(circuit.names, op.unique) if not only} == want.get("NONUNIQUE", set())
    free = {n: tuple(end if end is None else volts(end) for end in ends) for n, ends in want.get("FREE", {}).items()}
    assert op.intervals == free
    kinds = ("floating", "nonunique-potential", "nonunique-current")
    about = {w.kind: set(w.names) for w in op.warnings if w.kind in kinds}
    said = dict(zip(kinds, (want.get("FLOATING"), set(free), want.get("NONUNIQUE"))))
    assert about == {kind: names for kind, names in said.items() if names}


def test_only_nonunique_currents_leave_their_states_open() -> None:
    """An entry may leave ``ON`` out only if its deck has no diodes, or if which of them carry current is not unique."""
    silent = {name for name, want in EXPECTED.items() if "ON" not in want}
    with_diodes = {n for n in silent if circuitsim.load(NETLISTS / f"{n}.cir").count().get("D")}
    assert with_diodes == {"max-flow", "shortest-path"}


@pytest.mark.parametrize("name", sorted(path.stem for path in NETLISTS.glob("*.cir")))
def test_story_under_the_title(name: str) -> None:
    """Title first, then one to three lines of comment that say what the deck shows."""
    title, *rest = (NETLISTS / f"{name}.cir").read_text(encoding="utf-8").splitlines()
    assert title and not title.startswith(("*", ".", "V1 ", "R1 "))
    story = []
    for line in rest:
        if not line.startswith("* "):
            break
        story.append(line)
    assert 1 <= len(story) <= 3
    assert all(len(line) <= 120 for line in story)


@pytest.mark.parametrize("a", [0, 1])
@pytest.mark.parametrize("b", [0, 1])
def test_xor_truth_table(a: int, b: int) -> None:
    """out = (h/2 − 1/8)/1.5 with h = 47/56 where the inputs differ, h = 0 where they agree."""
    op = circuitsim.solve(with_parameters("drn-xor", "a=1 b=0", f"a={a} b={b}"))
    assert op["out"] == volts(11 / 56 if a != b else -1 / 12)
    amplified = circuitsim.solve(with_parameters("drn-xor-amplified", "a=1 b=0", f"a={a} b={b}"))
    assert amplified["out"] == volts(8 * op["out"])


@pytest.mark.parametrize("code", range(4))
def test_decoder_raises_one_line(code: int) -> None:
    op = circuitsim.solve(with_parameters("logic-decoder", "b1=1 b0=0", f"b1={code // 2} b0={code % 2}"))
    assert [op[f"y{k}"] for k in range(4)] == [volts(5 if k == code else 0) for k in range(4)]


@pytest.mark.parametrize("bits", range(16))
def test_sum_of_products_truth_table(bits: int) -> None:
    """High is 5 V over 1 kΩ (two gates at once: 0.5 kΩ) and 100 kΩ; low is 0 V."""
    a, b, c, d = (bits >> k & 1 for k in range(4))
    op = circuitsim.solve(with_parameters("logic-sum-of-products", "a=1 b=1 c=1 d=0", f"a={a} b={b} c={c} d={d}"))
    gates = a * b + c * d
    assert op["out"] == volts(5 * 100 / (100 + 1 / gates) if gates else 0)


@pytest.mark.parametrize("code", [0, 1, 127, 128, 255])
def test_converter_counts(code: int) -> None:
    op = circuitsim.solve(with_parameters("r2r-dac", "code=178", f"code={code}"))
    assert op["out"] == volts(5.12 * code / 256)


@pytest.mark.parametrize("angle", range(0, 360, 15))
def test_six_pulses(angle: int) -> None:
    """The load sees the largest line-to-line voltage; its ripple has six crests a turn, √3 · 325 V high."""
    from math import radians, sin

    phases = [325 * sin(radians(angle + shift)) for shift in (0, -120, 120)]
    op = circuitsim.solve(with_parameters("rectifier-six-pulse", "angle=20", f"angle={angle}"))
    assert op.voltage("plus", "minus") == pytest.approx(max(phases) - min(phases), rel=1e-9)


def with_parameters(name: str, old: str, new: str) -> circuitsim.Circuit:
    text = (NETLISTS / f"{name}.cir").read_text(encoding="utf-8")
    assert text.count(old) == 1
    return circuitsim.loads(text.replace(old, new), folder=NETLISTS)


def test_the_gallery_shows_every_deck_and_no_other() -> None:
    page = (NETLISTS.parent / "docs/netlists.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\| \[`([\w/-]+)`\]\(\.\./netlists/([\w/-]+)\.cir\) \|", page, re.MULTILINE)
    decks = [path.relative_to(NETLISTS).with_suffix("").as_posix() for path in NETLISTS.rglob("*.cir")]
    assert sorted(shown) == [(name, name) for name in sorted(decks)]


@pytest.mark.parametrize("name", sorted(LARGER - {"learn-curve"}))
def test_a_generated_deck_is_what_its_program_writes(name: str) -> None:
    written = runpy.run_path(str(NETLISTS / "generate.py"))["DECKS"][f"{name}.cir"]()
    assert (NETLISTS / f"{name}.cir").read_text(encoding="utf-8") == written
