"""SVTR: a text line through one vision network and CTC, where the paper has it rectified before.

Paper: Du et al. 2022, https://arxiv.org/abs/2205.00159
Reference: PaddlePaddle/PaddleOCR configs/rec/{rec_svtrnet,rec_svtrnet_ch}.yml
Differs: channels last; forward gives logits in training and in eval, where upstream gives probabilities in eval.
Weights: official `.pdparams` by name.

    transform  with `rectify`: the line straightened, at the size of the backbone
    backbone   one row of features, see zoo/vision/svtr.py
    head       a classifier of each column
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import jax

from framework import nn
from framework.config import Kind, register
from framework.core.errors import ShapeError
from ocr.layers.ctc_head import CTCHead, CTCHeadConfig
from ocr.layers.stn import STN
from zoo.contracts import BackboneConfig, Contract, build_backbone
from zoo.vision.svtr import SVTRNetConfig

_CLASSES = 37
_TINY = SVTRNetConfig()
PARAMS = 4_167_845  # of the defaults, counted in the reference


@dataclass(frozen=True)
class SVTRConfig:
    """The defaults are rec_svtrnet.yml's without its rectification, of 36 letters and digits.

    `num_classes` counts the blank; None takes the default's, where no task's dictionary decides. `rectify` is the
    (height, width) that the backbone takes: images may have any size then, and are brought to it along a thin plate
    spline that is learned. `deploy` builds the form with normalisations folded into the convolutions.
    """

    backbone: Annotated[BackboneConfig, Kind("backbone")] = _TINY
    rectify: tuple[int, int] | None = None
    num_classes: int | None = _CLASSES
    deploy: bool = False


@register("model", config=SVTRConfig)
class SVTR(nn.Model[SVTRConfig]):
    """[N, *backbone.image_hw, 3] -> CTC logits [N, backbone.columns, num_classes]; class 0 is the blank."""

    example_shape = (1, 32, 100, 3)
    contract = Contract(
        inputs=("n", 32, 100, 3),
        outputs=lambda layer, n, h, w: [(n, w // 4, layer.config.num_classes)],
    )

    def __init__(self, config: SVTRConfig) -> None:
        super().__init__(config)
        if config.rectify is not None:
            self.transform = STN(config.rectify, config.deploy)
        self.backbone = build_backbone(config.backbone, config.deploy)
        num_classes = _CLASSES if config.num_classes is None else config.num_classes
        self.head = CTCHead(CTCHeadConfig(), self.backbone.features[-1].channels, num_classes)

    def forward(self, x: jax.Array) -> jax.Array:
        return self.head(self._sequence(x))

    def read(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Best class and its probability for each column, see CTCHead.read."""
        return self.head.read(self._sequence(x))

    def _sequence(self, x: jax.Array) -> jax.Array:
        if x.ndim != 4 or x.shape[3] != 3:
            raise ShapeError(
                "SVTR takes color images", received=x.shape, allowed="[N, H, W, 3], channels last"
            )
        if self.config.rectify is not None:
            x = self.transform(x)
        return self.backbone(x)[-1][:, 0]  # [N, columns, C]
