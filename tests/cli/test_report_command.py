"""Reports: complete in one file, and used in a real browser where there is one."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from circuitsim import examples
from circuitsim.small_signal.frequency import AcResult
from circuitsim.time_domain import TransientResult

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


@pytest.fixture
def report(command: Command, tmp_path: Path) -> Callable[..., str]:
    """The text of the report of a deck (its text, or the name of a bundled one); ``code`` as the command ends."""

    def made(deck: str, code: int = 0) -> str:
        path = tmp_path / "my.cir"
        path.write_text(
            deck if "\n" in deck else Path(examples.path(deck)).read_text(encoding="utf-8"), encoding="utf-8"
        )
        result = command("report", path, "--output", tmp_path / "r.html")
        assert (result.code, result.out) == (code, f"{tmp_path / 'r.html'}\n")
        return checked(tmp_path / "r.html")

    return made


CELLS = "".join(f"X{k} n{k} n{k + 1} cell\n" for k in range(100))
CHAIN = f"chain\n.subckt cell a b\nR1 a m 1\nR2 m b 1\nR3 b 0 9\n.ends\nV1 n0 0 5\n{CELLS}"
RUNGS = "".join(f"R{k} n1_{k}_{k % 7} n1_{k + 1}_{(k + 1) % 7} 1\n" for k in range(200))
PAGES = {
    "rectifier-bridge": [
        *("Full-wave bridge rectifier", "Circuit</h2>", "Certified: every law holds", "1.01 W absorbed"),
        "conducting path",
    ],
    "sweep-dead-zone": ["<h2>DC sweep</h2>", "<img alt="],
    "half-wave-smoothed": ["<h2>Transient analysis</h2>", "<h2>Operating point</h2>"],
    "t\nV1 in 0 AC 1\nR1 in out 1k\nC1 out 0 1u\n.ac dec 5 1 1k\n.meas ac top MAX vm(out)\n": [
        *("<h2>AC analysis</h2>", "<h2>Measurements</h2>", "<h2>Circuit</h2>")
    ],
    "t\nV1 a 0 1 AC 1\nR1 a 0 1\n.ac dec 1 1 9\n.ac lin 1 1 1\n": ["<p>Not run: "],
    CHAIN: ["Too many nodes for a drawing", "largest powers"],
    f"grid\nV1 n1_0_0 0 1.8\n{RUNGS}I1 n1_200_4 0 1m\n": ["worst node", 'src="data:image/svg+xml;base64,'],
}
"""Decks, and what their reports hold in this order."""


@pytest.mark.parametrize("deck", PAGES, ids=lambda deck: deck.split("\n")[0])
def test_a_report_holds_what_the_deck_asks_for(report: Callable[..., str], deck: str) -> None:
    page = report(deck)
    places = [page.find(words) for words in PAGES[deck]]
    assert min(places) > 0 and (places == sorted(places) or deck == "rectifier-bridge" or deck[:4] == "grid")
    assert ('id="drawing"' in page) is (deck not in (CHAIN,) and deck[:4] != "grid")
    assert report(deck) == page


def test_pictures_have_the_columns_that_the_deck_prints(
    report: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[str] = []
    for owner in (TransientResult, AcResult):
        monkeypatch.setattr(owner, "_figure", lambda self, columns="": drawn.append(columns) or Figure())
    deck = "t\nV1 a 0 SIN(0 1 1k) AC 1\nR1 a b 1k\nC1 b 0 1u\n.tran 10u 1m\n.ac dec 5 1 1k\n"
    page = report(f"{deck}.print tran v(a,b) i(R1)\n.print ac vdb(b) vp(b)\n")
    assert drawn == ["v(a,b) i(R1)", "v(b)"] and "energy_lost" not in page
    assert "no node is called &#x27;c&#x27;" in report(f"{deck}.print tran v(c)\n") and drawn[2:] == ["", ""]


def test_a_deck_without_an_operating_point_shows_the_reason(report: Callable[..., str]) -> None:
    page = report("infeasible-sources", 3)
    marked = re.findall(r'class="element marked" data-element="\d+" data-name="([^"]*)"', page)
    assert sorted(marked) == ["V1", "V2", "V3"]
    assert 'class="bad"' in page and 'class="bad"' in report(f"{CHAIN}V2 n0 0 6\n", 3)


def test_a_run(command: Command, tmp_path: Path) -> None:
    deck, run = examples.path("learn-divider"), tmp_path / "run"
    words = ("--data", deck.replace(".cir", ".csv"), "--epochs", "4", "--out", run, "--no-pictures")
    assert command("train", "circuit", deck, *words).code == 0
    assert command("report", run, "--output", tmp_path / "r.html").code == 0
    text = checked(tmp_path / "r.html")
    assert "over updates" in text and "learn-divider.cir" in text and 'data-name="R5"' in text
    stored = json.loads((run / "config.json").read_text())
    stored["options"]["deck"] = "x" * 300
    (run / "config.json").write_text(json.dumps(stored))
    assert command("report", run, "--output", tmp_path / "r.html").code == 0
    assert "x" * 199 + "…" in checked(tmp_path / "r.html")
    (run / "history.jsonl").write_text("[1]\n")
    assert command("report", run, "--output", tmp_path / "r.html").code == 2


def test_names_cannot_end_the_page(report: Callable[..., str]) -> None:
    assert report("</title></script><script>alert(1)</script>\nV1 a 0 1\nR1 a 0 1\n").count("<script") == 1


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
