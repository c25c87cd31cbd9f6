"""Swin Transformer: attention within windows that shift from block to block, and maps that halve from stage to stage.

Paper: Liu et al. 2021, https://arxiv.org/abs/2103.14030
Reference: PaddlePaddle/PaddleClas ppcls/arch/backbone/legendary_models/swin_transformer.py
Differs: an axis that one window covers is not shifted, as in microsoft/Swin-Transformer, which trained the weights, and
    in timm; PaddleClas 2.6 shifts it and so cuts the last stage of a 224-pixel image into four. An axis that divides
    into windows is never padded; PaddleClas adds a window to it where the other axis does not divide.
Weights: PaddleClas' `SwinTransformer_*`; `state_dict()` has their names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from framework import nn
from framework.config import register
from framework.hub.names import Names
from framework.nn import functional as F
from zoo.contracts import Backbone, Contract, Feature
from zoo.layers.mlp import MLP, NARROW, DropPath, drop_rates, narrow_linear
from zoo.layers.variants import VariantConfig

PATCH = 4
EXPANSION = 4
# What upstream adds to the scores of pixels that a shift brought together: their weights are below 1e-40.
HIDDEN = -100.0


class Size(NamedTuple):
    """`width` and `heads` are the first stage's and double with each; `params` of 1000 classes."""

    width: int
    depths: tuple[int, int, int, int]
    heads: int
    drop_path_rate: float
    params: int
    window: int = 7


# section 3.3 of the paper; the rates are those of ImageNet-1K training in its appendix A2, and PaddleClas' for "large"
VARIANTS: dict[str, Size] = {
    "swin_tiny": Size(96, (2, 2, 6, 2), 3, 0.2, 28_288_354),
    "swin_small": Size(96, (2, 2, 18, 2), 3, 0.3, 49_606_258),
    "swin_base": Size(128, (2, 2, 18, 2), 4, 0.5, 87_768_224),
    "swin_base_384": Size(128, (2, 2, 18, 2), 4, 0.5, 87_903_584, window=12),
    "swin_large": Size(192, (2, 2, 18, 2), 6, 0.1, 196_532_476),
    "swin_large_384": Size(192, (2, 2, 18, 2), 6, 0.1, 196_735_516, window=12),
}


@dataclass(frozen=True)
class SwinTransformerConfig(VariantConfig[Size], table=VARIANTS):
    """`drop_path_rate` is the last block's, None the variant's; the others' rise to it from 0.

    `norm_maps` normalises each map by a layer of its own, `norm0` to `norm3`, as detectors and segmenters on Swin do.
    """

    variant: str = "swin_tiny"
    num_classes: int = 1000
    drop_path_rate: float | None = None
    norm_maps: bool = False


def position_index(window: int) -> np.ndarray:
    """[window**2, window**2]: for each query and key the row of the bias table, from their offset (dy, dx)."""
    y, x = np.divmod(np.arange(window**2), window)
    dy, dx = y[:, None] - y, x[:, None] - x
    return (dy + window - 1) * (2 * window - 1) + dx + window - 1


def axis_regions(size: int, window: int, shift: int) -> np.ndarray:
    """[size // window, window]: of each place of a shifted axis, which part of the axis it shows.

    Only the last window is mixed: its last `shift` places come from the other end. A window before it is a whole.
    """
    regions = np.zeros(size, np.int32)
    regions[size - shift :] = 1
    return regions.reshape(-1, window)


