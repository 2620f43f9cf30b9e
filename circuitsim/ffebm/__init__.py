"""Feedforward-tied energy-based models (Nest & Ernoult 2024): digital stages and analog blocks in one chain."""

from circuitsim._moved import at_first_use
from circuitsim.blocks.convolutional import ConvolutionalHopfieldBlock
from circuitsim.blocks.hopfield import DeepHopfieldBlock
from circuitsim.blocks.layered import ResistiveBlock, Sweeps
from circuitsim.learning.chain import Chain, build_chain
from circuitsim.learning.rules import Chaining
from circuitsim.learning.stages import (
    Activation,
    BatchNorm,
    Conv2d,
    Flatten,
    Linear,
    MaxPool,
    Normalise,
    Readout,
    SoftPool,
    Stage,
    build,
    describe,
    describe_chain,
)

__all__ = [
    "Activation",
    "BatchNorm",
    "Chain",
    "ChainClassifier",
    "Chaining",
    "Conv2d",
    "ConvolutionalHopfieldBlock",
    "DeepHopfieldBlock",
    "Flatten",
    "Linear",
    "MaxPool",
    "Normalise",
    "Readout",
    "ResistiveBlock",
    "SoftPool",
    "Stage",
    "Sweeps",
    "build",
    "build_chain",
    "describe",
    "describe_chain",
]

# scikit-learn is an optional extra.
__getattr__ = at_first_use(__name__, ChainClassifier="circuitsim.ffebm.classifier")
