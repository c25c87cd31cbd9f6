"""Vision Transformer and DeiT: attention among patches of the image and one or two tokens that gather the answer.

Paper: Dosovitskiy et al. 2021, https://arxiv.org/abs/2010.11929
    DeiT: Touvron et al. 2021, https://arxiv.org/abs/2012.12877
Reference: PaddlePaddle/PaddleClas ppcls/arch/backbone/model_zoo/{vision_transformer,distilled_vision_transformer}.py
Differs: nothing in the function computed.
Weights: PaddleClas' `ViT_*` and `DeiT_*`; `state_dict()` has their names, which are also timm's and DeiT's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from framework.core.errors import ConfigError, ShapeError
from framework.hub.names import Names
from zoo.contracts import Backbone, Contract, Feature
from zoo.layers.attention import Attention
from zoo.layers.mlp import MLP, NARROW, DropPath, drop_rates, narrow_linear
from zoo.layers.variants import VariantConfig


class Size(NamedTuple):
    """`scaled` takes ScaledAttention. `params` of 1000 classes."""

    width: int
    depth: int
    heads: int
    params: int
    patch: int = 16
    image: int = 224
    mlp_ratio: int = 4
    epsilon: float = 1e-6
    scaled: bool = False
    distilled: bool = False


# table 1 of ViT, table 1 of DeiT; "small" is that of timm before 2021, which PaddleClas keeps.
# `params`: torchvision's `num_params` of vit_b_16 (with SWAG weights also for 384 pixels) and vit_l_16; counted on
# PaddleClas's ViT_small_patch16_224 and on timm 1.0.31's models for the others.
VARIANTS: dict[str, Size] = {
    "deit_tiny": Size(192, 12, 3, 5_717_416),
    "deit_small": Size(384, 12, 6, 22_050_664),
    "deit_base": Size(768, 12, 12, 86_567_656),
    "deit_base_384": Size(768, 12, 12, 86_859_496, image=384),
    "deit_tiny_distilled": Size(192, 12, 3, 5_910_800, distilled=True),
    "deit_small_distilled": Size(384, 12, 6, 22_436_432, distilled=True),
    "deit_base_distilled": Size(768, 12, 12, 87_338_192, distilled=True),
    "deit_base_distilled_384": Size(768, 12, 12, 87_630_032, image=384, distilled=True),
    "vit_small_patch16": Size(768, 8, 8, 48_754_408, mlp_ratio=3, epsilon=1e-5, scaled=True),
    "vit_base_patch16": Size(768, 12, 12, 86_567_656),
    "vit_base_patch16_384": Size(768, 12, 12, 86_859_496, image=384),
    "vit_base_patch32_384": Size(768, 12, 12, 88_297_192, patch=32, image=384),
    "vit_large_patch16": Size(1024, 24, 16, 304_326_632),
    "vit_large_patch16_384": Size(1024, 24, 16, 304_715_752, image=384),
    "vit_large_patch32_384": Size(1024, 24, 16, 306_632_680, patch=32, image=384),
}


@dataclass(frozen=True)
class VisionTransformerConfig(VariantConfig[Size], table=VARIANTS):
    """`image_size` is the side of the square images in pixels; None is the variant's.

    `drop_path_rate` is the last block's; the others' rise to it from 0.
    """

    variant: str = "vit_base_patch16"
    num_classes: int = 1000
    image_size: int | None = None
    drop_path_rate: float = 0.1


class ScaledAttention(Attention):
    """That of timm before 2021: no biases of queries, keys and values, and products times 1 / sqrt(width)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__(width, heads, linear=lambda near, far: narrow_linear(near, far, bias=near == far))
        self.factor = heads**-0.5  # the functional divides by sqrt(D) itself

    def project(self, x: jax.Array) -> list[jax.Array]:
        query, *memory = super().project(x)
        return [query * self.factor, *memory]


