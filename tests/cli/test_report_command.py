"""Reports: complete in one file, and used in a real browser where there is one."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from circuitsim import Circuit, dumps, examples

from .conftest import Command

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
VOID = {"meta", "input", "br", "img", "link", "hr"}

DRIVE = """
const say = {};
const frame = document.getElementById("drawing");
const press = (key) => frame.dispatchEvent(new KeyboardEvent("keydown", { key, cancelable: true }));
const svg = document.querySelector("#drawing svg");
const box = () => svg.getAttribute("viewBox").split(" ").map(Number);
say.whole = box();
press("+"); say.zoomed = box();
press("ArrowRight"); say.moved = box();
press("0"); say.fitted = box();
document.getElementById("drawing").dispatchEvent(new WheelEvent("wheel", { deltaY: -100, cancelable: true }));
say.wheeled = box(); press("0");
const search = document.getElementById("search");
search.value = "rload"; search.dispatchEvent(new Event("input"));
say.found = [...document.querySelectorAll(".found")].map((part) => part.dataset.name);
say.said = document.getElementById("said").textContent;
search.value = ""; search.dispatchEvent(new Event("input"));
say.cleared = [document.getElementById("said").textContent, box()];
const path = document.getElementById("path");
path.click();
say.pressed = path.getAttribute("aria-pressed");
say.faded = [...document.querySelectorAll(".path .element")].filter((part) => getComputedStyle(part).opacity < 0.5)
  .map((part) => part.dataset.name);
const part = document.querySelector('[data-name="D2"]');
part.dispatchEvent(new FocusEvent("focus")); say.tab = part.tabIndex;
say.focused = document.getElementById("said").textContent;
const table = [...document.querySelectorAll("table")].find((one) => one.tHead.textContent.startsWith("elementkind"));
const column = (k) => [...table.tBodies[0].rows].map((row) => row.cells[k].textContent);
table.tHead.rows[0].cells[5].querySelector("button").click();
say.rising = column(5); say.sort = table.tHead.rows[0].cells[5].getAttribute("aria-sort");
table.tHead.rows[0].cells[5].querySelector("button").click();
say.falling = column(5);
const before = getComputedStyle(document.body).backgroundColor;
document.getElementById("theme").click();
say.themes = [before, getComputedStyle(document.body).backgroundColor];
say.strokes = [...new Set([...document.querySelectorAll(".volts")].map((wire) => getComputedStyle(wire).stroke))];
const out = document.createElement("pre"); out.id = "result"; out.textContent = JSON.stringify(say);
document.body.append(out);
"""


class Balanced(HTMLParser):
    """Checks that every element is closed, and collects addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "action", "data", "poster")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def checked(path: Path) -> str:
    """The text of a report, which is well-formed and asks for nothing elsewhere."""
    text = path.read_text(encoding="utf-8")
    parser = Balanced()
    parser.feed(text)
    assert parser.open == [] and all(address.startswith("data:image/svg+xml;base64,") for address in parser.addresses)
    assert "default-src 'none'" in text
    assert set(re.findall(r"https?://[^\"' ]+", text)) <= {"http://www.w3.org/2000/svg"}
    assert "url(" not in text and "@import" not in text
    return text


