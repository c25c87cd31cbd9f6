from __future__ import annotations

import contextlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework import amp, nn
from framework.core import rng
from framework.core.compilation import CPU_RECOMPUTE_OPTIONS
from framework.core.errors import ShapeError, WeightError
from framework.nn import functional as F

X = jnp.asarray(np.random.default_rng(0).standard_normal((6, 4)), jnp.float32)


class Block(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm, self.drop = nn.Linear(4, 4), nn.BatchNorm1D(4), nn.Dropout(0.5)

    def forward(self, x, scale=1.0):
        return x + self.drop(F.relu(self.norm(self.linear(x)))) * scale


class Net(nn.Layer):
    """`way`: how the blocks are run."""

    def __init__(self, way: str = "plain") -> None:
        super().__init__()
        self.blocks = nn.LayerList([Block(), Block(), Block()])
        self.drop, self.head = nn.Dropout(0.3), nn.Linear(4, 2)
        self.way = way

    def forward(self, x):
        if self.way == "segments":
            x = nn.recompute_sequential(2, self.blocks, x)
        for block in self.blocks if self.way != "segments" else ():
            if self.way == "layer":
                x = nn.recompute(block, x, scale=1.0)
            elif self.way == "closure":
                x = nn.recompute(lambda x, block=block: block(x, 1.0), x)
            elif self.way == "nested":
                x = nn.recompute(lambda x, block=block: nn.recompute(block, x), x)
            else:
                x = block(x)
        return self.head(self.drop(x))


def steps(net: nn.Layer, level: str | None = None, count: int = 2):
    """Loss and gradients of some training steps, and the buffers after them."""
    rng.seed(7)
    run = nn.value_and_grad(net, lambda m, x: jnp.square(m(x).astype(jnp.float32)).mean())
    out = []
    with amp.auto_cast(enable=level is not None, level="O2"):
        for _ in range(count):
            loss, grads = run(X)
            out.append({"loss": loss, **grads})
    return [*out, dict(net.named_buffers())]


def make(way: str = "plain") -> Net:
    rng.seed(1)
    return Net(way)


def assert_same(found, expected):
    for ours, theirs in zip(found, expected):
        assert set(ours) == set(theirs)
        for name in theirs:
            np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)


@pytest.mark.parametrize("way", ["layer", "closure", "nested", "segments"])
def test_bit_for_bit_with_dropout_and_batch_norm(way):
    expected = steps(make())
    assert np.abs(expected[-1]["blocks.2.norm._mean"]).max() > 0
    assert_same(steps(make(way)), expected)


def test_marks_do_the_same_and_can_be_taken_away():
    net = make()
    assert nn.set_recompute(net, r"blocks\.\d+$") == ["blocks.0", "blocks.1", "blocks.2"]
    assert_same(steps(net), steps(make()))
    graphdef, params, buffers = nn.split(net)

    def checkpoints(graphdef) -> int:
        key = jax.random.key(0)
        text = str(jax.make_jaxpr(lambda p: nn.apply(graphdef, p, buffers, key, X)[0])(params))
        return text.count("checkpoint[") + text.count("remat2[")

    assert checkpoints(graphdef) == 3
    assert nn.set_recompute(net, None) == [] and nn.split(net)[0] != graphdef
    assert checkpoints(nn.split(net)[0]) == 0
    nn.set_recompute(net.eval(), r"blocks\.\d+$")
    assert checkpoints(nn.split(net)[0]) == 0  # inference keeps nothing anyway


def test_marks_stand_on_the_outermost_layers_only():
    net = make()
    assert nn.set_recompute(net, "blocks") == [
        "blocks.0",
        "blocks.1",
        "blocks.2",
    ]  # a LayerList is never called
    assert nn.set_recompute(net, "norm|head") == ["blocks.0.norm", "blocks.1.norm", "blocks.2.norm", "head"]
    assert not net.blocks[0]._recompute and net.blocks[0].norm._recompute