class Block(nn.Layer):
    """Attention and MLP on [N, T, C], each on the normalised tokens and added to them."""

    def __init__(self, size: Size, drop_path: float) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(size.width, size.epsilon)
        self.attn = (ScaledAttention if size.scaled else Attention)(size.width, size.heads)
        self.norm2 = nn.LayerNorm(size.width, size.epsilon)
        self.mlp = MLP(size.width, size.mlp_ratio * size.width)
        self.drop_path = DropPath(drop_path)

    def forward(self, x: jax.Array) -> jax.Array:
        x = x + self.drop_path(self.attn(self.norm1(x)))
        return x + self.drop_path(self.mlp(self.norm2(x)))


@register("model", config=VisionTransformerConfig)
@register("backbone", config=VisionTransformerConfig)
class VisionTransformer(Backbone[VisionTransformerConfig]):
    """ViT or DeiT for [N, S, S, 3]: logits [N, num_classes], or the patches as one map at the patch's stride.

    The logits of a distilled variant are the mean of its two classifiers', in training too.
    """

    state_renames = Names("zoo/weights/vit.yml", "VisionTransformer")

    contract = Contract(fields={"image_size": 64}, inputs=("n", 64, 64, 3))

    def __init__(self, config: VisionTransformerConfig) -> None:
        super().__init__(config)
        size = VARIANTS[config.variant]
        self.size = size
        self.image_size = size.image if config.image_size is None else config.image_size
        if self.image_size < size.patch or self.image_size % size.patch:
            raise ConfigError(
                "the image does not divide into patches",
                where="VisionTransformerConfig.image_size",
                received=self.image_size,
                allowed=f"a multiple of {size.patch}",
            )
        self.extra_tokens = 2 if size.distilled else 1
        patches = (self.image_size // size.patch) ** 2
        # A linear layer on the pixels of each patch
        self.patch_embed = nn.Sequential(("proj", nn.Conv2D(3, size.width, size.patch, size.patch)))
        self.cls_token = self.create_parameter((1, 1, size.width), NARROW)
        if size.distilled:
            self.dist_token = self.create_parameter((1, 1, size.width), NARROW)
        self.pos_embed = self.create_parameter((1, patches + self.extra_tokens, size.width), NARROW)
        rates = drop_rates(config.drop_path_rate, [size.depth])[0]
        self.blocks = nn.Sequential([Block(size, rate) for rate in rates])
        self.norm = nn.LayerNorm(size.width, size.epsilon)
        if config.num_classes:
            self.head = narrow_linear(size.width, config.num_classes)
            if size.distilled:
                self.head_dist = narrow_linear(size.width, config.num_classes)
        self.features = (Feature(size.width, size.patch),)

    def tokens(self, x: jax.Array) -> jax.Array:
        """The normalised tokens [N, extra_tokens + patches, width]; class and distillation tokens come first.

        Raises:
            ShapeError: the image is not of the size that the position embedding was made for.
        """
        if tuple(x.shape[1:3]) != (self.image_size, self.image_size):
            raise ShapeError(
                "the position embedding is for images of one size",
                where=type(self).__name__,
                received=f"height {x.shape[1]}, width {x.shape[2]}",
                allowed=f"{self.image_size} by {self.image_size}",
                fix="resize the images, or build the model with another image_size and train it",
            )
        x = self.patch_embed(x)  # [N, S/patch, S/patch, C]
        n, h, w, c = x.shape
        first = [self.cls_token, self.dist_token] if self.size.distilled else [self.cls_token]
        first = [jnp.broadcast_to(token, (n, 1, c)).astype(x.dtype) for token in first]
        x = jnp.concatenate([*first, x.reshape(n, h * w, c)], axis=1) + self.pos_embed  # [N, T, C]
        return self.norm(self.blocks(x))

    def forward_features(self, x: jax.Array) -> tuple[jax.Array, ...]:
        """One map [N, S / patch, S / patch, width] of normalised patches."""
        x = self.tokens(x)[:, self.extra_tokens :]
        side = self.image_size // self.size.patch
        return (x.reshape(x.shape[0], side, side, self.size.width),)

    def forward(self, x: jax.Array) -> jax.Array | tuple[jax.Array, ...]:
        if not self.config.num_classes:
            return self.forward_features(x)
        x = self.tokens(x)
        logits = self.head(x[:, 0])
        return (logits + self.head_dist(x[:, 1])) / 2 if self.size.distilled else logits
