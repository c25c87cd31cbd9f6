import jax
import numpy as np

from framework import nn
from tests.family import eval_shapes
from zoo.contracts import Feature, build_backbone
from zoo.vision.cifar_resnet import VARIANTS, BasicBlock, CifarResNet, CifarResNetConfig


def test_one_convolution_of_the_count_by_hand() -> None:
    """n = 3: 27 * 16 + 6 of 9 * 16 * 16, then 9 * 16 * 32 and 5 of 9 * 32 * 32, and so on; norms; 64 * 10 + 10."""
    convs = 27 * 16 + 6 * 9 * 16**2 + 9 * 16 * 32 + 5 * 9 * 32**2 + 9 * 32 * 64 + 5 * 9 * 64**2
    norms = 2 * (7 * 16 + 6 * 32 + 6 * 64)
    assert convs + norms + 650 == VARIANTS["resnet20"].params


def test_maps_without_classes() -> None:
    model = build_backbone(CifarResNetConfig("resnet20"))
    assert model.features == (Feature(16, 1), Feature(32, 2), Feature(64, 4))
    assert eval_shapes(model, (1, 9, 32, 3)) == [(1, 9, 32, 16), (1, 5, 16, 32), (1, 3, 8, 64)]


def test_option_a_by_hand() -> None:
    """A branch that gives 0: every second pixel stays, one channel of zeros on either side."""
    block = BasicBlock(2, 4, 2)
    state = {name: np.zeros(shape, np.float32) for name, shape in block.state_shapes().items()}
    block.set_state_dict(state | {name: np.ones(4) for name in state if name.endswith("_variance")})
    x = np.arange(1.0, 19.0, dtype=np.float32).reshape(1, 3, 3, 2)
    want = np.zeros((1, 2, 2, 4))
    want[..., 1:3] = x[:, ::2, ::2]
    np.testing.assert_array_equal(block.eval()(x), want)


def test_one_pixel() -> None:
    graphdef, params, buffers = nn.split(CifarResNet(CifarResNetConfig(num_classes=3)).eval())
    out = jax.jit(lambda x: nn.apply(graphdef, params, buffers, None, x)[0])(
        np.ones((1, 1, 1, 3), np.float32)
    )
    assert out.shape == (1, 3) and np.isfinite(out).all()
