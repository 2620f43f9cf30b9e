"""A convolutional network on MNIST whose last layer is a circuit, beside one whose last layer is linear.

    python benchmarks/learning/circuit_head.py ../shared/data/mnist [--epochs 3] > results/learning/circuit_head.md

Needs PyTorch. Two convolutions of 5 × 5 with 8 and 16 channels. The last layer has 32 inputs (16 channels, each
averaged over the upper and the lower half of the image), normalised, and doubled to +x and −x for the circuit of
resistors and diodes: conductances have no sign. Both networks learn with Adam.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

from circuitsim import CircuitBlock
from circuitsim.datasets import read_idx
from circuitsim.learning.scikit import rectifier_network
from circuitsim.torch import EnergyLayer

FEATURES, HIDDEN, CLASSES, BATCH = 32, 16, 10, 64
GAIN, TEMPERATURE = 4.0, 0.1


class CircuitHead(nn.Module):
    """Features as voltages ±gain · x; outputs over a temperature as logits."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        circuit, roles = rectifier_network(FEATURES, HIDDEN, CLASSES, np.random.default_rng(seed))
        self.circuit = EnergyLayer(CircuitBlock(circuit, roles))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, classes) logits."""
        volts = GAIN * x
        return self.circuit(torch.cat([volts, -volts], dim=1)) / TEMPERATURE


def network(head: nn.Module) -> nn.Module:
    """Convolutions, then the head."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 5),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d((2, 1)),
        nn.Flatten(),
        nn.BatchNorm1d(FEATURES),
        head,
    )


def load(folder: Path, part: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Images in 0 … 1 and labels."""
    images, labels = (
        read_idx(next(folder.glob(f"{part}-{kind}*"))) for kind in ("images-idx3-ubyte", "labels-idx1-ubyte")
    )
    return torch.tensor(images[:, None].astype(np.float32) / 255.0), torch.tensor(labels.astype(np.int64))


def train(model: nn.Module, rates: list[dict], data: tuple[torch.Tensor, torch.Tensor], epochs: int) -> float:
    """Seconds of training."""
    begin = time.perf_counter()
    x, y = data
    adam = torch.optim.Adam(rates)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(adam, epochs * (len(x) // BATCH))
    for _ in range(epochs):
        for rows in torch.randperm(len(x))[: len(x) // BATCH * BATCH].split(BATCH):
            adam.zero_grad()
            nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
            adam.step()
            schedule.step()
            for module in model.modules():
                if isinstance(module, EnergyLayer):
                    module.project_()
    return time.perf_counter() - begin


@torch.no_grad()
def error(model: nn.Module, data: tuple[torch.Tensor, torch.Tensor]) -> float:
    """Share of wrong labels."""
    model.eval()
    wrong = sum(int((model(x).argmax(dim=1) != y).sum()) for x, y in zip(data[0].split(500), data[1].split(500)))
    return wrong / len(data[0])


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path, help="folder with MNIST's four idx files")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--samples", type=int, default=60_000)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    whole, test = load(chosen.folder, "train"), load(chosen.folder, "t10k")
    data = whole[0][: chosen.samples], whole[1][: chosen.samples]
    print(f"# MNIST, {len(data[0])} images, {chosen.epochs} epochs, seed {chosen.seed}\n")
    print(f"One thread; load {os.getloadavg()[0]:.1f}.\n\n| last layer | parameters | test error | training |")
    print("|---|---:|---:|---:|")
    for name, make in (("circuit", CircuitHead), ("linear", lambda seed: nn.Linear(FEATURES, CLASSES))):
        torch.manual_seed(chosen.seed)
        head = make(chosen.seed)
        model = network(head)
        own = [p for module in head.modules() if isinstance(module, EnergyLayer) for p in module.parameters()]
        other = [p for p in model.parameters() if not any(p is mine for mine in own)]
        rates = [{"params": other, "lr": 2e-3}]
        if own:
            rates.append({"params": own, "lr": 0.02 * float(own[0].detach().mean())})
        seconds = train(model, rates, data, chosen.epochs)
        count = sum(p.numel() for p in head.parameters())
        print(f"| {name} | {count} | {100 * error(model, test):.2f} % | {seconds:.0f} s |", flush=True)


if __name__ == "__main__":
    main()
