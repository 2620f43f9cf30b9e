"""Random tables half of whose pieces are level."""

import numpy as np

from circuitsim.models.table import Table


def level_table(rng: np.random.Generator) -> Table:
    """Two to five points; small integers, or currents over nine decades."""
    count = int(rng.integers(2, 6))
    level = rng.random(count) < 0.5
    if rng.random() < 0.5:
        v = np.cumsum(rng.integers(1, 4, count)) - float(rng.integers(0, 6))
        i = np.cumsum(np.where(level, 0.0, rng.integers(1, 4, count) * float(rng.choice([1.0, 1e-3]))))
    else:
        v = np.round(np.cumsum(10.0 ** rng.uniform(-1, 1, count)) - rng.uniform(0, 10), 3)
        i = np.cumsum(np.where(level, 0.0, [float(f"{x:.2g}") for x in 10.0 ** rng.uniform(-9, 0, count)]))
    i -= i[int(rng.integers(count))]
    return Table(**{f"v{k + 1}": float(x) for k, x in enumerate(v)}, **{f"i{k + 1}": float(x) for k, x in enumerate(i)})
