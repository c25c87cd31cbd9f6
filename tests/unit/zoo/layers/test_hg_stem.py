import functools

import numpy as np

from framework import nn
from framework.nn import functional as F
from zoo.layers.conv_bn import ConvBN
from zoo.layers.hg_stem import StemBlock


class Constant(nn.Layer):
    """In place of a convolution: the same value in every channel, at the resolution of its stride."""

    def __init__(self, value: float, channels: int, stride: int = 1) -> None:
        super().__init__()
        self.value, self.channels, self.stride = value, channels, stride

    def forward(self, x):  # type: ignore[no-untyped-def]
        seen.append(np.asarray(x))
        return np.full(
            (*x[:, :: self.stride, :: self.stride].shape[:3], self.channels), self.value, np.float32
        )


seen: list[np.ndarray] = []


def test_shapes_and_names() -> None:
    stem = StemBlock(4, 6, functools.partial(ConvBN, act=F.relu)).eval()
    assert stem(np.zeros((2, 31, 33, 3), np.float32)).shape == (2, 8, 9, 6)
    assert stem(np.zeros((1, 1, 1, 3), np.float32)).shape == (1, 1, 1, 6)
    assert stem.state_shapes()["stem3.conv.weight"] == (4, 8, 3, 3)


def test_the_pooling_pads_with_the_least_value() -> None:
    def border(least: float) -> float:
        """The pooled value in the last corner where the activation gives -1 everywhere."""
        seen.clear()
        stem = StemBlock(2, 2, lambda i, o, k, stride=1: Constant(-1.0, o, stride), least)
        stem(np.zeros((1, 8, 8, 3), np.float32))
        joined = seen[3]  # what stem3 takes: two pooled channels and two convolved ones
        assert joined.shape == (1, 4, 4, 4) and (joined[:, :3, :3] == -1).all()
        return float(joined[0, -1, -1, 0])

    assert border(0.0) == 0.0
    assert border(-float("inf")) == -1.0
