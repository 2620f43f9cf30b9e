"""Samples against single solves; statistics against known distributions; the same bytes everywhere."""

import json
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest

import circuitsim
from circuitsim import Circuit, loads
from circuitsim.errors import UsageError
from circuitsim.tolerance.montecarlo import BLOCK, deviations
from circuitsim.tolerance.spread import parse_tolerance, spread_of

CLIPPER = "clipper\nV1 in 0 3\nR1 in out 1k\nR2 out 0 2k\nD1 out x\nR3 x y 100\nV2 y 0 1.5\n"


def line(n: int = 1) -> Circuit:
    return loads("t\n" + "\n".join(f"V{k} a{k} 0 1\nR{k} a{k} 0 1" for k in range(n))).circuit


def test_samples_are_those_of_single_solves() -> None:
    deck = circuitsim.loads(CLIPPER)
    tolerances = ["R*=5%", "V?=10%,normal", "R*=2%,lot"]
    rows: list[np.ndarray] = []
    found = circuitsim.montecarlo(
        deck, tolerances, "v(out) i(D1) p(R3)", BLOCK + 40, seed=3, rows=lambda names, values: rows.append(values)
    )
    spread = spread_of(deck, [parse_tolerance(t) for t in tolerances])
    table = np.concatenate(rows)
    assert table.shape == (BLOCK + 40, 3)
    for s in (0, 17, 900, BLOCK + 5):
        block, count = divmod(s, BLOCK)[0], BLOCK if s < BLOCK else 40
        values = spread.values(deviations(spread, 3, block, count, False))[s % BLOCK]
        point = circuitsim.solve(deck.with_values(dict(zip(spread.names, values.tolist()))))
        assert table[s] == pytest.approx([point["out"], point.current("D1"), point.power("R3")], rel=1e-12)
    assert found["i(D1)"].mean == pytest.approx(table[:, 1].mean(), rel=1e-12)
    assert found["v(out)"].deviation == pytest.approx(table[:, 0].std(ddof=1), rel=1e-12)
    assert found["v(out)"].quantiles[0.5].value == np.sort(table[:, 0])[(BLOCK + 40 + 1) // 2 - 1]
    assert found.worst < 1e-9 and found.failures == 0


def test_the_same_bytes_whatever_the_workers() -> None:
    deck = circuitsim.loads(CLIPPER)

    def text(**how) -> str:
        args = (deck, ["R*=5%", "V1=10%,truncated"], "v(out) i(D1)", 20_000, ["v(out)<1.6"], 1, True)
        return json.dumps(circuitsim.montecarlo(*args, **how).to_dict())

    expected = text(workers=1)
    assert text() == expected
    assert text(workers=2) == expected
    with ThreadPoolExecutor(3) as threads:
        assert text(executor=threads) == expected
    with ProcessPoolExecutor(1) as processes:
        assert text(executor=processes) == expected
    assert '"yield"' in expected


def test_a_uniform_source_has_uniform_quantiles() -> None:
    found = circuitsim.montecarlo(line(), ["V0=10%"], "v(a0)", 60_000, ["v(a0)<1.05"])
    quantity = found["v(a0)"]
    assert quantity.mean == pytest.approx(1.0, abs=4 * quantity.mean_error)
    assert quantity.deviation == pytest.approx(0.1 / np.sqrt(3), rel=0.02)
    for probability, (low, value, high) in quantity.quantiles.items():
        exact = 0.9 + 0.2 * probability
        assert low - 0.001 < exact < high + 0.001 and low < value < high
    assert found.yield_ is not None and found.yield_.low - 0.002 < 0.75 < found.yield_.high + 0.002
    assert quantity.contributions[0] == ("V0", pytest.approx(1.0, abs=1e-9))


def test_lots_deviate_together_and_the_last_own_tolerance_counts() -> None:
    c = loads("divider\nV1 in 0 2\nR1 in out 1000\nR2 out 0 1000\n").circuit
    together = circuitsim.montecarlo(c, ["R*=20%,lot"], "v(out) i(V1)", 2000)
    assert together["v(out)"].deviation < 1e-12 < 1e-5 < together["i(V1)"].deviation
    spread = spread_of(c, [parse_tolerance(t) for t in ("R*=5%", "R1=1%", "V1=0.1")])
    by_name = dict(zip(spread.variables, spread.amount.tolist()))
    assert by_name == {"R1": 0.01, "R2": 0.05, "V1": 0.1}
    assert spread.values(np.array([0.1, 0.01, -0.05])).tolist() == [2.1, 1010.0, 950.0]


def test_latin_hypercube_takes_every_stratum_once() -> None:
    spread = spread_of(line(3), [parse_tolerance("V*=10%")])
    x = deviations(spread, 0, 5, 256, True)
    strata = np.floor((x / 0.1 + 1.0) / 2.0 * 256).astype(int)
    assert (np.sort(strata, axis=0) == np.arange(256)[:, None]).all()
    plain, latin = (
        np.std(
            [
                circuitsim.montecarlo(line(), ["V0=10%"], "v(a0)", 256, seed=s, latin=how)["v(a0)"].mean
                for s in range(20)
            ]
        )
        for how in (False, True)
    )
    assert latin < 0.05 * plain


def test_samples_without_a_steady_state_are_counted() -> None:
    c = loads("two sources\nV1 a 0 1\nD1 a b\nV2 b 0 1.05\nR1 b 0 1\n").circuit
    found = circuitsim.montecarlo(c, ["V1=10%"], "v(a)", 4000, ["v(a)>0"])
    assert found.failures == pytest.approx(1000, abs=150)
    assert found.yield_ is not None and found.yield_.value == pytest.approx(0.75, abs=0.04)
    assert found.samples == 4000 and found["v(a)"].most <= 1.05


@pytest.mark.parametrize(
    ("cards", "tolerances", "node", "deviation", "shares"),
    [
        ("I1 0 a 1\nI2 0 a 1\nR1 a 0 1", ["I1=1%", "I2=2%"], "a", 0.05**0.5 / 10 / 3**0.5, {"I1": 0.2, "I2": 0.8}),
        (
            "V1 in 0 5\nR1 in a 1k\nD1 a 0 z\n.model z D(ron=1 vfwd=0.6 roff=1g)",
            ["D1.vfwd=10%"],
            "a",
            0.06 / 3**0.5,
            {"D1.vfwd": 1.0},
        ),
    ],
)
def test_contributions_are_the_shares_of_the_variance(
    cards: str, tolerances: list[str], node: str, deviation: float, shares: dict[str, float]
) -> None:
    found = circuitsim.montecarlo(loads(f"t\n{cards}\n"), tolerances, f"v({node})", 8_000)[f"v({node})"]
    assert found.deviation == pytest.approx(deviation, rel=0.03) and found.unexplained < 0.02
    assert dict(found.contributions) == pytest.approx(shares, abs=0.02)


@pytest.mark.parametrize(
    ("specification", "holds"),
    [("0.5<v(a0)<2", True), ("2>v(a0)>=0.5", True), ("v(a0)<1m", False), ("1k<v(a0)", False), ("v(a0)", None)]
    + [(wrong, None) for wrong in ("1<v(a0)>2", "2<v(a0)<1", "x<v(a0)<y")],
)
def test_specifications(specification: str, holds: bool | None) -> None:
    if holds is None:
        with pytest.raises(UsageError, match="--spec"):
            circuitsim.montecarlo(line(), ["V0=1%"], "v(a0)", 10, [specification])
        return
    found = circuitsim.montecarlo(line(), ["V0=1%"], "v(a0)", 10, [specification])
    assert found.yield_ is not None and found.yield_.value == holds
