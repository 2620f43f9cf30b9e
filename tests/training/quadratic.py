"""A trainable with chance and memory of its own: enough to catch a checkpoint that forgets something."""

import numpy as np


class NoisyQuadratic:
    """Half the squared distance of a point to each sample, with a noisy gradient and a running mean of the batches."""

    def __init__(self, size: int = 3, skip_every: int = 0, break_at: int = -1) -> None:
        self.parameters = {"point": np.zeros(size), "shift": np.zeros((2, 2), dtype=np.float32)}
        self.mean = np.zeros(size)
        self.calls = np.zeros((), dtype=np.int64)
        self.skip_every = skip_every
        self.break_at = break_at
        self.projected = 0

    def gradient(self, batch, rng):
        self.calls += 1
        self.mean = 0.9 * self.mean + 0.1 * batch[0].mean(axis=0)
        error = self.parameters["point"] - batch[0].mean(axis=0)
        noise = rng.standard_normal(error.shape)
        loss = float(error @ error) if self.calls != self.break_at else float("nan")
        if self.skip_every and self.calls % self.skip_every == 0:
            return None, {"loss": loss}
        gradients = {"point": error + 0.1 * noise + 0.01 * self.mean, "shift": self.parameters["shift"] - np.float32(1)}
        return gradients, {"loss": loss}

    def project(self):
        self.projected += 1
        np.maximum(self.parameters["point"], -0.5, out=self.parameters["point"])

    def state_arrays(self):
        return {"mean": self.mean, "calls": self.calls}

    def load_state_arrays(self, arrays):
        self.mean = arrays["mean"].copy()
        self.calls = arrays["calls"].copy()
