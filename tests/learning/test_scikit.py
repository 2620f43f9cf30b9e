"""`CircuitRegressor` and `CircuitClassifier` keep scikit-learn's contract, and learn."""

from __future__ import annotations

import importlib
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split
from sklearn.utils.estimator_checks import parametrize_with_checks

import circuitsim
from circuitsim import netlist
from circuitsim.errors import TopologyError
from circuitsim.learning.scikit import CircuitClassifier, CircuitRegressor, rectifier_network
from circuitsim.netlist.roles import make_roles

# No exclusions: every check of scikit-learn has to pass.
SMALL = {"hidden": 3, "max_iter": 30, "batch_size": 50, "learning_rate_init": 0.05, "random_state": 0}


@parametrize_with_checks([CircuitRegressor(**SMALL), CircuitClassifier(**SMALL)])
def test_scikit_learn_agrees(estimator, check) -> None:
    check(estimator)


def test_iris() -> None:
    x, y = load_iris(return_X_y=True)
    train, test, y_train, y_test = train_test_split(x, y, random_state=0, stratify=y)
    model = CircuitClassifier(max_iter=25, random_state=0).fit(train, y_train)
    assert model.score(test, y_test) > 0.9
    assert circuitsim.solve(model.trained_).certificate.certified
    probability = model.predict_proba(test)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    assert (model.classes_[probability.argmax(axis=1)] == model.predict(test)).all()
    again = clone(model).fit(train, y_train)
    assert (again.decision_function(test) == model.decision_function(test)).all()


def test_a_circuit_of_ones_own() -> None:
    """A divider learns y = x/2; a single feature, no negatives."""
    circuit = netlist.loads("divider\nV1 in 0 1\nR1 in out 1k\nR2 out 0 5k\n")
    roles = make_roles(circuit, "V1", "out", "R* min=10 max=100k")
    x = np.linspace(-1, 1, 20)[:, None]
    model = CircuitRegressor(circuit, roles, gain=1.0, swing=0.5, max_iter=80, random_state=0).fit(x, x[:, 0])
    assert model.score(x, x[:, 0]) > 0.999
    assert model.trained_["R1"].value == pytest.approx(model.trained_["R2"].value, rel=0.02)
    with pytest.raises(TopologyError, match="1 inputs and 1 outputs; the data need 3"):
        CircuitRegressor(circuit, roles).fit(np.zeros((4, 3)), np.zeros(4))
    with pytest.raises(TopologyError, match="both a circuit and its roles"):
        CircuitRegressor(circuit).fit(x, x[:, 0])


def test_several_targets() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    y = np.stack([np.maximum(x[:, 0], 0), x[:, 1]], axis=1)
    model = CircuitRegressor(hidden=6, max_iter=60, random_state=0).fit(x, y)
    assert model.predict(x).shape == (60, 2) and model.score(x, y) > 0.8


def test_the_network_has_its_diodes_between_free_nodes() -> None:
    circuit, roles = rectifier_network(3, 4, 2, np.random.default_rng(0))
    assert len(roles.inputs) == 6 and len(roles.outputs) == 2 and len(roles.trainable) == 4 * 8 + 4 + 2 * 6
    sources = {element.first for element in circuit if element.kind == "voltage source"} | {"0"}
    diodes = [element for element in circuit if element.kind == "ideal diode"]
    assert len(diodes) == 4 and all({d.first, d.second}.isdisjoint(sources) for d in diodes)


@pytest.mark.parametrize(
    ("package", "estimator"),
    [
        ("circuitsim.boltzmann", "ContrastiveDivergenceRBM"),
        ("circuitsim.ffebm", "ChainClassifier"),
        ("circuitsim.layered", "DRNClassifier"),
        ("circuitsim.learning", "CircuitRegressor"),
    ],
)
def test_without_scikit_learn_the_installation_command_is_named(monkeypatch, package, estimator) -> None:
    parent = importlib.import_module(package)
    home = getattr(parent, estimator).__module__
    for name in [name for name in sys.modules if name.split(".")[0] == "sklearn"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "circuitsim._scikit")
    monkeypatch.delitem(sys.modules, home)
    monkeypatch.delattr(parent, home.split(".")[-1])
    with pytest.raises(ImportError, match=r"need scikit-learn: pip install 'circuitsim-exact\[learn\]'"):
        getattr(parent, estimator)


def test_one_class_alone_is_an_error() -> None:
    x = np.arange(6.0)[:, None]
    with pytest.raises(ValueError, match="at least two classes"):
        CircuitClassifier(max_iter=1).fit(x, np.ones(6))
    with pytest.raises(ValueError, match="at least two classes"):
        CircuitClassifier(max_iter=1).partial_fit(x, np.ones(6), classes=[1.0])
