"""DBNet: text detection by differentiable binarization, with the backbones and necks of the papers and of PP-OCR.

Paper: DB, https://arxiv.org/abs/1911.08947; DBNet++, https://arxiv.org/abs/2202.10304; PP-OCRv6, https://arxiv.org/abs/2606.13108
Reference: PaddlePaddle/PaddleOCR configs/det/*.yml
Differs: channels last; maps have no channel axis. The v5 server model has no `backbone.last_conv`, which upstream's
    checkpoint holds unused.
Weights: official `.pdparams` by name, official exported programs by order; see framework/workflow/domain/weights.py.

    backbone   4 maps at strides 4, 8, 16, 32
    neck       top-down pyramid, joined at stride 4
    head       probability map at the size of the input; in training threshold and binary maps too
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import jax

from framework import nn
from framework.config import Kind, register
from framework.core.errors import ShapeError
from ocr.layers.db_fpn import DBFPN, DBFPNConfig
from ocr.layers.db_head import DBHead, DBHeadConfig, DBMaps
from ocr.layers.lk_pan import LKPAN, LKPANConfig
from ocr.layers.pyramid import RSEFPN, RSEFPNConfig
from ocr.layers.rep_lk import RepLKFPN, RepLKFPNConfig, RepLKPAN, RepLKPANConfig
from zoo.contracts import BackboneConfig, Contract, build_backbone
from zoo.layers.variants import VariantConfig
from zoo.vision.deformable_resnet import DeformableResNetConfig
from zoo.vision.mobilenet_v3 import MobileNetV3Config
from zoo.vision.pp_hgnet import PPHGNetConfig
from zoo.vision.pp_hgnet_v2 import PPHGNetV2Config
from zoo.vision.pp_lcnet_v3 import PPLCNetV3Config
from zoo.vision.pp_lcnet_v4 import PPLCNetV4Config
from zoo.vision.resnet import ResNetConfig

NeckConfig = DBFPNConfig | RSEFPNConfig | LKPANConfig | RepLKFPNConfig | RepLKPANConfig
NECKS = {"DBFPN": DBFPN, "RSEFPN": RSEFPN, "LKPAN": LKPAN, "RepLKFPN": RepLKFPN, "RepLKPAN": RepLKPAN}


class Parts(NamedTuple):
    """What a detector is made of."""

    backbone: BackboneConfig
    neck: NeckConfig
    head: DBHeadConfig


_SERVER_HEAD = DBHeadConfig(local="large")
_V6_HEAD = DBHeadConfig(auxiliary=True)
# PP-OCRv4 and v5 are one network with different weights.
_V5_MOBILE = Parts(PPLCNetV3Config("pplcnetv3_x0_75", form="page"), RSEFPNConfig(), DBHeadConfig())

# PaddleOCR configs/det/{det_r50_vd_db,det_r50_db++_icdar15}.yml and {PP-OCRv3,PP-OCRv4,PP-OCRv5,PP-OCRv6}
VARIANTS: dict[str, Parts] = {
    "PP-OCRv3_mobile_det": Parts(
        MobileNetV3Config("mobilenetv3_large_x0_5", form="page", squeeze=False),
        RSEFPNConfig(),
        DBHeadConfig(),
    ),
    "PP-OCRv4_mobile_det": _V5_MOBILE,
    "PP-OCRv4_server_det": Parts(PPHGNetConfig("pphgnet_small"), LKPANConfig(), _SERVER_HEAD),
    "PP-OCRv5_mobile_det": _V5_MOBILE,
    "PP-OCRv5_server_det": Parts(PPHGNetV2Config("pphgnetv2_b4"), LKPANConfig(), _SERVER_HEAD),
    "PP-OCRv6_tiny_det": Parts(
        PPLCNetV4Config("pplcnetv4_tiny"), RepLKFPNConfig(out_channels=64, kernel_size=5), _V6_HEAD
    ),
    "PP-OCRv6_small_det": Parts(
        PPLCNetV4Config("pplcnetv4_small"), RepLKFPNConfig(out_channels=96, kernel_size=7), _V6_HEAD
    ),
    "PP-OCRv6_medium_det": Parts(
        PPLCNetV4Config("pplcnetv4_medium"), RepLKPANConfig(out_channels=256), _V6_HEAD
    ),
    "DB_R50_vd": Parts(ResNetConfig("resnet50_vd"), DBFPNConfig(), DBHeadConfig()),
    "DB++_R50": Parts(DeformableResNetConfig("resnet50_dcn"), DBFPNConfig(asf=True), DBHeadConfig()),
}


@dataclass(frozen=True)
class DBNetConfig(VariantConfig[Parts], table=VARIANTS):
    """`variant` names the parts; a part given here takes the place of the variant's.

    `deploy` builds the re-parameterised form, which gives the probability map alone.
    """

    variant: str = "PP-OCRv6_small_det"
    backbone: Annotated[BackboneConfig, Kind("backbone")] | None = None
    neck: NeckConfig | None = None
    head: DBHeadConfig | None = None
    deploy: bool = False


def _shapes(model: DBNet, shape: tuple[int, int, int]) -> list[tuple[int, ...]]:
    """The maps of one probability, in training with threshold and binary map, twelve with an auxiliary head."""
    if not model.training or model.config.deploy:
        return [shape]
    return [shape] * (12 if model.config.parts.head.auxiliary else 3)


@register("model", config=DBNetConfig)
class DBNet(nn.Model[DBNetConfig]):
    """[N, H, W, 3] -> DBMaps of [N, H, W]. H and W are multiples of 32."""

    # What checkpoints of the training form hold and the deploy form does not, and what upstream's hold unused.
    training_only = ("head.thresh.", "head.aux_binarize_", "head.aux_thresh_", "backbone.last_conv.")
    example_shape = (1, 64, 64, 3)
    contract = Contract(
        compiled=("PP-OCRv6_tiny_det", "PP-OCRv3_mobile_det"),
        outputs=lambda layer, n, h, w: _shapes(layer, (n, h, w)),
    )

    def __init__(self, config: DBNetConfig) -> None:
        super().__init__(config)
        backbone, neck, head = config.parts
        self.backbone = build_backbone(backbone, config.deploy)
        in_channels = [feature.channels for feature in self.backbone.features]
        self.neck = NECKS[neck.kind](neck, in_channels, config.deploy)  # type: ignore[arg-type]
        self.head = DBHead(head, self.neck.out_channels, config.deploy)

    def forward(self, x: jax.Array) -> DBMaps:
        if x.ndim != 4 or x.shape[3] != 3 or x.shape[1] % 32 != 0 or x.shape[2] % 32 != 0:
            raise ShapeError(
                "DBNet takes images whose sides are multiples of 32",
                received=x.shape,
                allowed="[N, 32 * h, 32 * w, 3]",
                fix="resize the image to multiples of 32, or pad it",
            )
        maps = self.backbone(x)  # [N, H/4, W/4, C1] to [N, H/32, W/32, C4]
        pyramid = self.neck(maps)  # [N, H/4, W/4, C]
        return self.head(pyramid)  # [N, H, W]
