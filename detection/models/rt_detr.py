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
from functools import partial
from typing import NamedTuple

import jax

from detection.contracts import DetectorContract
from detection.layers.backbone import set_param_groups
from detection.layers.deformable_attention import ShapesHW
from detection.layers.detr import MLP, DecoderLayer
from detection.layers.hybrid_encoder import HybridEncoder
from detection.layers.query_transformer import Decoder, QueryTransformer, Selection, flatten_levels
from detection.models.query_detector import QueryDetector, QueryDetectorConfig
from framework import nn
from framework.config import register
from zoo.layers.conv_bn import ConvBN, ConvBNOptions
from zoo.layers.variants import check_variant
from zoo.vision.pp_hgnet_v2 import PPHGNetV2Config
from zoo.vision.resnet import ResNetConfig

CHANNELS, HIDDEN, HEADS, POINTS, LEVELS = 256, 1024, 8, 4, 3


class Size(NamedTuple):
    """Layers of the decoder, `expansion` of the fusing blocks, how the backbone is trained, what is published.

    `rate` multiplies the learning rate, `frozen` are starts of names; `entries` are those of the published state, and
    `params` its numbers without running statistics.
    """

    backbone: ResNetConfig | PPHGNetV2Config
    layers: int
    expansion: float
    rate: float
    frozen: tuple[str, ...]
    entries: int
    params: int


# configs/rtdetr/rtdetr_{r18vd,r34vd,r50vd,hgnetv2_l}_6x_coco.yml of the reference; its table in the paper is table 2
VARIANTS: dict[str, Size] = {
    "r18": Size(ResNetConfig("resnet18_vd"), 3, 0.5, 0.1, (), 464, 20_184_208),
    "r34": Size(ResNetConfig("resnet34_vd"), 4, 0.5, 0.1, (), 574, 31_441_412),
    "r50": Size(ResNetConfig("resnet50_vd"), 6, 1.0, 0.1, ("stem",), 694, 42_944_364),
    "hgnetv2_l": Size(PPHGNetV2Config("pphgnetv2_b4"), 6, 1.0, 0.05, ("stem",), 819, 32_970_476),
}


@dataclass(frozen=True)
class RTDETRConfig(QueryDetectorConfig):
    """`deploy` folds the normalisations into convolutions, where the backbone has such a form its own too."""

    variant: str = "r50"
    deploy: bool = False


class RTDETRTransformer(QueryTransformer):
    """Projections of the encoder's maps, and a decoder whose queries are the best places of these."""

    def __init__(self, config: RTDETRConfig, layers: int) -> None:
        position = MLP(4, 2 * CHANNELS, CHANNELS, 2)
        super().__init__(CHANNELS, config.num_classes, config.num_queries, layers, position)
        options = ConvBNOptions(names=("conv", "norm"), deploy=config.deploy)
        project = partial(ConvBN, CHANNELS, CHANNELS, 1, options=options)
        self.input_proj = nn.LayerList([project() for _ in range(LEVELS)])
        self.decoder = Decoder([DecoderLayer(CHANNELS, HEADS, HIDDEN, LEVELS, POINTS) for _ in range(layers)])

    def encode(self, maps: tuple[jax.Array, ...]) -> tuple[jax.Array, ShapesHW]:
        return flatten_levels([project(x) for project, x in zip(self.input_proj, maps, strict=True)])

    def queries(self, selection: Selection) -> jax.Array:
        return jax.lax.stop_gradient(selection.features)


@register("model", config=RTDETRConfig)
class RTDETR(QueryDetector[RTDETRConfig]):
    """Images [N, H, W, 3], sides a multiple of 32.

    Raises:
        ConfigError: the variant is unknown.
    """

    contract = DetectorContract(bfloat16=0.15, selects=True)

    def __init__(self, config: RTDETRConfig) -> None:
        check_variant("RTDETR", config.variant, VARIANTS)
        size = VARIANTS[config.variant]
        super().__init__(config, size.backbone, True, config.deploy)
        set_param_groups(self, size.rate, size.frozen, freeze_norms=bool(size.frozen))
        self.transformer = RTDETRTransformer(config, size.layers)
        self.neck = HybridEncoder(self.in_channels, CHANNELS, HIDDEN, size.expansion, config.deploy)

    def memory(self, images: jax.Array) -> tuple[jax.Array, ShapesHW]:
        return self.transformer.encode(self.neck(self.extract(images)))
