"""UVDoc: from a photographed page to the grid of points where its flat form is to be read from.

Paper: Neural Grid-based Document Unwarping, https://arxiv.org/abs/2302.02887, section 4
Reference: PaddlePaddle/PaddleX paddlex/inference/models/image_unwarping/modeling/uvdoc.py; names of
    modules/base/utils/pdparams2safetensors/mapping.py
Differs: channels last; the grid is given, where upstream's program grows it to the image and samples the image: the
    reader does that (framework/vision/grid_warp.py), so that results can be brought back to the photograph. The paper's
    second head, the page's points in space, is for training alone and is not there.
Weights: `state_dict()` has the names of the official `.pdparams`, without `out_point_positions3D`; exported programs by
    order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from framework.core.errors import ShapeError
from framework.nn import functional as F
from framework.nn.reparam import Arrays, FoldableLayer, deploy_state, fold_norm, fuse_conv_bn, prefixed
from zoo.contracts import Contract
from zoo.layers.conv_bn import ConvBN, ConvBNOptions

# Paper, figure 3 and section 4.1: blocks of each stage, and the dilations of the branches between encoder and head.
STAGE_DEPTHS = (3, 4, 6)
BRANCHES = ((1,), (2,), (5,), (8, 3, 2), (12, 7, 4), (18, 12, 6))
PARAMS = 7_898_595  # without the running statistics


@dataclass(frozen=True)
class UVDocConfig:
    """`size_hw` is what images are resized to, `width` the first stage's; it doubles with each stage.

    `deploy` folds the normalisations into the convolutions.
    """

    size_hw: tuple[int, int] = (712, 488)
    width: int = 32
    kernel_size: int = 5
    deploy: bool = False


class NormedConvs(FoldableLayer):
    """Convolutions with a normalisation each, as sublayers of one layer under upstream's names."""

    def __init__(self, deploy: bool) -> None:
        super().__init__()
        self.deploy = deploy
        self.pairs: list[tuple[str, str, bool]] = []

    def add_conv(
        self, names: tuple[str, str], conv: nn.Conv2D, out_channels: int, *, inside: bool = False
    ) -> None:
        """Adds both by name; with `inside` the convolution is the only layer of a Sequential, as upstream has it."""
        self.pairs.append((*names, inside))
        self.add_sublayer(names[0], nn.Sequential(conv) if inside else conv)
        if not self.deploy:
            self.add_sublayer(names[1], nn.BatchNorm2D(out_channels))

    def convolve(self, number: int, x: jax.Array) -> jax.Array:
        """The convolution of this number and its normalisation."""
        conv, norm, _ = self.pairs[number]
        x = getattr(self, conv)(x)
        return x if self.deploy else getattr(self, norm)(x)

    def deploy_state(self) -> Arrays:
        """The arrays of the deploy form."""
        state: Arrays = {}
        for conv, norm, inside in self.pairs:
            own = self._conv(conv, inside)
            key = f"{conv}.0" if inside else conv
            weight, bias = fuse_conv_bn(own.weight, own.bias, getattr(self, norm))
            state |= {f"{key}.weight": weight, f"{key}.bias": bias}
        taken = {name for conv, norm, _ in self.pairs for name in (conv, norm)}
        for name, child in self.named_children():
            if name not in taken:
                state |= prefixed(name, deploy_state(child))
        return state

    def fold(self) -> None:
        """Becomes its deploy form in place."""
        if self.deploy:
            return
        for conv, norm, inside in self.pairs:
            fold_norm(self._conv(conv, inside), getattr(self, norm))
            delattr(self, norm)
        self.deploy = True

    def _conv(self, name: str, inside: bool) -> nn.Conv2D:
        layer = getattr(self, name)
        return layer[0] if inside else layer


