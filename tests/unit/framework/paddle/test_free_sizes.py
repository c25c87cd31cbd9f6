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


OF_SHAPE: dict[str, Callable[[Any], Any]] = {
    "sizes one by one": lambda x: x.reshape([paddle.shape(x)[0], -1]),
    "a product of sizes": lambda x: x.reshape([paddle.shape(x)[0] * paddle.shape(x)[1], 3]),
    "all sizes": lambda x: paddle.zeros(paddle.shape(x)) + x,
    "unpacked": lambda x: (lambda n, m, c: x.transpose([2, 1, 0]).reshape([c, m * n]))(*paddle.shape(x)),
    "joined": lambda x: x.reshape(
        paddle.concat([paddle.shape(x)[:1], paddle.to_tensor([-1], dtype="int32")])
    ),
    "stacked": lambda x: paddle.full(paddle.stack([paddle.shape(x)[1], paddle.shape(x)[0]]), 1.0),
    "interpolated": lambda x: functional.interpolate(
        x[None, :, ::2], size=paddle.shape(x)[1:], mode="bilinear"
    ),
    "interpolated by a list": lambda x: functional.interpolate(x[None], size=[paddle.shape(x)[1] * 2, 6]),
    "half of an axis": lambda x: x[:, paddle.shape(x)[1] // 2 :],
    "a range": lambda x: paddle.arange(paddle.shape(x)[1]).astype("float32") + x[0, 0, 0],
    "expanded": lambda x: paddle.ones([1, 1, 1]).expand(paddle.shape(x)) * x,
    "number of elements": lambda x: x.reshape([paddle.numel(x)]),
    "in another type": lambda x: x / paddle.cast(paddle.shape(x)[1], "float32"),
    "counted in a loop": lambda x: _count(x),
}


def _count(x: Any) -> Any:
    """A loop over a number that begins as one that is known: within the loop it is not."""
    i = paddle.zeros([], "int32")

    def step(i: Any, total: Any) -> tuple[Any, Any]:
        return i + 1, total + x[0, 0, 0] * i.astype("float32")

    return paddle.static.nn.while_loop(lambda i, total: i < paddle.shape(x)[1], step, [i, paddle.zeros([])])[
        1
    ]


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
        return [compute(x) for compute in (*IDIOMS.values(), *OF_SHAPE.values())]


@pytest.mark.parametrize("sizes", [[None, None, 3], [2, 6, 3]])
def test_values(sizes: list[int | None], tmp_path: Path) -> None:
    net = Net()
    paddle.jit.save(net, str(tmp_path / "net"), [paddle.static.InputSpec(sizes, "float32", "x")])
    loaded = paddle.jit.load(str(tmp_path / "net"))
    x = paddle.to_tensor(np.random.default_rng(0).normal(size=(2, 6, 3)).astype(np.float32))
    for name, made, expected in zip((*IDIOMS, *OF_SHAPE), loaded(x), net(x), strict=True):
        np.testing.assert_allclose(made.numpy(), expected.numpy(), rtol=1e-5, atol=1e-5, err_msg=name)


def test_a_compiled_function_uses_the_sizes_of_a_tensor(caplog: pytest.LogCaptureFixture) -> None:
    @paddle.jit.to_static
    def fold(x: Any) -> Any:
        rows, columns = paddle.shape(x)
        rows += 1  # a number of its own by now
        return x.reshape([columns, (rows - 1).item()]) + int(columns)

    x = paddle.arange(6.0).reshape([2, 3])
    np.testing.assert_array_equal(fold(x).numpy(), x.numpy().reshape(3, 2) + 3)
    assert "runs as Python" not in caplog.text  # it was compiled


def test_sizes_keep_their_order() -> None:
    seen = []

    def compute(x: Any) -> list[Any]:
        sizes = paddle.shape(x)
        columns = paddle.stack([sizes, sizes * 10], axis=1)
        joined = paddle.concat([columns, columns], axis=1)
        rows = paddle.concat([columns, columns])
        shares = (
            (sizes.astype("float32") * 0.1 * 290).astype("int32"),
            sizes / 3,
            (sizes * 0.7).astype("int64"),
        )
        others = joined.reshape([-1]), -sizes // 2, sizes % 2, paddle.maximum(sizes, sizes[::-1])
        return [t.tolist() for t in (columns, joined, rows, *others, *shares)]

    @paddle.jit.to_static
    def traced(x: Any) -> Any:
        seen.append(compute(x))
        return x + 0

    x = paddle.zeros([2, 3])
    traced(x)
    assert seen and all(found == compute(x) for found in seen)
