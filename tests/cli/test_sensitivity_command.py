"""``circuitsim sensitivity``: outputs from options and cards, formats, refusals."""

from __future__ import annotations

import json

import pytest

from circuitsim.cli import main

DECK = "clamp\nV1 in 0 10\nR1 in out 1k\nR2 out 0 3k\nD1 out x\nR3 x 0 2k\n"


@pytest.fixture
def deck(tmp_path):
    path = tmp_path / "clamp.cir"
    path.write_text(DECK + ".sens v(out) i(D1)\n.tf v(out) V1\n")
    return str(path)


def test_cards_say_what_is_asked(deck, capsys):
    assert main(["sensitivity", deck, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found["outputs"]) == ["v(out)", "i(D1)"]
    assert found["transfer"][0]["output_resistance"]["value"] == pytest.approx(1 / (1e-3 + 1 / 3e3 + 1 / 2e3))
    assert found["error"] < 1e-12


def test_options_and_csv(deck, capsys):
    assert main(["sensitivity", deck, "--observe", "v(x)", "--format", "csv", "--top", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and lines[1].startswith("v(x),V1,10.0,V,0.5454")


def test_a_kink_is_shown_and_noted(tmp_path, capsys):
    path = tmp_path / "kink.cir"
    path.write_text("kink\nV1 in 0 1\nR1 in out 1k\nD1 out x\nV2 x 0 1\n")
    assert main(["sensitivity", str(path), "--observe", "v(out)", "--input", "V1"]) == 0
    said = capsys.readouterr()
    (row,) = [line.split() for line in said.out.splitlines() if line.startswith("v(out)  V1")]
    assert row == ["v(out)", "V1", "1", "V", "-", "-", "1", "0", "yes"]
    assert "derivatives differ on both sides" in said.err


def test_picture(deck, tmp_path):
    picture = tmp_path / "bars.svg"
    assert main(["sensitivity", deck, "--plot", str(picture), "--output", str(tmp_path / "table.txt")]) == 0
    drawn = picture.read_text(encoding="utf-8")
    assert "change of v(out) for 1 %" in drawn and "mV" in drawn


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--observe", "v(nowhere)"], "no node is called"),
        (["--observe", "v(out)", "--input", "R1"], "the input is an independent source"),
        (["--top", "-1"], "--top must be at least 0"),
    ],
)
def test_refusals(deck, options, message, capsys):
    assert main(["sensitivity", deck, *options]) == 2
    assert message in capsys.readouterr().err


def test_without_an_output(tmp_path, capsys):
    path = tmp_path / "plain.cir"
    path.write_text(DECK)
    assert main(["sensitivity", str(path)]) == 2
    assert "give --observe" in capsys.readouterr().err


def test_solve_names_the_command(deck, capsys):
    assert main(["solve", deck]) == 0
    assert "circuitsim run also does .sens, .tf" in capsys.readouterr().err