def test_low_precision_is_the_same_too():
    net = make()
    nn.set_recompute(net, r"blocks\.\d+$")
    assert_same(steps(net, "O2", 1), steps(make(), "O2", 1))


def test_outside_of_a_trace_it_is_a_call():
    rng.seed(0)
    block = Block()
    rng.seed(5)
    expected = block(X)
    mean = block.norm._mean
    block.norm._mean, block.norm._variance = jnp.zeros(4), jnp.ones(4)
    rng.seed(5)
    np.testing.assert_array_equal(nn.recompute(block, X), expected)
    np.testing.assert_array_equal(block.norm._mean, mean)


def test_a_buffer_that_is_new_comes_out_too():
    class Keeps(nn.Layer):
        def forward(self, x):
            self.last = x * 2
            return x

    graphdef, params, buffers = nn.split(nn.Sequential(Keeps()))

    class Outer(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Keeps()

        def forward(self, x):
            return nn.recompute(self.inner, x)

    graphdef, params, buffers = nn.split(Outer())
    _, after = jax.jit(lambda x: nn.apply(graphdef, params, buffers, None, x))(X)
    np.testing.assert_array_equal(after["inner.last"], 2 * X)


def test_an_exception_inside_leaves_the_buffers():
    class Fails(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm1D(4)

        def forward(self, x):
            with contextlib.suppress(ZeroDivisionError):
                nn.recompute(self._half, x)
            return self.norm._mean

        def _half(self, x):
            self.norm(x)
            raise ZeroDivisionError

    graphdef, params, buffers = nn.split(Fails())
    mean, after = jax.jit(lambda x: nn.apply(graphdef, params, buffers, None, x))(X)
    assert mean.tolist() == after["norm._mean"].tolist() == [0, 0, 0, 0]


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="the compile option is the CPU's")
def test_it_saves_memory():
    """Eight blocks of which each makes an array eight times as wide as its input."""

    class Wide(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.up, self.down = nn.Linear(32, 256), nn.Linear(256, 32)

        def forward(self, x):
            return x + self.down(F.tanh(F.tanh(self.up(x))))

    def temporary_bytes(pattern: str | None) -> int:
        net = nn.Sequential(*(Wide() for _ in range(8)))
        nn.set_recompute(net, pattern)
        graphdef, params, buffers = nn.split(net)
        loss = lambda p, x: jnp.square(nn.apply(graphdef, p, buffers, None, x)[0]).sum()  # noqa: E731
        lowered = jax.jit(jax.grad(loss)).lower(params, jnp.ones((512, 32)))
        compiled = lowered.compile(compiler_options=CPU_RECOMPUTE_OPTIONS)
        return compiled.memory_analysis().temp_size_in_bytes

    assert temporary_bytes(r"^\d$") < 0.4 * temporary_bytes(None)


def test_errors():
    with pytest.raises(WeightError, match=r"Net: no sublayer to recompute(.|\n)*'stages'(.|\n)*blocks\.0"):
        nn.set_recompute(make(), "stages")
    for segments in (0, 4):
        with pytest.raises(ShapeError, match=r"wrong number of segments(.|\n)*1 to 3"):
            nn.recompute_sequential(segments, make().blocks, X)


def test_gradients_of_a_block_are_there_before_those_of_the_next() -> None:
    """Else a compiler puts off the products that give them, and holds what many blocks computed until then."""
    net = nn.Sequential(*(nn.Linear(4, 4) for _ in range(3)))
    nn.set_recompute(net, r"^\d$")
    graphdef, params, buffers = nn.split(net)

    def loss(params):
        return jnp.square(nn.apply(graphdef, params, buffers, None, X)[0]).sum()

    jaxpr = jax.make_jaxpr(jax.grad(loss))(params).jaxpr
    barriers = [one for one in jaxpr.eqns if one.primitive.name == "optimization_barrier"]
    assert [len(one.invars) for one in barriers] == [3] * 3  # each of an input, a weight and a bias
