"""What many tests need: operating points of cards, difference quotients, roots, files of MNIST's form."""

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

import numpy as np

import circuitsim


def loaded(cards: str) -> circuitsim.Circuit:
    """The circuit of cards without a title."""
    return circuitsim.loads(f"t\n{cards}\n").circuit


def solved(cards: str, values: Mapping[str, float] | None = None) -> circuitsim.OperatingPoint:
    """The operating point of cards without a title, at other values if given; its certificate holds."""
    point = circuitsim.solve(loaded(cards).with_values(dict(values or {})))
    assert point.certificate.certified
    return point


def cascade(stages: int, farads: str, model: str = "") -> str:
    """Cards of a Cockcroft–Walton cascade from t0 to b1, b2, …"""
    cards, top, bottom = "", "t0", "0"
    for k in range(1, stages + 1):
        cards += f"CT{k} {top} t{k} {farads}\nDA{k} {bottom} t{k} {model}\nDB{k} t{k} b{k} {model}\n"
        cards += f"CB{k} {bottom} b{k} {farads}\n"
        top, bottom = f"t{k}", f"b{k}"
    return cards


def slope(function: Callable[[float], float], at: float = 0.0, step: float = 1e-6) -> float:
    """A central difference quotient."""
    return (function(at + step) - function(at - step)) / (2.0 * step)


def slopes(function: Callable[[], float], array: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """Central difference quotients by each entry of an array that the function reads, relative to the entry."""
    found = np.empty(array.shape)
    for at, old in np.ndenumerate(array.copy()):
        move, ends = step * (abs(old) or 1.0), []
        for sign in (1.0, -1.0):
            array[at] = old + sign * move
            ends.append(function())
        array[at] = old
        found[at] = (ends[0] - ends[1]) / (2.0 * move)
    return found


def root(excess: Callable[[float], float], low: float, high: float) -> float:
    """Where a rising function changes its sign; where it overflows it has the sign of its argument."""
    for _ in range(1200):
        middle = 0.5 * (low + high)
        try:
            above = excess(middle) > 0.0
        except OverflowError:
            above = middle > 0.0
        low, high = (low, middle) if above else (middle, high)
    return low


def idx(array: np.ndarray) -> bytes:
    """A file of bytes as MNIST's are."""
    return bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.astype(np.uint8).tobytes()


def mnist(samples: int = 12) -> dict[str, bytes]:
    """MNIST's files by their names, with content made up."""
    rng, files = np.random.default_rng(0), {}
    for prefix in ("train", "t10k"):
        files[f"{prefix}-images-idx3-ubyte"] = idx(rng.integers(0, 256, (samples, 28, 28)))
        files[f"{prefix}-labels-idx1-ubyte"] = idx(rng.integers(0, 10, samples))
    return files


def write_mnist(folder: Path, samples: int = 12) -> None:
    """MNIST's files in a folder."""
    folder.mkdir(exist_ok=True)
    for name, content in mnist(samples).items():
        (folder / name).write_bytes(content)


def site_settings() -> ModuleType:
    """docs/conf.py, which states the public packages."""
    found = importlib.util.spec_from_file_location("site_settings", Path(__file__).parents[1] / "docs/conf.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module
