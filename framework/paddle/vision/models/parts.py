"""What several models share."""

from __future__ import annotations

from typing import Any

from framework import paddle
from framework.core.errors import HubError
from framework.paddle import nn
from framework.paddle.utils.download import get_weights_path_from_url
from framework.paddle.vision.models.pretrained import WEIGHTS


def make_divisible(value: float, divisor: int = 8, min_value: int | None = None) -> int:
    """The multiple of `divisor` nearest to `value`, but not more than a tenth below it."""
    low = divisor if min_value is None else min_value
    found = max(low, int(value + divisor / 2) // divisor * divisor)
    return found + divisor if found < 0.9 * value else found


class ConvNormActivation(nn.Sequential):
    """A convolution, a norm and an activation; `padding` None keeps the size."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any = 3,
        stride: int = 1,
        padding: Any = None,
        groups: int = 1,
        norm_layer: Any = nn.BatchNorm2D,
        activation_layer: Any = nn.ReLU,
        dilation: int = 1,
        bias: bool | None = None,
    ) -> None:
        if padding is None:
            padding = (kernel_size - 1) // 2 * dilation
        layers = [
            nn.Conv2D(
                in_channels,
                out_channels,
                kernel_size,
                stride,
                padding,
                dilation=dilation,
                groups=groups,
                bias_attr=None if (norm_layer is None if bias is None else bias) else False,
            )
        ]
        if norm_layer is not None:
            layers.append(norm_layer(out_channels))
        if activation_layer is not None:
            layers.append(activation_layer())
        super().__init__(*layers)


def with_weights(model: nn.Layer, pretrained: bool, name: str) -> Any:
    """The model, with the weights that Paddle publishes for this name if asked for.

    Raises:
        HubError: Paddle publishes none for it, or they cannot be had here.
    """
    if pretrained:
        if name not in WEIGHTS:
            raise HubError(
                "Paddle publishes no weights for this model",
                where="paddle.vision.models",
                received=name,
                allowed=", ".join(WEIGHTS),
            )
        model.set_dict(paddle.load(get_weights_path_from_url(*WEIGHTS[name])))
    return model
