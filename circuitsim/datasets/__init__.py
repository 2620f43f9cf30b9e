"""Data sets: scikit-learn's bundled digits, and MNIST, fetched once or from files a person already has."""

from circuitsim.datasets.images import DATASETS, ImageData, choose, load, read_idx

__all__ = ["DATASETS", "ImageData", "choose", "load", "read_idx"]
