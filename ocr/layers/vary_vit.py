"""The image encoder of SAM as Vary and GOT-OCR have it: a plain vision transformer whose blocks look within windows,
four of them everywhere, with positions relative along rows and along columns; convolutions then quarter its map.

Paper: SAM, https://arxiv.org/abs/2304.02643; ViTDet, https://arxiv.org/abs/2203.16527, section 3
    decomposed relative positions: MViTv2, https://arxiv.org/abs/2112.01526, section 4.1; Vary, https://arxiv.org/abs/2312.06109
Reference: PaddlePaddle/PaddleOCR ppocr/modeling/backbones/rec_vary_vit.py (Vary_VIT_B)
Differs: channels last. Upstream ignores the widths and depths of its configuration, which are taken here.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from framework import nn
from framework.core.errors import ConfigError, ShapeError
from framework.nn import functional as F
from zoo.layers.attention import AttentionBase
from zoo.layers.mlp import MLP

PATCH = 16
_WINDOW = 14
_NECK, _MIDDLE, _LAST = 256, 512, 1024  # channels of the neck and of the two strided convolutions
_MLP_RATIO = 4
_EPSILON = 1e-6


@dataclass(frozen=True)
class VaryViTConfig:
    """`global_layers` are the numbers of the blocks that look everywhere, from 0; `image_size` the side in pixels."""

    image_size: int = 512
    width: int = 768
    depth: int = 12
    heads: int = 12
    global_layers: tuple[int, ...] = (2, 5, 8, 11)


class RelativeAttention(AttentionBase):
    """Self-attention of maps [N, H, W, C] with a bias of each offset along rows and along columns."""

    def __init__(self, channels: int, heads: int, size: int) -> None:
        """`size` is the side of the maps."""
        super().__init__(channels, heads, linear=nn.Linear)
        self.size = size
        zeros = nn.initializer.Constant(0.0)
        self.rel_pos_h = self.create_parameter((2 * size - 1, channels // heads), zeros)
        self.rel_pos_w = self.create_parameter((2 * size - 1, channels // heads), zeros)

    def forward(self, x: jax.Array) -> jax.Array:
        n, h, w, c = x.shape
        query, key, value = self.project(x.reshape(n, h * w, c))
        bias = self._bias(query.reshape(n, h, w, self.heads, c // self.heads))
        out = F.scaled_dot_product_attention(query, key, value, bias, training=self.training)
        return self.proj(out.reshape(n, h, w, c))

    def _bias(self, query: jax.Array) -> jax.Array:
        """[N, H, W, heads, D] -> [N, heads, H*W, H*W]: of queries, not scaled, with the vectors of offsets."""
        n, h, w, heads, _ = query.shape
        places = np.arange(self.size)
        offsets = places[:, None] - places[None, :] + self.size - 1  # [query, key]
        rows = jnp.einsum("nhwad,hkd->nahwk", query, self.rel_pos_h[offsets].astype(query.dtype))
        columns = jnp.einsum("nhwad,wkd->nahwk", query, self.rel_pos_w[offsets].astype(query.dtype))
        bias = rows[..., :, None] + columns[..., None, :]  # [N, heads, H, W, H, W]
        return bias.reshape(n, heads, h * w, h * w)


class Block(nn.Layer):
    """Attention and MLP of a map [N, H, W, C], each on the normalised map and added to it.

    With `window` the map is cut into squares of that side, with zeros added to the right and at the bottom of those
    that reach over its edge; zeros take part in the attention, as upstream has it.
    """

    def __init__(self, config: VaryViTConfig, side: int, window: int) -> None:
        super().__init__()
        self.window = window
        self.norm1 = nn.LayerNorm(config.width, _EPSILON)
        self.attn = RelativeAttention(config.width, config.heads, window or side)
        self.norm2 = nn.LayerNorm(config.width, _EPSILON)
        self.mlp = MLP(config.width, _MLP_RATIO * config.width, names=("lin1", "lin2"), linear=nn.Linear)

    def forward(self, x: jax.Array) -> jax.Array:
        x = x + self._attend(self.norm1(x))
        return x + self.mlp(self.norm2(x))

    def _attend(self, x: jax.Array) -> jax.Array:
        if not self.window:
            return self.attn(x)
        n, h, w, c = x.shape
        rows, columns = -(-h // self.window), -(-w // self.window)
        edges = ((0, 0), (0, rows * self.window - h), (0, columns * self.window - w), (0, 0))
        cut = jnp.pad(x, edges).reshape(n, rows, self.window, columns, self.window, c)
        cut = cut.swapaxes(2, 3).reshape(n * rows * columns, self.window, self.window, c)
        out = self.attn(cut).reshape(n, rows, columns, self.window, self.window, c)
        out = out.swapaxes(2, 3).reshape(n, rows * self.window, columns * self.window, c)
        return out[:, :h, :w]


class ImageEncoder(nn.Layer):
    """[N, S, S, 3] -> [N, S/32, S/32, 512].

    `net_3`, which would quarter the map again, is in the checkpoints of tables too, and is not called for them.
    """

    def __init__(self, config: VaryViTConfig) -> None:
        super().__init__()
        self.config, side = config, config.image_size // PATCH
        self.patch_embed = nn.Sequential(("proj", nn.Conv2D(3, config.width, PATCH, PATCH)))
        self.pos_embed = self.create_parameter((1, side, side, config.width), nn.initializer.Constant(0.0))
        self.blocks = nn.LayerList(
            [
                Block(config, side, 0 if number in config.global_layers else _WINDOW)
                for number in range(config.depth)
            ]
        )
        self.neck = nn.Sequential(
            nn.Conv2D(config.width, _NECK, 1, bias_attr=False),
            nn.LayerNorm(_NECK, _EPSILON),
            nn.Conv2D(_NECK, _NECK, 3, padding=1, bias_attr=False),
            nn.LayerNorm(_NECK, _EPSILON),
        )
        self.net_2 = nn.Conv2D(_NECK, _MIDDLE, 3, stride=2, padding=1, bias_attr=False)
        self.net_3 = nn.Conv2D(_MIDDLE, _LAST, 3, stride=2, padding=1, bias_attr=False)

    def forward(self, x: jax.Array) -> jax.Array:
        side = self.config.image_size
        if tuple(x.shape[1:3]) != (side, side):
            raise ShapeError(
                "the position embedding is for images of one size",
                where="VaryViT",
                received=f"height {x.shape[1]}, width {x.shape[2]}",
                allowed=f"{side} by {side}",
                fix="resize and pad the images, or build the model with another image_size and train it",
            )
        x = self.patch_embed(x) + self.pos_embed  # [N, S/16, S/16, C]
        for block in self.blocks:
            x = block(x)
        return self.net_2(self.neck(x))


class VaryViT(nn.Layer):
    """[N, S, S, 3] -> the places of the coarse map, row by row: [N, (S/32)**2, 512].

    Raises:
        ConfigError: the image does not divide into patches that can be halved. ShapeError: an image of another size.
    """

    out_channels = _MIDDLE

    def __init__(self, config: VaryViTConfig) -> None:
        super().__init__()
        if config.image_size < 2 * PATCH or config.image_size % (2 * PATCH):
            raise ConfigError(
                "the image does not divide into pairs of patches",
                where="image_size",
                received=config.image_size,
                allowed=f"a multiple of {2 * PATCH}",
            )
        self.vision_tower_high = ImageEncoder(config)

    def forward(self, x: jax.Array) -> jax.Array:
        x = self.vision_tower_high(x)
        return x.reshape(x.shape[0], -1, x.shape[-1])