class WindowAttention(nn.Layer):
    """Self-attention of windows [M, T, C], T = window**2, with a learned bias for each offset and head."""

    def __init__(self, channels: int, window: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.relative_position_bias_table = self.create_parameter(((2 * window - 1) ** 2, heads), NARROW)
        self.register_buffer("relative_position_index", position_index(window))
        self.qkv = narrow_linear(channels, 3 * channels)
        self.proj = narrow_linear(channels, channels)

    def forward(self, x: jax.Array, regions: np.ndarray | None = None) -> jax.Array:
        """Where `regions` [windows of an image, T] is given, pixels see those of their own region only."""
        m, t, c = x.shape
        bias = self.relative_position_bias_table[self.relative_position_index]  # [T, T, heads]
        mask = bias.transpose(2, 0, 1)[None].astype(jnp.float32)
        if regions is not None:
            ids = jnp.asarray(regions)
            apart = (ids[:, None, :, None] != ids[:, None, None, :]).astype(jnp.float32)  # [windows, 1, T, T]
            mask = mask + HIDDEN * apart
            mask = jnp.broadcast_to(mask, (m // len(regions), *mask.shape)).reshape(m, *mask.shape[1:])
        qkv = self.qkv(x).reshape(m, t, 3, self.heads, c // self.heads)
        query, key, value = (qkv[:, :, i] for i in range(3))
        return self.proj(F.scaled_dot_product_attention(query, key, value, mask).reshape(m, t, c))


class SwinTransformerBlock(nn.Layer):
    """Attention within windows of [N, H, W, C], shifted by `shift`, and MLP, each with its residual.

    A map that does not divide into windows is padded with zeros at the right and the bottom, which its pixels see:
    so do the reference and its weights.
    """

    def __init__(self, channels: int, heads: int, window: int, shift: int, drop_path: float) -> None:
        super().__init__()
        self.window, self.shift = window, shift
        self.norm1 = nn.LayerNorm(channels)
        self.attn = WindowAttention(channels, window, heads)
        self.norm2 = nn.LayerNorm(channels)
        self.mlp = MLP(channels, EXPANSION * channels)
        self.drop_path = DropPath(drop_path)

    def attend(self, x: jax.Array) -> jax.Array:
        (n, h, w, c), window = x.shape, self.window
        shift = tuple(self.shift if side > window else 0 for side in (h, w))
        x = F.pad(x, [0, -w % window, 0, -h % window])
        x = jnp.roll(x, (-shift[0], -shift[1]), (1, 2)) if any(shift) else x
        rows, columns = x.shape[1] // window, x.shape[2] // window
        regions = None
        if any(shift):
            down, across = (axis_regions(s, window, by) for s, by in zip(x.shape[1:3], shift))
            regions = 2 * down[:, None, :, None] + across[None, :, None, :]  # [rows, columns, window, window]
            regions = regions.reshape(rows * columns, window**2)
        x = x.reshape(n, rows, window, columns, window, c).transpose(0, 1, 3, 2, 4, 5)
        x = self.attn(x.reshape(n * rows * columns, window**2, c), regions)
        x = x.reshape(n, rows, columns, window, window, c).transpose(0, 1, 3, 2, 4, 5)
        x = x.reshape(n, rows * window, columns * window, c)
        x = jnp.roll(x, shift, (1, 2)) if any(shift) else x
        return x[:, :h, :w]

    def forward(self, x: jax.Array) -> jax.Array:
        x = x + self.drop_path(self.attend(self.norm1(x)))
        return x + self.drop_path(self.mlp(self.norm2(x)))


class PatchMerging(nn.Layer):
    """Squares of four pixels become one of twice the channels: [N, H, W, C] -> [N, ceil(H/2), ceil(W/2), 2 C]."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(4 * channels)
        self.reduction = narrow_linear(4 * channels, 2 * channels, bias=False)

    def forward(self, x: jax.Array) -> jax.Array:
        x = F.pad(x, [0, x.shape[2] % 2, 0, x.shape[1] % 2])
        n, h, w, c = x.shape
        x = x.reshape(n, h // 2, 2, w // 2, 2, c)
        x = x.transpose(0, 1, 3, 4, 2, 5)  # left above, left below, right above …
        return self.reduction(self.norm(x.reshape(n, h // 2, w // 2, 4 * c)))


class BasicLayer(nn.Layer):
    """The blocks of one stage; every second one shifts its windows. `downsample` leads to the next stage."""

    def __init__(self, channels: int, heads: int, window: int, rates: list[float], downsample: bool) -> None:
        super().__init__()
        self.blocks = nn.Sequential(
            [
                SwinTransformerBlock(channels, heads, window, window // 2 if i % 2 else 0, rate)
                for i, rate in enumerate(rates)
            ]
        )
        if downsample:
            self.downsample = PatchMerging(channels)

    def forward(self, x: jax.Array) -> jax.Array:
        return self.blocks(x)


class PatchEmbed(nn.Layer):
    """Patches of 4 by 4 pixels: [N, H, W, 3] -> [N, ceil(H/4), ceil(W/4), width]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.proj = nn.Conv2D(3, width, PATCH, PATCH)
        self.norm = nn.LayerNorm(width)

    def forward(self, x: jax.Array) -> jax.Array:
        x = F.pad(x, [0, -x.shape[2] % PATCH, 0, -x.shape[1] % PATCH])
        return self.norm(self.proj(x))


@register("model", config=SwinTransformerConfig)
@register("backbone", config=SwinTransformerConfig)
class SwinTransformer(Backbone[SwinTransformerConfig]):
    """Swin for [N, H, W, 3] of any size: logits [N, num_classes], or maps at strides 4, 8, 16 and 32."""

    state_renames = Names("zoo/weights/swin.yml", "SwinTransformer")

    # The number of windows is a number of the program.
    contract = Contract(inputs=("n", 64, 96, 3))

    def __init__(self, config: SwinTransformerConfig) -> None:
        super().__init__(config)
        size = config.parts
        widths = [size.width << i for i in range(len(size.depths))]
        self.patch_embed = PatchEmbed(size.width)
        self.layers = nn.LayerList()
        for i, rates in enumerate(drop_rates(size.drop_path_rate, size.depths)):
            stage = BasicLayer(widths[i], size.heads << i, size.window, rates, i + 1 < len(widths))
            self.layers.append(stage)
        if config.norm_maps:
            for i, width in enumerate(widths):
                self.add_sublayer(f"norm{i}", nn.LayerNorm(width))
        if config.num_classes:
            self.norm = nn.LayerNorm(widths[-1])
            self.head = narrow_linear(widths[-1], config.num_classes)
        self.features = tuple(Feature(width, PATCH << i) for i, width in enumerate(widths))

    def _maps(self, x: jax.Array) -> list[jax.Array]:
        maps = [self.layers[0](self.patch_embed(x))]  # [N, H/4, W/4, C]
        for before, stage in zip(self.layers, list(self.layers)[1:]):
            maps.append(stage(before.downsample(maps[-1])))  # half the size, twice the channels
        return maps

    def forward_features(self, x: jax.Array) -> tuple[jax.Array, ...]:
        """What the four stages give, normalised where `norm_maps` says so, finest first."""
        maps = self._maps(x)
        if self.config.norm_maps:
            maps = [getattr(self, f"norm{i}")(one) for i, one in enumerate(maps)]
        return tuple(maps)

    def forward(self, x: jax.Array) -> jax.Array | tuple[jax.Array, ...]:
        if not self.config.num_classes:
            return self.forward_features(x)
        return self.head(self.norm(self._maps(x)[-1]).mean((1, 2)))

    def set_state_dict(
        self, state: Mapping[str, ArrayLike], strict: bool = True
    ) -> tuple[list[str], list[str]]:
        """As every layer's; `state` may also be spelled as by microsoft or timm, with weights in Paddle's layouts.

        The position indices follow from the window and masks (`attn_mask`) from the image: those of `state` are left
        out. timm counts `downsample` to the stage behind it.
        """
        counts_ahead = f"layers.{len(self.features) - 1}.downsample.norm.weight" in state
        known = self.state_shapes()
        ours: dict[str, ArrayLike] = {
            name: position_index(VARIANTS[self.config.variant].window)
            for name in known
            if name.endswith(".relative_position_index")
        }
        for name, value in state.items():
            merging = re.fullmatch(r"layers\.(\d)\.(downsample\..+)", name)
            if merging and counts_ahead:
                name = f"layers.{int(merging[1]) - 1}.{merging[2]}"
            if not name.endswith((".attn_mask", ".relative_position_index")):
                ours[name] = value
        return super().set_state_dict(ours, strict)

    set_dict = load_dict = set_state_dict
