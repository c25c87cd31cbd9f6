"""Every variant of every registered model and backbone, with what the contract tests have to know about each.

A new class or variant is a new row here; `test_models.py` fails until it has one.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from framework import nn
from framework.config import available, build
from framework.config.registry import find
from ocr.models import dbnet, text_classifier, text_recognizer
from ocr.models.crnn import CRNNConfig
from ocr.models.dbnet import DBNetConfig
from ocr.models.text_classifier import TextClassifierConfig
from ocr.models.text_recognizer import TextRecognizerConfig
from zoo.vision import pp_lcnet_v3, pp_lcnet_v4
from zoo.vision.lenet import LeNetConfig
from zoo.vision.mobilenet_v1_enhance import MobileNetV1EnhanceConfig
from zoo.vision.mobilenet_v3 import MobileNetV3DetConfig, MobileNetV3RecConfig
from zoo.vision.pp_lcnet import PPLCNetConfig
from zoo.vision.pp_lcnet_v3 import PPLCNetV3Config
from zoo.vision.pp_lcnet_v4 import PPLCNetV4Config

PACKAGES = ("ocr", "segmentation", "zoo", "framework")
Shape = tuple[int, ...]
Shapes = Callable[[nn.Layer, int, int, int], list[Shape]]
_CLASSES = 11
_COLUMNS_IN_TRAINING = 40  # of the PP-LCNet backbones of recognisers, whatever the width


@dataclass(frozen=True)
class Case:
    """One variant.

    Attributes:
        full: The config at its published size; it is never computed.
        small: A config of the same structure that is compiled; None where another row compiles that structure.
        image: A tiny input [N, H, W, 3]. `other` is a second size of the exported program.
        symbolic: The input of the exported program, and `constraints` on its sizes.
        shapes: The outputs for (layer, N, H, W) in the layer's mode.
        slow: The compiled checks run under the marker `slow`.
        gain: Factor of the kernels of `named_weights`, so that the image is still seen in the output.
        bfloat16: Root mean square of what bfloat16 dots change, relative to the deviation of the outputs.
        flat: Opt-out of the gradient test: a regular expression of the parameters whose gradient is 0, and of the
            statistics that stay, by construction; and why. Both ways are checked.
    """

    kind: str
    name: str
    variant: str
    full: Any
    small: Any | None
    image: Shape
    other: Shape
    symbolic: tuple[int | str, ...]
    shapes: Shapes
    slow: bool = False
    gain: float = 1.0
    bfloat16: float = 0.05
    flat: tuple[str, str] | None = None
    constraints: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}-{self.variant}" if self.variant else self.name

    def build(self, deploy: bool = False, full: bool = False) -> nn.Layer:
        """The model, or with `deploy` its deploy form: the model itself where it has one form only."""
        config = self.full if full else self.small
        if hasattr(config, "deploy"):
            return build(dataclasses.replace(config, deploy=deploy))
        return build(config, deploy=deploy) if self.two_forms else build(config)

    @property
    def two_forms(self) -> bool:
        layer = find(self.kind, self.name, PACKAGES).layer
        assert layer is not None
        return hasattr(self.full, "deploy") or "deploy" in inspect.signature(layer.__init__).parameters


def _halved(size: int, times: int) -> int:
    for _ in range(times):
        size = -(-size // 2)
    return size


def _maps(layer: nn.Layer, n: int, h: int, w: int) -> list[Shape]:
    return [(n, _halved(h, i), _halved(w, i), c) for i, c in enumerate(layer.out_channels, start=2)]


def _row(columns: int | None) -> Shapes:
    """One row of features: a column for every `columns` pixels, or those of the PP-LCNet recognisers."""

    def shapes(layer: nn.Layer, n: int, h: int, w: int) -> list[Shape]:
        fixed = columns is None and layer.training
        return [(n, 1, _COLUMNS_IN_TRAINING if fixed else w // (columns or 8), layer.out_channels)]

    return shapes


def _pooled(layer: nn.Layer, n: int, h: int, w: int) -> list[Shape]:
    return [(n, 1, 1, layer.out_channels)]


def _last_map(layer: nn.Layer, n: int, h: int, w: int) -> list[Shape]:
    return [(n, _halved(h, 5), _halved(w, 5), layer.out_channels)]


def _text_maps(layer: nn.Layer, n: int, h: int, w: int) -> list[Shape]:
    maps = 1
    if layer.training and not layer.config.deploy:
        maps = 12 if layer.config.parts.head.auxiliary else 3
    return [(n, h, w)] * maps


def _logits(layer: nn.Layer, n: int, h: int, w: int) -> list[Shape]:
    fixed = layer.training and not isinstance(layer.config.parts.backbone, MobileNetV1EnhanceConfig)
    return [(n, _COLUMNS_IN_TRAINING if fixed else w // 8, layer.config.parts.num_classes)]


def _crnn_logits(layer: nn.Layer, n: int, h: int, w: int) -> list[Shape]:
    return [(n, w // 4, layer.config.num_classes)]


def _classes(layer: nn.Layer, n: int, h: int, w: int) -> list[Shape]:
    return [(n, layer.config.parts.num_classes)]


_PAGE = {"image": (2, 64, 96, 3), "other": (1, 96, 64, 3)}
_LINE = {"image": (2, 48, 72, 3), "other": (3, 48, 96, 3), "symbolic": ("n", 48, "8*w", 3)}
_ANY_PAGE = {**_PAGE, "image": (2, 61, 95, 3), "symbolic": ("n", "h", "w", 3)}


# Learnable affines of PP-LCNetV3 whose factor and summand the next layer takes out again
_NORMALISED_BRANCHES = "an affine, and then nothing but normalised 1x1 branches"
_AFFINE = r"blocks(?!6\.[01]\.)\d\.\d\.dw_conv\.act\.lab\.(scale|bias)"  # not where squeezing stands between
_STRIDED = r"blocks[345]\.0\.dw_conv\.lab\.(scale|bias)"  # the integer 2 as stride: no activation


def _models() -> Iterator[Case]:
    bias = (r"head\..*conv2\.bias", "a normalisation follows, which takes the bias out again")
    for variant in dbnet.VARIANTS:
        tiny = variant == "PP-OCRv6_tiny_det"
        config = DBNetConfig(variant)
        yield Case(
            "model",
            "DBNet",
            variant,
            config,
            config if tiny or variant == "PP-OCRv3_mobile_det" else None,
            **_PAGE,
            symbolic=("n", "32*h", "32*w", 3),
            shapes=_text_maps,
            slow=not tiny,
            flat=bias,
        )
    for variant in text_recognizer.VARIANTS:
        tiny = variant == "PP-OCRv6_tiny_rec"
        compiled = tiny or variant in ("PP-OCRv3_mobile_rec", "PP-OCRv6_small_rec")
        small = TextRecognizerConfig(variant, num_classes=_CLASSES) if compiled else None
        config = TextRecognizerConfig(variant)
        yield Case("model", "TextRecognizer", variant, config, small, **_LINE, shapes=_logits, slow=not tiny)
    for variant in text_classifier.VARIANTS:
        mobile = variant == "ch_ppocr_mobile_v2.0_cls"
        config = TextClassifierConfig(variant)
        yield Case(
            "model",
            "TextClassifier",
            variant,
            config,
            config if mobile or "x0_25" in variant else None,
            (4, 48, 77, 3),
            (1, 48, 64, 3),
            ("n", 48, "w", 3),
            shapes=_classes,
            slow=not mobile,
            gain=1.9,
        )
    yield Case(
        "model",
        "CRNN",
        "",
        CRNNConfig(num_classes=97),
        CRNNConfig(MobileNetV3RecConfig(0.35, (1, 2, 2, 2)), hidden_size=6, num_classes=_CLASSES),
        (2, 32, 44, 3),
        (1, 32, 64, 3),
        ("n", 32, "4*w", 3),
        shapes=_crnn_logits,
        gain=1.9,
    )

    yield Case(
        "model",
        "LeNet",
        "",
        LeNetConfig(),
        LeNetConfig(_CLASSES),
        (2, 28, 28, 3),
        (1, 28, 28, 3),
        ("n", 28, 28, 3),
        shapes=lambda layer, n, h, w: [(n, layer.config.num_classes)],
    )


def _backbones() -> Iterator[Case]:
    yield Case(
        "backbone",
        "MobileNetV3Det",
        "",
        MobileNetV3DetConfig(),
        MobileNetV3DetConfig(0.35),
        **_ANY_PAGE,
        shapes=_maps,
    )
    yield Case(
        "backbone",
        "MobileNetV3Rec",
        "",
        MobileNetV3RecConfig(),
        # Smaller scales have two channels in the first squeeze: with these weights ReLU cuts both.
        MobileNetV3RecConfig(1.0),
        (2, 48, 72, 3),
        (1, 48, 96, 3),
        ("n", 48, "4*w", 3),
        shapes=_row(4),
        gain=1.9,
    )
    for variant, columns in (("det", 0), ("rec", None)):
        yield Case(
            "backbone",
            "PPLCNetV3",
            variant,
            PPLCNetV3Config(variant, 0.75),  # type: ignore[arg-type]
            PPLCNetV3Config(variant, 0.25),  # type: ignore[arg-type]
            **(_LINE if columns is None else _ANY_PAGE),
            shapes=_row(None) if columns is None else _maps,
            slow=variant == "det",
            flat=(_AFFINE if columns is None else f"{_AFFINE}|{_STRIDED}", _NORMALISED_BRANCHES),
        )
    for variant in pp_lcnet_v4.SIZES:
        line = variant.startswith("rec")
        config = PPLCNetV4Config(variant)  # type: ignore[arg-type]
        yield Case(
            "backbone",
            "PPLCNetV4",
            variant,
            config,
            config if variant.endswith("tiny") else None,
            **(_LINE if line else _ANY_PAGE),
            shapes=_row(None) if line else _maps,
            slow=not line,
        )
    for variant, last, shapes in (("pooled", 1280, _pooled), ("map", None, _last_map)):
        yield Case(
            "backbone",
            "PPLCNet",
            variant,
            PPLCNetConfig(last_channels=last),
            PPLCNetConfig(scale=0.25, last_channels=last and 32),
            **_ANY_PAGE,
            shapes=shapes,
            slow=variant == "map",
            gain=2.0,
        )
    yield Case(
        "backbone",
        "MobileNetV1Enhance",
        "",
        MobileNetV1EnhanceConfig(),
        MobileNetV1EnhanceConfig(0.25),
        **_LINE,
        shapes=_row(8),
        gain=1.9,
    )


def _class_scores(layer: nn.Layer, n: int, h: int, w: int) -> list[Shape]:
    return [(n, layer.config.num_classes)]


# What differs from the usual row of a classifier, by class.
_CLASSIFIERS: dict[str, dict[str, Any]] = {
    "CSPResNet": {
        "flat": (
            r"stages\.[023]\.blocks\.0\.conv2\.alpha",
            "below 0 with these weights, where upstream takes 1",
        ),
    },
    # Smaller scales have two channels in the first squeeze: with these weights ReLU cuts both.
    "MobileNetV3": {"compiled": "mobilenetv3_small_x1_0"},
    "PPLCNetV3": {"flat": (f"{_AFFINE}|{_STRIDED}", _NORMALISED_BRANCHES)},
    # The number of windows is a number of the program.
    "SwinTransformer": {"other": (1, 64, 96, 3), "symbolic": ("n", 64, 96, 3)},
    "VisionTransformer": {
        "config": {"image_size": 64},
        "image": (2, 64, 64, 3),
        "other": (1, 64, 64, 3),
        "symbolic": ("n", 64, 64, 3),
    },
}


def _classifiers() -> Iterator[Case]:
    """Every variant of every backbone with a classifier (zoo/contracts.py); the smallest is compiled."""
    for name in available("model", ("zoo",)):
        entry = find("model", name, PACKAGES)
        module = sys.modules[entry.module]
        if not hasattr(module, "SMALL"):
            continue
        own = dict(_CLASSIFIERS.get(name, {}))
        config, compiled = own.pop("config", {}), own.pop("compiled", module.SMALL)
        for variant in module.VARIANTS:
            sized = entry.config(variant=variant, num_classes=_CLASSES, **config)
            row = {**_PAGE, "symbolic": ("n", "32*h", "32*w", 3), "shapes": _class_scores, **own}
            small = sized if variant == compiled else None
            yield Case("model", name, variant, sized, small, **row)


def _segmented(further: Shapes | None = None) -> Shapes:
    """Logits for every pixel; `further` are the outputs that follow in training."""

    def shapes(layer: nn.Layer, n: int, h: int, w: int) -> list[Shape]:
        auxiliary = further(layer, n, h, w) if further is not None and layer.training else []
        return [(n, h, w, layer.config.num_classes), *auxiliary]

    return shapes


def _copies(count: int) -> Shapes:
    return lambda layer, n, h, w: [(n, h, w, layer.config.num_classes)] * count


def _embedded(layer: nn.Layer, n: int, h: int, w: int) -> list[Shape]:
    coarse = (n, _halved(h, 2), _halved(w, 2))
    return [(*coarse, layer.config.num_classes), (*coarse, layer.config.embedding_dim)]


_NORMALISED = "a normalisation follows, which takes the bias out again"
_BY_32 = {**_PAGE, "symbolic": ("n", "32*h", "32*w", 3)}
# What differs from the usual row of a segmentation model, by class.
_SEGMENTERS: dict[str, dict[str, Any]] = {
    "DeepLabV3P": {**_BY_32, "flat": (r"head\..*_conv\.bias", _NORMALISED)},
    "FCN": {**_BY_32, "flat": (r"head\.conv_1\._conv\.bias", _NORMALISED)},
    "HRNetW48Contrast": {
        **_BY_32,
        "shapes": _segmented(_embedded),
        "flat": (r"(cls_head\.0|proj_head\.proj\.0)\._conv\.bias", _NORMALISED),
    },
    "OCRNet": {
        **_BY_32,
        "shapes": _segmented(_copies(1)),
        "flat": (r"head\..*_conv\.bias", _NORMALISED),
    },
    "PPHumanSegLite": {
        "flat": (r"block[12]\.[1-9]\._depthwise_separable_0\..*", "upstream has it and does not call it"),
    },
    "PPLiteSeg": {
        "shapes": _segmented(_copies(2)),
        "flat": (r"ppseg_head\.cm\..*_conv\.bias", _NORMALISED),
    },
    "SegFormer": {"constraints": ("h >= 32", "w >= 32")},
}


def _segmenters() -> Iterator[Case]:
    """Every variant of every segmentation model (segmentation/contracts.py); the smallest is compiled."""
    for name in available("model", ("segmentation",)):
        entry = find("model", name, PACKAGES)
        module = sys.modules[entry.module]
        row = {**_ANY_PAGE, "shapes": _segmented(), **_SEGMENTERS.get(name, {})}
        sizes = [{"variant": variant} for variant in getattr(module, "VARIANTS", ())] or [{}]
        for size in sizes:
            variant = size.get("variant", "")
            compiled = variant == getattr(module, "SMALL", "")
            small = entry.config(**size, num_classes=_CLASSES) if compiled else None
            yield Case("model", name, variant, entry.config(**size), small, **row)


CASES = (*_models(), *_backbones(), *_classifiers(), *_segmenters())
CLASSIFIERS = tuple(case for case in CASES if case.shapes is _class_scores)

# Names within a class that a file can ask for: every one has a row.
VARIANTS: dict[str, set[str]] = {
    "DBNet": set(dbnet.VARIANTS),
    "TextRecognizer": set(text_recognizer.VARIANTS),
    "TextClassifier": set(text_classifier.VARIANTS),
    "PPLCNetV3": set(pp_lcnet_v3.STAGES),
    "PPLCNetV4": set(pp_lcnet_v4.SIZES),
}

# Values in the state dict at the published size, by variant, or by name where a model has none; of the form that
# upstream publishes. PP-OCRv6 and the classifiers: counted in the official programs; older detectors and recognisers:
# upstream's own exports keep some normalisations, so the deploy form has these values after folding them
# (tests/golden).
PUBLISHED: dict[str, tuple[bool, int]] = {
    "PP-OCRv3_mobile_det": (True, 573_905),
    "PP-OCRv4_mobile_det": (True, 1_171_505),
    "PP-OCRv5_mobile_det": (True, 1_171_505),
    "PP-OCRv6_tiny_det": (True, 428_405),
    "PP-OCRv6_small_det": (True, 2_453_353),
    "PP-OCRv6_medium_det": (True, 15_487_329),
    "PP-OCRv3_mobile_rec": (True, 2_633_369),
    "PP-OCRv4_mobile_rec": (True, 2_687_653),
    "PP-OCRv5_mobile_rec": (True, 4_110_613),
    "PP-OCRv6_tiny_rec": (True, 1_103_318),
    "PP-OCRv6_small_rec": (True, 5_266_550),
    "PP-OCRv6_medium_rec": (True, 19_113_430),
    "ch_ppocr_mobile_v2.0_cls": (False, 133_628),
    "PP-LCNet_x0_25_textline_ori": (False, 79_354),
    "PP-LCNet_x1_0_textline_ori": (False, 1_685_026),
    "PP-LCNet_x1_0_doc_ori": (False, 1_687_588),
    "CRNN": (False, 454_321),  # en_number_mobile_v2.0_rec
}
