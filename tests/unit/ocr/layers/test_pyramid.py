import jax
import jax.numpy as jnp
import numpy as np

from framework import nn
from framework.interop.named_weights import named_weights
from ocr.layers.pyramid import IntraCLBlock, RSELayer, coarse_first, join, top_down


def maps(*values: float) -> list[jax.Array]:
    """One map a stride of 4, 8, 16, 32 of a 32 x 64 image, each of one value."""
    return [jnp.full((1, 8 >> i, 16 >> i, 1), v) for i, v in enumerate(values)]


def test_top_down_adds_what_is_coarser() -> None:
    outs = top_down(maps(1.0, 10.0, 100.0, 1000.0))
    assert [out.shape[1:3] for out in outs] == [(8, 16), (4, 8), (2, 4), (1, 2)]
    assert [float(out.max()) for out in outs] == [1111.0, 1110.0, 1100.0, 1000.0]
    assert all(float(out.min()) == float(out.max()) for out in outs)


def test_top_down_repeats_pixels() -> None:
    levels = maps(0.0, 0.0, 0.0, 0.0)
    levels[3] = levels[3].at[0, 0, 1, 0].set(5.0)
    np.testing.assert_array_equal(
        np.asarray(top_down(levels)[0])[0, :, :, 0], np.repeat([[0.0, 5.0]], 8, 1) * np.ones((8, 1))
    )


def test_join_puts_the_coarsest_level_first() -> None:
    joined = join(maps(2.0, 3.0, 4.0, 5.0))
    assert joined.shape == (1, 8, 16, 4)
    assert joined[0, 0, 0].tolist() == [5.0, 4.0, 3.0, 2.0]


def test_coarse_first_calls_backwards_and_keeps_the_order() -> None:
    called = []

    class NamedLayer(nn.Layer):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        def forward(self, x: jax.Array) -> str:
            called.append(self.name)
            return f"{self.name}{x}"

    assert coarse_first([NamedLayer("a"), NamedLayer("b")], [1, 2]) == ["a1", "b2"]  # type: ignore[list-item]
    assert called == ["b", "a"]


def test_rse_layer_adds_its_gated_self() -> None:
    layer = RSELayer(2, 4, 3)
    state = {name: np.zeros(shape) for name, shape in layer.state_shapes().items()}
    state["in_conv.weight"] = np.zeros((4, 2, 3, 3))
    state["in_conv.weight"][:, 0, 1, 1] = 1.0
    layer.set_state_dict(state)
    x = jnp.full((1, 3, 3, 2), 2.0)
    np.testing.assert_allclose(layer(x), np.full((1, 3, 3, 4), 2.0 * 1.5))  # the gate of zeros is 0.5


def test_intra_class_block_in_both_forms() -> None:
    layer, deployed = IntraCLBlock(8).eval(), IntraCLBlock(8, deploy=True).eval()
    layer.set_state_dict(named_weights(layer.state_shapes()))
    deployed.set_state_dict(layer.deploy_state())  # type: ignore[attr-defined]
    x = np.random.RandomState(0).standard_normal((1, 9, 10, 8)).astype(np.float32)
    out = np.asarray(layer(x))
    assert (out >= x - 1e-6).all() and (out - x).max() > 0.1
    np.testing.assert_allclose(deployed(x), out, atol=1e-5)
    assert layer(x[:, :1, :1]).shape == (1, 1, 1, 8)


def test_intra_class_block_has_upstream_s_names() -> None:
    names = {name.rpartition(".")[0] for name in IntraCLBlock(8).state_shapes()}
    kernels = {
        f"{p}_{k}" for p, ks in (("v_layer", "7x1 5x1 3x1"), ("q_layer", "1x7 1x5 1x3")) for k in ks.split()
    }
    squares = {"c_layer_7x7", "c_layer_5x5", "c_layer_3x3"}
    assert names == kernels | squares | {"conv1x1_reduce_channel", "conv1x1_return_channel", "bn"}
