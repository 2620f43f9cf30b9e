"""Layered networks cut into blocks: the same layers, coupled within a block and feedforward between blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from circuitsim.blocks.protocol import check_named
from circuitsim.datasets.images import COLOUR, SIDE
from circuitsim.errors import UsageError
from circuitsim.training.presets import published

Tables = list[dict[str, Any]]


@dataclass(frozen=True)
class LayerSizes:
    """A deep network as Nest & Ernoult (2024) describe theirs, before it is cut.

    Parameters
    ----------
    channels : sequence of int
        Of the convolutional layers; may be empty.
    pool : sequence of int
        Numbers (from 1) of the layers whose convolution is pooled.
    dense : sequence of int
        Units of the fully connected layers after them.
    activation : str
    clamped : "all", "inner" or sequence of int
        Which blocks have a clamped last layer: all, none, or those with these numbers (from 1).
    batch_norm : "first" or "all"
        In which blocks' first layers batch normalisation follows convolution and pooling.
    readout_norm : bool
        Whether the readout's input is batch-normalised.
    pooling : "max" or "soft"
        Of the stages; within blocks maxima are taken.
    variance, spread : float
        Of initial kernels (Gaussian orthogonal ensemble) and of the blocks' dense weights.
    gain, bias : float, optional
        Of fully connected blocks, instead of the spread, as `DeepHopfieldBlock` takes them.
    free, nudged : int
        Sweeps.
    """

    channels: Sequence[int] = ()
    pool: Sequence[int] = ()
    dense: Sequence[int] = ()
    activation: str = "ernoult"
    clamped: str | Sequence[int] = "all"
    batch_norm: str = "first"
    readout_norm: bool = False
    pooling: str = "max"
    variance: float = 1e-3
    spread: float = 0.5
    gain: float | None = None
    bias: float = 0.0
    free: int = 20
    nudged: int = 10
    normalise: dict[str, Any] = field(default_factory=dict)

    def cut(self, image: Sequence[int], blocks: Sequence[int], classes: int) -> Tables:
        """Descriptions of the elements, cut into blocks of a number of layers.

        Parameters
        ----------
        image : sequence of int
            Rows, columns and channels of a sample; one number for rows of features.
        blocks : sequence of int
            Layers of each block, together all layers.
        classes : int
            Outputs of the readout.

        Raises
        ------
        UsageError
            The blocks do not add up to the layers.
        """
        shapes = [tuple(image)]
        for layer, channels in enumerate(self.channels, start=1):
            rows, columns = (side // 2 if layer in self.pool else side for side in shapes[-1][:2])
            shapes.append((rows, columns, channels))
        shapes += [(units,) for units in self.dense]
        if sum(blocks) != len(shapes) - 1 or any(size < 1 for size in blocks):
            raise UsageError(
                f"blocks of {list(blocks)} layers do not make up the {len(shapes) - 1} layers of the network"
            )
        entrance = {"shape": list(image)} if self.channels else {}
        tables: Tables = [{"kind": "normalise", **entrance, **self.normalise}]
        for number, size in enumerate(blocks, start=1):
            first = 1 + sum(blocks[: number - 1])
            before, shape, inside = shapes[first - 1], shapes[first], shapes[first : first + size]
            if len(shape) == 3:
                sizes = {"inputs": before[2], "outputs": shape[2], "variance": self.variance}
                tables.append({"kind": "conv2d", **sizes})
                if first in self.pool:
                    tables.append({"kind": f"{self.pooling}-pool"})
            else:
                tables.append({"kind": "linear", "inputs": math.prod(before), "outputs": shape[0]})
            if number == 1 or self.batch_norm == "all":
                tables.append({"kind": "batch-norm", "channels": shape[-1]})
            dense, images = [s[0] for s in inside if len(s) == 1], [s[2] for s in inside if len(s) == 3]
            units: dict[str, Any] = {"kind": "deep-hopfield", "layers": dense, "gain": self.gain, "bias": self.bias}
            if images:
                pool = [layer in self.pool for layer in range(first + 1, first + len(images))]
                units = {"kind": "convolutional-hopfield", "image": list(shape), "channels": images[1:], "pool": pool}
                units |= {"dense": dense, "variance": self.variance}
            clamped = self.clamped == "all" or (not isinstance(self.clamped, str) and number in self.clamped)
            units |= {"activation": self.activation, "clamped": clamped, "spread": self.spread}
            tables.append({**units, "sweeps": {"free": self.free, "nudged": self.nudged}})
        if self.readout_norm:
            tables.append({"kind": "batch-norm", "channels": shapes[-1][-1]})
        return [*tables, {"kind": "readout", "inputs": math.prod(shapes[-1]), "outputs": classes}]


def published_layers(name: str, divisor: int = 1, **change: Any) -> LayerSizes:
    """A network of Nest & Ernoult (2024), Table 5, by name; widths over ``divisor``, some of it changed."""
    layers = {**published("chains")["layers"][name], **change}
    for widths in ("channels", "dense"):
        layers[widths] = [width // divisor for width in layers.get(widths, ())]
    # With fewer channels a kernel's sum has fewer terms; the variance grows so that the sums have equal size.
    layers["variance"] *= divisor
    return LayerSizes(**layers)


def preset(name: str, divisor: int = 1) -> dict[str, Any]:
    """A published configuration as the options of ``circuitsim train ffebm``; widths over ``divisor``.

    Raises
    ------
    UsageError
        There is none of that name.
    """
    table = published("ffebm")
    check_named(preset=(name, table))
    entry = {key: value for key, value in table[name].items() if key != "published"}
    pixels = published("chains")["pixels"][entry["dataset"]]
    layers = published_layers(entry.pop("layers"), divisor, normalise=pixels, **entry.pop("change", {}))
    elements = layers.cut((SIDE, SIDE, 3), entry.pop("blocks"), COLOUR[entry["dataset"]].classes)
    return {**entry, "elements": elements}
