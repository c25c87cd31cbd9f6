"""What the segmentation models on HRNet and the contrast's loss are compared on; imports numpy alone."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

CLASSES, IGNORED = 19, 255


class Case(NamedTuple):
    """`train` is the number of images in training; evaluation takes the first of them."""

    model: str
    backbone: str  # PaddleSeg's name
    size_hw: tuple[int, int]
    watched: tuple[str, ...] = ()
    align_corners: bool = False
    train: int = 3


_CONTRAST = ("cls_head.0", "proj_head")
_OCR = ("head.conv3x3_ocr", "head.aux_head", "head.spatial_ocr.attention_block", "head.spatial_ocr")
_FCN = ("head.conv_1",)
CASES: dict[str, Case] = {
    "contrast_w18_small": Case("HRNetW48Contrast", "HRNet_W18_Small_V1", (97, 130), _CONTRAST),
    "contrast_w48": Case("HRNetW48Contrast", "HRNet_W48", (64, 96), _CONTRAST),
    "contrast_w48_full": Case("HRNetW48Contrast", "HRNet_W48", (512, 1024), _CONTRAST, train=2),
    "ocrnet_w18_small": Case("OCRNet", "HRNet_W18_Small_V1", (97, 130), _OCR, align_corners=True),
    "ocrnet_w18": Case("OCRNet", "HRNet_W18", (96, 160), _OCR),
    "ocrnet_w18_full": Case("OCRNet", "HRNet_W18", (512, 1024), _OCR, train=0),
    "ocrnet_w48": Case("OCRNet", "HRNet_W48", (96, 160), _OCR),
    "fcn_w18_small": Case("FCN", "HRNet_W18_Small_V1", (97, 130), _FCN, align_corners=True),
    "fcn_w18": Case("FCN", "HRNet_W18", (96, 160), _FCN),
    "fcn_w48": Case("FCN", "HRNet_W48", (96, 160), _FCN, train=0),
}


_BRANCHES = re.compile(r"(\.conv[23]|\.residual_\w+)\._batch_norm\.weight$")


def damp(weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Weights by PaddleSeg's names, those that end a residual branch or an exchange being smaller.

    Else activations grow to 1e5 in the larger networks, and OCRNet's softmaxes choose single pixels.
    """
    return {name: x * np.float32(0.3) if _BRANCHES.search(name) else x for name, x in weights.items()}


def images(case: Case) -> np.ndarray:
    """[N, 3, H, W] noise; images differ in contrast and brightness, for else a normalisation over a few pixels of the
    coarsest map only amplifies rounding."""
    rng, count = np.random.RandomState(7), max(case.train, 1)
    x = rng.standard_normal((count, 3, *case.size_hw)) * rng.uniform(0.3, 1.5, (count, 1, 1, 1))
    return (x + rng.standard_normal((count, 3, 1, 1))).astype(np.float32)


def labels(case: Case) -> np.ndarray:
    """[N, H, W] int64: blocks of 64 pixels, some of them ignored."""
    height, width = case.size_hw
    blocks = np.random.RandomState(8).randint(
        -2, CLASSES, (max(case.train, 1), height // 64 + 1, width // 64 + 1)
    )
    pixels = np.where(blocks < 0, IGNORED, blocks).repeat(64, 1).repeat(64, 2)
    return pixels[:, :height, :width].astype(np.int64)


class Contrast(NamedTuple):
    """Settings of the loss, and how sure the logits are of the labels: the more so, the fewer pixels are hard."""

    max_samples: int = 1024
    max_views: int = 100
    sure: float = 1.5
    temperature: float = 0.1
    base_temperature: float = 0.07


CONTRASTS: dict[str, Contrast] = {
    "defaults": Contrast(),
    "few_samples": Contrast(max_samples=61, max_views=20),  # an odd number of views
    "nearly_all_easy": Contrast(max_samples=256, max_views=16, sure=6.0),
    "all_easy": Contrast(max_samples=256, max_views=16, sure=100.0),
    "nearly_all_hard": Contrast(max_samples=256, max_views=17, sure=-0.5),
    "all_hard": Contrast(max_samples=256, max_views=17, sure=-100.0),
    "warm": Contrast(temperature=0.5, base_temperature=0.2),
}
CONTRAST_CLASSES, CONTRAST_DIM, CONTRAST_NHW = 5, 8, (2, 24, 36)


def contrast_inputs(case: Contrast) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Logits [N, h, w, C], embeddings [N, h, w, D] and labels [N, 2h, 3w].

    Class 4 has too few pixels in one image and is not in the other; class 3 is in one image alone.
    """
    rng = np.random.RandomState(11)
    n, h, w = CONTRAST_NHW
    blocks = rng.randint(0, 3, (n, h // 4, w // 4))
    blocks[0, 2:4] = 3
    blocks[1, 0, :2] = IGNORED
    small = blocks.repeat(4, 1).repeat(4, 2)
    small[0, 0, :9] = 4
    truth = small.repeat(2, 1).repeat(3, 2)
    truth[:, 1::2] = IGNORED  # rows that shrinking skips
    logits = rng.standard_normal((n, h, w, CONTRAST_CLASSES)) + case.sure * (small[..., None] == np.arange(5))
    vectors = rng.standard_normal((n, h, w, CONTRAST_DIM)) + 0.5 * (small[..., None] % 8 == np.arange(8))
    vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True)
    return logits.astype(np.float32), vectors.astype(np.float32), truth.astype(np.int64)
