"""``circuitsim train`` with a family that it has never seen: what another model has to bring, and nothing more."""

import sys
import types

import numpy as np
import pytest
from quadratic import NoisyQuadratic

from circuitsim.cli import main
from circuitsim.cli.models import MODELS, family_options, own_options
from circuitsim.training import SGD, TrainingPlan
from circuitsim.training.experiment import Experiment


@pytest.fixture
def toy(monkeypatch):
    """A family named toy, with one option of its own."""
    module = types.ModuleType("toy_family")
    module.OPTIONS = own_options("epochs=3 batch=5 lr=0.1", "*skip_every N = 0  skip every so many steps")
    module.EPILOG, module.built = "", []

    def build(options):
        module.built.append(options.recorded())
        model = NoisyQuadratic(skip_every=options.skip_every)
        data = np.random.default_rng(options.seed).standard_normal((10, 3))
        plan = TrainingPlan(options.epochs, options.batch, options.seed, SGD(options.lr))
        return Experiment(
            model,
            (data,),
            plan,
            "toy: a point",
            {"model.txt": lambda path: path.write_text("a point")},
            lambda h: [f"last loss {h.rows[-1]['loss']:.3f}"],
            {"picture.txt": lambda path: path.write_text("drawn")},
            notes=["n"],
        )

    module.build = build
    monkeypatch.setitem(sys.modules, "circuitsim.cli.models.toy", module)
    monkeypatch.setitem(MODELS, "toy", "a point on a parabola")
    return module


def test_a_new_family_is_one_module_and_one_row(toy, tmp_path, capsys):
    assert main(["train", "toy", "--seed", "4", "--skip-every", "4", "--out", str(tmp_path / "o")]) == 0
    printed = capsys.readouterr()
    assert toy.built == [
        {
            "model": "toy",
            "seed": 4,
            "evaluate_every": 1,
            "checkpoint_seconds": 30.0,
            "epochs": 3,
            "batch": 5,
            "lr": 0.1,
            "skip_every": 4,
        }
    ]
    assert printed.out.startswith("toy: a point\nlast loss ")
    assert printed.out.endswith(f"written to {tmp_path}/o: model.txt, learning.png, picture.txt, history, checkpoint\n")
    assert printed.err == "note: n\nnote: 1 steps were skipped because their gradients were not certified\n"
    assert (tmp_path / "o" / "picture.txt").read_text() == "drawn"


def test_interrupted_without_out_nothing_is_saved_and_it_says_so(toy, tmp_path, monkeypatch, capsys):
    import signal

    monkeypatch.chdir(tmp_path)
    real = NoisyQuadratic.gradient

    def interrupting(self, batch, rng):
        signal.raise_signal(signal.SIGINT)
        return real(self, batch, rng)

    monkeypatch.setattr(NoisyQuadratic, "gradient", interrupting)
    assert main(["train", "toy"]) == 130
    assert capsys.readouterr().err == "note: n\ninterrupted after 1 updates: nothing saved (no --out)\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("family", ["circuit", "drn", "dhn", "ffebm", "rbm", "resume"])
def test_a_help_fits_on_a_page_and_help_all_has_every_option(family: str, capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = {}
    for word in ("--help", "--help-all"):
        with pytest.raises(SystemExit) as caught:
            main(["train", family, word])
        assert caught.value.code == 0
        shown[word] = capsys.readouterr().out
    assert len(shown["--help"].splitlines()) <= 45
    if family != "resume":
        flags = {one.flag or f"--{name.replace('_', '-')}" for name, one in family_options(family).items()}
        words = set(shown["--help-all"].replace(",", " ").split())
        assert flags - {"deck", "--elements"} <= words  # a positional argument, and what a file alone can say


def test_an_option_is_a_word_a_setting_or_a_line_of_a_file(toy, tmp_path, capsys) -> None:
    (tmp_path / "my.toml").write_text("epochs = 1\nskip-every = 3\nlr = 0.5\n")
    for words in (
        ["--epochs", "2", "--skip-every", "3", "--lr", "50m"],
        ["epochs=2", "skip-every=3", "lr=0.05"],
        ["--config", str(tmp_path / "my.toml"), "epochs=2", "--lr", "0.05"],
        [f"config={tmp_path / 'my.toml'}", "--lr", "9", "lr=50m", "--epochs=2"],
    ):
        assert main(["train", "toy", *words]) == 0
    assert all(made == toy.built[0] for made in toy.built) and toy.built[0]["lr"] == 0.05
    capsys.readouterr()
    for word, message in (
        ("lr=fast", "lr: 'fast' is not a finite number"),
        ("epochs=1.5", "epochs: '1.5' is not a whole number"),
        ("no-pictures=maybe", "no_pictures: 'maybe' is not true or false"),
        ("epoch=3", "unrecognized arguments: --epoch=3\n    hint: did you mean --epochs?"),
    ):
        assert main(["train", "toy", word]) == 2
        assert message in capsys.readouterr().err
