"""Published chains of blocks: whole as in the tables, running at a sixteenth of the width."""

import numpy as np
import pytest

from circuitsim.errors import UsageError
from circuitsim.ffebm import build_chain
from circuitsim.ffebm.architectures import LayerSizes, preset
from circuitsim.training.presets import published

NAMES = list(published("ffebm"))


@pytest.mark.parametrize("name", NAMES)
def test_published_configurations_are_whole(name: str) -> None:
    """Layers, channels and pooling as the paper's Table 5 has them, whatever the cut."""
    options = preset(name)
    width: list[int] = []
    halved = 0
    for table in options["elements"]:
        if table["kind"] == "conv2d":
            width.append(table["outputs"])
        elif table["kind"] == "soft-pool":
            halved += 1
        elif table["kind"] == "convolutional-hopfield":
            width += [*table["channels"], *table["dense"]]
            halved += sum(table["pool"])
            assert table["image"][2] == width[-1 - len(table["channels"]) - len(table["dense"])]
    layers = published("chains")["layers"][published("ffebm")[name]["layers"]]
    assert width == [*layers["channels"], *layers.get("dense", [])]
    assert halved == len(layers["pool"])
    assert options["lr_final"] < options["lr"]


@pytest.mark.parametrize("name", ["l6-bs6", "l6-bs2", "l12-bs3", "l15-imagenet32"])
def test_published_configurations_run_a_few_batches(name: str) -> None:
    """Of images of the right shape, at a sixteenth of the width and a few sweeps; the cut and the flow are the same."""
    options = preset(name)
    entry = published("ffebm")[name]
    table = published("chains")["layers"][entry["layers"]]
    layers = LayerSizes(
        **{
            **table,
            "channels": [c // 16 for c in table["channels"]],
            "dense": [d // 16 for d in table.get("dense", [])],
            "free": 4,
            "nudged": 3,
        }
    )
    classes = options["elements"][-1]["outputs"]
    chain = build_chain(
        layers.cut((32, 32, 3), entry["blocks"], classes), chaining={"beta": 0.2, "scale_errors": False}
    )
    rng = np.random.default_rng(0)
    x, y = rng.integers(256, size=(12, 3072), dtype=np.uint8), rng.integers(classes, size=12)
    chain.fit(x, y, epochs=2, batch=4, rate=1e-3)
    row = chain.history.rows[-1]
    assert row["updates"] == 6
    assert np.isfinite(row["loss"])


def test_blocks_that_do_not_add_up_are_refused() -> None:
    with pytest.raises(UsageError, match="do not make up the 3 layers"):
        LayerSizes(dense=[4, 4, 4]).cut((8,), [2, 2], 3)
