"""TextRecognizer: a line of text as CTC logits, with the backbones and encoders of the PP-OCR recognisers.

Paper: PP-OCRv6, https://arxiv.org/abs/2606.13108; CTC, Graves et al. 2006
Reference: PaddlePaddle/PaddleOCR configs/rec/PP-OCRv{3,4,5,6}/*.yml (SVTR_LCNet, SVTR_HGNet)
Differs: channels last; forward gives logits in training and in eval, where upstream gives probabilities in eval.
    The v5 server model has no `backbone.last_conv` and `backbone.fc`, which upstream's checkpoint holds unused.
Weights: official `.pdparams` by name, official exported programs by order; see framework/workflow/domain/weights.py.

    backbone   one row of features, a column for every 8 pixels
    head       encoder along the row, then a classifier of each column
               in training, with `gtc`: an attention decoder on the same row
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import jax
import numpy as np

from framework import nn
from framework.config import Kind, register
from framework.core.errors import ShapeError
from ocr.layers.ctc_head import CTCHeadConfig, EncoderConfig, MultiHead, ReshapeConfig, greedy
from ocr.layers.nrtr import NRTRConfig
from ocr.layers.svtr import LightSVTRConfig, SVTREncoderConfig
from zoo.contracts import BackboneConfig, Contract, build_backbone
from zoo.layers.variants import VariantConfig
from zoo.vision.mobilenet_v1_enhance import MobileNetV1EnhanceConfig
from zoo.vision.pp_hgnet import PPHGNetConfig
from zoo.vision.pp_hgnet_v2 import PPHGNetV2Config
from zoo.vision.pp_lcnet_v3 import PPLCNetV3Config
from zoo.vision.pp_lcnet_v4 import PPLCNetV4Config

__all__ = ["GuidedLogits", "LineOutputs", "TextRecognizer", "TextRecognizerConfig", "greedy"]


class Parts(NamedTuple):
    """What a recogniser is made of; `gtc` is built for guided training only."""

    backbone: BackboneConfig
    encoder: EncoderConfig
    head: CTCHeadConfig
    gtc: NRTRConfig
    num_classes: int


# PP-OCRv4 and v5 mobile are one network, the server models differ in the backbone. The classes are blank,
# ppocr_keys_v1.txt (documents: ppocrv4_doc_dict.txt, v5: ppocrv5_dict.txt), and a space.
_V4_MOBILE = Parts(
    PPLCNetV3Config(form="line"), SVTREncoderConfig(), CTCHeadConfig(), NRTRConfig(dims=384), 6625
)

_V4_SERVER = _V4_MOBILE._replace(backbone=PPHGNetConfig("pphgnet_small", form="line"))

# PaddleOCR configs/rec/PP-OCRv6; the classes are blank, ppocrv6_dict.txt or ppocrv6_tiny_dict.txt, and a space
VARIANTS: dict[str, Parts] = {
    "PP-OCRv3_mobile_rec": _V4_MOBILE._replace(
        backbone=MobileNetV1EnhanceConfig(), encoder=SVTREncoderConfig(dims=64, kernel_size=(3, 3))
    ),
    "PP-OCRv4_mobile_rec": _V4_MOBILE,
    "PP-OCRv4_server_rec": _V4_SERVER,
    "PP-OCRv4_server_rec_doc": _V4_SERVER._replace(num_classes=15631),
    "PP-OCRv5_mobile_rec": _V4_MOBILE._replace(num_classes=18385),
    "PP-OCRv5_server_rec": _V4_MOBILE._replace(
        backbone=PPHGNetV2Config("pphgnetv2_b4", form="line"), num_classes=18385
    ),
    "PP-OCRv6_tiny_rec": Parts(
        PPLCNetV4Config("pplcnetv4_tiny", form="line"),
        ReshapeConfig(),
        CTCHeadConfig(mid_channels=80, guide=True),
        NRTRConfig(dims=384),
        6906,
    ),
    "PP-OCRv6_small_rec": Parts(
        PPLCNetV4Config("pplcnetv4_small", form="line"),
        LightSVTRConfig(dims=120, mlp_ratio=2.0),
        CTCHeadConfig(),
        NRTRConfig(dims=384),
        18710,
    ),
    "PP-OCRv6_medium_rec": Parts(
        PPLCNetV4Config("pplcnetv4_medium", form="line"),
        LightSVTRConfig(dims=192, mlp_ratio=4.0),
        CTCHeadConfig(),
        NRTRConfig(dims=512),
        18710,
    ),
}


@dataclass(frozen=True)
class TextRecognizerConfig(VariantConfig[Parts], table=VARIANTS):
    """`variant` names the parts; a part given here takes the place of the variant's.

    `num_classes` counts the blank. `guided` builds the attention decoder that only training uses, `deploy` the
    re-parameterised form, which has none. `centers` keeps a mean of the features of each class, for the centre loss.
    """

    variant: str = "PP-OCRv6_small_rec"
    num_classes: int | None = None
    backbone: Annotated[BackboneConfig, Kind("backbone")] | None = None
    encoder: EncoderConfig | None = None
    head: CTCHeadConfig | None = None
    gtc: NRTRConfig | None = None
    guided: bool = False
    centers: bool = False
    deploy: bool = False


class GuidedLogits(NamedTuple):
    """Both branches in training.

    Attributes:
        ctc: [N, T, num_classes].
        gtc: [N, L, num_classes + 4]; entry t predicts tokens[:, t + 1].
    """

    ctc: jax.Array
    gtc: jax.Array


class LineOutputs(NamedTuple):
    """What losses of several parts see.

    Attributes:
        row: [N, 1, T, C] of the backbone.
        features: [N, T, D], what the last matrix of the CTC head takes.
        ctc: [N, T, num_classes].
        gtc: As of GuidedLogits; None without tokens.
    """

    row: jax.Array
    features: jax.Array
    ctc: jax.Array
    gtc: jax.Array | None


@register("model", config=TextRecognizerConfig)
class TextRecognizer(nn.Model[TextRecognizerConfig]):
    """[N, 48, W, 3] -> CTC logits [N, W // 8, num_classes]."""

    # What checkpoints of the guided training form hold and other forms do not; that of PP-OCRv3 has SAR as its guide,
    # and that of the v5 server model the backbone's classifier, which nothing calls.
    training_only = (
        "head.before_gtc.",
        "head.gtc_head.",
        "head.sar_head.",
        "backbone.last_conv.",
        "backbone.fc.",
        "centers",
    )
    example_shape = (1, 48, 64, 3)
    contract = Contract(
        # The other sizes differ in their parts, so some are compiled too.
        compiled=("PP-OCRv6_tiny_rec", "PP-OCRv3_mobile_rec", "PP-OCRv6_small_rec"),
        outputs=lambda layer, n, h, w: [(n, w // 8, layer.config.parts.num_classes)],
    )

    def __init__(self, config: TextRecognizerConfig) -> None:
        super().__init__(config)
        parts = config.parts
        self.backbone = build_backbone(parts.backbone, config.deploy)
        self.head = MultiHead(
            parts.encoder,
            parts.head,
            parts.gtc if config.guided else None,
            self.backbone.features[-1].channels,
            parts.num_classes,
            config.deploy,
        )
        if config.centers:
            size = (parts.num_classes, self.head.ctc_head.feature_channels)
            self.register_buffer("centers", np.zeros(size, np.float32))

    def forward(self, x: jax.Array) -> jax.Array:
        return self.head(self._row(x))  # [N, T, num_classes]

    def read(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """`greedy` of the logits, which are never all in memory: int32 [N, T] and float32 [N, T]."""
        return self.head.read(self._row(x))

    def forward_guided(self, x: jax.Array, tokens: jax.Array) -> GuidedLogits:
        """Both branches; `tokens` int [N, L + 1] are the targets of the decoder, see NRTRDecoder."""
        row = self._row(x)
        return GuidedLogits(self.head(row), self.head.guide(row, tokens))

    def forward_parts(self, x: jax.Array, tokens: jax.Array | None = None) -> LineOutputs:
        """All that a loss may ask for; `tokens` as of `forward_guided`."""
        row = self._row(x)
        features, ctc = self.head.features_and_logits(row)
        return LineOutputs(row, features, ctc, None if tokens is None else self.head.guide(row, tokens))

    def _row(self, x: jax.Array) -> jax.Array:
        if x.ndim != 4 or x.shape[3] != 3:
            raise ShapeError(
                "TextRecognizer takes color images", received=x.shape, allowed="[N, 48, W, 3], channels last"
            )
        return self.backbone(x)[-1]  # [N, 1, T, C]