def luminance(colour: str) -> float:
    """Relative luminance of a CSS colour (W3C's definition): ``rgb(…)`` of bytes, or ``color(srgb …)`` of shares."""
    numbers = [float(number) for number in re.findall(r"[\d.]+", colour)][:3]
    shares = numbers if colour.startswith("color") else [number / 255 for number in numbers]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def in_browser(path: Path, script: str) -> dict:
    """What ``script`` leaves as JSON in the element ``result`` of the page."""
    page = path.with_suffix(".driven.html")
    page.write_text(path.read_text(encoding="utf-8").replace("</body>", f"<script>{script}</script></body>"))
    assert CHROMIUM is not None
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1200,900"]
    flags.append(f"--user-data-dir={path.parent}/profile")
    done = subprocess.run(
        [CHROMIUM, *flags, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    found = re.search(r'<pre id="result">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stderr[-2000:]
    return json.loads(found[1].replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">"))


def test_a_deck(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    result = command("report", examples.path("rectifier-bridge"), "--output", path)
    assert result.code == 0 and result.out == f"{path}\n"
    text = checked(path)
    for words in ("Full-wave bridge rectifier", "Certified: every law holds", "1.01 W absorbed", "conducting path"):
        assert words in text
    first = text
    command("report", examples.path("rectifier-bridge"), "--output", path)
    assert path.read_text(encoding="utf-8") == first


def test_curves_of_the_deck(command: Command, tmp_path: Path) -> None:
    command("report", examples.path("sweep-dead-zone"), "--output", tmp_path / "s.html")
    assert "<h2>DC sweep</h2>" in (page := checked(tmp_path / "s.html")) and "<img alt=" in page
    command("report", examples.path("half-wave-smoothed"), "--output", tmp_path / "t.html")
    page = checked(tmp_path / "t.html")
    assert 0 < page.index("<h2>Transient analysis</h2>") < page.index("<h2>Operating point</h2>")
    own = tmp_path / "own.cir"
    own.write_text("t\nV1 in 0 AC 1\nR1 in out 1k\nC1 out 0 1u\n.ac dec 5 1 1k\n.meas ac top MAX vm(out)\n")
    command("report", own, "--output", tmp_path / "a.html")
    own.with_name("bad.cir").write_text("t\nV1 a 0 1 AC 1\nR1 a 0 1\n.ac dec 1 1 9\n.ac lin 1 1 1\n")
    assert command("report", own.with_name("bad.cir"), "--output", tmp_path / "b.html").code == 0
    assert "<p>Not run: " in checked(tmp_path / "b.html")
    page = checked(tmp_path / "a.html")
    assert page.index("<h2>AC analysis</h2>") < page.index("<h2>Measurements</h2>") < page.index("<h2>Circuit</h2>")


def test_a_deck_without_steady_state_shows_the_reason(command: Command, tmp_path: Path) -> None:
    result = command("report", examples.path("infeasible-sources"), "--output", tmp_path / "r.html")
    assert result.code == 3
    text = checked(tmp_path / "r.html")
    marked = re.findall(r'class="element marked" data-element="\d+" data-name="([^"]*)"', text)
    assert sorted(marked) == ["V1", "V2", "V3"]
    assert 'class="bad"' in text


def test_a_run(command: Command, tmp_path: Path) -> None:
    deck = examples.path("learn-divider")
    run = tmp_path / "run"
    data = deck.replace(".cir", ".csv")
    assert command("train", "circuit", deck, "--data", data, "--epochs", "4", "--out", run, "--no-pictures").code == 0
    assert command("report", run, "--output", tmp_path / "r.html").code == 0
    text = checked(tmp_path / "r.html")
    assert "over updates" in text and "learn-divider.cir" in text and 'data-name="R5"' in text
    (run / "history.jsonl").write_text("[1]\n")
    assert command("report", run, "--output", tmp_path / "r.html").code == 2


def test_names_cannot_end_the_page(command: Command, tmp_path: Path) -> None:
    c = Circuit("</title></script><script>alert(1)</script>")
    c.voltage_source("V1", "a", "0", 1.0)
    c.resistor("R1", "a", "0", 1.0)
    deck = tmp_path / "x.cir"
    deck.write_text(dumps(c), encoding="utf-8")
    assert command("report", deck, "--output", tmp_path / "r.html").code == 0
    assert checked(tmp_path / "r.html").count("<script") == 1


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: apt-get install chromium)")
def test_in_a_browser(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    command("report", examples.path("rectifier-bridge"), "--output", path)
    found = in_browser(path, DRIVE)
    whole = found["whole"]
    assert found["zoomed"][2] == pytest.approx(whole[2] / 1.25, rel=1e-3)
    assert found["moved"][0] == pytest.approx(found["zoomed"][0] + 0.1 * found["zoomed"][2], rel=1e-3)
    assert found["fitted"] == whole and found["wheeled"][2] < whole[2]
    assert found["found"] == ["Rload"]
    assert found["said"] == "Rload, resistor from plus to 0, 100 Ω: 10 V, 100 mA, 1 W"
    assert found["pressed"] == "true" and sorted(found["faded"]) == ["D1", "D4"]
    assert found["tab"] == 0
    assert found["focused"].startswith("D2, ideal diode") and found["focused"].endswith("conducting")
    assert found["rising"] == ["-10.1 V", "-10 V", "-10 V", "-100 mV", "0 V", "0 V", "10 V"]
    assert found["falling"] == found["rising"][::-1] and found["sort"] == "ascending"
    assert found["themes"][0] != found["themes"][1]
    assert found["cleared"] == ["", whole]
    assert len(found["strokes"]) > 3
    dark = luminance(found["themes"][1])
    assert min(luminance(colour) for colour in found["strokes"]) + 0.05 > 2.5 * (dark + 0.05)


def test_a_large_circuit_shows_the_worst_in_place_of_a_drawing(command: Command, tmp_path: Path) -> None:
    cells = "".join(f"X{k} n{k} n{k + 1} cell\n" for k in range(100))
    text = f"chain\n.subckt cell a b\nR1 a m 1\nR2 m b 1\nR3 b 0 9\n.ends\nV1 n0 0 5\n{cells}"
    (tmp_path / "chain.cir").write_text(text)
    assert command("report", tmp_path / "chain.cir", "--output", tmp_path / "r.html").code == 0
    page = checked(tmp_path / "r.html")
    assert "Too many nodes for a drawing" in page and "largest powers" in page and 'id="drawing"' not in page
    (tmp_path / "broken.cir").write_text(f"{text}V2 n0 0 6\n")
    assert command("report", tmp_path / "broken.cir", "--output", tmp_path / "r.html").code == 3
    assert 'class="bad"' in checked(tmp_path / "r.html")


def test_a_large_grid_shows_its_map(command: Command, tmp_path: Path) -> None:
    rungs = "".join(f"R{k} n1_{k}_{k % 7} n1_{k + 1}_{(k + 1) % 7} 1\n" for k in range(200))
    (tmp_path / "grid.cir").write_text(f"grid\nV1 n1_0_0 0 1.8\n{rungs}I1 n1_200_{200 % 7} 0 1m\n")
    assert command("report", tmp_path / "grid.cir", "--output", tmp_path / "r.html").code == 0
    page = checked(tmp_path / "r.html")
    assert 'src="data:image/svg+xml;base64,' in page and "worst node" in page
