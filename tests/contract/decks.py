"""The decks of the contract, and the commands that each of them is asked."""

import functools
import json
import re
import shlex
import tempfile
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import answers
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from circuitsim import NetlistError, load

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

FOLDERS = (
    "netlists",
    "netlists/first",
    "netlists/refused",
    *(f"tests/decks/{x}" for x in ("ngspice", "ltspice", "xyce", "pspice")),
)
OWN = ("cases", "docs")

CARDS = {
    "sweep": r"\.(dc|step|temp)\b",
    "tran": r"\.tran\b",
    "steady": r"\.tran\b",
    "ac": r"\.ac\b",
    "poles": r"\.ac\b",
    "sensitivity": r"\.(sens|tf)\b",
    "montecarlo": r"[^*\n].*\btol=",
    "worst-case": r"[^*\n].*\btol=",
}
"""Analyses that a deck is asked for its cards, beside its operating point and `check`."""

NO_CSV = {"check", "report", "convert"}

Key = tuple[str, str, tuple[str, ...]]
"""Deck, analysis, further words."""


def keys(lines: str) -> list[Key]:
    """Those of lines of words."""
    return [(deck, analysis, tuple(words)) for deck, analysis, *words in map(shlex.split, lines.strip().split("\n"))]


MORE = keys("""
netlists/divider.cir sensitivity --observe v(out)
netlists/wheatstone-unbalanced.cir sensitivity --observe i(R1)
netlists/rectifier-bridge.cir sensitivity --observe v(plus)
netlists/clamp-dc.cir sensitivity --observe i(R1)
netlists/divider.cir montecarlo --tol R*=5% --observe v(out) --samples 500
netlists/divider.cir worst-case --tol R*=5% --observe v(out)
netlists/r2r-dac.cir montecarlo --tol R*=1%,normal --observe v(out) --samples 500 --latin
netlists/rectifier-bridge.cir worst-case --tol R*=20% --observe v(plus)
netlists/divider.cir sweep --vary R1=100:1000:100
netlists/rectifier-bridge.cir sweep --vary V1=-10:10:0.5 --columns 'v(plus) i(D1) p(Rload)'
cases/varistor-current.cir curve --device D2 --volts -10:10:0.5
netlists/sweep-dead-zone.cir sweep --vary V1=-5:5:1
netlists/mesh-10x10.cir drops
netlists/ladder-infinite.cir drops
netlists/divider.cir optimise --adjust R1=100:10k --target v(out)=2.5
netlists/divider.cir optimise --adjust R* --target v(out)=2.5 --series E24
netlists/boost-converter.cir tran --measure 'm PP v(out) FROM=3m'
netlists/boost-converter.cir tran --events
netlists/half-wave-smoothed.cir tran --fourier '50 v(out)'
netlists/half-wave-smoothed.cir tran --vary R1=1k,2k --columns v(out)
netlists/half-wave-smoothed.cir tran --method implicit
netlists/buck-converter.cir steady --columns 'v(out) i(L1)'
netlists/lowpass-butterworth.cir ac --over v(in)
netlists/coupled-resonators.cir ac --from 1k --to 1meg --points 5
netlists/frozen-descent.cir solve --solver coordinate-descent
netlists/rectifier-bridge.cir solve --solver coordinate-descent
netlists/clipper-1n4148.cir solve --diodes ideal
""")
"""Further commands."""

MODELS = """
circuit divider | circuit netlists/learn-divider.cir --data netlists/learn-divider.csv
circuit divider implicit | circuit netlists/learn-divider.cir --data netlists/learn-divider.csv --method implicit
circuit allostery | circuit netlists/learn-allostery.cir --data netlists/learn-allostery.csv
circuit curve | circuit netlists/learn-curve.cir --data netlists/learn-curve.csv --method implicit
circuit filter | circuit netlists/learn-filter.cir --data netlists/learn-filter.csv
circuit ripple | circuit netlists/learn-ripple.cir --data netlists/learn-ripple.csv --steady
circuit iris | circuit netlists/learn-iris.cir --data iris
circuit coupled | circuit netlists/learn-divider.cir --data netlists/learn-divider.csv --method coupled
drn | drn --preset drn-xs --dataset digits --input-gain 30
dhn | dhn --hidden 32 --dataset digits
ffebm | ffebm --dataset digits
rbm | rbm --dataset digits
"""
TRAINED = dict(line.split(" | ") for line in MODELS.strip().split("\n"))
"""Models that take one step, by name."""

PICTURES = keys("""
netlists/rectifier-bridge.cir solve
netlists/schmitt-trigger.cir sweep
netlists/rectifier-bridge.cir sweep --vary V1=-10:10:1 --columns 'v(plus) i(D1)'
netlists/half-wave-smoothed.cir tran
netlists/buck-converter.cir tran --columns 'v(out) i(L1) p(R1)'
netlists/half-wave-smoothed.cir tran --vary R1=1k,2k --columns v(out)
netlists/rectifier-bridge-smoothed.cir steady
netlists/lowpass-butterworth.cir ac
netlists/wheatstone-unbalanced.cir sensitivity --observe 'v(a,b) v(a)'
cases/varistor-current.cir curve --device D2 --volts -10:10:0.5
netlists/divider.cir montecarlo --tol R*=5% --samples 200 --observe 'v(out) i(R1)'
netlists/divider.cir worst-case --tol R*=5% --observe 'v(out) i(R1)'
netlists/divider.cir optimise --adjust R*=100:10k --target v(out)=2
""")
"""Commands whose pictures are frozen: counts of axes and curves, names of curves."""


