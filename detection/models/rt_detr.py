"""RT-DETR: a detector of queries that is fast enough for video and needs no suppression of doubles.

Paper: https://arxiv.org/abs/2304.08069
Reference: PaddlePaddle/PaddleDetection release/2.8 ppdet/modeling/transformers/rtdetr_transformer.py, configs/rtdetr
Differs: on images that are not square the places that become queries lie where their pixels are. The number of
    denoising queries is fixed, see detection/layers/denoising.py.
Weights: those of PaddleDetection load with 0 missing and 0 extra. `state_dict()` has its names, those of the backbone
    being PaddleClas's. Images are RGB divided by 255, without mean and deviation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from detection.assigners.hungarian import MatchingCosts
from detection.layers.deformable_attention import ShapesHW
from detection.layers.detr import MLP, DecoderLayer, logit
from detection.layers.hybrid_encoder import HybridEncoder
from detection.layers.pretrained_backbone import set_param_groups
from detection.layers.query_transformer import Decoder, QueryTransformer, Selection, flattened
from detection.models.query_detector import QueryDetector
from framework import nn
from framework.config import register
from framework.nn.reparam import Arrays, deploy_state, prefixed
from zoo.contracts import build_backbone
from zoo.layers.conv_bn import ConvBN
from zoo.layers.variants import check_variant
from zoo.vision.pp_hgnet_v2 import PPHGNetV2Config
from zoo.vision.resnet import ResNetConfig

CHANNELS, HIDDEN, HEADS, POINTS, LEVELS = 256, 1024, 8, 4, 3


class Size(NamedTuple):
    """`expansion` of the fusing blocks, and how the backbone is trained: `frozen` are starts of names."""

    backbone: str
    layers: int
    expansion: float
    rate: float
    frozen: tuple[str, ...]


# configs/rtdetr/rtdetr_{r18vd,r34vd,r50vd,hgnetv2_l}_6x_coco.yml of the reference; its table in the paper is table 2
VARIANTS: dict[str, Size] = {
    "r18": Size("resnet18_vd", 3, 0.5, 0.1, ()),
    "r34": Size("resnet34_vd", 4, 0.5, 0.1, ()),
    "r50": Size("resnet50_vd", 6, 1.0, 0.1, ("stem",)),
    "hgnetv2_l": Size("pphgnetv2_b4", 6, 1.0, 0.05, ("stem",)),
}
SMALL = "r18"


@dataclass(frozen=True)
class RTDETRConfig:
    """`num_denoising`: about how many objects with noise train the decoder beside the queries; `top_k` detections."""

    variant: str = "r50"
    num_classes: int = 80
    num_queries: int = 300
    num_denoising: int = 100
    top_k: int = 300
    deploy: bool = False


class RTDETRTransformer(QueryTransformer):
    """Projections of the encoder's maps, and a decoder whose queries are the best places of these."""

    def __init__(self, config: RTDETRConfig, layers: int) -> None:
        position = MLP(4, 2 * CHANNELS, CHANNELS, 2)
        super().__init__(CHANNELS, config.num_classes, config.num_queries, layers, position)
        self.input_proj = nn.LayerList(
            [
                ConvBN(CHANNELS, CHANNELS, 1, names=("conv", "norm"), deploy=config.deploy)
                for _ in range(LEVELS)
            ]
        )
        self.decoder = Decoder([DecoderLayer(CHANNELS, HEADS, HIDDEN, LEVELS, POINTS) for _ in range(layers)])

    def encode(self, maps: tuple[jax.Array, ...]) -> tuple[jax.Array, ShapesHW]:
        return flattened([project(x) for project, x in zip(self.input_proj, maps, strict=True)])

    def queries(self, selection: Selection) -> jax.Array:
        return jax.lax.stop_gradient(selection.features)

    def decode(
        self,
        queries: jax.Array,
        box_logits: jax.Array,
        memory: jax.Array,
        shapes_hw: ShapesHW,
        mask: jax.Array | None,
    ) -> tuple[jax.Array, jax.Array]:
        boxes, logits = [], []
        x, before = queries, jax.nn.sigmoid(box_logits)
        for layer, box_head, score_head in zip(self.decoder.layers, self.dec_bbox_head, self.dec_score_head):
            start = jax.lax.stop_gradient(before)
            x = layer(x, self.query_pos_head(start), start, memory, shapes_hw, mask)
            step = box_head(x)
            # The loss of a layer reaches the layer before it too: "look forward twice" of DINO, section 3.5.
            boxes.append(jax.nn.sigmoid(step + logit(before)))
            logits.append(score_head(x))
            before = jax.nn.sigmoid(step + logit(start))
        return jnp.stack(boxes), jnp.stack(logits)


@register("model", config=RTDETRConfig)
class RTDETR(QueryDetector):
    """Images [N, H, W, 3], sides a multiple of 32.

    Raises:
        ConfigError: the variant is unknown.
    """

    def __init__(self, config: RTDETRConfig) -> None:
        check_variant("RTDETR", config.variant, VARIANTS)
        super().__init__(config.num_denoising, config.top_k, varifocal=True, costs=MatchingCosts())
        self.config, size = config, VARIANTS[config.variant]
        if size.backbone.startswith("resnet"):
            backbone = build_backbone(ResNetConfig(size.backbone))
        else:
            backbone = build_backbone(PPHGNetV2Config(size.backbone, deploy=config.deploy))
        set_param_groups(backbone, size.rate, size.frozen, freeze_norms=bool(size.frozen))
        self.backbone = backbone
        channels = [feature.channels for feature in backbone.features[1:]]
        self.transformer = RTDETRTransformer(config, size.layers)
        self.neck = HybridEncoder(channels, CHANNELS, HIDDEN, size.expansion, config.deploy)

    def deploy_state(self) -> Arrays:
        state = prefixed("transformer", deploy_state(self.transformer))
        state |= prefixed("neck", deploy_state(self.neck))
        if hasattr(self.backbone.config, "deploy"):
            return state | prefixed("backbone", deploy_state(self.backbone))
        return state | prefixed("backbone", {k: np.asarray(v) for k, v in self.backbone.state_dict().items()})

    def memory(self, images: jax.Array) -> tuple[jax.Array, ShapesHW]:
        return self.transformer.encode(self.neck(self.backbone.forward_features(images)[1:]))
