"""jit.save with free sizes: what programs compute from `x.shape` gives at each size what eager mode gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax import export

from framework import paddle
from framework.paddle._kernel.tensor import wrap
from framework.paddle._kernel.x64 import x64
from framework.paddle.nn import functional

TABLE = np.arange(24.0, dtype=np.float32).reshape(8, 3)

IDIOMS: dict[str, Callable[[Any], Any]] = {
    "reshape by a product": lambda x: x.reshape([x.shape[0] * x.shape[1], 3]),
    "reshape with a rest": lambda x: x.transpose([0, 2, 1]).reshape([x.shape[0] * 3, -1]),
    "zeros": lambda x: paddle.zeros([x.shape[0] * 2, 2]),
    "full": lambda x: paddle.full([x.shape[0], x.shape[1]], 3.0),
    "random": lambda x: paddle.rand([x.shape[0], 2]) * 0,
    "a range": lambda x: paddle.arange(x.shape[1]),
    "a range with a start": lambda x: paddle.arange(1, x.shape[1] + 1, 2),
    "an embedding of positions": lambda x: functional.embedding(
        paddle.arange(x.shape[1]), paddle.to_tensor(TABLE)
    ),
    "a table up to the length": lambda x: x + paddle.to_tensor(TABLE)[: x.shape[1]],
    "half of an axis": lambda x: x[:, : x.shape[1] // 2],
    "the last position": lambda x: x[:, x.shape[1] - 1],
    "slice": lambda x: paddle.slice(x, [1], [0], [x.shape[1] - 1]),
    "divided by a size": lambda x: x.sum() / (x.shape[0] * x.shape[1]),
    "a Tensor of a size": lambda x: paddle.to_tensor(x.shape[1]),
    "a Tensor of sizes": lambda x: paddle.to_tensor([x.shape[0], x.shape[1]]),
    "a variance": lambda x: x.reshape([x.shape[0], -1]).var(-1),
    "interpolate": lambda x: functional.interpolate(x.unsqueeze(1), size=[x.shape[1] * 2, 6]),
    "eye": lambda x: paddle.eye(x.shape[1]),
    "a causal mask": lambda x: paddle.tril(paddle.ones([x.shape[1], x.shape[1]])),
}


@pytest.mark.parametrize("name", IDIOMS)
def test_shapes(name: str) -> None:
    """Traced with free sizes, the result has the shape and type that eager mode gives, at two sizes."""
    free = export.symbolic_shape("n, 2*m, 3")

    def traced(value: jax.Array) -> jax.Array:
        return IDIOMS[name](wrap(value))._value

    with x64():
        made = jax.eval_shape(traced, jax.ShapeDtypeStruct(free, np.float32))
    for n, m in ((2, 2), (3, 3)):
        expected = IDIOMS[name](paddle.zeros([n, 2 * m, 3]))
        sizes = {"n": n, "m": m}
        shape = [d if isinstance(d, int) else eval(str(d), {}, sizes) for d in made.shape]
        assert (shape, made.dtype) == (expected.shape, expected._value.dtype)


class Net(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.linear = paddle.nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        x = self.linear(x)
        return [IDIOMS[name](x) for name in IDIOMS]


def test_values(tmp_path: Path) -> None:
    net = Net()
    paddle.jit.save(net, str(tmp_path / "net"), [paddle.static.InputSpec([None, None, 3], "float32", "x")])
    loaded = paddle.jit.load(str(tmp_path / "net"))
    x = paddle.to_tensor(np.random.default_rng(0).normal(size=(2, 6, 3)).astype(np.float32))
    for name, made, expected in zip(IDIOMS, loaded(x), net(x), strict=True):
        np.testing.assert_allclose(made.numpy(), expected.numpy(), rtol=1e-5, atol=1e-5, err_msg=name)