def picture(key: Key) -> dict[str, Any]:
    """What the picture of a command shows."""
    figures: list[Figure] = []
    draw = Figure.draw

    @functools.wraps(draw)
    def keep(figure: Figure, renderer: Any) -> None:
        figures.append(figure)
        draw(figure, renderer)

    with tempfile.TemporaryDirectory() as folder, mock.patch.object(Figure, "draw", keep):
        drawn = ["--plot", str(Path(folder) / "a.svg")]
        code = answers.run([*answers.words_of(key[1]), str(path_of(key[0])), *key[2], *drawn]).code
    axes = [own for figure in figures for own in figure.axes]
    return {
        "code": code,
        "curves": [len(own.lines) for own in axes],
        "labels": [own.get_ylabel() for own in axes],
        "legends": [*map(_named, axes)],
    }


def _named(axes: Axes) -> list[str]:
    """The names of curves in the legend, or those that are written at their ends."""
    if (legend := axes.get_legend()) is not None:
        return [text.get_text() for text in legend.get_texts()]
    written = {text.get_text() for text in axes.texts}
    return [str(line.get_label()) for line in axes.lines if line.get_label() in written]


def paths() -> list[Path]:
    """All decks."""
    folders = [*(ROOT / folder for folder in FOLDERS), *(HERE / folder for folder in OWN)]
    return [path for folder in folders for path in sorted(folder.glob("*.cir"))]


def name_of(path: Path) -> str:
    """A deck as keys name it."""
    return str(path.relative_to(ROOT)).removeprefix("tests/contract/")


def path_of(name: str) -> Path:
    """The deck of a name."""
    return (HERE if name.split("/")[0] in OWN else ROOT) / name


def questions() -> list[Key]:
    """What is asked: (deck, analysis, further words), and ("train", name, ())."""
    found: list[Key] = []
    for path in paths():
        beside = path.with_suffix(".json")
        options = json.loads(beside.read_text()).get("options", []) if beside.exists() else []
        text = path.read_text(encoding="utf-8", errors="replace")
        asked = [x for x, card in CARDS.items() if re.search(rf"^\s*{card}", text, re.MULTILINE | re.IGNORECASE)]
        found += [(name_of(path), analysis, tuple(options)) for analysis in ("read", "solve", "check", *asked)]
    return [*found, *MORE, *(("train", name, ()) for name in TRAINED)]


def ask(key: Key) -> dict[str, Any]:
    """The answer of a key."""
    deck, analysis, extra = key
    if deck == "train":
        return trained(shlex.split(TRAINED[analysis]))
    path = path_of(deck)
    if analysis == "read":
        return reading(path, "--no-title" not in extra)
    return answers.command([*answers.words_of(analysis), str(path), *extra], analysis not in NO_CSV)


def reading(path: Path, title: bool) -> dict[str, Any]:
    """Kinds and lines of warnings, notes and errors of a deck."""
    try:
        with warnings.catch_warnings(action="ignore"):  # they are compared by kind
            deck = load(path, title=title)
    except NetlistError as error:
        problems, code = error.problems, 2
    else:
        problems, code = deck.notes, 0
    kinds = sorted(f"{x.kind} {x.location.line if x.location else 0}" for x in problems)
    return {"code": code, "kinds": kinds}


def trained(words: list[str]) -> dict[str, Any]:
    """What one step of training leaves: exit code, the history's figures, parameters of a deck."""
    paths = [str(ROOT / word) if word.startswith("netlists/") else word for word in words]
    with tempfile.TemporaryDirectory() as folder:
        more = ["--epochs", "1", "--batch", "1437", "--seed", "0", "--no-pictures", "--out", folder]
        said = answers.run(["train", *paths, *more])
        found: dict[str, Any] = {"code": said.code, "json": {}}
        history = Path(folder) / "history.csv"
        if history.exists():
            names, first = (line.split(",") for line in history.read_text().split("\n")[:2])
            for name, value in zip(names, first):
                kept = re.fullmatch(r"[-+.\de]+", value) and not re.search("second|certificate|residual|updates", name)
                found["json"][f"/{name}"] = float(value) if kept else None
        deck = Path(folder) / "trained.cir"
        if deck.exists():
            cards = [line for line in deck.read_text().split("\n")[1:] if line[:1].isalpha() or line[:6] == ".model"]
            for card in cards:
                numbers = re.findall(r"(?<=[ =])[-+]?\d[\d.]*(?:e[-+]?\d+)?\b", card)
                found["json"][f"/{card.split()[0 if card[0] != '.' else 1]}/trained"] = [float(x) for x in numbers]
    return found
