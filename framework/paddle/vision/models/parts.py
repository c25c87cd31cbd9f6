"""What several models share."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from framework import hub, paddle
from framework.config import find
from framework.core.errors import HubError
from framework.paddle import nn
from framework.paddle.utils.download import WEIGHTS_HOME, get_weights_path_from_url

if TYPE_CHECKING:
    pass

Network = TypeVar("Network", bound=nn.Layer)


def zoo_table(network: str, table: str = "VARIANTS") -> Any:
    """A table of this network's file in the zoo, found by the network's name: sizes and widths stand there alone."""
    return vars(sys.modules[find("model", network, ("zoo",)).module])[table]


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
        kernel_size: int = 3,
        stride: int = 1,
        padding: int | None = None,
        groups: int = 1,
        norm_layer: Callable[..., nn.Layer] | None = nn.BatchNorm2D,
        activation_layer: Callable[..., nn.Layer] | None = nn.ReLU,
        dilation: int = 1,
        bias: bool | None = None,
    ) -> None:
        if padding is None:
            padding = (kernel_size - 1) // 2 * dilation
        layers: list[nn.Layer] = [
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


def with_weights(model: Network, pretrained: bool, entry: str) -> Network:
    """The model, if asked for with weights: those that Paddle publishes, which the hub's index has as `entry`.

    A file that Paddle itself has downloaded is taken from its cache.

    Raises:
        HubError: Paddle publishes none for it, or they cannot be had here.
    """
    if not pretrained:
        return model
    if entry not in hub.entries("zoo"):
        raise HubError(
            "Paddle publishes no weights for this model",
            where="paddle.vision.models",
            received=f"pretrained=True, {entry.removesuffix('_imagenet')}",
            allowed="a variant that Paddle trained; `oar models list` shows them",
        )
    (source,) = hub.entry(entry).files["weights"].sources
    is_paddles = (WEIGHTS_HOME / source.filename).is_file()
    path = get_weights_path_from_url(source.where, source.md5) if is_paddles else hub.fetch(entry)
    model.set_dict(paddle.load(str(path)))
    return model


def model_function(
    name: str, make: Callable[..., Network], entry: str | None = None
) -> Callable[..., Network]:
    """Paddle's function `name(pretrained=False, **kwargs)`: a model that `make` makes, with weights if asked for.

    Args:
        make: takes the keywords of the model's class that the function does not fix.
        entry: of the hub's index, if not the name with `_imagenet`.
    """

    def build(pretrained: bool = False, **kwargs: object) -> Network:
        return with_weights(make(**kwargs), pretrained, entry or f"{name}_imagenet")

    return named(build, name)


def named(function: Callable[..., Network], name: str) -> Callable[..., Network]:
    """The function under the name by which paddle.vision.models has it."""
    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__.rpartition(".")[0]
    function.__doc__ = f"{name}, with Paddle's weights if `pretrained`; other keywords are its class's."
    return function


def scale_name(scale: float) -> str:
    """A multiplier of widths as names of variants have it: x0_25, x1_0."""
    return f"x{float(scale)}".replace(".", "_")
