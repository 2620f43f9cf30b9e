"""Blocks and stages in another array library: torch tensors on the processor, where torch is installed."""

import numpy as np
import pytest
from chains import batch, every_kind

from circuitsim.ffebm import Chaining

torch = pytest.importorskip("torch", reason="torch is not installed")


@pytest.mark.parametrize(
    "rule", [Chaining(), Chaining(form="implicit"), Chaining(last="elastic"), Chaining("bp"), Chaining("implicit")]
)
@pytest.mark.parametrize("loss", ["cross-entropy", "mse"])
def test_torch_tensors_give_the_same_gradients(rule: Chaining, loss: str) -> None:
    rng = np.random.default_rng(0)
    x, y = batch(rng)
    ours, theirs = (every_kind(rule=rule, loss=loss) for _ in range(2))
    theirs.convert(torch.asarray)
    expected, numbers = ours.gradient((x, y), rng)
    found, others = theirs.gradient((torch.asarray(x), torch.asarray(y)), rng)
    for name, array in expected.items():
        assert isinstance(found[name], torch.Tensor), name
        np.testing.assert_allclose(found[name].numpy(), array, atol=1e-11, err_msg=name)
    assert others["loss"] == pytest.approx(numbers["loss"], rel=1e-12)
    np.testing.assert_allclose(theirs.output(torch.asarray(x)).numpy(), ours.output(x), atol=1e-12)
    np.testing.assert_allclose(theirs.predict(torch.asarray(x)), ours.predict(x), atol=1e-12)
