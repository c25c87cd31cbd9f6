import jax.numpy as jnp
import numpy as np

from framework.nn import functional as F
from zoo.layers.affine import Affine
from zoo.layers.wide_head import WideHead


def test_the_affine_by_hand() -> None:
    layer = Affine(rate=0.1)
    layer.set_state_dict({"scale": np.array([2.0]), "bias": np.array([0.5])})
    np.testing.assert_array_equal(layer(np.array([1.0, -1.0], np.float32)), [2.5, -1.5])
    assert [p.attr.learning_rate for p in layer.parameters()] == [0.1, 0.1]
    assert not any(p.trainable for p in Affine(0.1, trainable=False).parameters())


def test_the_head_by_hand() -> None:
    head = WideHead(None)
    head.add_head(2, 1, 2, F.relu, dropout=0.2)
    state = {
        "last_conv.weight": np.array([1.0, 2.0]).reshape(1, 2, 1, 1),
        "fc.weight": np.array([[1.0, -1.0]]),
    }
    head.set_state_dict(state | {"fc.bias": np.array([0.0, 1.0])})
    head.eval()
    # means 2 and 1 over two pixels: 2 + 2 * 1 = 4, of which inference keeps four fifths
    x = jnp.array([[1.0, 1.0], [3.0, 1.0]]).reshape(1, 2, 1, 2)
    np.testing.assert_allclose(head.widen(x), [[[[3.2]]]], rtol=1e-6)
    np.testing.assert_allclose(head.logits(x), [[3.2, -2.2]], rtol=1e-6)


def test_without_classes_there_is_no_linear_layer() -> None:
    head = WideHead(None)
    head.add_head(2, 4, 0, F.relu)
    assert list(head.state_shapes()) == ["last_conv.weight"]
