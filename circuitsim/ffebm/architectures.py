"""Layered networks cut into blocks: the same layers, coupled within a block and feedforward between blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

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
        """Descriptions of the elements, cut into blocks of so many layers.

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
        count = len(self.channels) + len(self.dense)
        if sum(blocks) != count or any(size < 1 for size in blocks):
            raise UsageError(f"blocks of {list(blocks)} layers do not make up the {count} layers of the network")
        shape = tuple(image)
        tables: Tables = [self._entrance(shape)]
        start = 0
        for number, size in enumerate(blocks, start=1):
            stages, block, shape = self._block(number, range(start, start + size), shape)
            tables += [*stages, block]
            start += size
        if self.readout_norm:
            tables.append({"kind": "batch-norm", "channels": shape[-1]})
        return [*tables, {"kind": "readout", "inputs": _units(shape), "outputs": classes}]

    def _entrance(self, shape: tuple[int, ...]) -> dict[str, Any]:
        return {"kind": "normalise", **({"shape": list(shape)} if self.channels else {}), **self.normalise}

    def _block(
        self, number: int, layers: range, shape: tuple[int, ...]
    ) -> tuple[Tables, dict[str, Any], tuple[int, ...]]:
        """The stages that feed a block, the block, and the shape of its last layer."""
        convolutions = len(self.channels)
        first = layers[0]
        stages: Tables = []
        if first < convolutions:
            inside = shape[2]
            stages.append(
                {"kind": "conv2d", "inputs": inside, "outputs": self.channels[first], "variance": self.variance}
            )
            shape = (*shape[:2], self.channels[first])
            if first + 1 in self.pool:
                stages.append({"kind": f"{self.pooling}-pool"})
                shape = (shape[0] // 2, shape[1] // 2, shape[2])
        else:
            units = self.dense[first - convolutions]
            stages.append({"kind": "linear", "inputs": _units(shape), "outputs": units})
            shape = (units,)
        if number == 1 or self.batch_norm == "all":
            stages.append({"kind": "batch-norm", "channels": shape[-1]})
        clamped = self.clamped == "all" or (not isinstance(self.clamped, str) and number in self.clamped)
        common = {
            "activation": self.activation,
            "clamped": clamped,
            "spread": self.spread,
            "sweeps": {"free": self.free, "nudged": self.nudged},
        }
        images = [layer for layer in layers[1:] if layer < convolutions]
        dense = [self.dense[layer - convolutions] for layer in layers[1:] if layer >= convolutions]
        if len(shape) == 1:
            return (
                stages,
                {
                    "kind": "deep-hopfield",
                    "layers": [shape[0], *dense],
                    "gain": self.gain,
                    "bias": self.bias,
                    **common,
                },
                tuple(dense or shape)[-1:],
            )
        pool = [layer + 1 in self.pool for layer in images]
        block = {
            "kind": "convolutional-hopfield",
            "image": list(shape),
            "channels": [self.channels[k] for k in images],
            "pool": pool,
            "dense": dense,
            "variance": self.variance,
            **common,
        }
        for layer, pooled in zip(images, pool, strict=True):
            rows, columns = (shape[0] // 2, shape[1] // 2) if pooled else shape[:2]
            shape = (rows, columns, self.channels[layer])
        return stages, block, (dense[-1],) if dense else shape


def _units(shape: Sequence[int]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total


def published_layers(name: str, divisor: int = 1, **change: Any) -> LayerSizes:
    """A network of Nest & Ernoult (2024), Table 5, by name; widths over ``divisor``, some of it changed."""
    layers = {**published("ffebm")["layers"][name], **change}
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
    names = [name for name, entry in table.items() if "layers" in entry]
    if name not in names:
        raise UsageError(f"there is no preset '{name}'; there are {', '.join(names)}")
    entry = {key: value for key, value in table[name].items() if key != "published"}
    layers = published_layers(
        entry.pop("layers"), divisor, normalise=table["pixels"][entry["dataset"]], **entry.pop("change", {})
    )
    classes = {"cifar10": 10, "cifar100": 100, "imagenet32": 1000}[entry["dataset"]]
    elements = layers.cut((32, 32, 3), entry.pop("blocks"), classes)
    return {**entry, "elements": elements}