class Stem(NormedConvs):
    """Two convolutions of stride 2: [N, H, W, 3] -> [N, H/4, W/4, width]."""

    def __init__(self, config: UVDocConfig) -> None:
        super().__init__(config.deploy)
        width, kernel, bias = config.width, config.kernel_size, None if config.deploy else False
        for number, in_channels in ((0, 3), (3, width)):
            conv = nn.Conv2D(in_channels, width, kernel, 2, kernel // 2, bias_attr=bias)
            self.add_conv((str(number), str(number + 1)), conv, width)

    def forward(self, x: jax.Array) -> jax.Array:
        return F.relu(self.convolve(1, F.relu(self.convolve(0, x))))


class ResidualBlock(NormedConvs):
    """Two convolutions with a shortcut; those of a stage's first block are not dilated and halve the map."""

    def __init__(self, in_channels: int, out_channels: int, stride: int, dilation: int, config: UVDocConfig):
        super().__init__(config.deploy)
        kernel, padding = config.kernel_size, dilation * (config.kernel_size // 2)
        dilated = dilation > 1
        first = nn.Conv2D(in_channels, out_channels, kernel, stride, padding, dilation)
        self.add_conv(("conv1", "bn1"), first, out_channels, inside=dilated)
        second = nn.Conv2D(out_channels, out_channels, kernel, 1, padding, dilation)
        self.add_conv(("conv2", "bn2"), second, out_channels, inside=dilated)
        self.shrinks = stride > 1
        if self.shrinks:
            options = ConvBNOptions(bias=True, names=("0", "1"), deploy=config.deploy)
            self.downsample = ConvBN(in_channels, out_channels, kernel, stride, options=options)

    def forward(self, x: jax.Array) -> jax.Array:
        shortcut = self.downsample(x) if self.shrinks else x
        x = self.convolve(1, F.relu(self.convolve(0, x)))
        return F.relu(x + shortcut)


class Encoder(nn.Layer):
    """Three stages of residual blocks: [N, H, W, C] -> [N, H/4, W/4, 4C]."""

    def __init__(self, config: UVDocConfig) -> None:
        super().__init__()
        width = config.width
        for number, depth in enumerate(STAGE_DEPTHS):
            wide = config.width << number
            blocks = [ResidualBlock(width, wide, 2 if number else 1, 1, config)]
            blocks += [ResidualBlock(wide, wide, 1, 3, config) for _ in range(depth - 1)]
            self.add_sublayer(f"layer{number + 1}", nn.Sequential(*blocks))
            width = wide

    def forward(self, x: jax.Array) -> jax.Array:
        return self.layer3(self.layer2(self.layer1(x)))


class GridHead(NormedConvs):
    """[N, h, w, C] -> [N, h, w, 2]: points of the image, (x, y) from -1 to 1."""

    def __init__(self, in_channels: int, config: UVDocConfig) -> None:
        super().__init__(config.deploy)
        kernel = config.kernel_size
        own = {"padding": kernel // 2, "padding_mode": "reflect"}
        conv = nn.Conv2D(in_channels, config.width, kernel, bias_attr=None if config.deploy else False, **own)
        self.add_conv(("0", "1"), conv, config.width)
        self.add_sublayer("2", nn.PReLU())
        self.add_sublayer("3", nn.Conv2D(config.width, 2, kernel, **own))

    def forward(self, x: jax.Array) -> jax.Array:
        return getattr(self, "3")(getattr(self, "2")(self.convolve(0, x)))


@register("model", config=UVDocConfig)
class UVDoc(nn.Model[UVDocConfig]):
    """[N, H, W, 3] -> the grid [N, h, w, 2]: where in the image, (x, y), each point of the flat page is to be read.

    -1 and 1 are the centres of the image's first and last pixels. Of images of 712 x 488 the grid is of 45 x 31 points,
    which lie evenly on the flat page from its first to its last pixel. Images of other sizes are resized, corner to
    corner.
    """

    example_shape = (1, 712, 488, 3)
    training_only = ("out_point_positions3D.",)

    contract = Contract(
        small={"size_hw": (64, 64), "width": 4},
        inputs=("n", 64, 64, 3),
        other=(1, 80, 64, 3),  # is resized
        outputs=lambda layer, n, h, w: [(n, *(-(-side // 16) for side in layer.config.size_hw), 2)],
    )

    def __init__(self, config: UVDocConfig) -> None:
        super().__init__(config)
        wide = config.width << (len(STAGE_DEPTHS) - 1)
        self.resnet_head = Stem(config)
        self.resnet_down = Encoder(config)
        options = ConvBNOptions(names=("0", "1"), deploy=config.deploy)
        conv = partial(ConvBN, act=F.relu, options=options)
        for number, dilations in enumerate(BRANCHES, start=1):
            branch = (conv(wide, wide, 3, options=replace(options, dilation=step)) for step in dilations)
            self.add_sublayer(f"bridge_{number}", nn.Sequential(*branch))
        self.bridge_concat = conv(wide * len(BRANCHES), wide, 1)
        self.out_point_positions2D = GridHead(wide, config)

    def forward(self, x: jax.Array) -> jax.Array:
        if x.ndim != 4 or x.shape[3] != 3:
            raise ShapeError(
                "UVDoc takes color images", received=x.shape, allowed="[N, H, W, 3], channels last"
            )
        if x.shape[1:3] != self.config.size_hw:
            x = F.interpolate(x, self.config.size_hw, mode="bilinear", align_corners=True)
        x = self.resnet_down(self.resnet_head(x))  # [N, H/4, W/4, 32], then [N, H/16, W/16, 128]
        branches = [getattr(self, f"bridge_{number}")(x) for number in range(1, len(BRANCHES) + 1)]
        x = self.bridge_concat(jnp.concatenate(branches, axis=-1))  # [N, H/16, W/16, 768], then 128
        return self.out_point_positions2D(x)
