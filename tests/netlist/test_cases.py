"""What decks say, and what ngspice says of them: the tables of `cases.toml`."""

import tomllib
from pathlib import Path

import pytest

from circuitsim import Deck, dumps, loads, solve, sweep

TABLES: dict[str, dict[str, str]] = tomllib.loads((Path(__file__).parent / "cases.toml").read_text(encoding="utf-8"))


def rows(name: str) -> list[tuple[str, str]]:
    """Answers of a table, with the cards that have them."""
    table = TABLES[name]
    found = []
    for row in table["rows"].strip("\n").split("\n"):
        answer, cards = row.split(" | ") if "answer" not in table else (table["answer"].replace("@", row), row)
        found.append((answer, table["deck"].replace("@", cards).replace(" / ", "\n") + "\n"))
    return found


def said(deck: Deck, ask: str, columns: str | None) -> str:
    """The answer to one question."""
    if ask == "cards":
        lines = [line for line in dumps(deck.circuit).split("\n")[1:-3] if line[:1] != "*"]
        return "; ".join(lines)
    if ask == "axes":
        axes = sweep(deck, columns="v(a)").axes
        return "; ".join(f"{name}: {' '.join(f'{x:.12g}' for x in values)}" for name, values in axes.items())
    if ask == "sweep":
        found = sweep(deck, columns=columns)
        return " ".join(f"{x:.12g}" for x in found[list(found.columns)[-1]])
    if ask in ("warnings", "notes"):
        return " ".join(problem.kind for problem in (deck.problems if ask == "warnings" else deck.notes))
    if ask in ("title", "nodes"):
        return deck.title if ask == "title" else deck.node_names[1]
    if ask[1] == "(":
        point = solve(deck)
        return repr(point[ask[2:-1]] if ask[0] == "v" else point.current(ask[2:-1]))
    return repr(deck[ask].value)


def words(answer: str) -> list[str]:
    """Its words, numbers to fourteen digits."""
    found = []
    for word in answer.split():
        try:
            found.append(f"{float(word):.14g}")
        except ValueError:
            found.append(word)
    return found


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.filterwarnings("ignore::circuitsim.DeckWarning")
def test_answers(name: str, end: str) -> None:
    table, wrong = TABLES[name], []
    for answer, text in rows(name):
        deck = loads(text.replace("\n", end))
        found = " ".join(
            word for word in (said(deck, ask, table.get("columns")) for ask in table["ask"].split()) if word
        )
        ours, theirs = words(found), words(answer)
        theirs *= len(ours) if len(theirs) == 1 and ours else 1  # one for all
        wrong += [] if ours == theirs else [(text, answer, found)]
    assert wrong == []
