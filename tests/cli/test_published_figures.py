"""A paper's figure stands beside runs on its own data and networks only, in pages and pictures of every study."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import numpy as np
import pytest

from circuitsim.cli.studies import split, table1, table2, table3

ROW = {
    "epoch": 1,
    "error": 0.5,
    "test_error": 0.4,
    "test_top5_error": 0.2,
    "train_seconds": 1.0,
    "test_seconds": 1.0,
    "seconds": 1.0,
}


def of_table1(dataset: str) -> str:
    return table1.page_of([table1.DrnRun("xs", "ep", 0, dataset, [ROW])])


def of_table3(dataset: str) -> str:
    return table3._page([table3.DhnRun("dhn-1h", 0, dataset, [ROW], np.array([3]), np.array([2]))])


def of_table2(size: str, samples: int | None) -> str:
    return table2.page_of([table2.TrainedRun("cifar100", 12, "ep", 0, [ROW])], size, samples)


def of_split(size: str, dataset: str) -> str:
    row = {"layers": 6, "block": 6, "accuracy": 50.0, "seconds": 1.0, "dataset": dataset, "epochs": 1, "width": 8}
    return split._page(Namespace(size=size), [{**row, "method": method} for method in ("ep", "bp")])


@pytest.mark.parametrize(
    ("page", "same", "other", "figures"),
    [
        (of_table1, [("mnist",)], [("digits",), ("/data/faces",)], ["3.46 ± 0.07", "| 180 |"]),
        (of_table3, [("mnist",)], [("digits",)], ["1.79 ± 0.06"]),
        (of_table2, [("paper", None)], [("small", None), ("paper", 500)], ["69.3 ± 0.2", "89.9 ± 0.5", "4:33"]),
        (of_split, [("paper", "cifar10")], [("small", "digits"), ("small", "mnist")], ["88.8", "87.3"]),
    ],
)
def test_published_figures(page: Any, same: list[Any], other: list[Any], figures: list[str]) -> None:
    for given in same:
        assert all(figure in page(*given) for figure in figures)
    for given in other:
        assert not any(figure in page(*given) for figure in figures)
        assert "| – |" in page(*given) and "beside" in page(*given)
