"""A paper's figure stands beside runs on its own data and networks only, in pages and pictures of every study."""

from argparse import Namespace
from typing import Any

import pytest

from circuitsim.cli.reproduce import SPLIT, TABLE1, TABLE2, TABLE3, Run, Study

ROW = {"epoch": 1, "error": 0.5, "test_error": 0.4, "test_top5_error": 0.2, "residual": 1e-6}
ROW |= {"train_seconds": 1.0, "test_seconds": 1.0, "seconds": 1.0}
SWEEPS = {f"convergence_sweeps_{state}_{of}": 3.0 for state in ("free", "nudged") for of in ("median", "max")}


@pytest.mark.parametrize(
    ("study", "key", "same", "other", "figures"),
    [
        (TABLE1, ("xs", "ep"), [("mnist", {})], [("digits", {}), ("/data/faces", {})], ["3.46 ± 0.07", "| 180 |"]),
        (TABLE3, ("1h", "dhn"), [("mnist", {})], [("digits", {})], ["1.79 ± 0.06"]),
        (TABLE3, ("1h", "drn"), [("mnist", {})], [("digits", {})], ["1.57 ± 0.07"]),
        (
            TABLE2,
            ("cifar100", 12, "ep"),
            [("cifar100", {"size": "paper", "samples": None})],
            [("cifar100", {"size": "small", "samples": None}), ("cifar100", {"size": "paper", "samples": 500})],
            ["69.3 ± 0.2", "89.9 ± 0.5", "4:33"],
        ),
        (SPLIT, (6, 6, "ep"), [("cifar10", {"size": "paper"})], [("digits", {"size": "small"})], ["88.8"]),
    ],
)
def test_published_figures(study: Study, key: Any, same: list[Any], other: list[Any], figures: list[str]) -> None:
    for dataset, options in [*same, *other]:
        run = Run(dict(zip(study.axes, key)), 0, dataset, [ROW], SWEEPS)
        args = Namespace(**options)
        page = "\n".join(study.findings(args, [run]).page)
        comparable = (dataset, options) in same
        assert all((figure in page) is comparable for figure in figures)
        assert ("| – |" in page) is not comparable and "beside" in page
        assert (study.published(args, [run]) is not None) is comparable
