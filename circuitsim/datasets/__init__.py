"""Data sets that need no network: scikit-learn's bundled digits, and MNIST from files a person already has."""

from circuitsim.datasets.images import DATASETS, ImageData, load_images

__all__ = ["DATASETS", "ImageData", "load_images"]
